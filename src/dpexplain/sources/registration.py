"""From an owner's description to `PrivateData`: read, label, register."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpexplain.core.arrays import Vector
from dpexplain.data import PrivateData
from dpexplain.domain import DomainLike
from dpexplain.errors import DataError, InputError
from dpexplain.label_file import LabelFile
from dpexplain.labels import Output, from_column
from dpexplain.sources.labels import Progress, cache_key, from_model
from dpexplain.sources.models import ModelSource
from dpexplain.sources.tables import read_private


@dataclass(frozen=True, slots=True)
class DataSource:
    """Which rows, what is public about them, and where their labels come from: a column or a model."""

    file: Path
    domain: DomainLike
    label: str | None = None
    model: ModelSource | None = None
    target: Any = None
    output: Output = "probability"
    unit: str | None = None
    max_rows_per_unit: int = 1
    relation: str = "add-remove"
    size: int | None = None
    name: str = "data"
    cache: Path | None = None

    def __post_init__(self) -> None:
        if (self.label is None) == (self.model is None):
            raise InputError("the rows need labels from one place. Name either a label column or a model")


def register(source: DataSource, progress: Progress = iter) -> PrivateData:
    """Read, label once, and put behind the wall."""
    features = list(source.domain.columns)
    others = [name for name in (source.label, source.unit) if name is not None]
    table = read_private(source.file, [*features, *others])
    labels = _labels(source, table.select(features) if source.model else table, progress)
    return PrivateData(
        table,
        source.domain,
        labels=labels,
        unit=source.unit,
        max_rows_per_unit=source.max_rows_per_unit,
        relation=source.relation,
        size=source.size,
        name=source.name,
    )


def _labels(source: DataSource, table: pa.Table, progress: Progress) -> Vector:
    model = source.model
    if model is None:
        return from_column(table, str(source.label), source.target)

    def ask() -> Vector:
        target = 1 if source.target is None else source.target
        return from_model(model, table, source.domain, target=target, output=source.output, progress=progress)

    if source.cache is None:
        return ask()
    if source.cache.is_dir():
        raise DataError(f"the label cache {source.cache} is a folder. Name a file")
    key = cache_key(source.file, model, source.domain.fingerprint, source.target, source.output)
    return LabelFile.kept(source.cache, key, table.num_rows, (ask() for _ in range(1))).all()
