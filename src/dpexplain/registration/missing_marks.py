"""How a missing entry is shown in a data frame of pandas where no declaration decides it: by what the model accepts in made-up records, which are public.

The column of a yes/no feature may hold True, 1 or "yes", and encoders that were fitted with NaN among objects refuse None and floats, others the reverse. So
the model is asked about made-up records in which the entry is missing: as NaN, as None, and as NaN among floats. The first that it answers is taken for all
rows. In columns that the domain does not declare it is tried as a number, as NaN among objects, and as an instant: for all of them alike, then in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain, islice, product
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from narwhals.dependencies import is_pandas_dataframe

from dpexplain.domain import Domain, DomainLike
from dpexplain.registration.entry_kinds import EntryKind, is_yes_no
from dpexplain.registration.made_up import made_up_like
from dpexplain.registration.presentation import Batch
from dpexplain.registration.shown_columns import is_inferred, no_instants

Ask = Callable[[Any], Any]
Mark = tuple[float | None, type]  # what stands for a missing entry, and the type of its column
MARKS: tuple[Mark, ...] = ((np.nan, object), (None, object), (np.nan, np.float64))
UNDECLARED: dict[int, Callable[[int], Any]] = {
    EntryKind.NUMBER: lambda count: np.full(count, np.nan),
    EntryKind.MISSING: lambda count: np.full(count, np.nan, dtype=object),
    EntryKind.INSTANT: no_instants,
}
_TRIALS = 32


def mark_batches(batches: list[Batch], ask: Ask, rows: Any, domain: DomainLike) -> list[Batch]:
    """The batches with the mark that the model accepts in yes/no columns in which all entries are missing."""
    if not isinstance(domain, Domain) or not is_pandas_dataframe(rows) or not any(batch.unknown for batch in batches):
        return batches
    mark = find_mark(ask, rows, domain)
    return [replace(batch, rows=_mark(batch.rows, batch.unknown, mark)) if batch.unknown else batch for batch in batches]


def find_mark(ask: Ask, rows: Any, domain: Domain) -> Mark:
    """The first mark with which the model answers made-up records; the first of all where it answers none."""
    names = tuple(feature.name for feature in domain.features if is_yes_no(feature))
    made_up = made_up_like(rows, domain)
    return next((mark for mark in MARKS if _is_answered(ask, _mark(made_up, names, mark))), MARKS[0])


def find_undeclared(ask: Ask, rows: Any, domain: DomainLike) -> dict[Any, int]:
    """What a missing entry counts as in each column that the domain does not declare; nothing where that is not asked, or where no answer was found.

    Which columns these are follows from the table's columns and from types that rows do not decide.
    """
    if not isinstance(domain, Domain) or not is_pandas_dataframe(rows):
        return {}
    names = [name for name in rows.columns if name not in domain.columns and is_inferred(rows[name].dtype)]
    if not any(rows[name].isna().any() for name in names):
        return {}
    made_up = made_up_like(rows, domain).reindex(columns=rows.columns)
    alike, each = ((kind,) * len(names) for kind in UNDECLARED), product(UNDECLARED, repeat=len(names))
    for kinds in islice(chain(alike, each), _TRIALS):
        tried = made_up.copy()
        for name, kind in zip(names, kinds, strict=True):
            tried[name] = UNDECLARED[kind](len(made_up))
        if _is_answered(ask, tried):
            return dict(zip(names, kinds, strict=True))
    return {}


def _mark(rows: Any, names: tuple[str, ...], mark: Mark) -> Any:
    return rows.assign(**{name: np.full(len(rows), mark[0], dtype=mark[1]) for name in names})


def _is_answered(ask: Ask, rows: Any) -> bool:
    try:
        with catch_warnings():
            simplefilter("ignore")  # warnings about made-up records are of no interest
            ask(rows)
    except Exception:
        return False
    return True
