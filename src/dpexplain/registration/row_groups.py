"""Decides which rows are shown to a model together, each row by itself. `proofs/registration.md`.

Rows whose entries are of different kinds (text, booleans, numbers, dates) are shown apart from each other, and complete rows apart from others. A missing
entry counts as what the domain declares for its column. So the columns of a batch hold entries of one kind each, and perhaps missing ones, and no other row
decides the type that a column is shown with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpexplain.domain import Numeric
from dpexplain.domain.catalogue import Feature
from dpexplain.domain.values import Column
from dpexplain.registration.entry_kinds import (
    EntryKind,
    Kinds,
    Mask,
    find_kinds,
    find_missing,
    find_whole,
    has_whole_values,
    missing_kind,
)

AS_GIVEN = int(EntryKind.OTHER)  # the kind of all entries of a column that is shown as it is


@dataclass(frozen=True, slots=True, repr=False)
class EntryKinds:
    """How the entries of one column are shown: the kind of each, or one for all; and which of them are complete."""

    kinds: Kinds | int
    complete: Mask | bool = True

    def kind_at(self, position: int) -> int:
        return int(self.kinds if isinstance(self.kinds, int) else self.kinds[position])


@dataclass(frozen=True, slots=True, repr=False)
class Group:
    """Rows that are shown together: their positions, whether they are complete, and of which kind their entries are in each column."""

    positions: NDArray[np.intp]
    complete: bool
    kinds: Mapping[Any, int]


def describe_column(column: Column, feature: Feature | None, missing: int = EntryKind.TEXT) -> EntryKinds:
    """The kinds of the entries of a column that a feature declares, or that none does. An entry is complete if it is there and, as a category, no fraction.

    `missing` is what a missing entry counts as where no feature says it.
    """
    if isinstance(feature, Numeric):
        return EntryKinds(int(EntryKind.NUMBER), ~find_missing(column))
    if has_whole_values(feature):
        return EntryKinds(int(EntryKind.NUMBER), find_whole(column))
    return describe_kinds(find_kinds(column), lambda: column, feature, missing)


def describe_kinds(kinds: Kinds, read: Callable[[], Column], feature: Feature | None, missing: int) -> EntryKinds:
    """The same where the kinds are known, with MISSING for what is missing. `read` is called where some entries are numbers."""
    complete: Mask | bool = True
    if feature is not None:
        complete = kinds != EntryKind.MISSING
        if (kinds == EntryKind.NUMBER).any():
            complete &= (kinds != EntryKind.NUMBER) | find_whole(read())
    counts_as = missing if feature is None else missing_kind(feature)
    return EntryKinds(np.where(kinds == EntryKind.MISSING, np.int16(counts_as), kinds), complete)


def group_by_kinds(columns: Mapping[Any, EntryKinds], count: int) -> list[Group]:
    """Rows with the same kinds in all columns, complete ones apart from others. No rows are one group of rows that are shown as they are."""
    if not count:
        return [Group(np.empty(0, dtype=np.intp), True, dict.fromkeys(columns, AS_GIVEN))]
    complete = np.ones(count, dtype=np.bool_)
    for column in columns.values():
        complete &= column.complete
    keys = (~complete).astype(np.intp)
    for column in columns.values():
        kinds = column.kinds
        if not isinstance(kinds, int) and (kinds != kinds[0]).any():
            keys = np.unique(keys * (int(kinds.max()) + 1) + kinds, return_inverse=True)[1]
    return [_group(positions, bool(complete[positions[0]]), columns) for positions in _positions(keys)]


def _positions(keys: NDArray[np.intp]) -> Iterable[NDArray[np.intp]]:
    if (keys == keys[0]).all():
        return [np.arange(len(keys))]
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def _group(positions: NDArray[np.intp], complete: bool, columns: Mapping[Any, EntryKinds]) -> Group:
    first = int(positions[0])
    return Group(positions, complete, {name: column.kind_at(first) for name, column in columns.items()})
