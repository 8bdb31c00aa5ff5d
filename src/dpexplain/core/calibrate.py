"""Error bars that mean what they say: the linear ones, scaled by what a parametric bootstrap finds.

`core/answer.py` gives each value the standard error that white noise on the moments would cause in one linear solve. Shrinkage makes the
real error smaller, the reference's own changes make it larger. So the release rehearses itself: taking its estimate for the truth, it
draws the known noise again a few times, repeats every step, and compares. All of it is post-processing of what was released. Every third
rehearsal looks for a tree of its own: an estimate lies nearer to a tie between two trees than the truth does, so always choosing afresh
overstates how much the choice matters, and never doing so understates it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpexplain.core.answer import Solver
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.denoise import Estimate, estimate
from dpexplain.core.layout import Layout
from dpexplain.core.reference import Fit, build
from dpexplain.core.sketch import NormalisedMoments, NormalisedSums, normalised_dimension
from dpexplain.core.weights import Weight

QUERIES = 48
_TWO_SIGMA = 0.9545  # P(|N| ≤ 2)
_COMMON_EVIDENCE = 8.0  # replicates' worth of evidence for the common factor against a column's own
_DOUBT = 0.2  # a rehearsal starts from shrunk moments and so misses some of shrinkage's bias: go a little of the way back to the linear bars

Normals = Callable[[int], Vector]


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What went into one estimate, so that it can be repeated with other noise."""

    query: NormalisedMoments
    sigma: float
    radius: float
    weight: Weight

    def solver(self, sums: NormalisedSums, sigma: float, like: Fit | None = None) -> tuple[Solver, Estimate, Fit]:
        """Estimate, reference and solver from noisy sums; `sigma = 0` takes them at their word."""
        found = estimate(sums, self.query, sigma, shrink=sigma > 0)
        reference, fit = build(found, self.query, like)
        layout = self.query.layout
        return Solver.of(found, reference, layout, self.radius, np.ones(layout.width)), found, fit

    def noisy(self, sums: NormalisedSums, normals: Normals) -> NormalisedSums:
        layout, scales = self.query.layout, self.query.scales
        noise = self.sigma * normals(normalised_dimension(layout))
        return NormalisedSums.from_vector(sums.vector(scales, layout) + noise, scales, layout)


def calibrated(
    sums: NormalisedSums, query: NormalisedMoments, sigma: float, radius: float, weight: Weight, normals: Normals
) -> Solver:
    """The solver of noisy sums, with error bars calibrated for `weight`. `normals` supplies the rehearsals' noise."""
    rehearsal = Rehearsal(query, sigma, radius, weight)
    solver, found, fit = rehearsal.solver(sums, sigma)
    world = as_sums(found, query)
    points = solver.reference.points(query.layout)
    queries = points[:: max(len(points) // QUERIES, 1)]
    truth = rehearsal.solver(world, 0.0, fit)[0].answer(queries, weight).values
    moved, stated = [], []
    for turn in range(replicates(query.layout)):
        like = fit if turn % 3 else replace(fit, tree=None)  # every third rehearsal may find another tree
        again = rehearsal.solver(rehearsal.noisy(world, normals), sigma, like)[0].answer(queries, weight)
        moved.append(np.abs(again.values - truth))
        stated.append(again.errors)
    factors = column_factors(np.array(moved), np.array(stated))
    return replace(solver, noise=replace(solver.noise, calibration=factors))


def replicates(layout: Layout) -> int:
    """Fewer where each takes longer; wide layouts pool over more columns."""
    return 16 if layout.width <= 100 else 10 if layout.width <= 250 else 6


def as_sums(found: Estimate, query: NormalisedMoments) -> NormalisedSums:
    """The sums that rows with exactly the estimated moments would have had."""
    shift, numbers = found.mean - query.centre, query.layout.numbers
    s2 = np.where(query.layout.same(), 0.0, found.shrunk + np.outer(shift, shift))
    squares = np.diag(found.shrunk)[numbers] + np.square(shift[numbers]) - query.variance[numbers]
    total = found.total
    t1 = found.t1 + found.t0 * shift
    return NormalisedSums(total, total * found.t0, total * shift, total * t1, total * s2, total * squares)


def column_factors(moved: Matrix, stated: Matrix) -> Vector:
    """One factor for each column, from (replicates, queries, columns): its own mean square pooled with all, then scaled to cover.

    The final scale makes two errors cover as often as they should over all rehearsals, whatever the errors' distribution.
    """
    own = np.square(moved).mean(axis=(0, 1)) / np.square(stated).mean(axis=(0, 1))
    common = float(np.median(own))
    evidence = len(moved)
    factors = np.sqrt((evidence * own + _COMMON_EVIDENCE * common) / (evidence + _COMMON_EVIDENCE))
    factors = np.maximum(factors, 1e-3)
    factors = factors * float(np.quantile(moved / (stated * factors), _TWO_SIGMA)) / 2
    return np.asarray(factors + _DOUBT * np.maximum(1 - factors, 0.0))
