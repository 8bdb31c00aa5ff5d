"""Reads rows in any tabular container as one NumPy column per feature.

Only the container's schema decides whether this raises: which columns it has, how long they are, what sort of table it is. Schema
is taken to be public. For a list of dicts it is the union of their keys, as a data frame made from the list would have it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpexplain.domain.interface import format_list, hint
from dpexplain.domain.values import Column, objects, readable
from dpexplain.errors import DataError

TABLES = "a pandas or polars data frame, a pyarrow table, a list of dicts, or a dict of columns"


def read_columns(rows: Any, names: Sequence[str]) -> dict[str, Column]:
    """The named columns of a table, each 1-D and equally long. Other columns are ignored."""
    if isinstance(rows, Mapping):
        return _from_mapping(rows, names)
    if isinstance(rows, (list, tuple)):
        return _from_records(rows, names)
    return _from_frame(rows, names)


def read_array(rows: NDArray[Any], width: int) -> NDArray[Any]:
    """A 2-D array with one column per feature."""
    array = _plain(rows, "rows")
    if array.ndim != 2 or array.shape[1] != width:
        raise DataError(f"rows must have shape (m, {width}), one column per feature in order, got {array.shape}")
    return readable(array)


def _from_frame(rows: Any, names: Sequence[str]) -> dict[str, Column]:
    from dpexplain.domain import frames  # loads two libraries that dicts and arrays do without

    try:
        frame = frames.open_frame(rows)
        columns = frame.columns
    except TypeError:
        _not_a_table(rows)
    except ValueError:
        raise DataError("the frame repeats a column name. Give every column its own name") from None
    _require(names, columns)
    return {name: frames.column(frame.get_column(name)) for name in names}


def _from_mapping(rows: Mapping[Any, Any], names: Sequence[str]) -> dict[str, Column]:
    _require(names, rows.keys())
    columns = {name: _from_column(name, rows[name]) for name in names}
    if len(lengths := {len(column) for column in columns.values()}) > 1:
        raise DataError(f"columns have different lengths {sorted(lengths)}. Pass one entry per row in every column")
    return columns


def _from_records(rows: Sequence[Any], names: Sequence[str]) -> dict[str, Column]:
    records: list[Mapping[Any, Any]] = [row if isinstance(row, Mapping) else {} for row in rows]
    if rows and not any(isinstance(row, Mapping) for row in rows):
        _not_a_table(rows)
    if rows:
        _require(names, set().union(*records))
    return {name: objects([record.get(name) for record in records]) for name in names}


def _from_column(name: str, values: Any) -> Column:
    if isinstance(values, (list, tuple)):
        return objects(values)
    if isinstance(values, np.ndarray):
        return readable(_one_dimensional(name, _plain(values, name)))
    from dpexplain.domain import frames

    try:
        return frames.column(frames.open_series(values))
    except TypeError:
        raise DataError(
            f"{name}: expected a column (list, array or series), got {type(values).__name__}. For a single record pass [record]"
        ) from None


def _plain(array: NDArray[Any], name: str) -> NDArray[Any]:
    if isinstance(array, np.ma.MaskedArray):
        raise DataError(f"{name}: masked arrays are not read. Pass the filled array, with NaN or None where masked")
    return np.asarray(array)


def _one_dimensional(name: str, array: NDArray[Any]) -> Column:
    if array.ndim != 1:
        raise DataError(f"{name}: a column must be one-dimensional, got shape {array.shape}. Pass one value per row")
    return array


def _require(names: Sequence[str], columns: Collection[Any]) -> None:
    for name in names:
        if name not in columns:
            raise DataError(
                f"column {name!r} is missing{hint(name, columns)}. The domain needs {format_list(names)}. "
                "Rename or add it, or leave the feature out of the domain"
            )


def _not_a_table(rows: Any) -> NoReturn:
    raise DataError(
        f"rows must be {TABLES}, got {type(rows).__name__}. Collect a lazy frame first; where all features are numeric, pass a NumPy array"
    ) from None


def plain_columns(columns: Mapping[str, Column]) -> dict[str, Any]:
    """Columns as every data frame library reads them: Python objects as lists, and times in microseconds (polars has no seconds)."""
    return {name: _plain_column(column) for name, column in columns.items()}


def _plain_column(column: Column) -> Any:
    if column.dtype == object:
        return column.tolist()
    return column.astype("datetime64[us]") if column.dtype == np.dtype("datetime64[s]") else column
