"""Rows in Parquet files. Registration reads what it must once (labels, owners); after that files are only read to answer questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import scipy

from dpexplain.backends.distributed import ClusterRows
from dpexplain.backends.encoded import EncodedFiles, Labels, UsedRows
from dpexplain.backends.parquet import ParquetFiles
from dpexplain.backends.streaming import StreamedRows
from dpexplain.core.arrays import Vector
from dpexplain.domain import Domain, DomainLike
from dpexplain.domain.columns import plain_columns
from dpexplain.errors import DataError, RowsUnavailable
from dpexplain.progress import with_bar
from dpexplain.registration.label_column import from_column
from dpexplain.registration.label_file import LabelFile
from dpexplain.registration.labels import Labeller, Output, ask_model
from dpexplain.registration.options import RegistrationOptions, Where
from dpexplain.registration.owners import arrow_owner_names, keep_first
from dpexplain.registration.registered import Registered

BATCH = 1 << 15  # rows that a model is asked about together
Keep = Callable[[int, Iterator[Vector]], LabelFile]  # writes labels of so many rows down


@dataclass(frozen=True, slots=True)
class ColumnLabels:
    """Labels from a column, by its declared type (`registration/label_column.py`)."""

    name: str
    target: Any = None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)

    def of(self, batch: pa.RecordBatch, start: int) -> Vector:
        del start
        return from_column(batch, self.name, self.target)

    def labeller(self, domain: DomainLike) -> None:
        """A column cannot be asked about other rows."""


@dataclass(frozen=True, slots=True, repr=False)
class ModelLabels:
    """Labels from the black box, asked about rows as they stand in the files: all columns, or those named.

    An estimator that was fitted on a data frame gets a pandas frame of its own columns; anything else a pyarrow table.
    """

    model: Any
    target: Any = 1
    output: Output = "probability"
    columns: tuple[str, ...] | None = None

    def of(self, batch: pa.RecordBatch, start: int) -> Vector:
        del start
        table = pa.Table.from_batches([batch])
        asked = self.model_input(table if self.columns is None else table.select(list(self.columns)))
        return ask_model(self.model, asked, batch.num_rows, target=self.target, output=self.output)

    def model_input(self, table: pa.Table) -> Any:
        names = getattr(self.model, "feature_names_in_", None)
        return table if names is None else table.select(_require_columns(names, table)).to_pandas()

    def labeller(self, domain: DomainLike) -> Labeller | None:
        """How the model is asked about made-up rows, where a domain is tabular and rows can be made up."""
        if not isinstance(domain, Domain):
            return None
        return Labeller(self.model, self.target, self.output, lambda columns: self.model_input(pa.table(plain_columns(columns))))


def _require_columns(names: Sequence[str], table: pa.Table) -> list[str]:
    missing = [str(name) for name in names if name not in table.column_names]
    if missing:
        raise DataError(f"the model was fitted with a column {missing[0]!r} that the rows do not have. Add it to the rows")
    return [str(name) for name in names]


def register_streamed(
    files: Where,
    domain: DomainLike,
    labels: ColumnLabels | ModelLabels,
    keep: Keep,
    terms: RegistrationOptions,
    *,
    progress: bool,
) -> Registered:
    """Rows that stay in their files; a model's labels are written down by `keep`."""
    source = read_registered(files, domain, labels, terms, check=True)
    size = terms.public_size(source.rows)
    if isinstance(labels, ModelLabels):
        source = write_labels(source, keep)
    rows = StreamedRows(source, progress=progress)
    return Registered(rows, domain, terms, size, labels.labeller(domain), label_column=_column_of(labels))


def register_clustered(
    files: Where,
    domain: DomainLike,
    labels: ColumnLabels | ModelLabels,
    terms: RegistrationOptions,
    *,
    address: str | None,
    workers: int | None,
) -> Registered:
    """Rows in the memory of a cluster's workers."""
    source = read_registered(files, domain, labels, terms, check=False)
    size = terms.public_size(source.rows)
    rows = ClusterRows(source, address=address, workers=workers)
    return Registered(rows, domain, terms, size, labels.labeller(domain), label_column=_column_of(labels))


def _column_of(labels: ColumnLabels | ModelLabels) -> str | None:
    return labels.name if isinstance(labels, ColumnLabels) else None


def read_registered(
    where: Where,
    domain: DomainLike,
    labels: ColumnLabels | ModelLabels,
    terms: RegistrationOptions,
    *,
    check: bool,
) -> EncodedFiles:
    """Find the files and choose each owner's first rows; with `check`, read every label of a column once.

    Whatever is wrong with the files is a DataError here, before anything is asked of them.
    """
    wanted = [*domain.columns, *(labels.columns or ()), *([] if terms.unit is None else [terms.unit])]
    files = ParquetFiles.find(where, list(dict.fromkeys(wanted)))
    if files.rows == 0:
        raise DataError("there are no rows: register data with at least one row")
    column = labels if check and isinstance(labels, ColumnLabels) else None
    try:
        return EncodedFiles(files, domain, labels, _survey(files, column, terms), _sparse(files, domain))
    except RowsUnavailable as error:
        raise DataError(str(error)) from None


def _sparse(files: ParquetFiles, domain: DomainLike) -> bool:
    """Whether this domain encodes rows as sparse ones; found out on none."""
    return bool(scipy.sparse.issparse(domain.encode(files.schema.empty_table().select(list(domain.columns)))))


def _survey(files: ParquetFiles, labels: ColumnLabels | None, terms: RegistrationOptions) -> UsedRows | None:
    """One pass over the label and the owner of each row: labels raise now or never, owners decide which rows count."""
    unit = terms.unit
    columns = [*(() if labels is None else labels.columns), *(() if unit is None else (unit,))]
    kept, seen = None if unit is None else UsedRows(files.rows), dict[str, int]()
    for start, batch in files.batches(columns, BATCH) if columns else ():
        if labels is not None:
            labels.of(batch, start)
        if kept is not None:
            kept.put(start, keep_first(arrow_owner_names(batch.column(unit)), terms.max_rows_per_unit, seen))
    return kept


def write_labels(source: EncodedFiles, keep: Keep) -> EncodedFiles:
    """Ask the model once about every row, and from then on read its answers from a file."""
    try:
        return replace(source, labels=keep(source.files.rows, _ask_in_batches(source.files, source.labels)))
    except RowsUnavailable as error:
        raise DataError(str(error)) from None


def _ask_in_batches(files: ParquetFiles, labels: Labels) -> Iterator[Vector]:
    """A bar shows how far it is, where a person is watching."""
    columns = None if labels.columns is None else list(labels.columns)
    batches, count = files.batches(columns, BATCH), -(-files.rows // BATCH)
    for start, batch in with_bar(batches, "Asking the model", count):
        yield labels.of(batch, start)


def labels_from(label: str | None, model: Any, terms: RegistrationOptions) -> ColumnLabels | ModelLabels:
    if (model is None) == (label is None):
        raise DataError("pass exactly one of model= (to label the rows) and label= (a column with labels in [-1, 1] or classes)")
    return ColumnLabels(label, terms.target) if label is not None else ModelLabels(model, terms.asked_class, terms.output)
