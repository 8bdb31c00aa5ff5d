"""The kind of each entry of a column, and what a missing entry counts as. Each entry is looked at by itself: `proofs/registration.md`."""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.domain import Binary, Categorical, Datetime, Numeric, Ordinal
from dpexplain.domain.catalogue import Feature
from dpexplain.domain.values import Column, Value, floats, is_missing

Mask: TypeAlias = NDArray[np.bool_]
Kinds: TypeAlias = NDArray[np.int16] | NDArray[np.int64]  # the latter where there may be as many kinds as entries
EXACT = 2.0**53


class EntryKind(IntEnum):
    """What a data frame library makes of an entry in a column of Python objects."""

    TEXT = 0
    TRUTH = 1
    NUMBER = 2
    INSTANT = 3
    OTHER = 4
    CATEGORY = 5  # a declared value in a column of pandas categories
    MISSING = 6


_PYTHON_TYPES: dict[type, EntryKind] = {
    NoneType: EntryKind.MISSING,
    str: EntryKind.TEXT,
    bool: EntryKind.TRUTH,
    np.bool_: EntryKind.TRUTH,
    np.timedelta64: EntryKind.OTHER,  # which counts as an np.integer
    int: EntryKind.NUMBER,
    float: EntryKind.NUMBER,
    np.integer: EntryKind.NUMBER,
    np.floating: EntryKind.NUMBER,
    datetime: EntryKind.INSTANT,
    np.datetime64: EntryKind.INSTANT,
}


class _KindsOfTypes(dict[type, EntryKind]):
    """The kind of all entries of one Python type, looked up once for each type."""

    def __missing__(self, given: type) -> EntryKind:
        found = self[given] = next((kind for known, kind in _PYTHON_TYPES.items() if issubclass(given, known)), EntryKind.OTHER)
        return found


_KINDS_OF_TYPES = _KindsOfTypes()


def kind_of(entry: Any) -> EntryKind:
    """The kind of one entry. Text that is not valid Unicode cannot be stored as text by pandas."""
    kind = _KINDS_OF_TYPES[type(entry)]
    if kind == EntryKind.TEXT:
        return kind if _is_unicode(entry) else EntryKind.OTHER
    return EntryKind.MISSING if kind != EntryKind.TRUTH and is_missing(entry) else kind


def find_kinds(column: Column) -> Kinds:
    """The kind of each entry of a column."""
    known = _KINDS_OF_COLUMNS.get(column.dtype.kind)
    if known is not None:
        return mark_missing(known, find_missing(column))
    items = column.tolist()
    types = set(map(type, items))  # at C speed: most columns of text need no second look
    if types <= {str, NoneType} and _is_unicode("".join(filter(None, items))):
        return mark_missing(EntryKind.TEXT, find_missing(column))
    return np.fromiter(map(kind_of, items), dtype=np.int16, count=len(items))


_KINDS_OF_COLUMNS = {
    "b": EntryKind.TRUTH,
    "i": EntryKind.NUMBER,
    "u": EntryKind.NUMBER,
    "f": EntryKind.NUMBER,
    "M": EntryKind.INSTANT,
    "U": EntryKind.TEXT,
    "T": EntryKind.TEXT,
}


def mark_missing(kind: int, missing: Mask) -> Kinds:
    return np.where(missing, np.int16(EntryKind.MISSING), np.int16(kind))


def find_missing(column: Column) -> Mask:
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=np.bool_)
    items = column.tolist()
    types = set(map(type, items))
    if types <= {str}:
        return np.zeros(len(column), dtype=np.bool_)
    if types <= {str, NoneType}:
        return np.fromiter((item is None for item in items), dtype=np.bool_, count=len(column))
    return np.fromiter(map(is_missing, items), dtype=np.bool_, count=len(column))


def find_whole(column: Column) -> Mask:
    """Which entries are whole numbers that a float holds exactly."""
    numbers = floats(column)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(numbers) < EXACT) & (numbers == np.floor(numbers)))


def missing_kind(feature: Feature) -> EntryKind:
    """What a missing entry counts as: what the domain declares for its column.

    True, 1 and "yes" may stand in the column of a yes/no feature, so a missing entry of it is a kind of its own.
    """
    if is_yes_no(feature):
        return EntryKind.MISSING
    if isinstance(feature, Numeric):
        return EntryKind.NUMBER
    if isinstance(feature, Datetime):
        return EntryKind.INSTANT
    values = category_values(feature)
    return EntryKind.NUMBER if values and not any(isinstance(value, str) for value in values) else EntryKind.TEXT


def category_values(feature: Any) -> tuple[Value, ...]:
    """The values that a feature declares; none for numbers and dates."""
    if not isinstance(feature, (Categorical, Ordinal, Binary)):
        return ()
    return tuple((feature.levels if isinstance(feature, Ordinal) else feature.values) or ())


def is_yes_no(feature: Any) -> bool:
    """Whether a feature is declared to be true or false, with no values of its own."""
    return isinstance(feature, Binary) and feature.values is None


def has_whole_values(feature: Any) -> bool:
    """Whether all values that a feature declares are whole numbers: then its entries are read as numbers."""
    values = category_values(feature)
    return bool(values) and all(type(value) is int for value in values)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
