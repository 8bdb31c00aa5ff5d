"""Exact local moments kept in memory, so that several mechanisms can be compared on the same queries for one pass each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from dpexplain.core.moments import LocalMoments, Moments
from dpexplain.data import PrivateData
from dpexplain.mechanisms.ports import Rows


class RememberedRows:
    """Rows that answer the same local question once. Everything else is passed on."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self.known = rows, dict[tuple[bytes, str], Moments]()

    def local(self, query: LocalMoments) -> Moments:
        return self.local_many([query])[0]

    def local_many(self, queries: Sequence[LocalMoments]) -> list[Moments]:
        """Reads the rows once for all questions that are new."""
        new = {_key(query): query for query in queries if _key(query) not in self.known}
        if new:
            self.known.update(zip(new, self._rows.local_many(list(new.values())), strict=True))
        return [self.known[_key(query)] for query in queries]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


def _key(query: LocalMoments) -> tuple[bytes, str]:
    return query.point.tobytes(), repr(query.weight.to_dict())


def remember(data: PrivateData) -> None:
    """Keep (A, b) of every query asked from now on: n² numbers each. For offline comparisons only."""
    data._rows = cast(Rows, RememberedRows(data._rows))
