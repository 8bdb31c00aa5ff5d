"""From an owner's description to `PrivateData`: read, label, register."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpexplain.backends.parquet import ParquetFiles
from dpexplain.core.arrays import Vector
from dpexplain.data import PrivateData
from dpexplain.domain import DomainLike
from dpexplain.domain.tables import plain_columns
from dpexplain.errors import DataError, InputError
from dpexplain.label_file import LabelFile
from dpexplain.labels import Labeller, Output, from_column
from dpexplain.scanning import ColumnLabels, Keep, ModelLabels, Where
from dpexplain.sources.labels import Progress, cache_key, from_model
from dpexplain.sources.memory import fits
from dpexplain.sources.models import ModelSource
from dpexplain.sources.tables import read_private


@dataclass(frozen=True, slots=True)
class DataSource:
    """Which rows, what is public about them, and where their labels come from: a column or a model.

    `stream` reads the files anew for each question instead of holding the rows in memory; None does so when they would not fit.
    """

    file: Where
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
    stream: bool | None = None

    def __post_init__(self) -> None:
        if (self.label is None) == (self.model is None):
            raise InputError("the rows need labels from one place. Name either a label column or a model")
        if not (self.stream is None or isinstance(self.stream, bool)):
            raise InputError(f"stream must be true or false, got {self.stream!r}. Leave it out to let free memory decide")
        if self.cache is not None and self.cache.is_dir():
            raise DataError(f"the label cache {self.cache} is a folder. Name a file")

    @property
    def columns(self) -> list[str]:
        return [*self.domain.columns, *(name for name in (self.label, self.unit) if name is not None)]


def decided(source: DataSource, copies: int = 1) -> DataSource:
    """With `stream` settled, for so many processes on this machine that would each hold the rows."""
    if source.stream is not None:
        return source
    return replace(source, stream=not fits(ParquetFiles.find(source.file, source.columns), source.domain.width, copies))


def register(source: DataSource, progress: Progress = iter, *, bars: bool = False, keep_model: bool = False) -> PrivateData:
    """Read, label once, and put behind the wall. `bars` shows on a terminal how far the answer to a question is.

    `keep_model` is for reference records, which the model labels later.
    """
    how: dict[str, Any] = {
        "unit": source.unit,
        "max_rows_per_unit": source.max_rows_per_unit,
        "relation": source.relation,
        "size": source.size,
        "name": source.name,
    }
    if decided(source).stream:
        data = PrivateData._streamed(source.file, source.domain, _stream_labels(source), _keeper(source), progress=bars, **how)
    else:
        data = _in_memory(source, progress, how)
    if keep_model and source.model is not None:
        target = 1 if source.target is None else source.target
        data.know(Labeller(source.model.open(source.domain), target, source.output, lambda rows: pa.table(plain_columns(rows))))
    return data


def _in_memory(source: DataSource, progress: Progress, how: dict[str, Any]) -> PrivateData:
    features = list(source.domain.columns)
    table = read_private(source.file, source.columns)
    labels = _labels(source, table.select(features) if source.model else table, progress)
    return PrivateData(table, source.domain, labels=labels, **how)


def _labels(source: DataSource, table: pa.Table, progress: Progress) -> Vector:
    model = source.model
    if model is None:
        return from_column(table, str(source.label), source.target)

    def ask() -> Iterator[Vector]:
        target = 1 if source.target is None else source.target
        yield from_model(model, table, source.domain, target=target, output=source.output, progress=progress)

    return next(ask()) if source.cache is None else _keeper(source)(table.num_rows, ask()).all()


def _stream_labels(source: DataSource) -> ColumnLabels | ModelLabels:
    """A model of a file or an address is asked about the domain's columns only, streamed or not."""
    if source.model is None:
        return ColumnLabels(str(source.label), source.target)
    return ModelLabels(source.model.open(source.domain), source.target, source.output, source.domain.columns)


def _keeper(source: DataSource) -> Keep:
    """What keeps a model's labels: the owner's cache, or a file that nobody named."""
    cache, model = source.cache, source.model
    if cache is None or model is None:
        return LabelFile.temporary

    def keep(rows: int, labels: Iterator[Vector]) -> LabelFile:
        facts = source.domain.fingerprint, source.target, source.output
        return LabelFile.kept(cache, cache_key(ParquetFiles.find(source.file, source.columns), model, *facts), rows, labels)

    return keep
