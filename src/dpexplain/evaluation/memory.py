"""Exact local moments kept in memory, so that several mechanisms can be compared on the same queries for one pass each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from dpexplain.core.arrays import Vector
from dpexplain.core.moments import LocalMoments, Moments, RawMoments, RawSums
from dpexplain.core.weights import Weight
from dpexplain.data import PrivateData
from dpexplain.mechanisms.ports import Rows


class RememberedRows:
    """Rows that answer the same local question once, and a raw one about the same point and weight with it. Everything else is passed on."""

    def __init__(self, rows: Rows, most: int | None = None) -> None:
        self._rows, self._most = rows, most
        self.known, self._sums = dict[tuple[bytes, str], Moments](), dict[tuple[bytes, str], RawSums]()

    def local(self, query: LocalMoments) -> Moments:
        return self.local_many([query])[0]

    def local_many(self, queries: Sequence[LocalMoments]) -> list[Moments]:
        """Reads the rows once for all questions that are new."""
        new = {_key(query.point, query.weight): query for query in queries}
        new = {key: query for key, query in new.items() if key not in self.known}
        if new:
            self.known.update(zip(new, self._rows.local_many(list(new.values())), strict=True))
        answers = [self.known[_key(query.point, query.weight)] for query in queries]
        self._forget()
        return answers

    def raw(self, query: RawMoments) -> RawSums:
        key = _key(query.anchor, query.weight)
        if key not in self._sums:
            self._sums[key] = self._rows.raw(query)
            self.known[key] = Moments(self._sums[key].S2, self._sums[key].t1)
        answer = self._sums[key]
        self._forget()
        return answer

    def _forget(self) -> None:
        for kept in (self.known, self._sums):
            while self._most is not None and len(kept) > self._most:
                del kept[next(iter(kept))]  # the oldest

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


def _key(point: Vector, weight: Weight) -> tuple[bytes, str]:
    return point.tobytes(), repr(weight.to_dict())


def remember(data: PrivateData, most: int | None = None) -> None:
    """Keep the sums of the queries asked from now on (n² numbers each), or of the last `most`. For offline comparisons only."""
    data._rows = cast(Rows, RememberedRows(data._rows, most))
