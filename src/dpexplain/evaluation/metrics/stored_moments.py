"""A cache of exact local moments, so that several mechanisms can be compared on the same queries with one read of the rows for each query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from dpexplain.core.arrays import Vector
from dpexplain.core.moments import LocalMoments, Moments
from dpexplain.core.weights import Weight
from dpexplain.data import PrivateData
from dpexplain.mechanisms.ports import Rows


class RememberedRows:
    """Rows with a cache of local moments. All other statistics are passed on."""

    def __init__(self, rows: Rows, most: int | None = None) -> None:
        self._rows, self._most = rows, most
        self.known = dict[tuple[bytes, str], Moments]()

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

    def _forget(self) -> None:
        while self._most is not None and len(self.known) > self._most:
            del self.known[next(iter(self.known))]  # the oldest

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


def _key(point: Vector, weight: Weight) -> tuple[bytes, str]:
    return point.tobytes(), repr(weight.to_dict())


def remember(data: PrivateData, most: int | None = None) -> None:
    """Cache the local moments of all queries from now on (n² numbers each), or of the last `most`. For offline comparisons only."""
    data.wrap_rows(lambda rows: cast(Rows, RememberedRows(rows, most)))
