"""Labels that stand in a column of a table already, read by the column's declared type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dpexplain.core.arrays import Vector
from dpexplain.errors import DataError
from dpexplain.registration.labels import check_labels, class_labels


def from_column(table: pa.Table | pa.RecordBatch, name: str, target: Any = None) -> Vector:
    """By the column's declared type, never by its values: booleans are ±1; integers and text are classes, +1 where they are `target`
    (integers: 1 by default, which is right for 0/1 and for -1/+1); floats are labels in [-1, 1] already."""
    column, kind = table.column(name), table.schema.field(name).type
    values = column.to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(kind):
        return check_labels(column.fill_null(False).to_numpy(zero_copy_only=False).astype(bool), len(column))
    if target is not None or pa.types.is_integer(kind):
        return class_labels(values, _as_declared(kind, 1 if target is None else target))
    if not pa.types.is_floating(kind):
        raise DataError(
            f"the label column {name!r} has type {kind}. Say which class to explain (target), or store labels in [-1, 1]"
        )
    return check_labels(values, len(column))


def _as_declared(kind: pa.DataType, target: Any) -> Any:
    """A target from a command line is text; the column knows what it means."""
    try:
        return float(target) if pa.types.is_integer(kind) or pa.types.is_floating(kind) else str(target)
    except ValueError:
        raise DataError(
            f"target {target!r} is not a number, but the label column holds numbers. Name one of its classes"
        ) from None
