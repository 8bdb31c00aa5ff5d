"""Rows handed over in memory, as any kind of table: a data frame, dicts, columns, an array, texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import narwhals as nw
import numpy as np
import scipy

from dpexplain.backends.dense import DenseRows
from dpexplain.backends.sparse import SparseRows
from dpexplain.core.arrays import Vector
from dpexplain.domain import Domain, DomainLike
from dpexplain.domain.columns import plain_columns
from dpexplain.errors import DataError
from dpexplain.mechanisms.ports import Rows
from dpexplain.registration.labels import Labeller, ask_model, check_labels
from dpexplain.registration.options import RegistrationOptions
from dpexplain.registration.owners import keep_first, owner_keys, owners_of
from dpexplain.registration.registered import Registered

_CHUNK, _NUMBERS = 1 << 16, 1 << 22  # at most so many rows are encoded at a time, and fewer where they are wide: 32 MB


def register_in_memory(rows: Any, domain: DomainLike, model: Any, labels: Any, terms: RegistrationOptions) -> Registered:
    """Label the rows once, keep each owner's first ones, and encode them."""
    if (model is None) == (labels is None):
        raise DataError("pass exactly one of model= (to label the rows) and labels= (already computed, in [-1, 1])")
    count = count_rows(rows)
    asked = {"target": terms.asked_class, "output": terms.output}
    values = ask_model(model, rows, count, **asked) if labels is None else check_labels(labels, count)
    owners = None if terms.unit is None else owners_of(rows, terms.unit)
    kept = np.arange(count) if owners is None else np.flatnonzero(keep_first(owners, terms.max_rows_per_unit, {}))
    size = terms.public_size(len(kept))
    store = _store(_encoded_chunks(rows, domain, kept), values[kept], domain.width, most=2 * size)
    keys = None if owners is None else owner_keys(owners[i] for i in kept)
    tabular = isinstance(domain, Domain)  # only then can rows be made up for the model to label
    labeller = Labeller(model, **asked, table=_same_kind(rows)) if tabular and model is not None else None
    return Registered(store, domain, terms, size, labeller, keys)


def count_rows(rows: Any) -> int:
    """The number of rows of any kind of table."""
    if isinstance(rows, dict):
        count = len(next(iter(rows.values()), ()))
    elif hasattr(rows, "shape"):
        count = int(rows.shape[0])
    elif hasattr(rows, "__len__"):
        count = len(rows)
    else:
        raise DataError(
            f"cannot read rows from {type(rows).__name__}: pass a data frame, list of dicts, dict of columns or array"
        )
    if count == 0:
        raise DataError("there are no rows: register data with at least one row")
    return count


def _store(chunks: Iterator[Any], labels: Vector, width: int, most: int) -> Rows:
    """Dense or sparse, as the domain encodes; at most `most` rows, publicly."""
    first = next(chunks)
    kind = SparseRows if scipy.sparse.issparse(first) else DenseRows
    return kind(chain([first], chunks), labels, width, most)


def _encoded_chunks(rows: Any, domain: DomainLike, kept: np.ndarray[Any, Any]) -> Iterator[Any]:
    """Encode a slice at a time, so that the float64 table never exists as a whole."""
    step = min(max(_NUMBERS // domain.width // 256, 1) * 256, _CHUNK)  # whole blocks of the store
    for start in range(0, len(kept), step):
        yield domain.encode(_take(rows, kept[start : start + step]))


def _take(rows: Any, positions: np.ndarray[Any, Any]) -> Any:
    if isinstance(rows, dict):
        return {name: _take(column, positions) for name, column in rows.items()}
    if isinstance(rows, (list, tuple)):
        return [rows[i] for i in positions]
    if isinstance(rows, np.ndarray):
        return rows[positions]
    if hasattr(rows, "tocsr"):
        return rows.tocsr()[positions]
    try:
        frame = nw.from_native(rows, eager_only=True, allow_series=True)
    except TypeError:
        raise DataError(f"cannot read rows from {type(rows).__name__}: pass a data frame, dicts or an array") from None
    return frame[positions.tolist()].to_native()


def _same_kind(rows: Any) -> Callable[[dict[str, Any]], Any]:
    """A function from columns to the kind of table that `rows` is. It keeps nothing of the rows."""
    if isinstance(rows, dict):
        return dict
    if isinstance(rows, np.ndarray) or scipy.sparse.issparse(rows):
        return lambda columns: np.column_stack(list(columns.values()))
    if isinstance(rows, (list, tuple)):
        return lambda columns: [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    backend = nw.from_native(rows, eager_only=True).implementation
    return lambda columns: nw.from_dict(plain_columns(columns), backend=backend).to_native()
