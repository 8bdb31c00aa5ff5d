"""One label in [-1, 1] for each private row: from a column, from a model asked in batches, or from the owner's cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dpexplain.backends.parquet import ParquetFiles
from dpexplain.core.arrays import Vector
from dpexplain.domain import DomainLike
from dpexplain.registration.labels import Output, ask_model
from dpexplain.registration.models import ModelSource

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


def cache_key(files: ParquetFiles, model: ModelSource, *facts: Any) -> str:
    """The digest of everything that labels depend on: the rows' files as they are recognised, the model's own file, and the options."""
    where = Path(model.where)
    content = sha256(where.read_bytes()).hexdigest() if where.is_file() else ""
    return sha256(repr((model, content, files.files, *facts)).encode()).hexdigest()
