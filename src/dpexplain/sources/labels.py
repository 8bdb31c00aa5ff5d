"""One label in [-1, 1] for each private row: from a column, from a model asked in batches, or from the owner's cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dpexplain.core.arrays import Vector
from dpexplain.domain import DomainLike
from dpexplain.errors import DataError
from dpexplain.labels import Output, ask_model, check_labels, class_labels
from dpexplain.sources.models import ModelSource

Progress: TypeAlias = Callable[[range], Iterable[int]]
"""Wraps the starts of batches, to show how far labelling is."""

BATCH = 20_000


def from_column(table: pa.Table, name: str, target: Any = None) -> Vector:
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


def from_model(
    source: ModelSource, table: pa.Table, domain: DomainLike, *, target: Any, output: Output, progress: Progress = iter
) -> Vector:
    """Ask once about every row, a batch at a time."""
    model, count = source.open(domain), table.num_rows
    parts = []
    for start in progress(range(0, count, BATCH)):
        batch = table.slice(start, BATCH)
        parts.append(ask_model(model, batch, batch.num_rows, target=target, output=output))
    return np.concatenate(parts) if parts else np.zeros(0)


def cached(path: Path, key: str, compute: Callable[[], Vector]) -> Vector:
    """The labels kept in `path` if they were made for `key`; else computed and kept. The file is private: its owner reads it only."""
    kept = _load(path, key)
    if kept is None:
        kept = compute()
        _save(path, key, kept)
    return kept


def cache_key(data: Path, model: ModelSource, *facts: Any) -> str:
    """The digest of everything that labels depend on: the rows, the model's file where it has one, and the options."""
    digest = sha256(repr((model, *facts)).encode())
    files = sorted(data.rglob("*.parquet")) if data.is_dir() else [data]
    for file in [*files, *([Path(model.where)] if Path(model.where).is_file() else [])]:
        with file.open("rb") as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _load(path: Path, key: str) -> Vector | None:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return np.asarray(stored["labels"], dtype=np.float64) if str(stored["key"]) == key else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError):
        raise DataError(f"{path} is not a label cache. Delete it to compute the labels again, or name another file") from None


def _save(path: Path, key: str, labels: Vector) -> None:
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
        np.savez(handle, labels=labels, key=np.array(key))
    draft.replace(path)
