"""Labels that are in a column of a table already, read by declaration and by the column's declared type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpexplain.arguments import quote
from dpexplain.core.arrays import Vector
from dpexplain.domain import frames
from dpexplain.errors import DataError
from dpexplain.registration.declared_answers import AnswerDeclaration


def from_column(table: pa.Table | pa.RecordBatch, name: str, declared: AnswerDeclaration) -> Vector:
    """One label for each row, read by itself; 0 for what is missing or cannot be read."""
    column, kind = table.column(name), table.schema.field(name).type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    reading = declaration_of(kind, name, declared).resolve()
    return np.nan_to_num(reading.labels(_entries(column, kind), len(column)))


def declaration_of(kind: pa.DataType, name: str, declared: AnswerDeclaration) -> AnswerDeclaration:
    """What is declared, or else follows from the column's type: booleans, integers and text are classes, +1 where they are `target` (integers:
    1 by default, which is right for 0/1 and for -1/+1); floats are labels in [-1, 1] already."""
    if declared.output not in (None, "class"):
        return declared
    if pa.types.is_boolean(kind) and declared.target is None:
        return replace(declared, output="class", target=True)
    if declared.target is not None or pa.types.is_integer(kind):
        return replace(declared, output="class", target=_as_typed(kind, 1 if declared.target is None else declared.target))
    if not pa.types.is_floating(kind) or declared.output == "class":
        raise DataError(
            f"the label column {name!r} has type {kind}. Say which class to explain (target=), or store labels in [-1, 1]"
        )
    return declared


def _as_typed(kind: pa.DataType, target: Any) -> Any:
    """The target, which is text on a command line, converted to the type of the column."""
    try:
        return float(target) if pa.types.is_integer(kind) or pa.types.is_floating(kind) else target
    except ValueError:
        raise DataError(
            f"target {quote(target)} is not a number, but the label column holds numbers. Name one of its classes"
        ) from None


def _entries(column: Any, kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return frames.entries(column)
