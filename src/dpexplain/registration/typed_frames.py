"""Data frames with declared types, such as those of polars and Arrow: a column's type counts as declared, and an entry is null or of that type.

A model that converts the table to pandas or NumPy gets the same types whether or not a null is among other rows: where something is missing in a row,
its whole numbers are shown as floats, and rows with a null among booleans are shown apart. Categories are shown as the values themselves: a list of
categories names those of other rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from dpexplain.domain import Date, Datetime, Numeric
from dpexplain.domain.catalogue import Feature
from dpexplain.domain.frames import column as read_column
from dpexplain.domain.frames import entries
from dpexplain.domain.values import Column, floats
from dpexplain.registration.entry_kinds import (
    EntryKind,
    category_values,
    find_missing,
    find_whole,
    has_whole_values,
    is_yes_no,
    mark_missing,
    missing_kind,
)
from dpexplain.registration.nested_nulls import group_by_nulls
from dpexplain.registration.row_groups import AS_GIVEN, EntryKinds

_NUMPY_TYPES: dict[Any, type] = {nw.Float64: np.float64, nw.Float32: np.float32, nw.Int64: np.int64}


def describe_typed_frame(frame: nw.DataFrame[Any], features: Mapping[str, Feature]) -> dict[str, EntryKinds]:
    """Which rows are complete. Of columns that no feature declares, those count in which a null can change how other entries are shown."""
    given = {name: _decode_values(frame[name]) for name in frame.columns}
    counted = [name for name, series in given.items() if name in features or _is_changed_by_nulls(series.dtype)]
    return {name: describe_typed(given[name], features.get(name)) for name in counted}


def describe_typed(series: nw.Series[Any], feature: Feature | None) -> EntryKinds:
    """Which entries are complete; all are of one kind, that of the column's type, but for nulls among booleans and in types without a name."""
    series = _decode_values(series)
    if series.dtype.is_nested():
        return EntryKinds(group_by_nulls(entries(series.to_arrow())))
    if series.dtype == nw.Unknown:  # such as an extension type of Arrow: what a null does to other entries is not known
        missing = series.is_null().to_numpy()
        return EntryKinds(np.where(missing, np.int16(AS_GIVEN + 1), np.int16(AS_GIVEN)), True if feature is None else ~missing)
    column = read_column(series)
    if series.dtype == nw.Boolean:
        missing = find_missing(column)
        return EntryKinds(mark_missing(EntryKind.TRUTH, missing), ~missing)
    return EntryKinds(AS_GIVEN, find_whole(column) if _is_integer(series.dtype, feature) else ~find_missing(column))


def show_typed_frame(frame: nw.DataFrame[Any], features: Mapping[str, Feature], *, complete: bool) -> Any:
    given = {name: frame[name] for name in frame.columns}
    shown = {name: show_typed(series, features.get(name), complete=complete) for name, series in given.items()}
    changed = [series.alias(name) for name, series in shown.items() if series is not given[name]]
    return frame.with_columns(*changed).to_native() if changed else frame.to_native()


def show_typed(series: nw.Series[Any], feature: Feature | None, *, complete: bool) -> nw.Series[Any]:
    series = _decode_values(series)
    dtype = series.dtype
    if isinstance(feature, Numeric):
        return series if dtype in (nw.Float32, nw.Float64) else _convert_numbers(series, np.float64)
    if _is_integer(dtype, feature):
        wanted = np.int64 if complete else np.float64
        return series if dtype in _NUMPY_TYPES and _NUMPY_TYPES[type(dtype)] is wanted else _convert_numbers(series, wanted)
    if not complete and dtype.is_integer():
        return _convert_numbers(series, np.float64)
    return _without_categories(series) if dtype == nw.Categorical else _with_declared_type(series, feature)


def _is_integer(dtype: nw.dtypes.DType, feature: Feature | None) -> bool:
    """Whether a category is shown as an integer: by the type of its column, or because all its declared values are integers."""
    category = is_yes_no(feature) or bool(category_values(feature))
    return category and (dtype.is_numeric() or (has_whole_values(feature) and dtype in (nw.String, nw.Object)))


def _is_changed_by_nulls(dtype: nw.dtypes.DType) -> bool:
    """Whether a null among entries of this type may change the type that others are converted to."""
    return dtype.is_integer() or dtype.is_nested() or dtype in (nw.Boolean, nw.Unknown)


def _decode_values(series: nw.Series[Any]) -> nw.Series[Any]:
    """The plain values of a dictionary of Arrow that holds numbers or booleans, say: a null is among them what it is among plain ones."""
    native = series.to_native()
    if not (isinstance(native, pa.ChunkedArray) and pa.types.is_dictionary(native.type)):
        return series
    kind = native.type.value_type
    return series if pa.types.is_string(kind) or pa.types.is_large_string(kind) else _without_categories(series)


def _convert_numbers(series: nw.Series[Any], wanted: Any) -> nw.Series[Any]:
    return _series(series.name, floats(read_column(series)).astype(wanted), series.implementation)


def _series(name: str, column: Column, backend: Any) -> nw.Series[Any]:
    """NaN is null."""
    series = nw.new_series(name, column, backend=backend)
    if column.dtype.kind != "f":
        return series
    nothing = nw.new_series(name, [None] * len(column), nw.Float64, backend=backend)
    return series.zip_with(~series.is_nan(), nothing)


def _without_categories(series: nw.Series[Any]) -> nw.Series[Any]:
    native = series.to_native()
    if isinstance(native, pa.ChunkedArray):
        return nw.from_native(native.cast(native.type.value_type), series_only=True)
    return series.cast(nw.String)


def _with_declared_type(series: nw.Series[Any], feature: Feature | None) -> nw.Series[Any]:
    """A column in which nothing but nulls was found has no type of its own."""
    native = series.to_native()
    empty = pa.types.is_null(native.type) if isinstance(native, pa.ChunkedArray) else str(native.dtype) == "Null"
    return series.cast(_declared_type(feature)) if feature is not None and empty else series


def _declared_type(feature: Feature) -> Any:
    if isinstance(feature, Datetime):
        return nw.Date if isinstance(feature, Date) else nw.Datetime("us")
    if is_yes_no(feature):
        return nw.Boolean
    return nw.Float64 if missing_kind(feature) == EntryKind.NUMBER else nw.String
