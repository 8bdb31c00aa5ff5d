"""The public points that a model is asked about: those of the reference, and further ones with rare values. Pure post-processing.

Hardly a point of the reference takes a category that few rows have, so its answers say little about that category's slope. But a model may be asked
about any public point. For each value j of a code that fewer than K points take, further points are points of the reference with this value in place of
their own, chosen in proportion to P(j | the other columns) by linear regression. With N points of the reference and Kⱼ further ones for a value of
probability pⱼ, a point with the rare values S has the weight

    N / (N + Σ_{j ∈ S} Kⱼ/pⱼ)

(the balance heuristic: the density of the reference over that of all points), so that weighted sums are those over the reference, and less random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Indices
from dpexplain.core.marginals import NumberCounts
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.counted_variances import counted_columns
from dpexplain.estimation.denoise import SMALLEST_MEAN
from dpexplain.estimation.global_slopes import Guess, guessed_slopes
from dpexplain.estimation.reference import LABEL_STEPS, noise_ridge

_WANTED = 1 / 64  # of the number of points: how many take each value at least
_LEAST = 0.02  # smallest probability of a value given others, as a share of its own
_SMALLER = 0.8

Model: TypeAlias = Callable[[dict[str, Any]], Vector]


@dataclass(frozen=True, slots=True, eq=False)
class PublicPoints:
    """Points, those of the reference first, with their weights; `labels` are a model's answers to them."""

    points: Matrix
    weights: Vector
    labels: Vector
    numbers: Indices  # which columns are numbers

    def guess(self, margins: NumberCounts | None = None) -> Guess:
        """The slopes of the answers; counts of `margins` may show which numbers use little of their ranges."""
        return guessed_slopes(self.points, self.labels, self.weights, self.numbers, counted_columns(margins, self.numbers))


@dataclass(frozen=True, slots=True, eq=False)
class PublicModel:
    """A model that may be asked about public points: a function from encoded points to labels."""

    model: Callable[[Matrix], Vector]

    def ask_about(self, solver: Solver) -> PublicPoints | None:
        """The public points of a solver with answers; None where the model has none, as when it needs columns outside the domain."""
        public = public_points(solver)
        try:
            labels = _round_answers(self.model(public.points))
        except Exception:  # whatever a foreign model raises about points that no row may have: what was paid for must not be lost
            return None
        answered = labels.shape == (len(public.points),) and bool(np.isfinite(labels).all())
        return replace(public, labels=labels) if answered else None


def ask(model: Model, columns: dict[str, Any]) -> Vector:
    """A model's answers about public records, rounded to what a file stores exactly."""
    return _round_answers(model(columns))


def _round_answers(answers: Vector) -> Vector:
    return np.asarray(np.rint(np.clip(answers, -1.0, 1.0) * LABEL_STEPS) / LABEL_STEPS)


class _RareValue(NamedTuple):
    """A value of a code: `column` is `value`, and the code's other columns are 0. `missing` further points are wanted."""

    attribute: int
    column: int
    value: float
    probability: float
    missing: int


def public_points(solver: Solver) -> PublicPoints:
    """The points of a solver's reference, and as many further ones at most; without labels."""
    points = solver.reference.points(solver.layout)
    rare = _rare_values(points, solver)
    everything = np.vstack([points, *_further_points(points, rare, solver)]) if rare else points
    density = np.full(len(everything), float(len(points)))
    for one in rare:
        density += (everything[:, one.column] == one.value) * (one.missing / one.probability)
    return PublicPoints(everything, len(points) / density, np.empty(0), solver.layout.numbers)


def _rare_values(points: Matrix, solver: Solver) -> list[_RareValue]:
    """Values that too few points take; with many of them each gets fewer further points."""
    layout, found = solver.layout, []
    for a in layout.codes:
        block = layout.columns(a)
        values = (1.0,) if block.stop - block.start > 1 else (1.0, 0.0)  # a code of one column has a value without it
        for column in range(block.start, block.stop):
            shares = (solver.mean[column], 1 - solver.mean[column])
            found += [(a, column, value, max(float(shares[value == 0.0]), SMALLEST_MEAN)) for value in values]
    taken = np.array([np.count_nonzero(points[:, column] == value) for _, column, value, _ in found])
    wanted = _WANTED * len(points)
    while np.maximum(int(wanted) - taken, 0).sum() > len(points):
        wanted *= _SMALLER
    missing = np.maximum(int(wanted) - taken, 0)
    return [_RareValue(*one, int(count)) for one, count in zip(found, missing, strict=True) if count]


def _further_points(points: Matrix, rare: list[_RareValue], solver: Solver) -> list[Matrix]:
    """The points with each rare value, by systematic sampling.

    With P the inverse of the covariance, the regression of a code's columns on all others has the coefficients -P_oa P_aa⁻¹.
    """
    layout, v, made = solver.layout, points - solver.mean, []
    covariance = (solver.eigenvectors * solver.eigenvalues) @ solver.eigenvectors.T
    inverse = np.linalg.inv(covariance + noise_ridge(solver.noise.s2, layout) * np.eye(layout.width))
    pulled = v @ inverse
    for one in rare:
        block = layout.columns(one.attribute)
        own = inverse[block, block]
        pull = np.linalg.solve(own, np.eye(len(own))[:, one.column - block.start])
        change = pulled[:, block] @ pull - v[:, block] @ (own @ pull)
        chance = np.maximum(one.probability - change * (1 if one.value else -1), _LEAST * one.probability)
        steps = np.cumsum(chance)
        places = (np.arange(one.missing) + 0.5) / one.missing * steps[-1]
        chosen = points[np.minimum(np.searchsorted(steps, places), len(points) - 1)]
        chosen[:, block] = 0.0
        chosen[:, one.column] = one.value
        made.append(chosen)
    return made
