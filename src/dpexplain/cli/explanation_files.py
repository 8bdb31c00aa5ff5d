"""Explanations as tables on disk: one row for each record, with contributions of features and slopes of encoded columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dpexplain.cli.shared_options import require_writable
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.errors import ParameterError
from dpexplain.release.batch import Explanations


def write_explanations(path: Path, names: Sequence[str], answers: Explanations) -> None:
    """Write a table to .parquet or .csv, or whole explanations to .json."""
    _writer(path)(path, names, answers)


def require_output(path: Path | None, as_json: bool) -> None:
    """Raise InputError, before anything is computed, unless many explanations can be written to this file, or are printed as JSON."""
    if path is not None:
        _writer(path)
        require_writable(path)
    elif not as_json:
        raise ParameterError("several explanations need an output file. Pass -o explanations.parquet, or --json to print them")


def _writer(path: Path) -> Callable[[Path, Sequence[str], Explanations], None]:
    try:
        return _WRITERS[path.suffix.lower()]
    except KeyError:
        raise ParameterError(f"cannot write explanations to {path.name!r}. Use one of {', '.join(_WRITERS)}") from None


def as_table(names: Sequence[str], answers: Explanations) -> pa.Table:
    """Answer, average and contributions in the answer's own units, then slopes of the encoded columns, in labels."""
    columns: dict[str, Any] = {"row": np.array(answers.rows or range(len(answers)), dtype=np.int64)}
    if len(answers) and answers[0].added is not None:
        added = answers.contributions()
        columns |= {"answer": added.answer, "average": added.base} | _pairs(added.names, added.values, added.error, "")
    columns |= _pairs(names, answers.values, answers.error, " slope")
    metadata = {"dpexplain.guarantee": str(answers[0].guarantee)} if len(answers) else {}
    return pa.table(columns).replace_schema_metadata(metadata)


def _pairs(names: Sequence[str], values: Matrix, errors: Matrix | None, word: str) -> dict[str, Vector]:
    """A column of values and one of standard errors for each name."""
    known = np.full_like(values, np.nan) if errors is None else errors
    columns = {}
    for j, name in enumerate(names):
        columns[f"{name}{word}"], columns[f"{name}{word} error"] = values[:, j], known[:, j]
    return columns


def _parquet(path: Path, names: Sequence[str], answers: Explanations) -> None:
    pa.parquet.write_table(as_table(names, answers), path)


def _csv(path: Path, names: Sequence[str], answers: Explanations) -> None:
    pa.csv.write_csv(as_table(names, answers), path)


def _json(path: Path, _: Sequence[str], answers: Explanations) -> None:
    path.write_text(json.dumps([answer.to_dict() for answer in answers], ensure_ascii=False), encoding="utf-8")


_WRITERS = {".parquet": _parquet, ".csv": _csv, ".json": _json}
