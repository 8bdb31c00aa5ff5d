"""Presents rows to a black box: as given, in batches whose column types follow from declarations. `proofs/registration.md`.

A table's types may depend on its values: one missing entry makes a whole column of integers a column of floats, and one word makes a column of booleans
a column of objects. A model that reads 3.0 where it read 3, or that refuses objects, may then answer differently about every row. So rows are shown in
batches (`row_groups.py`). A declared number is always a float64. A declared category that is numeric is an integer for complete rows and a float for the
others. Which batch a complete row is in, and as what its entries are shown, follows from the row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import scipy
from numpy.typing import NDArray

from dpexplain.domain import Domain, DomainLike, TextDomain
from dpexplain.domain.columns import plain_columns, read_columns
from dpexplain.domain.features import Numeric
from dpexplain.domain.frames import open_frame, open_series
from dpexplain.domain.image import COLUMN
from dpexplain.domain.values import Column, floats
from dpexplain.errors import DataError
from dpexplain.registration.row_groups import (
    EntryKind,
    group_columns,
    group_rows,
    is_shown_as_integer,
    kind_of,
    other_integers,
    split_groups,
)


@dataclass(frozen=True, slots=True, repr=False)
class Batch:
    """Some rows as the model is shown them, and their positions among all."""

    positions: NDArray[np.intp]
    rows: Any


def present(rows: Any, domain: DomainLike, count: int) -> Iterator[Batch]:
    """The rows in one batch for each kind of complete rows, and one of the rest."""
    for positions, whole in split_groups(group_rows(rows, domain, count)):
        chosen = rows if len(positions) == count else take(rows, positions)
        yield Batch(positions, _with_types(chosen, domain, whole))


def present_columns(columns: dict[str, Column], domain: DomainLike, count: int) -> Iterator[Batch]:
    """`present` for columns that were read already, such as those that a domain decodes."""
    if not isinstance(domain, Domain):
        yield Batch(np.arange(count), columns)
        return
    for positions, whole in split_groups(group_columns(columns.__getitem__, domain, count)):
        chosen = columns if len(positions) == count else {name: column[positions] for name, column in columns.items()}
        typed = _convert_columns({name: (chosen[name], chosen[name].dtype) for name in domain.columns}, domain, whole)
        yield Batch(positions, {**chosen, **typed})


def take(rows: Any, positions: NDArray[Any]) -> Any:
    """Some rows of any kind of table."""
    if isinstance(rows, dict):
        return {name: take(column, positions) for name, column in rows.items()}
    if isinstance(rows, (list, tuple)):
        return [rows[i] for i in positions]
    if isinstance(rows, np.ndarray):
        return rows[positions]
    if isinstance(rows, (pa.Table, pa.RecordBatch, pa.Array, pa.ChunkedArray)):
        return rows.take(pa.array(positions))
    if hasattr(rows, "tocsr"):
        return rows.tocsr()[positions]
    try:
        frame = nw.from_native(rows, eager_only=True, allow_series=True)
    except TypeError:
        raise DataError(f"cannot read rows from {type(rows).__name__}. Pass a data frame, dicts or an array") from None
    return frame[positions.tolist()].to_native()


def same_kind(rows: Any) -> Callable[[dict[str, Any]], Any]:
    """A function from columns to the kind of table that `rows` is. It keeps nothing of the rows."""
    if isinstance(rows, dict):
        return dict
    if isinstance(rows, np.ndarray) or scipy.sparse.issparse(rows):
        return lambda columns: np.column_stack(list(columns.values()))
    if isinstance(rows, (list, tuple)):
        return lambda columns: [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    backend = open_frame(rows).implementation
    return lambda columns: nw.from_dict(plain_columns(columns), backend=backend).to_native()


def same_kind_of_texts(rows: Any, domain: TextDomain) -> Callable[[dict[str, Any]], Any]:
    """A function from the one column of texts to the kind of container that `rows` is. It keeps nothing of the rows.

    A list becomes a list of records if the domain names a column, and a list of texts if it does not. The rows themselves do not decide it.
    """
    column = str(domain.column)
    if isinstance(rows, (list, tuple)):
        if domain.column is None:
            return lambda texts: list(_only_column(texts))
        return lambda texts: [{column: text} for text in _only_column(texts)]
    if isinstance(rows, Mapping):
        return lambda texts: {column: list(_only_column(texts))}
    if isinstance(rows, np.ndarray):
        return lambda texts: np.array(_only_column(texts), dtype=object)
    given = nw.from_native(rows, eager_only=True, allow_series=True)
    backend, series = given.implementation, isinstance(given, nw.Series)
    name = (given.name or "text") if isinstance(given, nw.Series) else column
    if series:
        return lambda texts: nw.new_series(name, list(_only_column(texts)), backend=backend).to_native()
    return lambda texts: nw.from_dict({name: list(_only_column(texts))}, backend=backend).to_native()


def same_kind_of_images(rows: Any) -> Callable[[dict[str, Any]], Any]:
    """A function from the one column of images to the kind of container that `rows` is, and to its type of number. It keeps nothing of the rows."""
    if isinstance(rows, Mapping):
        inside = same_kind_of_images(rows[COLUMN])
        return lambda images: {COLUMN: inside(images)}
    if not isinstance(rows, np.ndarray) or rows.dtype == object:
        return lambda images: list(_only_column(images))
    dtype = rows.dtype
    return lambda images: _as_type(_only_column(images), dtype)


def _as_type(images: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    return (np.rint(images) if dtype.kind in "iu" else images).astype(dtype)


def as_text_records(rows: Any, domain: DomainLike) -> Any:
    """A list of rows as `same_kind_of_texts` makes one up: where the domain names a column, a plain text becomes a record, each row by itself."""
    if not (isinstance(rows, (list, tuple)) and isinstance(domain, TextDomain) and domain.column is not None):
        return rows
    return [row if isinstance(row, Mapping) else {domain.column: row} for row in rows]


def _only_column(columns: dict[str, Any]) -> Any:
    (column,) = columns.values()
    return column


def _with_types(rows: Any, domain: DomainLike, whole: bool) -> Any:
    """The rows with column types that `whole` and the declarations decide. What has the right type already is not copied."""
    if not isinstance(domain, Domain) or isinstance(rows, (list, tuple)) or scipy.sparse.issparse(rows):
        return rows
    if isinstance(rows, np.ndarray):
        numeric = rows.ndim == 2 and all(isinstance(feature, Numeric) for feature in domain.features)
        return rows if rows.dtype.kind == "f" or not numeric else floats(rows.reshape(-1)).reshape(rows.shape)
    if isinstance(rows, Mapping):
        return {**rows, **_typed_columns(rows, domain, whole)}
    return _typed_frame(open_frame(rows), domain, whole)


def _typed_columns(rows: Mapping[str, Any], domain: Domain, whole: bool) -> dict[str, Any]:
    """Of a dict of columns, those that are to have another type. Lists hold Python objects, each with its own type: they stay."""
    given = {name: rows[name] for name in domain.columns if not isinstance(rows[name], (list, tuple))}
    read = {name: (read_columns(rows, [name])[name], getattr(column, "dtype", None)) for name, column in given.items()}
    made = _convert_columns(read, domain, whole)
    series = {name: open_series(column) for name, column in given.items() if not isinstance(column, np.ndarray)}
    left = {name: column for name, (column, _) in read.items() if whole and name not in made}
    typed = {name: _series(name, made[name], one.implementation) for name, one in series.items() if name in made}
    typed |= _infer_types(series, left)
    return made | {name: _with_index_of(given[name], one.to_native()) for name, one in typed.items()}


def _with_index_of(given: Any, made: Any) -> Any:
    """The new series with the index of the given one, where they have one: pandas aligns columns by it."""
    return made.set_axis(given.index) if hasattr(given, "index") and hasattr(made, "set_axis") else made


def _infer_types(series: dict[str, nw.Series[Any]], columns: dict[str, Column]) -> dict[str, nw.Series[Any]]:
    """Those of the columns that pandas stores as text or objects, with the type that it infers for entries of one kind: an entry of another row
    may have made the whole column one of objects."""
    found = {}
    for name, column in columns.items():
        given = series.get(name)
        if given is None or not given.implementation.is_pandas_like() or given.dtype not in (nw.Object, nw.String):
            continue
        kind, backend = kind_of(column[0]), given.implementation
        if kind != EntryKind.TEXT or given.to_native().dtype != nw.new_series(name, ["text"], backend=backend).to_native().dtype:
            found[name] = nw.new_series(name, column.tolist(), nw.Object if kind == EntryKind.OTHER else None, backend=backend)
    return found


def _typed_frame(frame: nw.DataFrame[Any], domain: Domain, whole: bool) -> Any:
    native, backend = frame.to_native(), frame.implementation
    pandas = backend.is_pandas_like()
    read = {name: read_columns(native, [name])[name] for name in domain.columns}
    nullable = {name for name in read if pandas and not isinstance(native[name].dtype, np.dtype)}
    types = {name: None if name in nullable else _numpy_type(frame.schema[name]) for name in read}
    made: dict[str, Any] = _convert_columns({name: (column, types[name]) for name, column in read.items()}, domain, whole)
    for name in other_integers(frame, domain):  # of which pandas makes floats where one is missing: there they are always
        if not whole or (pandas and isinstance(native[name].dtype, np.dtype)):
            made[name] = floats(read_columns(native, [name])[name])
    series = [_series(name, column, backend) for name, column in made.items()]
    if whole:
        left = {name: column for name, column in read.items() if name not in made}
        series += _infer_types({name: frame[name] for name in left}, left).values()
    return frame.with_columns(*series).to_native() if series else native


def _series(name: str, column: Column, backend: Any) -> nw.Series[Any]:
    """NaN is null for all libraries but pandas, which alone takes one for the other."""
    series = nw.new_series(name, column, backend=backend)
    if backend.is_pandas_like() or column.dtype.kind != "f":
        return series
    nothing = nw.new_series(name, [None] * len(column), nw.Float64, backend=backend)
    return series.zip_with(~series.is_nan(), nothing)


def _numpy_type(dtype: nw.dtypes.DType) -> np.dtype[Any] | None:
    known: dict[Any, type] = {nw.Float64: np.float64, nw.Float32: np.float32, nw.Int64: np.int64, nw.Boolean: np.bool_}
    return next((np.dtype(numpy) for mine, numpy in known.items() if dtype == mine), None)


def _convert_columns(columns: dict[str, tuple[Column, Any]], domain: Domain, whole: bool) -> dict[str, Column]:
    """Columns, each with the type it has in its table, that are to have another one."""
    found = {}
    for feature in domain.features:
        column, has = columns.get(feature.name, (None, None))
        wanted = None if column is None else _shown_type(feature, column, whole)
        if column is not None and wanted is not None and (has is None or wanted != has):
            found[feature.name] = column.astype(wanted) if wanted.kind == "b" else floats(column).astype(wanted)
    return found


def _shown_type(feature: Any, column: Column, whole: bool) -> np.dtype[Any] | None:
    """The type that a column is shown with; None leaves it as it is."""
    if isinstance(feature, Numeric):
        return column.dtype if column.dtype == np.float32 else np.dtype(np.float64)
    if is_shown_as_integer(feature, column):
        return np.dtype(np.int64 if whole else np.float64)
    if column.dtype.kind == "b":
        return np.dtype(np.bool_)
    return _TYPES_OF_KINDS.get(kind_of(column[0])) if whole and column.dtype.kind == "O" else None  # all entries are of this kind


_TYPES_OF_KINDS = {EntryKind.TRUTH: np.dtype(np.bool_), EntryKind.NUMBER: np.dtype(np.int64)}
