"""Baseline Shapley values: one background row at a time, features as players. Bounds: `proofs/shapley.md`.

For a background row x, a query z and a black box f, a coalition S of features is worth v(S) = f(z on S, x elsewhere). Feature j's Shapley value is the
mean over orders of the features of what it adds when it joins those before it,

    φ_j(x) = mean over orders of v(before j, and j) - v(before j),      Σ_j φ_j(x) = f(z) - f(x),

and the mean of φ(x) over the rows is the interventional SHAP value of z. An order and its reverse are always taken together: then effects of single
features and of pairs come out exactly (Covert & Lee 2021).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.core import row_hash, sensitivity
from dpexplain.core.arrays import Matrix, Vector

Orders: TypeAlias = NDArray[np.intp]
"""For each row, the features in the order in which they join, (rows, d)."""


Ask: TypeAlias = Callable[[Matrix], Vector]
"""Encoded rows → labels in [-1, 1]."""

_ORDER, _ASKED = 1, 2  # purposes of a row's hash


@dataclass(frozen=True, slots=True, eq=False)
class ShapleySum:
    """A bounded query: Σ φ(x) over the rows that are asked, each cut to length `clip` at most, inseparable from its sensitivity.

    Whether a row is asked, and its order, follow from a public hash of the row itself, so that no other row's presence changes them. Terms are
    cut to multiples of `grid`, so that their sums have no rounding error, in whatever parts they are added up.
    """

    point: Vector
    ask: Ask
    owner: Orders
    clip: float
    share: float = 1.0  # of the rows that are asked, on average
    grid: float = 2.0**-30

    def sensitivity(self) -> float:
        return sensitivity.clipping_bound(self.clip)

    @property
    def players(self) -> int:
        return int(self.owner[-1]) + 1

    def select_rows(self, rows: Matrix) -> NDArray[np.bool_]:
        """Which rows are asked."""
        if self.share >= 1:
            return np.ones(len(rows), dtype=np.bool_)
        return np.asarray(row_hash.uniforms(row_hash.hash_rows(rows, _ASKED), 1)[:, 0] < self.share)

    def expected_count(self, size: int) -> int:
        """How many of `size` rows are asked on average: a public number."""
        return max(round(self.share * size), 1)

    def units(self, rows: Matrix) -> NDArray[np.int64]:
        """The sum over those of `rows` that are asked, in whole grid units."""
        rows = rows[self.select_rows(rows)]
        if not len(rows):
            return np.zeros(self.players, dtype=np.int64)
        found = baseline_shapley(row_wise(self.ask), self.point, rows, self.owner, walk_orders(rows, self.players))
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        found *= np.minimum(1.0, self.clip / np.maximum(lengths, 1e-300))
        return np.asarray(np.trunc(found / self.grid).astype(np.int64).sum(axis=0))

    def from_units(self, units: NDArray[np.int64]) -> Vector:
        return units.astype(np.float64) * self.grid


def exact_grid(size: int) -> float:
    """A grid on which sums over 2·`size` rows stay below 2⁵³ units, no term being larger than 2: at least `size`·2⁻⁵¹, and never below 2⁻³⁰."""
    return max(2.0**-30, 2.0 ** (ceil(log2(size)) - 51))


def row_wise(ask: Ask) -> Ask:
    """The model with answers cut to [-1, 1], and 0 for a row about which it raises. No row changes the answer about another, and this never raises."""

    def answers(rows: Matrix) -> Vector:
        try:
            return _in_range(ask(rows), len(rows))
        except Exception:  # a model may raise anything about one row: halve the rows until that row is alone
            if len(rows) == 1:
                return np.zeros(1)
            half = len(rows) // 2
            return np.concatenate([answers(rows[:half]), answers(rows[half:])])

    return answers


def _in_range(answers: Vector, count: int) -> Vector:
    return np.clip(np.nan_to_num(np.asarray(answers, dtype=np.float64).reshape(count), posinf=1.0, neginf=-1.0), -1.0, 1.0)


def baseline_shapley(ask: Ask, point: Vector, rows: Matrix, owner: Orders, orders: Orders) -> Matrix:
    """φ(x) for each row, (rows, d), over the row's own order and its reverse. `owner[j]` is the feature of column j.

    Asks `ask` about 2(d - 1) mixtures of each row with z, and about the row and z themselves.
    """
    at_rows, at_point = ask(rows), np.full(len(rows), float(ask(point[None])[0]))
    found, d = np.zeros(orders.shape), orders.shape[1]
    for walk in (orders, orders[:, ::-1]):
        joins, before = np.argsort(walk, axis=1)[:, owner], at_rows  # the step at which each column turns from x's to z's
        for step in range(d):
            after = at_point if step == d - 1 else ask(np.where(joins <= step, point, rows))
            found[np.arange(len(rows)), walk[:, step]] += (after - before) / 2
            before = after
    return found


def walk_orders(rows: Matrix, players: int) -> Orders:
    """Each row's order of the features, from a hash of the row."""
    return orders_from(row_hash.uniforms(row_hash.hash_rows(rows, _ORDER), players))


def orders_from(uniforms: Matrix) -> Orders:
    """One order of the features for each row of uniform numbers."""
    return np.argsort(uniforms, axis=1, kind="stable")


def largest_norm(players: int) -> float:
    """√(4/d + K²), K = Σ_{s=1}^{d-1} √(d/(s(d-s)(d-1))): no exact φ(x) of labels in [-1, 1] is longer. Below π always."""
    d = players
    inner = sum(sqrt(d / (s * (d - s) * (d - 1))) for s in range(1, d))
    return sqrt(4 / d + inner**2) * (1 + 2.0**-40)
