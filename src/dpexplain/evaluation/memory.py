"""Exact local moments kept in memory, so that several mechanisms can be compared on the same queries for one pass each."""

from __future__ import annotations

from typing import Any, cast

from dpexplain.core.moments import LocalMoments, Moments
from dpexplain.data import PrivateData
from dpexplain.mechanisms.ports import Rows


class RememberedRows:
    """Rows that answer the same local question once. Everything else is passed on."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self.known = rows, dict[tuple[bytes, str], Moments]()

    def local(self, query: LocalMoments) -> Moments:
        key = query.point.tobytes(), repr(query.weight.to_dict())
        if key not in self.known:
            self.known[key] = self._rows.local(query)
        return self.known[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


def remember(data: PrivateData) -> None:
    """Keep (A, b) of every query asked from now on: n² numbers each. For offline comparisons only."""
    data._rows = cast(Rows, RememberedRows(data._rows))
