"""Private columns before they have a domain: read row by row, counted in public bins or by the texts they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.text_prior import LONGEST
from dpexplain.core.value_bins import COARSE, FINE, coarse_bins, fine_bins
from dpexplain.domain.columns import read_columns
from dpexplain.domain.dates import instants
from dpexplain.domain.values import Column, floats
from dpexplain.registration.options import RegistrationOptions
from dpexplain.registration.owners import keep_first, owner_name, owners_of

DAY = 86400.0
_PLAIN = {str, int, float, bool, NoneType}


class RawColumns:
    """The columns of a table, each by the kind that was declared for it. Answers are exact and private: they leave through a door only."""

    def __init__(self, rows: Any, kinds: Mapping[str, str], terms: RegistrationOptions) -> None:
        columns = read_columns(rows, list(kinds))
        owners = None if terms.unit is None else owners_of(rows, terms.unit)
        kept = slice(None) if owners is None else np.flatnonzero(keep_first(owners, terms.max_rows_per_unit, {}))
        self._columns = {name: column[kept] for name, column in columns.items()}
        self._kinds = dict(kinds)

    def coarse(self, names: Sequence[str]) -> Vector:
        """How many numbers of each column fall into each coarse bin: (columns · COARSE,)."""
        return np.concatenate([_count(coarse_bins(self._numbers(name)), COARSE) for name in names])

    def fine(self, ranges: Mapping[str, tuple[float, float]]) -> Vector:
        """The same for equal bins of a range each: (columns · FINE,)."""
        return np.concatenate([_count(fine_bins(self._numbers(name), *ends), FINE) for name, ends in ranges.items()])

    def texts(self, name: str) -> dict[str, int]:
        """How many rows hold each text; missing and overlong ones are counted nowhere. 7, 7.0 and "7" are one text."""
        column = self._columns[name]
        items = column.tolist() if column.dtype.kind != "M" else list(column)
        if set(map(type, items)) <= _PLAIN:  # those that are equal have the same name, so each is named once
            return _join((owner_name(item), count) for item, count in Counter(items).items())
        return _join((owner_name(item), 1) for item in items)

    def _numbers(self, name: str) -> Vector:
        column: Column = self._columns[name]
        if self._kinds[name] in ("date", "datetime"):
            return instants(column) / (DAY if self._kinds[name] == "date" else 1.0)
        return floats(column)


def _join(pairs: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for text, count in pairs:
        if 0 < len(text) <= LONGEST:
            found[text] = found.get(text, 0) + count
    return found


def _count(bins: Any, size: int) -> Vector:
    return np.bincount(bins[bins >= 0], minlength=size).astype(np.float64)
