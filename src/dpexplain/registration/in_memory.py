"""Rows handed over in memory, as any kind of table: a data frame, dicts, columns, an array, texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from dpexplain.arguments import without_causes
from dpexplain.backends.dense import DenseRows
from dpexplain.backends.sparse import SparseRows
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Vector
from dpexplain.domain import Domain, DomainLike, ImageDomain, TextDomain
from dpexplain.domain.clamping import encode_within
from dpexplain.domain.columns import read_columns
from dpexplain.errors import DataError
from dpexplain.mechanisms.ports import Rows
from dpexplain.registration.declaration_check import check_declaration, explain_failure
from dpexplain.registration.declared_answers import AnswerDeclaration, read_labels, settle
from dpexplain.registration.labels import UNREADABLE, Labeller, label_rows
from dpexplain.registration.made_up import made_up_like
from dpexplain.registration.options import RegistrationOptions
from dpexplain.registration.owners import keep_first, owner_keys, owners_of
from dpexplain.registration.presentation import (
    as_text_records,
    same_kind,
    same_kind_of_images,
    same_kind_of_texts,
    take,
)
from dpexplain.registration.registered import Registered

_CHUNK, _NUMBERS = 1 << 16, 1 << 22  # at most so many rows are encoded at a time, and fewer where they are wide: 32 MB


@without_causes()
def register_in_memory(rows: Any, domain: DomainLike, model: Any, labels: Any, terms: RegistrationOptions) -> Registered:
    """Label the rows once, keep each owner's first ones, and encode them."""
    if (model is None) == (labels is None):
        raise DataError(
            "labels come from one place. Pass exactly one of model= (to label the rows) and labels= (already computed, in [-1, 1])"
        )
    rows, declared = as_text_records(rows, domain), terms.answers
    count = count_rows(rows)
    if model is None:
        return register_labelled(rows, domain, read_labels(labels, count, declared), terms, declared.resolve().scale)
    scale = check_declaration(model, declared, lambda: made_up_like(rows, domain))
    values = _label(model, rows, count, declared, domain)
    if isinstance(domain, Domain):
        table = same_kind(rows)
    elif isinstance(domain, TextDomain):
        table = same_kind_of_texts(rows, domain)
    elif isinstance(domain, ImageDomain):
        table = same_kind_of_images(rows)
    else:  # records of a domain that is not ours are never made up for the model
        return register_labelled(rows, domain, values, terms, scale)
    labeller = Labeller(model, terms.target, terms.output, table, terms.bounds, domain)
    return register_labelled(rows, domain, values, terms, scale, labeller)


def _label(model: Any, rows: Any, count: int, declared: AnswerDeclaration, domain: DomainLike) -> Vector:
    try:
        return settle(label_rows(model, rows, count, declared, domain), UNREADABLE)
    except DataError as error:
        raise explain_failure(error, model, declared, lambda: made_up_like(rows, domain)) from None


def register_labelled(
    rows: Any,
    domain: DomainLike,
    labels: Vector,
    terms: RegistrationOptions,
    scale: AnswerScale,
    labeller: Labeller | None = None,
) -> Registered:
    """Keep each owner's first rows, and encode them. `labels` are in [-1, 1], one for each row."""
    owners = None if terms.unit is None else owners_of(rows, terms.unit)
    kept = np.arange(len(labels)) if owners is None else np.flatnonzero(keep_first(owners, terms.max_rows_per_unit, {}))
    size = terms.public_size(len(kept))
    store = _store(_encoded_chunks(rows, domain, kept), labels[kept], domain.width, most=2 * size)
    keys = None if owners is None else partial(owner_keys, [owners[i] for i in kept.tolist()])
    return Registered(store, domain, terms, size, labeller, keys, scale=scale)


def count_rows(rows: Any) -> int:
    """The number of rows of any kind of table. All columns of a dict are equally long."""
    if isinstance(rows, (str, bytes, Path)):
        raise DataError("rows are not read from a name. Pass the table itself, or use PrivateData.scan for files")
    if isinstance(rows, Mapping):
        count = _count_entries(rows)
    elif hasattr(rows, "shape"):
        count = int(rows.shape[0])
    elif hasattr(rows, "__len__"):
        count = len(rows)
    else:
        raise DataError(
            f"cannot read rows from {type(rows).__name__}. Pass a data frame (a lazy one collected), list of dicts, dict of columns or array"
        )
    if count == 0:
        raise DataError("there are no rows. Register data with at least one row")
    return count


def _count_entries(columns: Mapping[Any, Any]) -> int:
    """The length of the columns of a dict."""
    for name, column in columns.items():
        if not hasattr(column, "__len__") or isinstance(column, str):
            raise DataError(
                f"{name}: expected a column (list, array or series), got {type(column).__name__}. For a single record pass [record]"
            )
    lengths = sorted({len(column) for column in columns.values()})
    if len(lengths) > 1:
        raise DataError(f"columns have different lengths {lengths}. Pass one entry per row in every column")
    return lengths[0] if lengths else 0


def _store(chunks: Iterator[Any], labels: Vector, width: int, most: int) -> Rows:
    """Store the rows dense or sparse, as the domain encodes them. `most` is a public bound on their number."""
    first = next(chunks)
    kind = SparseRows if scipy.sparse.issparse(first) else DenseRows
    return kind(chain([first], chunks), labels, width, most)


def _encoded_chunks(rows: Any, domain: DomainLike, kept: np.ndarray[Any, Any]) -> Iterator[Any]:
    """Encode a slice at a time, so that the float64 table never exists as a whole."""
    step = min(max(_NUMBERS // domain.width // 256, 1) * 256, _CHUNK)  # whole blocks of the store
    read, encode = _read_whole(rows, domain)
    for start in range(0, len(kept), step):
        yield encode(take(read, kept[start : start + step]))


def _read_whole(rows: Any, domain: DomainLike) -> tuple[Any, Callable[[Any], Any]]:
    """Rows of which any slice can be encoded by the function. What decides about errors is decided for all slices at once: one of them may be one row."""
    if type(domain) is ImageDomain:
        return domain.read_images(rows), domain.encode_readable
    if isinstance(rows, (list, tuple)) and isinstance(domain, (Domain, TextDomain)):
        rows = read_columns(rows, domain.columns) if isinstance(domain, Domain) else domain.texts(rows)
    return rows, partial(encode_within, domain)
