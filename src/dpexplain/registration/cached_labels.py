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
from dpexplain.registration.declared_answers import AnswerDeclaration, settle
from dpexplain.registration.labels import UNREADABLE, label_rows
from dpexplain.registration.model_sources import ModelSource

Progress: TypeAlias = Callable[[range], Iterable[int]]
"""Wraps the starts of batches, to show how far labelling is."""

BATCH = 20_000


def from_model(model: Any, table: pa.Table, domain: DomainLike, declared: AnswerDeclaration, progress: Progress = iter) -> Vector:
    """Ask once about every row, a batch at a time."""
    parts = []
    for start in progress(range(0, table.num_rows, BATCH)):
        batch = table.slice(start, BATCH)
        parts.append(label_rows(model, batch, batch.num_rows, declared, domain, part=True))
    return settle(np.concatenate([np.zeros(0), *parts]), UNREADABLE)


def cache_key(files: ParquetFiles, model: ModelSource, *facts: Any) -> str:
    """The digest of everything that labels depend on: the rows' files as they are recognised, the model's own file, and the options."""
    where = Path(model.where)
    content = sha256(where.read_bytes()).hexdigest() if where.is_file() else ""
    return sha256(repr((model, content, files.files, *facts)).encode()).hexdigest()
