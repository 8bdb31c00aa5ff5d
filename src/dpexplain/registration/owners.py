"""The owner of a row: one name for each owner, whatever type a reader stored the column with. `proofs/registration.md`.

The column named by `unit` identifies owners by value. A single odd or missing entry can make a reader store a whole column as floats, as text or as
objects, so 7, 7.0, "7", "7.0", b"7" and np.int64(7) are one owner. Each entry is read by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from math import isfinite
from typing import Any
from uuid import UUID

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpexplain.arguments import quote
from dpexplain.domain import frames
from dpexplain.errors import DataError

MISSING = frozenset({"", "nan", "NaN", "None", "null", "<NA>", "NaT"})  # texts that readers write for a missing entry
_WHOLE = re.compile(r"(-?\d+)\.0+")  # a whole number that was stored as a float before it became text
_LONG = 10**300


def owner_name(value: Any) -> str:
    """The owner that an entry names; "" where it names none (missing, NaN, infinite, or of a type that cannot name an owner)."""
    try:
        return _name(value)
    except Exception:  # a value whose own methods fail names no owner: no entry decides whether this raises
        return ""


def _name(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, str):
        whole = _WHOLE.fullmatch(value)
        return "" if value in MISSING else whole[1] if whole else str(value)
    if hasattr(value, "to_datetime64"):  # of pandas: in UTC, and cut to microseconds as a typed column is
        value = value.to_datetime64()
    if isinstance(value, np.generic):
        value = value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value.item()
    if isinstance(value, complex):  # what a column of numbers becomes beside one complex number
        value = value.real if value.imag == 0 else None
    if isinstance(value, (int, float, Decimal, Fraction)):
        return _number_name(value)
    if isinstance(value, datetime) and value.tzinfo is not None:  # equal instants have one name
        value = value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, (date, time)):  # a datetime is a date, and pandas' NaT a datetime that does not equal itself
        return "" if value != value else value.isoformat().removesuffix("T00:00:00")
    return str(value) if isinstance(value, UUID) else ""


def _number_name(value: int | float | Decimal | Fraction) -> str:
    if not isinstance(value, (int, Fraction)) and not isfinite(value):
        return ""
    if value == int(value):
        whole = int(value)
        return str(whole) if abs(whole) < _LONG else hex(whole)
    return repr(float(value))


def owner_names(entries: Iterable[Any]) -> list[str]:
    """`owner_name` of each entry; those of a typed column are looked up once for each different value."""
    if isinstance(entries, np.ndarray) and entries.dtype.kind in "iufSU":
        values, places = np.unique(entries, return_inverse=True)
        names = list(map(str if entries.dtype.kind in "iu" else owner_name, values.tolist()))
        return [names[place] for place in places.tolist()]
    return [owner_name(entry) for entry in entries]


def arrow_owner_names(owners: pa.Array | pa.ChunkedArray) -> list[str]:
    """The same for a column of a Parquet file."""
    array = owners.combine_chunks() if isinstance(owners, pa.ChunkedArray) else owners
    plain = array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
    try:
        coded = plain.dictionary_encode(null_encoding="encode")
    except pa.ArrowException:  # a type without equality, such as a list: it names no owner
        return owner_names(frames.entries(plain))
    names = owner_names(_values_of(coded.dictionary))
    return [names[place] for place in coded.indices.to_pylist()]


def _values_of(array: pa.Array) -> Iterable[Any]:
    """The entries of an array of Arrow. Times that Python cannot hold are read as NumPy holds them."""
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return frames.column(nw.from_native(pa.chunked_array([array]), series_only=True))
    return frames.entries(array)


def keep_first(names: list[str], most: int, seen: dict[str, int]) -> NDArray[np.bool_]:
    """Which rows are among the first `most` of their owner, counting what earlier batches had; `seen` is brought up to date.

    What is kept of one owner depends on this owner's rows alone. Rows without an owner are left out: nothing would limit how many of them one
    person has. Memory grows with the number of owners, one entry each.
    """
    kept = np.zeros(len(names), dtype=np.bool_)
    for i, name in enumerate(names):
        count = seen.get(name, 0)
        if name and count < most:
            kept[i], seen[name] = True, count + 1
    return kept


def owner_keys(names: Iterable[str]) -> NDArray[np.uint64]:
    """One number for each row, the same for all rows of one owner: a hash of the owner's name, so nothing else decides its shard."""
    names = list(names)
    hashed = {name: int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:7]) for name in set(names)}
    return np.array([hashed[name] for name in names], dtype=np.uint64)


def owners_of(rows: Any, unit: str) -> list[str]:
    """The owner of each row of any kind of table in memory."""
    try:
        return _read(rows, unit)
    except (KeyError, TypeError, ValueError, IndexError, nw.exceptions.ColumnNotFoundError):
        raise DataError(f"unit={quote(unit)} is not a column of the rows. Name the column that says who owns a row") from None


def _read(rows: Any, unit: str) -> list[str]:
    if isinstance(rows, (list, tuple)):
        if not any(isinstance(row, dict) and unit in row for row in rows):
            raise KeyError(unit)
        return [owner_name(row.get(unit)) if isinstance(row, dict) else "" for row in rows]
    column = rows[unit] if isinstance(rows, dict) else nw.from_native(rows, eager_only=True)[unit].to_native()
    if isinstance(column, (list, tuple, np.ndarray)):
        return owner_names(column)
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return arrow_owner_names(column)
    return owner_names(_entries_of(nw.from_native(column, series_only=True)))


def _entries_of(series: nw.Series[Any]) -> Iterable[Any]:
    if series.dtype in (nw.Date, nw.Datetime, nw.String):  # a library may store what it cannot return as a Python object
        return frames.column(series)
    if series.dtype.is_numeric() and series.dtype not in frames.TOO_WIDE and not series.is_null().any():
        return series.to_numpy()
    try:
        return series.to_list()
    except Exception:
        return frames.entries(series.to_arrow())
