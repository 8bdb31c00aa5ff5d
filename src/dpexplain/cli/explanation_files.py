"""Explanations as tables on disk: one row for each record, a value and an error for each encoded column."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dpexplain.answers.explanation import Explanation
from dpexplain.errors import ParameterError


def write_explanations(path: Path, names: Sequence[str], answers: Sequence[Explanation]) -> None:
    """By the file's ending: .parquet, .csv, or .json with whole explanations."""
    _writer(path)(path, names, answers)


def require_writable_kind(path: Path) -> None:
    _writer(path)


def _writer(path: Path) -> Callable[[Path, Sequence[str], Sequence[Explanation]], None]:
    try:
        return _WRITERS[path.suffix.lower()]
    except KeyError:
        raise ParameterError(f"cannot write explanations to {path.name!r}. Use one of {', '.join(_WRITERS)}") from None


def as_table(names: Sequence[str], answers: Sequence[Explanation]) -> pa.Table:
    values = np.array([answer.values for answer in answers]).reshape(len(answers), len(names))
    errors = np.array([np.full(len(names), np.nan) if answer.error is None else answer.error for answer in answers]).reshape(
        values.shape
    )
    columns: dict[str, Any] = {"row": np.array(getattr(answers, "rows", None) or range(len(answers)), dtype=np.int64)}
    for j, name in enumerate(names):
        columns[name], columns[f"{name} error"] = values[:, j], errors[:, j]
    table = pa.table(columns)
    said = {"dpexplain.guarantee": str(answers[0].guarantee)} if len(answers) else {}
    return table.replace_schema_metadata(said)


def _parquet(path: Path, names: Sequence[str], answers: Sequence[Explanation]) -> None:
    pa.parquet.write_table(as_table(names, answers), path)


def _csv(path: Path, names: Sequence[str], answers: Sequence[Explanation]) -> None:
    pa.csv.write_csv(as_table(names, answers), path)


def _json(path: Path, _: Sequence[str], answers: Sequence[Explanation]) -> None:
    path.write_text(json.dumps([answer.to_dict() for answer in answers], ensure_ascii=False), encoding="utf-8")


_WRITERS = {".parquet": _parquet, ".csv": _csv, ".json": _json}
