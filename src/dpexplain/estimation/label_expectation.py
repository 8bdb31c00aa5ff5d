"""The plane that labels are compared with before they are summed (`core/expected_labels.py`), and its scale. Pure post-processing.

A model's answers at public points give the plane. The points have the means and variances that the first stage of a release found, and independent
features: nothing more is known then. Rows whose features depend on each other may be much further from the plane than the points, so the scale s
follows from noisy counts of the rows' own distances. It minimises the expected squared error of all label moments,

    n s²e² + n e_C² V/v̄ + ρH(s)² Σv,

with noise e in each moment of y' and e_C in each covariance, V the mean squared distance, v the columns' variances, v̄ their mean, and H(s) the mean of
what clipping cuts off. V/v̄ bounds the squared distance of the rows' slopes from the plane's. Labels are summed as they are if that is nearly as good: then
s = 1, nothing is clipped, the plane's own slopes have the place of that distance, and noise in the means counts by the plane's mean label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.expected_labels import EDGES, ExpectedLabels
from dpexplain.core.release_moments import NormalisedMoments
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.calibrate import move_to_levels
from dpexplain.estimation.denoise import Estimate, Spread
from dpexplain.estimation.public_points import PublicModel
from dpexplain.estimation.reference import Reference, draw

_NOTHING = 1e-9  # missing mass that rounding leaves
_VAGUE = 1.0  # error of means and variances beside histograms: the first stage knows them less well than these do
_LARGEST = 1.6  # a typical distance beyond the last edge
_MIDDLES = np.concatenate([[EDGES[0] / 2], np.sqrt(EDGES[1:] * EDGES[:-1]), [_LARGEST]])  # of bins
_GOES_WITH = 0.25  # ρ: how much of what clipping cuts off goes with the columns
_WORTH = 0.75  # of the error of labels as they are: with less to gain they are not compared


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounts:
    """Counts of rows, of which there are about `size`, each with noise of standard deviation `sigma`."""

    counts: Vector
    sigma: float
    size: int


def expect_labels(query: NormalisedMoments, model: PublicModel, levels: Sequence[int]) -> ExpectedLabels | None:
    """The plane of the model's answers at public points; None where the model cannot be asked about them."""
    answered = model.ask_about(_independent_solver(query, levels))
    if answered is None:
        return None
    slopes, share = answered.guess(query.margins).values, answered.weights / answered.weights.sum()
    return ExpectedLabels(float(share @ (answered.labels - answered.points @ slopes)), slopes)


def choose_scale(query: NormalisedMoments, plane: ExpectedLabels, found: NoisyCounts, sigma: float) -> ExpectedLabels | None:
    """The plane with the scale of least expected error; None where labels are better summed as they are. `sigma` is the noise of the moments to come."""
    n, variances, (label, first, second) = len(query.variance), query.variance, _noise_of_moments(query, found.size, sigma)
    apart = max(float(found.counts @ np.square(_MIDDLES)) / found.size, 0.0) / float(variances.mean())
    above = np.maximum(_MIDDLES - EDGES[:, None], 0.0)
    clipped = np.maximum(above @ found.counts, 0.0) / found.size
    clipped += np.sqrt(np.square(above).sum(axis=1)) * found.sigma / found.size  # one standard error more
    costs = n * (np.square(EDGES * label) + second**2 * apart) + _GOES_WITH * np.square(clipped) * float(variances.sum())
    best = int(np.argmin(costs))
    level = plane.evaluate(query.centre)
    plain = n * (label**2 + np.square(first * level) + second**2 * float(plane.slopes @ plane.slopes))
    return replace(plane, scale=float(EDGES[best]), clipped=float(clipped[best])) if costs[best] < _WORTH * plain else None


def _noise_of_moments(query: NormalisedMoments, size: int, sigma: float) -> tuple[float, float, float]:
    """Standard errors of a label moment, of a mean and of a covariance, for rows of typical length."""
    layout, scales, spread = query.layout, query.scales, query.layout.per_attribute(query.variance)
    total, numbers = float(spread.sum()), query.variance[layout.numbers]
    products = max((total**2 - float(spread @ spread)) / 2, 0.0)
    typical = np.array([1.0, total, products, 2 * float(numbers @ numbers), 0.0])
    each = sigma * sqrt(float(scales.of_lengths @ typical)) / size
    return each / sqrt(scales.label), each / sqrt(scales.first), each / sqrt(scales.second) if scales.second else 0.0


def _independent_solver(query: NormalisedMoments, levels: Sequence[int]) -> Solver:
    """A solver whose reference has the means and variances of a query, and independent features."""
    found = _independent_estimate(query)
    reference = Reference.without_labels(draw(found, query.layout))
    return move_to_levels(Solver.of(found, reference, query.layout, 1.0, np.ones(query.layout.width)), levels)


def _independent_estimate(query: NormalisedMoments) -> Estimate:
    """The estimate that a query's means and variances alone give, without noise."""
    layout, mean, nothing = query.layout, query.centre, np.zeros(query.layout.width)
    covariance = np.where(layout.same_attribute(), np.diag(mean) - np.outer(mean, mean), 0.0)
    covariance[layout.numbers, layout.numbers] = query.variance[layout.numbers]
    left = 1 - layout.per_attribute(mean)
    values, vectors = np.linalg.eigh(covariance)
    return Estimate(
        mean=mean,
        values=np.maximum(values, 0.0),
        vectors=vectors,
        t0=0.0,
        t1=nothing,
        missing=np.where(~np.array(layout.is_number) & (layout.sizes > 1) & (left > _NOTHING), left, 0.0),
        doubtful=np.zeros(layout.attributes, dtype=bool),
        total=1.0,
        spread=replace(Spread(*[0.0] * 6), s1=_VAGUE, squares=_VAGUE),
        idle=np.zeros_like(covariance),
        shrunk=covariance,
        expected=nothing,
        margins=query.margins,
        level=0.0,
    )
