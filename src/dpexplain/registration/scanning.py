"""Rows in Parquet files. Registration reads what it must once (labels, owners); after that files are only read to answer questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy

from dpexplain.arguments import without_causes
from dpexplain.backends.distributed import ClusterRows
from dpexplain.backends.encoded import EncodedFiles, UsedRows
from dpexplain.backends.parquet import ParquetFiles
from dpexplain.backends.streaming import StreamedRows
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Vector
from dpexplain.domain import Domain, DomainLike, TextDomain
from dpexplain.domain.columns import plain_columns
from dpexplain.errors import DataError, RowsUnavailable
from dpexplain.progress import with_bar
from dpexplain.registration.declaration_check import check_declaration
from dpexplain.registration.declared_answers import AnswerDeclaration
from dpexplain.registration.label_column import declaration_of, from_column
from dpexplain.registration.label_file import LabelFile
from dpexplain.registration.labels import UNREADABLE, Labeller, label_rows
from dpexplain.registration.made_up import made_up_like
from dpexplain.registration.options import RegistrationOptions, Where
from dpexplain.registration.owners import arrow_owner_names, keep_first
from dpexplain.registration.registered import Registered

BATCH = 1 << 15  # rows that a model is asked about together
Keep = Callable[[int, Iterator[Vector]], LabelFile]  # stores the labels of so many rows


@dataclass(frozen=True, slots=True)
class ColumnLabels:
    """Labels from a column, by declaration or by its declared type (`registration/label_column.py`)."""

    name: str
    declared: AnswerDeclaration = field(default_factory=AnswerDeclaration)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)

    def of(self, batch: pa.RecordBatch, start: int) -> Vector:
        del start
        return from_column(batch, self.name, self.declared)

    def scale(self, schema: pa.Schema) -> AnswerScale:
        """DataError where the column's type cannot be read as it is declared."""
        kind = schema.field(self.name).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        return declaration_of(plain, self.name, self.declared).resolve().scale

    def labeller(self) -> None:
        """A column cannot be asked about other rows."""


@dataclass(frozen=True, slots=True, repr=False)
class ModelLabels:
    """Labels from the black box, asked about rows as they stand in the files: all columns, or those named.

    An estimator that was fitted on a data frame gets a pandas frame of its own columns; anything else a pyarrow table.
    """

    model: Any
    domain: DomainLike
    declared: AnswerDeclaration = field(default_factory=AnswerDeclaration)
    columns: tuple[str, ...] | None = None

    def of(self, batch: pa.RecordBatch, start: int) -> Vector:
        del start
        return np.nan_to_num(self.ask(batch))

    def ask(self, batch: pa.RecordBatch) -> Vector:
        """NaN for rows that the model cannot answer."""
        table = pa.Table.from_batches([batch])
        shown = table if self.columns is None else table.select(list(self.columns))
        return label_rows(self.model, shown, batch.num_rows, self.declared, self.domain, self.model_input, part=True)

    def model_input(self, table: pa.Table) -> Any:
        names = getattr(self.model, "feature_names_in_", None)
        return table if names is None else table.select(_require_columns(names, table)).to_pandas(ignore_metadata=True)

    def scale(self, schema: pa.Schema) -> AnswerScale:
        """DataError where the declaration does not fit the model's answers about made-up records."""
        empty = schema.empty_table()
        return check_declaration(self.model, self.declared, lambda: self.model_input(made_up_like(empty, self.domain)))

    def labeller(self) -> Labeller | None:
        """How the model is asked about made-up rows, where a domain is of tables or texts and rows can be made up."""
        if not isinstance(self.domain, (Domain, TextDomain)):
            return None
        declared = self.declared
        return Labeller(self.model, declared.target, declared.output, self._table, declared.bounds, self.domain)

    def _table(self, columns: dict[str, Any]) -> Any:
        return self.model_input(pa.table(plain_columns(columns)))


def _require_columns(names: Sequence[str], table: pa.Table) -> list[str]:
    missing = [str(name) for name in names if name not in table.column_names]
    if missing:
        raise DataError(f"the model was fitted with a column {missing[0]!r} that the rows do not have. Add it to the rows")
    return [str(name) for name in names]


@without_causes()
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
    source = read_registered(files, domain, labels, terms)
    scale, size = labels.scale(source.files.schema), terms.public_size(source.rows)
    if isinstance(labels, ModelLabels):
        source = write_labels(source, labels, keep)
    rows = StreamedRows(source, progress=progress)
    return Registered(rows, domain, terms, size, labels.labeller(), label_column=_column_of(labels), scale=scale)


@without_causes()
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
    source = read_registered(files, domain, labels, terms)
    scale, size = labels.scale(source.files.schema), terms.public_size(source.rows)
    rows = ClusterRows(source, address=address, workers=workers)
    return Registered(rows, domain, terms, size, labels.labeller(), label_column=_column_of(labels), scale=scale)


def _column_of(labels: ColumnLabels | ModelLabels) -> str | None:
    return labels.name if isinstance(labels, ColumnLabels) else None


def read_registered(
    where: Where, domain: DomainLike, labels: ColumnLabels | ModelLabels, terms: RegistrationOptions
) -> EncodedFiles:
    """Find the files and choose each owner's first rows.

    Raises DataError for unusable files, before any question is asked.
    """
    wanted = [*domain.columns, *(labels.columns or ()), *([] if terms.unit is None else [terms.unit])]
    files = ParquetFiles.find(where, list(dict.fromkeys(wanted)))
    if files.rows == 0:
        raise DataError("there are no rows. Register data with at least one row")
    try:
        _require_readable(files, list(dict.fromkeys(wanted)))
        kept = None if terms.unit is None else _keep_first_rows(files, terms.unit, terms.max_rows_per_unit)
        return EncodedFiles(files, domain, labels, kept, _sparse(files, domain))
    except RowsUnavailable as error:
        raise DataError(str(error)) from None


def _require_readable(files: ParquetFiles, columns: Sequence[str]) -> None:
    """RowsUnavailable for what Arrow refuses to read: text of a dictionary that is not valid Unicode. A question must not be where that is noticed."""
    coded = [name for name in columns if pa.types.is_dictionary(files.schema.field(name).type)]
    for _ in files.batches(coded, BATCH) if coded else ():
        pass


def _sparse(files: ParquetFiles, domain: DomainLike) -> bool:
    """Whether this domain encodes rows as sparse ones; found out on none."""
    return bool(scipy.sparse.issparse(domain.encode(files.schema.empty_table().select(list(domain.columns)))))


def _keep_first_rows(files: ParquetFiles, unit: str, most: int) -> UsedRows:
    """One pass over the owner of each row, which decides which rows count."""
    kept, seen = UsedRows(files.rows), dict[str, int]()
    for start, batch in files.batches([unit], BATCH):
        kept.write_flags(start, keep_first(arrow_owner_names(batch.column(unit)), most, seen))
    return kept


def write_labels(source: EncodedFiles, labels: ModelLabels, keep: Keep) -> EncodedFiles:
    """Ask the model once about every row, and from then on read its answers from a file."""
    try:
        return replace(source, labels=keep(source.files.rows, _ask_in_batches(source.files, labels)))
    except RowsUnavailable as error:
        raise DataError(str(error)) from None


def _ask_in_batches(files: ParquetFiles, labels: ModelLabels) -> Iterator[Vector]:
    """A progress bar on a terminal. DataError where no answer could be read."""
    columns, readable = None if labels.columns is None else list(labels.columns), False
    batches, count = files.batches(columns, BATCH), -(-files.rows // BATCH)
    for _, batch in with_bar(batches, "Asking the model", count):
        found = labels.ask(batch)
        readable = readable or not np.isnan(found).all()
        yield np.nan_to_num(found)
    if not readable:
        raise DataError(UNREADABLE)


def labels_from(label: str | None, model: Any, domain: DomainLike, terms: RegistrationOptions) -> ColumnLabels | ModelLabels:
    if (model is None) == (label is None):
        raise DataError(
            "labels come from one place. Pass exactly one of model= (to label the rows) and label= (a column with labels in [-1, 1] or classes)"
        )
    return ColumnLabels(label, terms.answers) if label is not None else ModelLabels(model, domain, terms.answers)
