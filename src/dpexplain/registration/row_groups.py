"""Decides which rows are shown to a model together, each row by itself. `proofs/registration.md`.

Complete rows are shown apart from all others, and those of them whose entries are of different kinds (text, booleans, numbers, dates) apart from each
other. So the columns of a batch of complete rows hold entries of one kind each, and no other row decides the type that a column is shown with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from types import NoneType
from typing import Any

import narwhals as nw
import numpy as np
import scipy
from numpy.typing import NDArray

from dpexplain.domain import Binary, Categorical, Domain, DomainLike, Numeric, Ordinal
from dpexplain.domain.columns import read_columns
from dpexplain.domain.frames import open_frame
from dpexplain.domain.values import Column, floats, is_missing

Mask = NDArray[np.bool_]
Groups = NDArray[np.intp]  # the number of each row's batch; INCOMPLETE for rows that are not complete
INCOMPLETE = -1
EXACT = 2.0**53
TEXT = "OUT"  # types of columns of Python objects and of text


class EntryKind(IntEnum):
    """What a data frame library makes of an entry in a column of Python objects."""

    TEXT = 0
    TRUTH = 1
    NUMBER = 2
    INSTANT = 3
    OTHER = 4


_PYTHON_TYPES = {
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


def split_groups(groups: Groups) -> Iterator[tuple[NDArray[np.intp], bool]]:
    """The positions of each group, and whether its rows are complete; those that are not come last."""
    for group in sorted(set(groups.tolist()), reverse=True):
        yield np.flatnonzero(groups == group), group != INCOMPLETE


def group_rows(rows: Any, domain: DomainLike, count: int) -> Groups:
    """Which rows are shown together: complete ones by the kinds of their entries. A row is complete if nothing that is declared is missing in it,
    and its numeric categories are whole numbers."""
    if isinstance(rows, (list, tuple)):
        return _group_records(rows, domain.columns)
    if not isinstance(domain, Domain) or _is_matrix(rows):
        return np.zeros(count, dtype=np.intp)
    groups = group_columns(lambda name: read_columns(rows, [name])[name], domain, count)
    for name in () if isinstance(rows, Mapping) else other_integers(open_frame(rows), domain):
        groups[_find_missing(read_columns(rows, [name])[name])] = INCOMPLETE
    return groups


def group_columns(read: Callable[[str], Column], domain: Domain, count: int) -> Groups:
    """The same by the declared columns, which are read one at a time."""
    complete, groups = np.ones(count, dtype=np.bool_), np.zeros(count, dtype=np.intp)
    for feature in domain.features:
        column = read(feature.name)
        if is_shown_as_integer(feature, column):
            complete &= _whole(column)
            continue
        complete &= ~_find_missing(column)
        if not isinstance(feature, Numeric) and (kinds := _find_kinds(column)) is not None:
            complete &= (kinds != EntryKind.NUMBER) | _whole(column)
            groups = np.unique(groups * len(EntryKind) + kinds, return_inverse=True)[1]
    groups[~complete] = INCOMPLETE
    return groups


def _group_records(rows: Sequence[Any], names: tuple[str, ...]) -> Groups:
    """The same for a list, of which a model may make a data frame by itself."""
    known: dict[Any, int] = {}
    groups = np.full(len(rows), INCOMPLETE, dtype=np.intp)
    for i, row in enumerate(rows):
        if _is_complete(row, names):
            kinds = tuple([_KINDS_OF_TYPES[type(row[name])] for name in names]) if isinstance(row, Mapping) else ()
            groups[i] = known.setdefault(kinds, len(known))
    return groups


def _find_kinds(column: Column) -> NDArray[np.intp] | None:
    """The kind of each entry of a column of objects; None where all are known to have the same."""
    if column.dtype.kind != "O":
        return None
    items = column.tolist()
    if set(map(type, items)) <= {str} and _is_unicode("".join(items)):  # at C speed
        return None
    return np.fromiter(map(kind_of, items), dtype=np.intp, count=len(items))


def kind_of(entry: Any) -> EntryKind:
    """The kind of one entry. Text that is not valid Unicode cannot be stored as text by pandas."""
    kind = _KINDS_OF_TYPES[type(entry)]
    return EntryKind.OTHER if kind == EntryKind.TEXT and not _is_unicode(entry) else kind


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_complete(row: Any, names: tuple[str, ...]) -> bool:
    if isinstance(row, Mapping):
        return not any(is_missing(row.get(name)) for name in names)
    return isinstance(row, (str, np.ndarray))


def _is_matrix(rows: Any) -> bool:
    return isinstance(rows, np.ndarray) or scipy.sparse.issparse(rows)


def _find_missing(column: Column) -> Mask:
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=np.bool_)
    items = column.tolist()
    types = set(map(type, items))  # at C speed: most columns of text need no second look
    if types <= {str}:
        return np.zeros(len(column), dtype=np.bool_)
    if types <= {str, NoneType}:
        return np.fromiter((item is None for item in items), dtype=np.bool_, count=len(column))
    return np.fromiter(map(is_missing, items), dtype=np.bool_, count=len(column))


def _whole(column: Column) -> Mask:
    numbers = floats(column)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(numbers) < EXACT) & (numbers == np.floor(numbers)))


def is_shown_as_integer(feature: Any, column: Column) -> bool:
    """Whether a category is shown as an integer: by the type of its column, or because all its declared values are integers."""
    if not isinstance(feature, (Categorical, Ordinal, Binary)):
        return False
    values = (feature.levels if isinstance(feature, Ordinal) else feature.values) or (None,)
    return column.dtype.kind in "iuf" or (column.dtype.kind in TEXT and all(type(value) is int for value in values))


def other_integers(frame: nw.DataFrame[Any], domain: Domain) -> list[str]:
    """Columns of an integer type that the domain does not declare."""
    return [name for name, dtype in frame.schema.items() if name not in domain.columns and dtype.is_integer()]
