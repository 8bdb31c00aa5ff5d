"""Reads data frames and series of any library through narwhals. Only the type of a column decides how it is read."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from dpexplain.domain.values import Column, readable

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
    """By the column's type alone: bytes and nested types hold nothing a tabular feature reads, so they are missing."""
    native, dtype = series.to_native(), series.dtype
    if isinstance(native, pa.ChunkedArray) and pa.types.is_dictionary(native.type):
        # pyarrow's own to_numpy would read a null as the first value
        return column(nw.from_native(native.cast(native.type.value_type), series_only=True))
    if dtype in TOO_WIDE:
        return series.cast(nw.Float64).to_numpy()
    if dtype.is_numeric() or dtype in READ_DIRECTLY:
        return readable(series.to_numpy())
    if dtype in TEMPORAL:
        return _instants(series)
    return _read_unknown(series) if dtype == nw.Unknown else np.full(len(series), None, dtype=object)


def _instants(series: nw.Series[Any]) -> Column:
    """datetime64 in UTC, whatever the time zone of the column."""
    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return np.asarray(series.to_numpy(), dtype="datetime64")


def _read_unknown(series: nw.Series[Any]) -> Column:
    """A type narwhals has no name for, such as pandas' sparse columns: NumPy's reading if there is one."""
    try:
        return readable(series.to_numpy())
    except Exception:
        return np.full(len(series), None, dtype=object)
