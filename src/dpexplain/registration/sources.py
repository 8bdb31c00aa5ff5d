"""From an owner's description of rows and labels to registered rows: read, label, register."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpexplain.arguments import quote, without_causes
from dpexplain.backends.parquet import ParquetFiles
from dpexplain.core.arrays import Vector
from dpexplain.domain import DomainLike, TextDomain
from dpexplain.domain.columns import plain_columns
from dpexplain.errors import DataError, InputError
from dpexplain.registration.cached_labels import Progress, cache_key, from_model
from dpexplain.registration.declaration_check import SAYS, check_declaration, explain_failure
from dpexplain.registration.declared_tables import declared_files, read_declared
from dpexplain.registration.in_memory import register_labelled
from dpexplain.registration.label_column import from_column
from dpexplain.registration.label_file import LabelFile
from dpexplain.registration.labels import Labeller
from dpexplain.registration.made_up import made_up_like
from dpexplain.registration.memory_limit import fits
from dpexplain.registration.model_sources import ModelSource
from dpexplain.registration.options import RegistrationOptions, Where
from dpexplain.registration.presentation import same_kind_of_texts
from dpexplain.registration.registered import Registered
from dpexplain.registration.scanning import ColumnLabels, Keep, ModelLabels, register_streamed
from dpexplain.registration.tables import read_private

COLUMNS_ALONE = ". It is shown the domain's columns alone: declare every column that it needs"
READ_BY = "declaration 2"  # how answers are read: a cache of labels that were read otherwise is not used


@dataclass(frozen=True, slots=True)
class DataSource:
    """Which rows, what is public about them, and where their labels come from: a column or a model.

    `stream` reads the files anew for each question instead of holding the rows in memory; None does so when they would not fit.
    """

    file: Where
    domain: DomainLike
    label: str | None = None
    model: ModelSource | None = None
    terms: RegistrationOptions = field(default_factory=RegistrationOptions)
    cache: Path | None = None
    stream: bool | None = None

    def __post_init__(self) -> None:
        if (self.label is None) == (self.model is None):
            raise InputError(
                "the rows need labels from one place. Name either a column with the model's answers (label) or the model (model)"
            )
        if not (self.stream is None or isinstance(self.stream, bool)):
            raise InputError(f"stream must be true or false, got {quote(self.stream)}. Leave it out to let free memory decide")
        if self.cache is not None and self.cache.is_dir():
            raise DataError(f"the label cache {self.cache} is a folder. Name a file")

    @property
    def columns(self) -> list[str]:
        return [*self.domain.columns, *(name for name in (self.label, self.terms.unit) if name is not None)]


def decide_streaming(source: DataSource, copies: int = 1) -> DataSource:
    """The source with `stream` set to True or False, for so many processes on this machine that would each hold the rows."""
    if declared_files(source.file) is not None:
        if source.stream or source.cache is not None:
            raise DataError(
                "only Parquet files can be streamed or have their labels cached. Write the rows as Parquet, or leave that out"
            )
        return replace(source, stream=False)
    if source.stream is not None:
        return source
    return replace(source, stream=not fits(ParquetFiles.find(source.file, source.columns), source.domain.width, copies))


@without_causes()
def register(source: DataSource, progress: Progress = iter, *, bars: bool = False, keep_model: bool = False) -> Registered:
    """Read the rows, label each once, and register them. `bars` shows progress bars when a question is answered from files.

    `keep_model` lets the model label reference records later. With `target = "all"` the first class is registered, and all are listed.
    """
    source, classes = _split_classes(source)
    return replace(_register(source, progress, bars=bars, keep_model=keep_model), classes=classes)


def _split_classes(source: DataSource) -> tuple[DataSource, tuple[Any, ...]]:
    """(the source for the first class, all classes) where all classes of the model are asked about; the source itself and () otherwise."""
    asked = source.terms.target == "all" and source.model is not None
    terms, classes = source.terms.split_classes(source.model.open(source.domain) if asked and source.model else None)
    return replace(source, terms=terms), classes


def _register(source: DataSource, progress: Progress, *, bars: bool, keep_model: bool) -> Registered:
    if decide_streaming(source).stream:
        labels, keep = _stream_labels(source), _keeper(source)
        registered = register_streamed(source.file, source.domain, labels, keep, source.terms, progress=bars)
    else:
        registered = replace(_in_memory(source, progress), label_column=source.label)
    if not keep_model or source.model is None:
        return registered
    return replace(registered, labeller=labeller_of_model(source.model.open(source.domain), source.domain, source.terms))


def labeller_of_model(model: Any, domain: DomainLike, terms: RegistrationOptions) -> Labeller:
    """A model asked about Arrow tables of the domain's columns; texts without a column are a list."""
    table: Callable[[dict[str, Any]], Any] = _arrow_table
    if isinstance(domain, TextDomain) and domain.column is None:
        table = same_kind_of_texts([], domain)
    return Labeller(model, terms.target, terms.output, table, terms.bounds, domain)


def _arrow_table(columns: dict[str, Any]) -> pa.Table:
    return pa.table(plain_columns(columns))


def _read_rows(source: DataSource) -> pa.Table:
    files = declared_files(source.file)
    if files is None:
        return read_private(source.file, source.columns)
    numeric = source.label is not None and source.terms.output in ("probability", "value")
    if source.label is not None and not numeric and source.terms.target is None and files[0].suffix.lower() == ".csv":
        raise DataError(
            f"the label column {source.label!r} of a CSV file has no type. Say which class to explain (target=), or what answers are: "
            "output='probability', or output='value' with bounds=(low, high), which are -1 and 1 for labels"
        )
    return read_declared(files, source.domain, source.columns, [str(source.label)] if numeric else [])


def _in_memory(source: DataSource, progress: Progress) -> Registered:
    table, declared = _read_rows(source), source.terms.answers
    if source.model is None:
        column = ColumnLabels(str(source.label), declared)
        scale, labels = column.scale(table.schema), from_column(table, column.name, declared)
    else:
        model = source.model.open(source.domain)
        scale = check_declaration(model, declared, lambda: made_up_like(table, source.domain))
        try:
            labels = _model_labels(source, model, table.select(list(source.domain.columns)), progress)
        except DataError as error:
            found = explain_failure(error, model, declared, lambda: made_up_like(table, source.domain))
            raise DataError(f"{found}{COLUMNS_ALONE if SAYS in str(found) else ''}") from None
    return register_labelled(table, source.domain, labels, source.terms, scale)


def _model_labels(source: DataSource, model: Any, table: pa.Table, progress: Progress) -> Vector:
    def ask() -> Iterator[Vector]:
        yield from_model(model, table, source.domain, source.terms.answers, progress)

    return next(ask()) if source.cache is None else _keeper(source)(table.num_rows, ask()).read_all()


def _stream_labels(source: DataSource) -> ColumnLabels | ModelLabels:
    """A model of a file or an address is asked about the domain's columns only, streamed or not."""
    declared, domain = source.terms.answers, source.domain
    if source.model is None:
        return ColumnLabels(str(source.label), declared)
    return ModelLabels(source.model.open(domain), domain, declared, domain.columns)


def _keeper(source: DataSource) -> Keep:
    """Where a model's labels are stored: in the owner's cache, or in a temporary file."""
    cache, model = source.cache, source.model
    if cache is None or model is None:
        return LabelFile.temporary

    def keep(rows: int, labels: Iterator[Vector]) -> LabelFile:
        facts = READ_BY, source.domain.fingerprint, source.terms.target, source.terms.output, source.terms.bounds
        return LabelFile.open_cached(
            cache, cache_key(ParquetFiles.find(source.file, source.columns), model, *facts), rows, labels
        )

    return keep
