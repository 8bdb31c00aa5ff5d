"""One label in [-1, 1] for each private row: from a column, from a model asked in batches, or from the owner's cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dpexplain.core.arrays import Vector
from dpexplain.domain import DomainLike
from dpexplain.labels import Output, ask_model
from dpexplain.sources.models import ModelSource

Progress: TypeAlias = Callable[[range], Iterable[int]]
"""Wraps the starts of batches, to show how far labelling is."""

BATCH = 20_000


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


def cache_key(data: Path, model: ModelSource, *facts: Any) -> str:
    """The digest of everything that labels depend on: the rows, the model's file where it has one, and the options."""
    digest = sha256(repr((model, *facts)).encode())
    files = sorted(data.rglob("*.parquet")) if data.is_dir() else [data]
    for file in [*files, *([Path(model.where)] if Path(model.where).is_file() else [])]:
        with file.open("rb") as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
