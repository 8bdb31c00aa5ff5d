"""From noisy sums to the best estimate of the moments: public structure, shrinkage, positive semidefiniteness. Pure post-processing.

The public encoding improves accuracy at no cost: within a code, columns are 0/1 and exclude each other, so their covariance is
diag(μ) - μμᵀ; where no mass is missing they sum to one, so every moment of their sum is known. What is left is shrunk by empirical Bayes: a
covariance with prior N(0, ρ vᵢvⱼ), ρ estimated for each pair of attributes, and noise σ² is multiplied by ρvᵢvⱼ/(ρvᵢvⱼ + σ²).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.expected_labels import ExpectedLabels
from dpexplain.core.layout import Indices, Layout
from dpexplain.core.marginals import NumberCounts
from dpexplain.core.release_moments import SIGNIFICANT, NormalisedMoments, NormalisedSums
from dpexplain.estimation.counted_variances import expect_variances

WIDE = 128  # columns from which faster arithmetic is used, whose results differ in their last digits
SMALLEST_MEAN = 1e-5
_FEW = 64  # columns up to which checks of arguments take longer than what is computed
RIDGE = 1e-7  # makes every direction determined; far below any variance that matters
_DOUBTFUL = 2.0  # standard errors of missing mass from which a complete code's slopes may have a part in common
_POOLED = 4.0  # how many entries' worth of evidence the common ρ is given against a pair's own
_CLIPPED = 0.5  # how much of what clipping cuts off may go with a column

Flags = NDArray[np.bool_]
Numbers: TypeAlias = Any  # a number, or one for each of several estimates


@dataclass(frozen=True, slots=True)
class NoisySketch:
    """What was released: noisy sums, the query they answer, and the standard deviation of each number of `sums.vector`."""

    sums: NormalisedSums
    query: NormalisedMoments
    sigma: float
    centre_error: float  # the standard error of each mean of `average`
    average: Vector | None = None  # the mean of the rows; None for the query's centre, which stage 1 found


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard errors of normalised moments: after division by Σw."""

    t0: Numbers
    t1: Numbers
    s1: Numbers
    s2: Numbers
    squares: Numbers
    absent: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Repaired moments of the weighted rows: mean μ, covariance C, E y = t0, E y(x - μ) = t1. Several together have one more axis, the first.

    V diag(values) Vᵀ is C, plus one along each direction in which no record differs from another: the sum of a complete code. A curvature of
    one there makes the explanation's component along this direction 0 up to the noise that is left.
    """

    mean: Vector
    values: Vector
    vectors: Matrix
    t0: Numbers
    t1: Vector
    missing: Vector  # per attribute: mass of unknown values, 0 where columns are taken to sum to one
    doubtful: Flags  # per attribute: whether some values may be unknown although columns are taken to sum to one
    total: Numbers  # Σw, cleaned
    spread: Spread
    idle: Matrix  # the projection onto directions that no record takes
    shrunk: Matrix  # the covariance before it was made positive semidefinite
    expected: Vector  # slopes that labels were compared with: noise in C counts by how far slopes are from them
    margins: NumberCounts | None  # how numbers are distributed, where that was released
    level: Numbers  # E y, or what is left of it where labels were compared with a plane

    @property
    def centred_error(self) -> Numbers:
        """The standard error of each E y(x - μ): noise in μ counts by how far labels are from 0."""
        return np.hypot(self.spread.t1, self.level * self.spread.s1)

    @property
    def covariance(self) -> Matrix:
        return np.asarray((self.vectors * self.values[..., None, :]) @ self.vectors.swapaxes(-2, -1) - self.idle)


def estimate(sums: NormalisedSums, query: NormalisedMoments, sigma: float, *, shrink: bool = True) -> Estimate:
    """Estimates of all moments from the noisy sums, made consistent. `sigma` is the noise on each released number; 0 means none.

    `shrink=False` leaves the noiseless estimator: what an error bar is measured against.
    """
    layout, numbers = query.layout, query.layout.numbers
    total, spread = _spread(sums, query, sigma)
    s1, t1, s2 = sums.s1 / total[..., None], sums.t1 / total[..., None], sums.s2 / total[..., None, None]
    absent = _absent(sums.absent / total[..., None], layout)
    complete = _complete(query.centre, absent, spread.absent, layout)
    s1, t1, s2 = _sum_to_zero(s1, complete, layout), _sum_to_zero(t1, complete, layout), _sum_both_to_zero(s2, complete, layout)
    s1 = _sum_to_known(s1, query.centre, np.where(complete, np.nan, absent), spread, layout)
    mean, missing = _means(query.centre + s1, complete, layout)
    shift = mean - query.centre
    t0 = np.clip(sums.t0 / total, -1.0, 1.0)
    t1 = t1 - t0[..., None] * shift
    covariance = np.where(_within_codes(layout), _code_covariance(mean), s2 - _outer(shift, shift))
    seconds = sums.squares / total[..., None] + query.variance[numbers] - np.square(shift[..., numbers])
    seconds = _expect_variances(seconds, _column(spread.squares), query.margins) if shrink else seconds
    covariance[..., numbers, numbers] = np.clip(seconds, RIDGE, 0.25)
    kept = _shares(covariance, spread, layout) if shrink else np.ones_like(s2)
    shrunk = _sum_both_to_zero(covariance * kept, complete, layout)  # each column was shrunk by itself
    idle = _idle(complete, layout)
    values, vectors = _eigenvectors(shrunk + idle)
    vectors = _name_idle_directions(vectors, complete, layout)
    found = Estimate(
        mean=mean,
        values=np.maximum(values, 0.0) + RIDGE,
        vectors=np.ascontiguousarray(vectors),
        t0=t0[()],
        t1=_sum_to_zero(t1, complete, layout),
        missing=missing,
        doubtful=complete & ~_complete(query.centre, absent, spread.absent, layout, _DOUBTFUL),
        total=total[()],
        spread=spread,
        idle=idle,
        shrunk=shrunk,
        expected=np.zeros(layout.width),
        margins=query.margins,
        level=t0[()],
    )
    return found if query.expected is None else _add_plane(found, query.expected)


def _add_plane(found: Estimate, plane: ExpectedLabels) -> Estimate:
    """The estimate of labels from that of their differences from a plane. What clipping may have cut off counts as an error, even where it is restored."""
    spread, cut = found.spread, _CLIPPED * plane.clipped
    off = cut * np.sqrt(_diagonal(found.shrunk).mean(axis=-1))
    level = np.square(plane.scale * spread.t0) + np.square(spread.s1) * float(plane.slopes @ plane.slopes) + cut**2
    return replace(
        found,
        t0=np.clip(plane.scale * found.t0 + plane.evaluate(found.mean), -1.0, 1.0)[()],
        t1=plane.scale * found.t1 + apply(found.covariance, plane.slopes),
        spread=replace(spread, t0=np.sqrt(level)[()], t1=np.sqrt(np.square(plane.scale * spread.t1) + np.square(off))[()]),
        expected=plane.slopes,
        level=plane.scale * found.t0,
    )


def restore_clipped(found: Estimate, plane: ExpectedLabels, points: Matrix, labels: Vector, weights: Vector) -> Estimate:
    """The estimate with what clipping cut off of the labels, as far as it is cut off of a model's answers about records of these weights."""
    rest, share = labels - plane.evaluate(points), weights / weights.sum()
    cut = rest - np.clip(rest, -plane.scale, plane.scale)
    level = float(share @ cut)
    moved = (share * (cut - level)) @ (points - found.mean)
    return replace(found, t0=found.t0 + level, t1=found.t1 + moved - apply(found.idle, moved))


def with_label_moments(found: Estimate, t1: Vector, query: NormalisedMoments) -> Estimate:
    """The estimate with other noisy moments E r(x - centre), r = y - g(x) for the plane g of the query."""
    centred = t1 - _column(found.level) * (found.mean - query.centre)
    return replace(found, t1=centred - apply(found.idle, centred) + apply(found.covariance, found.expected))


def apply(matrix: Matrix, vector: Vector) -> Vector:
    """The product of each matrix with its vector."""
    return np.asarray((matrix @ vector[..., None])[..., 0])


def _eigenvectors(matrix: Matrix) -> tuple[Vector, Matrix]:
    if matrix.ndim > 2 or len(matrix) <= _FEW:
        return np.linalg.eigh(matrix)
    driver: Literal["evr", "evd"] = "evr" if len(matrix) <= WIDE else "evd"  # divide and conquer: a quarter faster
    values, vectors = scipy.linalg.eigh(matrix, driver=driver)
    return values, vectors


def _column(numbers: Numbers, axes: int = 1) -> Numbers:
    """Numbers of several estimates with so many axes added, to be combined with arrays of each."""
    return np.asarray(numbers)[(..., *[None] * axes)]  # `np.expand_dims`, in a tenth of its time


def _outer(one: Vector, other: Vector) -> Matrix:
    return np.asarray(one[..., :, None] * other[..., None, :])


def _diagonal(matrix: Matrix) -> Vector:
    return np.diagonal(matrix, axis1=-2, axis2=-1)


def _spread(sums: NormalisedSums, query: NormalisedMoments, sigma: float) -> tuple[Vector, Spread]:
    """Σw, at least its own standard error (pure noise stays finite), and each group's standard error."""
    g = query.scales
    total = np.asarray(np.maximum(sums.w0, max(sigma / sqrt(g.zeroth), 1e-9)))

    def error(scale: float) -> Numbers:
        return (sigma / sqrt(scale) / total if scale else 0.0 * total)[()]

    return total, Spread(error(g.zeroth), error(g.label), error(g.first), error(g.second), error(g.squares), error(g.absent))


def _absent(counted: Vector, layout: Layout) -> Vector:
    """The missing mass of each attribute as it was counted; NaN where it was not."""
    found = np.full((*counted.shape[:-1], layout.attributes), np.nan)
    found[..., layout.choices] = counted
    return found


def _complete(centre: Vector, absent: Vector, error: Numbers, layout: Layout, most: float = SIGNIFICANT) -> Flags:
    """Which codes have a mass of unknown values of at most so many standard errors, in either stage."""
    closed = np.abs(layout.per_attribute(centre) - 1) < 1e-9
    return np.asarray(closed & (absent <= most * _column(error) + 1e-6))


def _sum_to_zero(values: Matrix, complete: Flags, layout: Layout) -> Matrix:
    """Σ_block v = 0 on every row of a complete code whose centre sums to one: remove the noise along it, on the last axis."""
    means = layout.per_attribute(values, -1) / layout.sizes
    return np.asarray(values - np.where(complete, means, 0.0)[..., layout.owner])


def _sum_both_to_zero(values: Matrix, complete: Flags, layout: Layout) -> Matrix:
    """The same on both axes of matrices."""
    rows = _sum_to_zero(values, complete[..., None, :], layout).swapaxes(-2, -1)
    return _sum_to_zero(rows, complete[..., None, :], layout).swapaxes(-2, -1)


def _sum_to_known(s1: Vector, centre: Vector, absent: Vector, spread: Spread, layout: Layout) -> Vector:
    """Means of a code sum to what its missing values leave, as far as these were counted more accurately; nothing changes where they are NaN."""
    over = layout.per_attribute(centre + s1, -1) + absent - 1
    summed = layout.sizes * np.square(_column(spread.s1))
    share = summed / (summed + np.square(_column(spread.absent)) + 1e-300)
    return np.asarray(s1 - np.nan_to_num(over * share / layout.sizes)[..., layout.owner])


def _idle(complete: Flags, layout: Layout) -> Matrix:
    """11ᵀ/k on the block of each complete code of k columns."""
    shares = np.where(complete, 1 / layout.sizes, 0.0)[..., layout.owner]
    return np.asarray(shares[..., None] * layout.same_attribute())


def _name_idle_directions(vectors: Matrix, complete: Flags, layout: Layout) -> Matrix:
    """Eigenvectors with the sums of complete codes one by one: all have the same eigenvalue, so that any basis of them would do."""
    flat, flags = vectors.reshape(-1, layout.width, layout.width), complete.reshape(-1, layout.attributes)
    for one, codes in zip(flat, flags, strict=True):
        sums = _sum_directions(np.flatnonzero(codes & (layout.sizes > 0)), layout)
        along = np.square(sums.T @ one).sum(axis=0)
        one[:, np.argsort(-along, kind="stable")[: sums.shape[1]]] = sums
    return vectors


def _sum_directions(codes: Indices, layout: Layout) -> Matrix:
    """The direction of the sum of each code's columns, of length one; one column a code."""
    return np.asarray((layout.owner[:, None] == codes) / np.sqrt(layout.sizes[codes]))


def _means(raw: Vector, complete: Flags, layout: Layout) -> tuple[Vector, Vector]:
    """Means inside the domain, and the missing mass of each code."""
    mean, codes = np.clip(raw, SMALLEST_MEAN, 1 - SMALLEST_MEAN), ~np.array(layout.is_number)
    mass = layout.per_attribute(mean, -1)
    mean = mean / np.where(codes & (complete | (mass > 1)), mass, 1.0)[..., layout.owner]
    missing = np.maximum(1 - layout.per_attribute(mean, -1), SMALLEST_MEAN)
    return mean, np.where(codes & ~complete, missing, 0.0)


def _within_codes(layout: Layout) -> Flags:
    return np.asarray(layout.same_attribute() & ~np.array(layout.is_number)[layout.owner])


def _code_covariance(mean: Vector) -> Matrix:
    """diag(μ) - μμᵀ."""
    return np.asarray(mean[..., None] * np.eye(mean.shape[-1]) - _outer(mean, mean))


def _expect_variances(released: Vector, error: Numbers, margins: NumberCounts | None) -> Vector:
    expected = _positive(released, error)
    return expected if margins is None else expect_variances(released, expected, error, margins)


def _positive(variances: Vector, error: Numbers) -> Vector:
    """Expected variances, given noisy ones with this error and that they are positive: the mean of a normal distribution cut off at 0."""
    if not np.any(error):
        return variances
    ratio = variances / error
    return np.asarray(variances + error * np.exp(-np.square(ratio) / 2 - scipy.special.log_ndtr(ratio)) / sqrt(2 * np.pi))


def _shares(covariance: Matrix, spread: Spread, layout: Layout) -> Matrix:
    """The shrinkage factor of each covariance."""
    variance, noise = _diagonal(covariance), _column(spread.s2, 2) ** 2
    scale = _outer(variance, variance)
    evidence, room, cells = (
        _per_pair(np.square(covariance) - noise, layout),
        _per_pair(scale, layout),
        np.outer(*[layout.sizes] * 2),
    )
    off = ~np.eye(layout.attributes, dtype=bool)
    common = np.maximum(evidence[..., off].sum(axis=-1) / np.maximum(room[..., off].sum(axis=-1), 1e-300), 0.0)
    rho = np.maximum((evidence / room * cells + _POOLED * _column(common, 2)) / (cells + _POOLED), 0.0)
    prior = rho[..., layout.owner[:, None], layout.owner] * scale
    return np.where(layout.same_attribute(), 1.0, prior / (prior + noise + 1e-300))


def _per_pair(entries: Matrix, layout: Layout) -> Matrix:
    return layout.per_attribute(layout.per_attribute(entries, -2), -1)
