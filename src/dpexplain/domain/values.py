"""Reads a column entry by entry, as numbers or as positions in a public list of values. Reading never raises.

Nothing here raises whatever the column holds, and each entry's reading depends on that entry alone. The type of the column does
not matter either: 1, 1.0, True, "1" and "True" are read alike, because a single odd row can make a file reader store a whole
column as text or as floats, and one person's row must not change the reading of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from math import isfinite, isnan, nan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.domain.interface import FloatArray
from dpexplain.errors import DomainError

Value: TypeAlias = str | int | float
Column: TypeAlias = NDArray[Any]
Lookup: TypeAlias = Mapping[Any, int]

NUMBERS = (int, float, np.integer, np.floating, np.bool_, Decimal, Fraction)
NUMBERS_AND_TEXT = (*NUMBERS, str)
TRUTH = {"true": 1.0, "false": 0.0}  # what a column of True and False becomes when a reader stores it as text
READABLE_KINDS = "biufUTOM"  # bool, integers, floats, strings, objects, dates; bytes, complex and records are not read
EXACT = 2**53  # below it float64 holds every integer, so a column stored as floats matches as integers would


def readable(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself, or all missing where its type holds nothing a tabular feature reads.

    One odd entry can make NumPy store numbers as bytes or as complex numbers: these are read as the text and the numbers they were.
    """
    if array.dtype.kind in READABLE_KINDS:
        return array
    if array.dtype.kind == "S":
        return np.char.decode(array, "latin-1")
    if array.dtype.kind == "c":
        return np.where(array.imag == 0, array.real, np.nan)
    return np.full(array.shape, None, dtype=object)


def objects(items: Sequence[Any]) -> Column:
    """Python objects as one column, however odd or nested they are."""
    return np.fromiter(items, dtype=object, count=len(items))


def number(value: object) -> float:
    """The float that a value represents (strings as Python reads them); NaN when it represents none.

    An integer beyond float's range becomes ±inf, so that it is clamped like every other value out of bounds.
    """
    if type(value) is float:
        return value
    if isinstance(value, np.timedelta64) or not isinstance(value, NUMBERS_AND_TEXT):  # the first counts as an np.integer
        return nan
    try:
        return float(value)
    except OverflowError:
        return _signed_infinity(value)
    except Exception:
        return TRUTH.get(value.lower(), nan) if isinstance(value, str) else nan


def _signed_infinity(value: Any) -> float:
    return -np.inf if value < 0 else np.inf


def floats(column: Column) -> FloatArray:
    """Every entry of a 1-D column as a float; NaN where it is not a number."""
    with np.errstate(all="ignore"):  # a long double beyond float64's range becomes ±inf, quietly
        if column.dtype.kind in "biuf":
            return column.astype(np.float64)
        if column.dtype.kind == "M":  # as a list, some dates would be integers
            return np.full(len(column), nan)
        return np.fromiter(map(number, column.tolist()), np.float64, count=len(column))


def find(lookup: Lookup, value: object) -> int:
    """The position of one value: by equality, else by the number it reads as; -1 when it is not there."""
    try:
        position = lookup.get(value, -1)
        return position if position >= 0 else lookup.get(number(value), -1)
    except Exception:  # unhashable, or its own comparison failed: equal to nothing declared
        return -1


def positions(column: Column, lookup: Lookup) -> NDArray[np.intp]:
    """`find` for every entry of a 1-D column, with the common case (all entries hashable and declared) at C speed."""
    if column.dtype.kind == "M":  # as in `floats`: no declared value is a date
        return np.full(len(column), -1, dtype=np.intp)
    items = column.tolist()
    try:
        found = np.fromiter(map(lookup.get, items, repeat(-1)), np.intp, count=len(items))
    except Exception:
        found = np.full(len(items), -1, dtype=np.intp)
    for i in np.flatnonzero(found < 0):
        if items[i] is not None:
            found[i] = find(lookup, items[i])
    return found


def lookup_table(values: Sequence[Value]) -> dict[Any, int]:
    """value → position. A number is also found by its text, and text that reads as a number also by that number."""
    table: dict[Any, int] = {value: i for i, value in enumerate(values)}
    table |= {str(value): i for i, value in enumerate(values)}
    for i, value in enumerate(values):
        if not isnan(as_number := number(value)):
            table.setdefault(as_number, i)
    return table


def is_missing(value: object) -> bool:
    """Whether a value is missing: None, NaN, and what pandas and NumPy use in their place."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return isinstance(value, (float, np.floating, Decimal)) and isnan(number(value))


def declared_column(values: Sequence[Value], places: NDArray[np.intp]) -> Column:
    """values[place], and None for the place after the last; integers stay integers and text text where nothing is missing."""
    column = np.array([*values, None], dtype=object)[places]
    types = {type(value) for value in values}
    complete = not (places == len(values)).any()
    return column.astype(np.int64) if complete and types == {int} else column


def declared_values(name: str, what: str, values: Iterable[Value]) -> tuple[Value, ...]:
    """The public values of a feature, as a tuple of str, int or non-integral float, without duplicates."""
    if isinstance(values, (str, bytes, Mapping, set, frozenset)) or not isinstance(values, Iterable):
        raise DomainError(f"{name}: {what} must be a list in a fixed order, got {type(values).__name__}. Pass a list")
    declared = tuple(_declared_value(name, what, value) for value in values)
    texts = [str(value) for value in declared]
    if twice := sorted({text for text in texts if texts.count(text) > 1}) if len(set(texts)) < len(texts) else []:
        raise DomainError(f"{name}: {what} repeats {twice[0]!r} (1 and '1' count as the same). List each value once")
    return declared


def _declared_value(name: str, what: str, value: object) -> Value:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        raise DomainError(f"{name}: {what} holds {value}. Declare a yes/no feature with Binary({name!r})")
    if isinstance(value, str):
        return unicode_text(f"{name}: {what}", value)
    if not isinstance(value, (int, float)) or abs(value) >= EXACT or not isfinite(value):
        raise DomainError(f"{name}: {what} holds {value!r}. Use strings, or finite numbers below 2^53 (longer codes as strings)")
    return int(value) if value == int(value) else value


def unicode_text(where: str, text: str) -> str:
    """Text that every file format can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DomainError(f"{where} {text!r} is not valid Unicode. Remove the lone surrogates") from None
    return str(text)
