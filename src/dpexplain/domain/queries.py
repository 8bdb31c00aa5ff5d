"""Public queries as records, and the strict check that each fits the domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpexplain.domain.base import hint, listed
from dpexplain.domain.features import Feature
from dpexplain.errors import QueryError


def read_query(record: Any) -> Mapping[Any, Any]:
    """One record: a mapping, a one-row data frame, or anything with keys, such as a pandas Series."""
    if isinstance(record, Mapping):
        return record
    frame = _frame_records(record)
    if frame is None and hasattr(record, "keys"):
        return {key: record[key] for key in record.keys()}  # noqa: SIM118 (a Series iterates over its values)
    if frame is None:
        raise QueryError(f"a query must be a dict with one value per feature, got {type(record).__name__}; pass a dict")
    if len(frame) != 1:
        raise QueryError(f"a query is one record, got a frame of {len(frame)} rows; pass a batch to the batch method")
    return frame[0]


def read_queries(rows: Any) -> list[Mapping[Any, Any]]:
    """Several records: a data frame, a list of records, or a dict of columns."""
    if isinstance(rows, Mapping):
        return _mapping_records(rows)
    if isinstance(rows, (list, tuple)):
        return [read_query(row) for row in rows]
    records = _frame_records(rows)
    if records is None:
        raise QueryError(f"queries must be a data frame or a list of dicts, got {type(rows).__name__}; pass one of them")
    return records


def check_query(features: Sequence[Feature], record: Mapping[Any, Any]) -> None:
    """Raise QueryError unless the record has exactly the declared fields, each with a value the domain declares."""
    names = {feature.name: feature for feature in features}
    for field in record:
        if field not in names:
            raise QueryError(f"unknown field {field!r}{hint(field, names)}; the domain declares {listed(names)}: remove it")
    for feature in features:
        if feature.name not in record:
            raise QueryError(f"field {feature.name!r} is missing; give one value for each of {listed(names)}")
        feature.check(record[feature.name])


def place_query(features: Sequence[Feature], record: Mapping[Any, Any]) -> list[tuple[int, float]]:
    """`check_query`, and where each value is encoded: `Feature.place`."""
    if len(record) != len(features) or any(feature.name not in record for feature in features):
        check_query(features, record)  # a field too many or too few: it says which
    return [feature.place(record[feature.name]) for feature in features]


def check_queries(features: Sequence[Feature], records: Sequence[Mapping[Any, Any]]) -> None:
    """`check_query` on each, naming the row that does not fit."""
    for i, record in enumerate(records):
        try:
            check_query(features, record)
        except QueryError as error:
            raise QueryError(f"row {i}: {error}") from None


def check_vectors(features: Sequence[Feature], vectors: NDArray[Any], low: Any, high: Any) -> None:
    """The same for records given as vectors of numbers, without visiting entries that fit."""
    if vectors.dtype.kind in "iuf":
        suspects = np.argwhere(~((vectors >= low) & (vectors <= high)))  # NaN is never within
    else:
        suspects = np.argwhere(np.ones(vectors.shape, dtype=bool))
    for i, j in suspects:
        try:
            features[j].check(vectors[i, j])
        except QueryError as error:
            raise QueryError(f"row {i}: {error}" if len(vectors) > 1 else str(error)) from None


def _frame_records(rows: Any) -> list[Mapping[Any, Any]] | None:
    from dpexplain.domain import frames  # as in `tables.py`, only where there is a data frame

    try:
        return list(frames.open_frame(rows).rows(named=True))
    except (TypeError, ValueError):
        return None


def _mapping_records(columns: Mapping[Any, Any]) -> list[Mapping[Any, Any]]:
    try:
        entries = [list(column) for column in columns.values() if not isinstance(column, (str, bytes))]
    except TypeError:
        entries = []
    if len(entries) < len(columns) or len({len(entry) for entry in entries}) > 1:
        raise QueryError("a dict of queries needs equally long columns; pass a single record to the one-query method")
    return [dict(zip(columns, values, strict=True)) for values in zip(*entries, strict=True)]
