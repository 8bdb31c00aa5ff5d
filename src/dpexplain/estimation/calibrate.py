"""Calibrated error bars: the linear standard errors, scaled by a parametric bootstrap.

`estimation/answer.py` gives each value the standard error that white noise on the moments would cause in one linear solve. Shrinkage makes the
real error smaller, and changes of the reference make it larger. A parametric bootstrap measures both: it takes the estimate for the truth,
draws the known noise again a few times, repeats every step, and compares. All of it is post-processing of what was released. It is valid
because every step is continuous: noise has nearly the same effect around the estimate as around the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log2, sqrt

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import NormalisedMoments, NormalisedSums, normalised_dimension
from dpexplain.core.weights import DEFAULT_WEIGHT, Weight
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.denoise import WIDE, Estimate, NoisySketch, apply, estimate, with_label_moments
from dpexplain.estimation.global_slopes import Guess, NoisyEquations, Slopes
from dpexplain.estimation.idle_numbers import idle_columns, idle_errors
from dpexplain.estimation.reference import NUMBER_STEPS, POINTS, Reference, build, draw, sample_public_points

QUERIES = 48
FEWEST_POINTS = 512
_TWO_SIGMA = 0.9545  # P(|N| ≤ 2)
_SHORTER = 0.95  # of slopes' errors, as measured against exact slopes on other tables: truths drawn from a posterior vary more than real ones
_TOGETHER = 1 << 14  # entries of the covariances that are estimated together: they stay in the processor's cache
_PER_COLUMN = 32  # reference points at least: with 3.5 of them the cosine of 144 pixels fell from 0.86 to 0.79
_QUIET = 0.0075  # noise of a slope up to which all reference points are of use
_COMMON_EVIDENCE = 8.0  # replicates' worth of evidence for the common factor against a column's own

Normals = Callable[[int], Vector]


@dataclass(frozen=True, slots=True)
class NoiseRehearsal:
    """The inputs of one estimate, with which it can be repeated with other noise."""

    query: NormalisedMoments
    sigma: float
    radius: float
    weight: Weight

    def solver(self, sums: NormalisedSums, sigma: float, start: Vector | None = None) -> tuple[Solver, Estimate, Vector]:
        """Estimate, reference and solver from noisy sums; with `sigma = 0` they are taken as exact."""
        return self.solver_of(estimate(sums, self.query, sigma, shrink=sigma > 0), POINTS, start)

    def solver_of(self, found: Estimate, points: int, start: Vector | None = None) -> tuple[Solver, Estimate, Vector]:
        """The same from an estimate, with so many reference points."""
        layout = self.query.layout
        near = start if layout.width <= WIDE else None  # with many columns the solution is nearer to 0
        reference, coefficients = build(found, self.query, near, points)
        return Solver.of(found, reference, layout, self.radius, np.ones(layout.width)), found, coefficients

    def noisy(self, sums: NormalisedSums, normals: Normals) -> NormalisedSums:
        return self.with_noise(sums, normals(normalised_dimension(self.query.layout)))

    def with_noise(self, sums: NormalisedSums, drawn: Matrix) -> NormalisedSums:
        """The sums with each row of `drawn`, standard normal numbers, as their noise."""
        layout, scales = self.query.layout, self.query.scales
        return NormalisedSums.from_vector(sums.vector(scales, layout) + self.sigma * drawn, scales, layout)

    def estimates(self, sums: NormalisedSums, count: int, normals: Normals) -> Iterator[Estimate]:
        """So many rehearsals, several together as far as they fit a cache."""
        dimension, most = normalised_dimension(self.query.layout), max(_TOGETHER // self.query.layout.width**2, 1)
        for start in range(0, count, most):
            drawn = normals(min(most, count - start) * dimension).reshape(-1, dimension)
            yield estimate(self.with_noise(sums, drawn if most > 1 else drawn[0]), self.query, self.sigma)


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A solver with calibrated error bars, its estimate, and the estimates of the rehearsals."""

    solver: Solver
    found: Estimate
    rehearsed: tuple[Estimate, ...]  # each of one rehearsal or of several
    levels: Sequence[int] = ()  # of `move_to_levels`

    def solver_with(self, points: int) -> Solver:
        """The solver with so many public points of the same distribution, without labels."""
        reference = Reference.without_labels(draw(self.found, self.solver.layout, points))
        return move_to_levels(replace(self.solver, reference=reference), self.levels)


def calibrate(sketch: NoisySketch, radius: float, weight: Weight, levels: Sequence[int], normals: Normals) -> Calibrated:
    """The solver of noisy sums, with error bars calibrated for `weight`. `normals` supplies the rehearsals' noise, `levels` are of `move_to_levels`."""
    query, sigma = sketch.query, sketch.sigma
    rehearsal = NoiseRehearsal(query, sigma, radius, weight)
    solver, found, start = rehearsal.solver(sketch.sums, sigma)
    world = as_sums(found, query)
    queries = sample_public_points(found, query.layout, QUERIES)
    truth = rehearsal.solver(world, 0.0, start)[0].answer(queries, weight).values
    moved, stated, rehearsed = [], [], []
    for _ in range(solver_replicates(query.layout)):
        repeated, again, _ = rehearsal.solver(rehearsal.noisy(world, normals), sigma, start)
        answers = repeated.answer(queries, weight)
        moved.append(np.abs(answers.values - truth))
        stated.append(answers.errors)
        rehearsed.append(again)
    factors = column_factors(np.array(moved), np.array(stated))
    solver = replace(solver, noise=replace(solver.noise, calibration=factors))
    return Calibrated(move_to_levels(solver, levels), found, tuple(rehearsed), levels)


def rehearse_moments(sketch: NoisySketch, levels: Sequence[int], normals: Normals, *, fewer: bool = False) -> Calibrated:
    """`calibrate` for fitted and anchored planes alone, in a tenth of its time: the solver, which serves the paper's plane, has no calibrated errors.

    With `fewer`, the reference has fewer points where noise hides what more of them would show.
    """
    query, sigma = sketch.query, sketch.sigma
    rehearsal, found = NoiseRehearsal(query, sigma, 1.0, DEFAULT_WEIGHT), estimate(sketch.sums, query, sigma)
    solver, found, _ = rehearsal.solver_of(found, enough_points(found) if fewer else POINTS)
    world = as_sums(found, query)
    rehearsed = rehearsal.estimates(world, solver_replicates(query.layout), normals)
    return Calibrated(move_to_levels(solver, levels), found, tuple(rehearsed), levels)


def enough_points(found: Estimate) -> int:
    """How many reference points an answer needs: the more noise its slopes have, the fewer, but some for each column.

    A power of two, as Sobol' sequences are even in these.
    """
    noise = float(found.spread.t1 / found.values.mean())  # of a slope, before anything is shrunk
    wanted = max(POINTS * _QUIET / max(noise, _QUIET), _PER_COLUMN * len(found.values), FEWEST_POINTS)
    return min(1 << round(log2(wanted)), POINTS)


def move_to_levels(solver: Solver, levels: Sequence[int]) -> Solver:
    """The solver with ordered features of its public points moved to their nearest level: between two levels there is no record to ask about.

    `levels` has the number of levels of each attribute, 0 where it is not ordered.
    """
    codes = solver.reference.codes.copy()
    for a, count in enumerate(levels):
        if count > 1:
            steps = np.rint(codes[a] / NUMBER_STEPS * (count - 1))
            codes[a] = np.rint(steps / (count - 1) * NUMBER_STEPS).astype(np.int64)
    return replace(solver, reference=replace(solver.reference, codes=codes))


def plane_factors(
    calibrated: Calibrated, query: NormalisedMoments, sigma: float, guess: Guess | None, slopes: Slopes, normals: Normals
) -> Vector:
    """The ratio of each slope's error over rehearsals to its posterior standard error.

    Each rehearsal takes slopes from the posterior for the truth, so that it includes directions that the estimate shrank to zero. Only label moments
    depend on them, so that the covariances that `calibrate` rehearsed serve again. The hidden part of the spread is not rehearsed: its factor is one.
    Nor is what a code's slopes have in common where a rehearsal takes it for complete, because the doubt about that is in the hidden part.
    """
    found, seen, moved, stated = calibrated.found, slopes.seen, [], []
    shift, rehearsal, covariance = found.mean - query.centre, NoiseRehearsal(query, sigma, 1.0, DEFAULT_WEIGHT), found.covariance
    root, dimension = seen.root(found.vectors), normalised_dimension(query.layout)
    root = root - found.idle @ root  # rehearsed rows have every complete code

    def compare(again: Estimate, truth: Matrix) -> None:
        repeated = slopes_of(again, query.layout, guess)
        apart = repeated.values - truth
        moved.append(np.atleast_2d(np.abs(apart - apply(again.idle, apart))))
        stated.append(np.atleast_2d(repeated.seen.errors(again.vectors)))

    for one in calibrated.rehearsed:
        truth, noise = np.moveaxis(normals(2 * one.t1.size).reshape(*one.t1.shape[:-1], 2, -1), -2, 0)
        truth = slopes.values + truth @ root.T
        noisy = (truth - found.expected) @ covariance + found.level * shift + found.spread.t1 * noise
        compare(with_label_moments(one, noisy, query), truth)
    for _ in range(sum(map(len, moved)), replicates(query.layout)):
        truth = slopes.values + root @ normals(len(root))
        sums = as_sums(replace(found, t1=covariance @ truth), query)
        compare(estimate(rehearsal.with_noise(sums, normals(dimension)), query, sigma), truth)
    factors = _SHORTER * column_factors(np.concatenate(moved)[:, None], np.concatenate(stated)[:, None])
    share = np.square(seen.errors(found.vectors) / np.maximum(slopes.errors(found.vectors), 1e-300))
    return np.asarray(np.sqrt(share * np.square(factors) + 1 - share))


def slopes_of(found: Estimate, layout: Layout, guess: Guess | None) -> Slopes:
    """The slopes of the plane through all rows. Those of a code that may have unknown values after all can be wrong by one amount of their usual size.

    Slopes of numbers that use hardly any of their ranges are far longer than is usual.
    """
    slopes = equations_of(found, layout).slopes(guess)
    common = np.square(layout.per_attribute(found.vectors, -2)) * found.doubtful[..., :, None]  # only a code's own sum has any
    usual = ~idle_columns(found, layout.numbers)
    size = (np.square(slopes.values) * usual).sum(axis=-1, keepdims=True) / np.maximum(usual.sum(axis=-1, keepdims=True), 1)
    wide = common.sum(axis=-2) * size
    assumed = wide + np.square(idle_errors(found, layout.numbers, slopes))  # which rehearsals do not have
    return replace(slopes, spread=np.sqrt(np.square(slopes.spread) + assumed), hidden=np.sqrt(np.square(slopes.hidden) + assumed))


def equations_of(found: Estimate, layout: Layout) -> NoisyEquations:
    errors = found.centred_error, found.spread.s2
    rows = sqrt(2) * found.total  # at least: no row weighs more than 1/√2
    return NoisyEquations(found.values, found.vectors, found.t1, *errors, layout.numbers, found.expected, rows)


def replicates(layout: Layout) -> int:
    """The number of rehearsals: fewer where each takes longer, because wide layouts pool over more columns."""
    return 16 if layout.width <= 100 else 10 if layout.width <= 250 else 6


def solver_replicates(layout: Layout) -> int:
    """The number of rehearsals of the solver: fewer again with many columns, where drawing and labelling reference points takes most of the time.

    With 520 columns the mean factor of 4 rehearsals is within 5 % of that of 24, as is that of 6.
    """
    return replicates(layout) if layout.width <= WIDE else 6 if layout.width <= 250 else 4


def rehearsal_draws(layout: Layout) -> int:
    """How often `calibrate` and `plane_factors` draw numbers: once each for a rehearsal of the solver, and twice for one of planes alone."""
    return 2 * replicates(layout)


def as_sums(found: Estimate, query: NormalisedMoments) -> NormalisedSums:
    """The sums that rows with exactly the estimated moments would have had."""
    shift, numbers = found.mean - query.centre, query.layout.numbers
    s2 = np.where(query.layout.same_attribute(), 0.0, found.shrunk + np.outer(shift, shift))
    squares = np.diag(found.shrunk)[numbers] + np.square(shift[numbers]) - query.variance[numbers]
    total, plane = found.total, query.plane
    t0 = (found.t0 - plane.evaluate(found.mean)) / plane.scale
    t1 = (found.t1 - found.covariance @ plane.slopes) / plane.scale + t0 * shift
    absent = total * found.missing[query.layout.choices]
    return NormalisedSums(total, total * t0, total * shift, total * t1, total * s2, total * squares, absent)


def column_factors(moved: Matrix, stated: Matrix) -> Vector:
    """One factor for each column, from (replicates, queries, columns): its own mean square pooled with all, then scaled to cover.

    The scale gives ±2 standard errors their nominal coverage, whatever the errors' distribution. Each rehearsal is compared with factors from
    the others, because factors are too optimistic about the rehearsals that they come from.
    """
    squares, claims = np.square(moved).mean(axis=1), np.square(stated).mean(axis=1)
    rest = 1 - np.eye(len(moved))  # a sum over the others: a difference of sums would be lost to rounding where one is far larger
    others = _pool_errors((rest @ squares) / (rest @ claims), len(moved) - 1)
    scale = float(np.quantile(moved / (stated * others[:, None]), _TWO_SIGMA)) / 2
    return scale * _pool_errors(squares.sum(axis=0) / claims.sum(axis=0), len(moved))


def _pool_errors(own: Matrix, evidence: int) -> Matrix:
    """√(real/stated mean square) of each column, from `evidence` rehearsals, shrunk towards the median over columns."""
    common = np.median(own, axis=-1, keepdims=True)
    return np.asarray(np.sqrt(np.maximum((evidence * own + _COMMON_EVIDENCE * common) / (evidence + _COMMON_EVIDENCE), 1e-6)))
