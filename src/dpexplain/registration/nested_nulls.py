"""Where nulls are inside nested values. A null makes whole numbers floats in the same place of other rows, so rows are shown apart by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpexplain.registration.entry_kinds import Kinds
from dpexplain.registration.row_groups import AS_GIVEN


def group_by_nulls(column: list[Any]) -> Kinds:
    """One number for nested values without a null, and others by where nulls are: a null makes whole numbers floats in the same place of other rows."""
    known: dict[frozenset[Any], int] = {frozenset(): AS_GIVEN}
    return np.array([known.setdefault(frozenset(_null_places(one)), AS_GIVEN + len(known)) for one in column], dtype=np.int64)


def _null_places(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The fields in which something is missing, whatever the position in a list."""
    if value is None:
        yield place
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from _null_places(member, (*place, name))
    elif isinstance(value, (list, tuple)):
        for member in value:
            yield from _null_places(member, place)
