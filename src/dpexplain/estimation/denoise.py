"""From noisy sums to the best estimate of the moments: public structure, shrinkage, positive semidefiniteness. Pure post-processing.

The public encoding improves accuracy at no cost: within a code, columns are 0/1 and exclude each other, so their covariance is
diag(μ) - μμᵀ; where no mass is missing they sum to one, so every moment of their sum is known. What is left is shrunk by empirical Bayes: a
covariance with prior N(0, ρ vᵢvⱼ), ρ estimated for each pair of attributes, and noise σ² is multiplied by ρvᵢvⱼ/(ρvᵢvⱼ + σ²).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import SIGNIFICANT, SMALLEST_VARIANCE, NormalisedMoments, NormalisedSums

WIDE = 128  # columns from which faster arithmetic is used, whose results differ in their last digits
SMALLEST_MEAN = 1e-5
RIDGE = 1e-7  # makes every direction determined; far below any variance that matters
_POOLED = 4.0  # how many entries' worth of evidence the common ρ is given against a pair's own

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class NoisySketch:
    """What was released: noisy sums, the query they answer, and the standard deviation of each number of `sums.vector`."""

    sums: NormalisedSums
    query: NormalisedMoments
    sigma: float
    centre_error: float  # the standard error of each mean that stage 1 found


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard errors of normalised moments: after division by Σw."""

    t0: float
    t1: float
    s1: float
    s2: float
    squares: float


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Repaired moments of the weighted rows: mean μ, covariance C, E y = t0, E y(x - μ) = t1.

    V diag(values) Vᵀ is C, plus one along each direction in which no record differs from another: the sum of a complete code. A curvature of
    one there makes the explanation's component along this direction 0 up to the noise that is left.
    """

    mean: Vector
    values: Vector
    vectors: Matrix
    t0: float
    t1: Vector
    missing: Vector  # per attribute: mass of unknown values, 0 where columns are taken to sum to one
    total: float  # Σw, cleaned
    spread: Spread
    idle: Matrix  # the projection onto directions that no record takes
    shrunk: Matrix  # the covariance before it was made positive semidefinite
    second_error: Matrix  # standard errors of the covariance and of t1 that remain after shrinkage
    label_error: Vector

    @property
    def covariance(self) -> Matrix:
        return np.asarray((self.vectors * self.values) @ self.vectors.T - self.idle)


def estimate(sums: NormalisedSums, query: NormalisedMoments, sigma: float, *, shrink: bool = True) -> Estimate:
    """Estimates of all moments from the noisy sums, made consistent. `sigma` is the noise on each released number; 0 means none.

    `shrink=False` leaves the noiseless estimator: what an error bar is measured against.
    """
    layout = query.layout
    total, spread = _spread(sums, query, sigma)
    s1, t1, s2 = sums.s1 / total, sums.t1 / total, sums.s2 / total
    complete = _complete(query.centre, s1, spread.s1, layout)
    _sum_to_zero(s1, t1, s2, complete, layout)
    mean, missing = _means(query.centre + s1, complete, layout)
    shift = mean - query.centre
    covariance = s2 - np.outer(shift, shift)
    t0 = float(np.clip(sums.t0 / total, -1.0, 1.0))
    t1 = t1 - t0 * shift
    _known_blocks(covariance, mean, layout)
    numbers = layout.numbers
    seconds = sums.squares / total + query.variance[numbers] - np.square(shift[numbers])
    covariance[numbers, numbers] = np.clip(seconds, SMALLEST_VARIANCE, 0.25)
    kept, kept_label = _shares(covariance, t1, spread, layout) if shrink else (np.ones_like(s2), np.ones_like(t1))
    shrunk, label = covariance * kept, t1 * kept_label
    _sum_to_zero(np.zeros_like(t1), label, shrunk, complete, layout)  # each column was shrunk by itself
    idle = _idle(complete, layout)
    driver: Literal["evr", "evd"] = "evr" if layout.width <= WIDE else "evd"  # divide and conquer: a quarter faster
    values, vectors = scipy.linalg.eigh(shrunk + idle, driver=driver)
    noisy = spread.s2 * ~layout.same_attribute()
    return Estimate(
        mean=mean,
        values=np.maximum(values, 0.0) + RIDGE,
        vectors=np.ascontiguousarray(vectors),
        t0=t0,
        t1=label,
        missing=missing,
        total=total,
        spread=spread,
        idle=idle,
        shrunk=shrunk,
        second_error=np.sqrt(kept) * noisy,
        label_error=np.sqrt(kept_label) * spread.t1,
    )


def with_label_moments(found: Estimate, t1: Vector, query: NormalisedMoments) -> Estimate:
    """The estimate with other noisy moments E y(x - centre), shrunk as `estimate` shrinks them."""
    centred = t1 - found.idle @ t1 - found.t0 * (found.mean - query.centre)
    kept = _label_shares(np.diag(found.shrunk), centred, found.spread)
    label = kept * centred
    return replace(found, t1=label - found.idle @ label, label_error=np.sqrt(kept) * found.spread.t1)


def _spread(sums: NormalisedSums, query: NormalisedMoments, sigma: float) -> tuple[float, Spread]:
    """Σw, at least its own standard error (pure noise stays finite), and each group's standard error."""
    g = query.scales
    total = max(sums.w0, sigma / sqrt(g.zeroth), 1e-9)

    def error(scale: float) -> float:
        return sigma / sqrt(scale) / total if scale else 0.0

    return total, Spread(error(g.zeroth), error(g.label), error(g.first), error(g.second), error(g.squares))


def _complete(centre: Vector, s1: Vector, error: float, layout: Layout) -> Flags:
    """Which codes have no significant mass of unknown values, in either stage."""
    complete = np.zeros(layout.attributes, dtype=bool)
    for a in layout.codes:
        block = layout.columns(a)
        k = block.stop - block.start
        closed = abs(float(centre[block].sum()) - 1) < 1e-9
        complete[a] = k > 1 and closed and -float(s1[block].sum()) <= SIGNIFICANT * sqrt(k) * error + 1e-6
    return complete


def _sum_to_zero(s1: Vector, t1: Vector, s2: Matrix, complete: Flags, layout: Layout) -> None:
    """Σ_block v = 0 on every row of a complete code whose centre sums to one: remove the noise along it."""
    for a in np.flatnonzero(complete):
        block = layout.columns(int(a))
        s1[block] -= s1[block].mean()
        t1[block] -= t1[block].mean()
        s2[block] -= s2[block].mean(axis=0)
        s2[:, block] -= s2[:, block].mean(axis=1)[:, None]


def _idle(complete: Flags, layout: Layout) -> Matrix:
    """11ᵀ/k on the block of each complete code of k columns."""
    sizes = np.array(layout.stops) - np.array(layout.starts)
    return np.where(layout.same_attribute() & complete[layout.owner], 1 / sizes[layout.owner], 0.0)


def _means(raw: Vector, complete: Flags, layout: Layout) -> tuple[Vector, Vector]:
    """Means inside the domain, and the missing mass of each code."""
    mean, missing = np.clip(raw, SMALLEST_MEAN, 1 - SMALLEST_MEAN), np.zeros(layout.attributes)
    for a in layout.codes:
        block = layout.columns(a)
        mass = float(mean[block].sum())
        if complete[a] or mass > 1:
            mean[block] /= mass
        missing[a] = 0.0 if complete[a] else max(1 - float(mean[block].sum()), SMALLEST_MEAN)
    return mean, missing


def _known_blocks(covariance: Matrix, mean: Vector, layout: Layout) -> None:
    for a in layout.codes:
        block = layout.columns(a)
        covariance[block, block] = np.diag(mean[block]) - np.outer(mean[block], mean[block])


def _shares(covariance: Matrix, t1: Vector, spread: Spread, layout: Layout) -> tuple[Matrix, Vector]:
    """The shrinkage factors of each covariance and of each label moment."""
    variance = np.diag(covariance).copy()
    scale = np.outer(variance, variance)
    evidence = _per_pair(np.square(covariance) - spread.s2**2, layout)
    room, cells = _per_pair(scale, layout), _per_pair(np.ones_like(scale), layout)
    off = ~np.eye(layout.attributes, dtype=bool)
    common = max(float(evidence[off].sum()) / max(float(room[off].sum()), 1e-300), 0.0)
    rho = np.maximum((evidence / room * cells + _POOLED * common) / (cells + _POOLED), 0.0)
    prior = rho[np.ix_(layout.owner, layout.owner)] * scale
    kept = np.where(layout.same_attribute(), 1.0, _share(prior, spread.s2**2))
    return kept, _label_shares(variance, t1, spread)


def _label_shares(variance: Vector, t1: Vector, spread: Spread) -> Vector:
    signal = max(float((np.square(t1) - spread.t1**2).sum()) / float(variance.sum()), 0.0)
    return _share(signal * variance, spread.t1**2)


def _per_pair(entries: Matrix, layout: Layout) -> Matrix:
    return layout.per_attribute(layout.per_attribute(entries).T)


def _share(prior: Matrix, noise: float) -> Matrix:
    return np.asarray(prior / (prior + noise + 1e-300))
