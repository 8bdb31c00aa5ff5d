"""Presents rows to a black box: as given, in batches whose column types follow from declarations. `proofs/registration.md`.

A table's types may depend on its values: one missing entry makes a whole column of integers a column of floats, and one word makes a column of booleans
a column of objects. A model that reads 3.0 where it read 3, or that refuses objects, may then answer differently about every row. So rows are shown in
batches (`row_groups.py`). A declared number is always a float. A declared category that is numeric is an integer for complete rows and a float for the
others. Which batch a row is in, and as what its entries are shown, follows from the row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import scipy
from narwhals.dependencies import is_pandas_dataframe, is_pandas_series
from numpy.typing import NDArray

from dpexplain.domain import Domain, DomainLike, ImageDomain, TextDomain
from dpexplain.domain.catalogue import Feature
from dpexplain.domain.columns import plain_columns, read_columns
from dpexplain.domain.frames import open_frame, open_series
from dpexplain.domain.image import COLUMN
from dpexplain.domain.values import Column, floats, is_missing, objects, readable
from dpexplain.errors import DataError
from dpexplain.registration.entry_kinds import EntryKind, missing_kind
from dpexplain.registration.row_groups import AS_GIVEN, EntryKinds, Group, describe_column, group_by_kinds
from dpexplain.registration.shown_columns import describe_array, describe_series, show_array, show_frame, show_series
from dpexplain.registration.typed_frames import describe_typed, describe_typed_frame, show_typed, show_typed_frame

COLUMN_OF_A_SERIES = "row"  # the name of the only column, where a table has none
NOTHING_KNOWN: Mapping[Any, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True, repr=False)
class Batch:
    """Some rows as the model is shown them, and their positions among all."""

    positions: NDArray[np.intp]
    rows: Any
    unknown: tuple[str, ...] = ()  # yes/no columns in which all entries are missing


def present(rows: Any, domain: DomainLike, count: int, undeclared: Mapping[Any, int] = NOTHING_KNOWN) -> Iterator[Batch]:
    """The rows in one batch for each kind of complete rows, and one for each of the others.

    `undeclared` says what a missing entry counts as in columns that the domain does not declare: a number unless it says something else.
    """
    features = _features(domain)
    for group in group_by_kinds(_describe(rows, domain, undeclared), count):
        chosen = rows if len(group.positions) == count else take(rows, group.positions)
        unknown = tuple(name for name, kind in group.kinds.items() if kind == EntryKind.MISSING and name in features)
        yield Batch(group.positions, _show(chosen, domain, group), unknown)


def present_columns(
    columns: dict[str, Column], domain: DomainLike, count: int, table: Callable[[dict[str, Any]], Any]
) -> Iterator[Batch]:
    """`present` for columns that were read already, such as those that a domain decodes; `table` makes rows of them."""
    features = _features(domain)
    described = {name: describe_column(column, features[name]) for name, column in columns.items() if name in features}
    for group in group_by_kinds(described, count):
        chosen = columns if len(group.positions) == count else {name: one[group.positions] for name, one in columns.items()}
        typed = {
            name: show_array(chosen[name], features[name], kind, complete=group.complete) for name, kind in group.kinds.items()
        }
        yield Batch(group.positions, _show(table({**chosen, **typed}), domain, group))


def take(rows: Any, positions: NDArray[Any]) -> Any:
    """Some rows of any kind of table."""
    if isinstance(rows, Mapping):
        return {name: take(column, positions) for name, column in rows.items()}
    if isinstance(rows, (list, tuple)):
        return [rows[i] for i in positions]
    if isinstance(rows, np.ndarray):
        return rows[positions]
    if is_pandas_dataframe(rows) or is_pandas_series(rows):
        return rows.take(positions).reset_index(drop=True)
    if isinstance(rows, (pa.Table, pa.RecordBatch, pa.Array, pa.ChunkedArray)):
        return _take_arrow(rows, positions)
    if hasattr(rows, "tocsr"):
        return rows.tocsr()[positions]
    try:
        frame = nw.from_native(rows, eager_only=True, allow_series=True)
    except TypeError:
        raise DataError(f"cannot read rows from {type(rows).__name__}. Pass a data frame, dicts or an array") from None
    return frame[positions.tolist()].to_native()


def _take_arrow(rows: Any, positions: NDArray[Any]) -> Any:
    try:
        return rows.take(pa.array(positions))
    except pa.ArrowNotImplementedError:  # by the types of the columns, whatever they hold
        raise DataError(
            "Arrow cannot select rows of a column of this type, such as run-end encoded. Cast it to a plain type"
        ) from None


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


def _features(domain: DomainLike) -> dict[str, Feature]:
    return {feature.name: feature for feature in domain.features} if isinstance(domain, Domain) else {}


def _describe(rows: Any, domain: DomainLike, undeclared: Mapping[Any, int]) -> dict[Any, EntryKinds]:
    """Of which kinds the entries of each column are; nothing where all rows are shown alike."""
    if isinstance(domain, ImageDomain):
        return _describe_images(rows, domain)
    if isinstance(rows, (list, tuple)):
        return _describe_list(rows, domain)
    if not isinstance(domain, (Domain, TextDomain)) or isinstance(rows, np.ndarray) or scipy.sparse.issparse(rows):
        return {}
    if is_pandas_series(rows):
        return {COLUMN_OF_A_SERIES: describe_series(rows, None)}
    features, texts = _features(domain), domain.columns if isinstance(domain, TextDomain) else ()

    def missing_as(name: Any) -> int:
        return EntryKind.TEXT if name in texts else undeclared.get(name, EntryKind.NUMBER)

    if features:
        read_columns(take(rows, np.arange(0)), list(features))  # DataError where a column is missing
    if isinstance(rows, Mapping):
        return {name: _describe_one(column, features.get(name), missing_as(name)) for name, column in rows.items()}
    if is_pandas_dataframe(rows):
        return {name: describe_series(rows[name], features.get(name), missing_as(name)) for name in rows.columns}
    return describe_typed_frame(open_frame(rows), features) if _is_typed_frame(rows) else {}


def _is_typed_frame(rows: Any) -> bool:
    """Whether this is a table of polars or Arrow, say, and no series of texts."""
    return hasattr(rows, "columns")


def _describe_list(rows: Any, domain: DomainLike) -> dict[Any, EntryKinds]:
    """Records, of which a model may make a data frame by itself; and lists of other things, such as texts."""
    if isinstance(domain, Domain):
        columns = read_columns(rows, list(domain.columns))
        return {feature.name: describe_column(columns[feature.name], feature) for feature in domain.features}
    complete = [isinstance(row, (str, np.ndarray)) or _is_complete(row, domain.columns) for row in rows]
    known: dict[Any, int] = {}  # a model that stacks arrays gives all the type of one of them
    kinds = [known.setdefault(_array_type(row), AS_GIVEN + len(known)) for row in rows]
    return {COLUMN_OF_A_SERIES: EntryKinds(np.array(kinds, dtype=np.intp), np.array(complete, dtype=np.bool_))}


def _describe_images(rows: Any, domain: ImageDomain) -> dict[Any, EntryKinds]:
    """Images one by one, in a list or in an array of objects, also under their column's name. An array of numbers has one type."""
    images = rows.get(COLUMN, []) if isinstance(rows, Mapping) else rows
    listed = isinstance(images, (list, tuple)) or (isinstance(images, np.ndarray) and images.dtype == object)
    return _describe_list(images, domain) if listed else {}


def _array_type(row: Any) -> Any:
    return (row.dtype, row.shape) if isinstance(row, np.ndarray) else None


def _is_complete(row: Any, names: tuple[str, ...]) -> bool:
    return isinstance(row, Mapping) and not any(is_missing(row.get(name)) for name in names)


def _describe_one(column: Any, feature: Feature | None, missing: int) -> EntryKinds:
    """Of one column in a dict of columns. Lists hold Python objects, each with its own type: they are shown as they are."""
    if is_pandas_series(column):
        return describe_series(column, feature, missing)
    if isinstance(column, np.ndarray):
        return describe_array(column, feature, missing)
    if feature is None:
        return EntryKinds(AS_GIVEN)
    return (
        describe_column(objects(column), feature)
        if isinstance(column, (list, tuple))
        else describe_typed(open_series(column), feature)
    )


def _show(rows: Any, domain: DomainLike, group: Group) -> Any:
    """The rows of a group with column types that the group and the declarations decide. What has the right type already is not copied."""
    if isinstance(rows, (list, tuple)) or not isinstance(domain, (Domain, TextDomain)) or scipy.sparse.issparse(rows):
        return rows
    features = _features(domain)
    if isinstance(rows, np.ndarray):
        return _show_matrix(rows, features)
    if is_pandas_series(rows):
        kind = group.kinds.get(COLUMN_OF_A_SERIES, EntryKind.TEXT)  # texts that were read already have no kinds
        return show_series(rows, None, kind, complete=group.complete).reset_index(drop=True)
    if isinstance(rows, Mapping):
        return {name: _show_one(column, features.get(name), group.kinds[name], group) for name, column in rows.items()}
    if is_pandas_dataframe(rows):
        return show_frame(rows, features, group)
    return show_typed_frame(open_frame(rows), features, complete=group.complete) if _is_typed_frame(rows) else rows


def _show_matrix(rows: NDArray[Any], features: Mapping[str, Feature]) -> NDArray[Any]:
    """Floats where only numbers are declared; what is text, and not numbers, is shown as objects, as NumPy stores it beside None."""
    if (
        features
        and rows.ndim == 2
        and all(missing_kind(feature) in (EntryKind.NUMBER, EntryKind.MISSING) for feature in features.values())
    ):
        return rows if rows.dtype.kind == "f" else floats(readable(rows).reshape(-1)).reshape(rows.shape)
    return rows.astype(object) if rows.dtype.kind == "U" else rows


def _show_one(column: Any, feature: Feature | None, kind: int, group: Group) -> Any:
    if isinstance(column, (list, tuple)):
        return column
    if is_pandas_series(column):
        return show_series(column, feature, kind, complete=group.complete).reset_index(drop=True)
    if isinstance(column, np.ndarray):
        return show_array(column, feature, kind, complete=group.complete)
    return column if feature is None else show_typed(open_series(column), feature, complete=group.complete).to_native()
