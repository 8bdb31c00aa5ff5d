"""Checks that registration treats rows independently: one more record, of any kind a file can hold, moves a bounded query by at most its sensitivity.

A made-up table is registered with and without a few odd records, by the same code as a user's, and bounded queries are evaluated on both. Nothing is random:
one record that moves a sum further than its bound refutes the bound. `tests/property/test_registration.py` compares the registered rows
themselves, bit by bit; this compares bounded queries, which the guarantee is about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import cells_of
from dpexplain.core.marginals import Bins, PairTables
from dpexplain.core.weights import Stable
from dpexplain.data import PrivateData
from dpexplain.domain import Binary, Categorical, Domain, Numeric
from dpexplain.mechanisms.gradient import Place, plane_gradient
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.marginals_plan import PairLabels
from dpexplain.mechanisms.ports import BoundedQuery
from dpexplain.mechanisms.shapley import Shapley

DOMAIN = Domain([Numeric("age", 0, 100), Categorical("code", values=[1, 2, 3]), Binary("married")])
_CELLS = cells_of(DOMAIN.blocks, DOMAIN.levels)
_TABLES = Bins(_CELLS, tuple(np.arange(cell.count) for cell in _CELLS), tuple(cell.count for cell in _CELLS))
_POINT = {"age": 30, "code": 1, "married": True}
_COUNT = 200
_ODD: tuple[Any, ...] = (None, float("nan"), "7", "", True, 2**70, -0.0, b"7")


@dataclass(frozen=True, slots=True)
class Moved:
    """How far some records moved a bounded query, as a multiple of what is claimed for them."""

    what: str
    ratio: float

    def __str__(self) -> str:
        return f"{self.what} moved a sum by {self.ratio:.3g} times its bound"


def registration_moves() -> Iterator[Moved]:
    """The ratios of all trials; none passes 1 where registration is sound."""
    for odd in _ODD:
        yield from _trial(f"one record with label {odd!r}", [_record(0)], [odd])
        yield from _trial(
            f"one record with age and code {odd!r}", [{"age": odd, "code": odd, "married": odd, "person": 500}], [0.8]
        )
    yield from _trial("a first record", [_record(0)], [-0.9])
    same = [_record(3) | {"person": name} for name in (700.0, "700", np.int64(700), "700.0")]  # who owns no other record
    yield from _trial("four records of one owner", same, [-1.0] * 4, unit="person")


def _trial(what: str, more: list[dict[str, Any]], labels: list[Any], **options: Any) -> Iterator[Moved]:
    base, answers = [_record(i) for i in range(1, _COUNT + 1)], [0.8] * _COUNT
    without = PrivateData(base, DOMAIN, labels=answers, size=_COUNT, **options)
    inside = PrivateData([*more, *base], DOMAIN, labels=[*labels, *answers], size=_COUNT, **options)
    for query, at in _queries(without):
        apart = query.evaluate(inside.private_rows, at) - query.evaluate(without.private_rows, at)
        yield Moved(f"{what} ({query.what})", float(np.linalg.norm(apart)) / query.sensitivity)


def _queries(data: PrivateData) -> list[tuple[BoundedQuery, Any]]:
    """Gradients of two planes at a steep φ, Shapley values of a model that every feature matters to, and labels in tables of pairs."""
    point, setting = DOMAIN.encode_query(_POINT), data.setting
    state = np.array([0.5, -0.3, 0.4, 0.3, -0.4])
    free = plane_gradient(point, setting, Stable(), 1.0, "fitted")
    paper = plane_gradient(point, setting, Stable(), 1.0, "paper")
    asked = Shapley(1.0, 1e-6).with_model(_model).plan(point, setting, History())
    labels = PairLabels(_TABLES.sizes, setting), PairTables(_TABLES)
    return [(free, Place(np.append(state, -0.7))), (paper, Place(state)), (asked.gaussian.query, None), labels]


def _model(rows: Matrix) -> Vector:
    """Only all features together decide, so that what each adds depends on the order."""
    known = np.column_stack([rows[:, 0] > 0.5, rows[:, 1] > 0.5, rows[:, 4] > 0.5])
    return np.asarray(np.where(known, 1.0, -1.0).prod(axis=1))


def _record(number: int) -> dict[str, Any]:
    return {"age": (37 * number) % 101, "code": number % 3 + 1, "married": number % 2 == 0, "person": number}
