"""Reads data frames and series of any library through narwhals. Only the type of a column decides how it is read."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from dpexplain.arguments import is_panic
from dpexplain.domain.values import Column, objects, readable

READ_DIRECTLY = (nw.Boolean, nw.String, nw.Categorical, nw.Enum, nw.Object)
TEMPORAL = (nw.Date, nw.Datetime)
TOO_WIDE = (nw.Decimal, nw.Int128, nw.UInt128)


def open_frame(rows: Any) -> nw.DataFrame[Any]:
    """Any eager data frame; TypeError or ValueError when it is none."""
    return nw.from_native(pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows, eager_only=True)


def open_series(values: Any) -> nw.Series[Any]:
    """Any eager series; TypeError when it is none."""
    return nw.from_native(pa.chunked_array([values]) if isinstance(values, pa.Array) else values, series_only=True)


def column(series: nw.Series[Any]) -> Column:
    """By the column's type alone: bytes and nested types hold nothing a tabular feature reads, so they are missing.

    So is an entry that its own library stores and cannot return, such as text that is not valid Unicode: no entry decides whether this raises.
    """
    try:
        return _read(series)
    except BaseException as error:
        if isinstance(error, Exception) or is_panic(error):
            return _read_stored(series)
        raise


def entries(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Python objects; None for an entry that Python cannot hold, such as text that is not valid Unicode or a date after the year 9999."""
    try:
        return array.to_pylist()  # type: ignore[no-any-return]
    except Exception:
        return [_entry(one) for one in array]


def _entry(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except Exception:
        return None


def _read_stored(series: nw.Series[Any]) -> Column:
    """A column as Arrow stores it: text entry by entry, other types without Python objects. Missing, where Arrow cannot store its type."""
    try:
        array = series.to_arrow()
    except BaseException as error:
        if isinstance(error, Exception) or is_panic(error):
            return np.full(len(series), None, dtype=object)
        raise
    plain = array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
    if pa.types.is_string(plain.type) or pa.types.is_large_string(plain.type) or pa.types.is_string_view(plain.type):
        return objects(entries(plain))
    return _read(nw.from_native(pa.chunked_array([plain]), series_only=True))


def _read(series: nw.Series[Any]) -> Column:
    native, dtype = series.to_native(), series.dtype
    if isinstance(native, pa.ChunkedArray) and pa.types.is_dictionary(native.type):
        # pyarrow's own to_numpy would read a null as the first value
        return _read(nw.from_native(native.cast(native.type.value_type), series_only=True))
    if isinstance(native, pa.ChunkedArray) and pa.types.is_date64(native.type):  # which narwhals has no name for
        return np.asarray(native.to_numpy(), dtype="datetime64[ms]")
    if dtype in TOO_WIDE:
        return series.cast(nw.Float64).to_numpy()
    if dtype.is_numeric() or dtype in READ_DIRECTLY:
        return readable(series.to_numpy())
    if dtype in TEMPORAL:
        return _instants(series)
    if dtype == nw.Unknown:  # a type narwhals has no name for, such as pandas' sparse columns
        return readable(series.to_numpy())
    return np.full(len(series), None, dtype=object)


def _instants(series: nw.Series[Any]) -> Column:
    """datetime64 in UTC, whatever the time zone of the column."""
    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return np.asarray(series.to_numpy(), dtype="datetime64")
