"""Local explanations from labelled reference rows, raked to the released moments. Pure post-processing, for any weight and any query.

Moments describe how the black box's answers y vary with x over the private rows; the reference describes how rows are distributed. Instead of adding the
difference of the two to every local problem, rows get weights g = exp(θ·f), f = (y, v, (y - φ₀·v)v, v² of numbers), v = x - μ, so that the reference
has the released moments itself (raking: a control variate that keeps A positive and adapts to the locality). φ₀ is the explanation that the moments
alone give at μ: raking the moments of its *residual*, not of y, keeps A and b of the reference consistent where its covariance has a small error.
Then, with u = x - z and α the local weight,

    A = Σ gα uuᵀ / Σ gα,    b = Σ gα yu / Σ gα,    each plus κ times the same without α,    κ = 1/(effective rows),

so that where hardly a row is near z, the directions that nothing local determines follow the whole reference.

Error bars add up three variances of b - Aφ, with r = y - φ·u and s = gα/Σgα, and carry them to φ by the inverse of A + λI:
- drawing the N records, and the M private rows, which are finitely many themselves: (d + N/M)V, V = Σ (s - βg/N)² r² uuᵀ. d is more than 1: what records
  lack beyond pairs of features differs from one neighbourhood to the next as drawing does. β = (n/N)² is what raking to all rows' moments takes back;
- noise of tables and moments: Σ_k mₖmₖᵀ/(K/2), mₖ = Σ s cₖ r u, for the changes cₖ of log weights in K rehearsals; K/2 instead of K because
  rehearsals are few and linear, and choose neither bins nor tree anew;
- the model's bias: τ² n (1 - n/N) V with n the effective rows. τ² is by how much more than noise explains the reference missed the released
  label moments before it was raked to them, relative to their spread: a bias of relative size τ makes 1/τ² rows of n.
A column that less than one effective row near z has gets the error that one such row could cause, 1/(λn + 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.ball import minimise_2
from dpexplain.core.weights import Weight
from dpexplain.estimation.answer import PlaneAnswers
from dpexplain.estimation.denoise import WIDE
from dpexplain.estimation.error_parts import APART, no_parts, split_records
from dpexplain.estimation.raked_records import Floats, RakedRecords

_PRIOR = 0.1  # how large θ is expected to be, for columns of unit spread
_LEAST, _LEAST_SQUARED = 1e-4, 1e-6  # ridges; θ of a square is large, because squares of numbers are small
_STEPS, _HESSIANS, _WORTH = 40, 12, 0.5
_BLOCK = 4096
_CACHED = 256  # rows whose features are made while they are in the processor's cache
_PER_FEATURE, _FEWEST = 64, 1 << 14  # records by which covariances of features are known well enough to step by
_DRAWN = 4.5  # factor of the variance of drawing records, as measured
_UNDETERMINED = 1e-6  # of the largest eigenvalue of A
_PER_COLUMN, _FEWEST_ROWS = 128, 1 << 13  # rows that errors are computed from

Positions = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class MomentTargets:
    """Released moments of rows weighted by w(x): mean μ, covariance C, E y = t0, E y(x - μ) = t1, and the standard errors of μ, C and t1."""

    mean: Vector
    covariance: Matrix
    t0: float
    t1: Vector
    first_error: float
    second_error: float
    label_error: float
    start: Vector  # φ₀: the slopes of the plane through all rows
    expected: Vector | float = 0.0  # slopes that labels were compared with before noise was added


class MomentRaking:
    """The reference's label moments beside the released ones; `base` is the weight w(x) of the latter."""

    def __init__(
        self, points: Matrix, labels: Vector, base: Vector, found: MomentTargets, squared: Positions | None = None
    ) -> None:
        """`squared` are the columns whose variances are matched too, by default none."""
        start, squares = found.start, np.zeros(0, dtype=np.intp) if squared is None else squared
        label_error = np.hypot(found.label_error, found.second_error * np.linalg.norm(start - found.expected))
        self.features, self.columns = _features(points, labels, found, squares), len(start)
        self.target = np.concatenate(
            [[found.t0], np.zeros(len(start)), found.t1 - found.covariance @ start, np.diag(found.covariance)[squares]]
        )
        sizes = [1, len(start), len(start), len(squares)]
        self.errors = np.repeat([found.label_error, found.first_error, label_error, found.second_error], sizes)
        self.base = base / base.sum()
        self._start = _weighted_means(self.base, self.features)
        self._start_covariance, mean_squares = self._covariance(self.base)
        self.spread = np.maximum(mean_squares, 1e-6)
        self.ridge = np.maximum(label_error**2 / (self.spread * _PRIOR**2), _LEAST)
        last = slice(2 * len(start) + 1, None)
        self.ridge[last] = np.maximum(found.second_error**2 / self.spread[last], _LEAST_SQUARED)

    def weights(self) -> Vector:
        """g, of mean one, for which Σ g·base·f / Σ g·base has the released moments, up to their own error.

        Newton's method, with one Hessian for as long as each step is at most half as long as the one before (the chord method).
        """
        theta, means = np.zeros(len(self.target)), self._start
        factor, before, tilted = self._factor(self._start_covariance), np.inf, self.base
        hessians = 1
        for _ in range(_STEPS):
            missing = self.target - means - self.ridge * theta
            step = scipy.linalg.cho_solve(factor, missing, check_finite=False)
            if (length := float(np.abs(step).max())) > _WORTH * before:
                if hessians == _HESSIANS:
                    break
                hessians += 1
                factor = self._factor(self._covariance(tilted)[0])
                step = scipy.linalg.cho_solve(factor, missing, check_finite=False)
                length = float(np.abs(step).max())
            theta, before = theta + step / max(1.0, length), min(length, 1.0)
            tilted = _tilt_weights(self.features, theta, self.base)
            if length < 1e-5:
                break
            means = _weighted_means(tilted, self.features)
        weights = tilted / self.base
        return np.asarray(weights / weights.mean())

    def changes(self, weights: Vector, before: Matrix, normals: Matrix) -> Matrix:
        """What is left of the changes `before` after raking, with other noise on the moments too; to first order. (K, N)."""
        tilted = weights * self.base / float(weights @ self.base)
        factor = self._factor(self._covariance(tilted)[0])
        moved = ((before - (before @ tilted)[:, None]) * tilted).astype(np.float32) @ self.features
        theta = scipy.linalg.cho_solve(factor, (self.errors * normals - moved).T)
        return np.asarray(before + (self.features @ theta.astype(np.float32)).T)

    def misfit(self) -> float:
        """The mean square of what the label moments miss before raking, in units of their noise and of drawing records: 1 is what these explain."""
        missed = np.square(self.target - self._start) / (self.errors**2 + self.spread / len(self.base))
        return float(np.append(missed[0], missed[self.columns + 1 : 2 * self.columns + 1]).mean())

    def bias(self, before: Matrix) -> float:
        """τ²: the mean squared miss of the label moments before raking, relative to their spread, beyond what noise explains."""
        labels = slice(self.columns + 1, 2 * self.columns + 1)
        moved = ((before - (before @ self.base)[:, None]) * self.base).astype(np.float32) @ self.features[:, labels]
        noise = self.errors[labels] ** 2 + np.square(moved).mean(axis=0) + self.spread[labels] / len(self.base)
        missed = np.square((self.target - self._start)[labels])
        return max(float(((missed - noise) / self.spread[labels]).mean()), 0.0)

    def _covariance(self, weights: Vector) -> tuple[Matrix, Vector]:
        """The features' covariance, and the mean of their squares: from a part of the records, because it only determines the direction of a step."""
        step = max(len(weights) // max(_PER_FEATURE * self.features.shape[1], _FEWEST), 1)
        part, share = self.features[::step], weights[::step] / weights[::step].sum()
        means = _weighted_means(share, part)
        if len(means) <= 2 * WIDE + 1:
            products = (part * share[:, None].astype(np.float32)).T @ part
        else:
            root = part * np.sqrt(share)[:, None].astype(np.float32)
            products = root.T @ root  # a matrix times its own transpose: half the operations
        return products.astype(np.float64) - np.outer(means, means), np.diag(products).astype(np.float64)

    def _factor(self, covariance: Matrix) -> tuple[Matrix, bool]:
        """The factorised covariance of the features with the ridge."""
        return scipy.linalg.cho_factor(covariance + np.diag(self.ridge), lower=True, check_finite=False)


def _features(points: Matrix, labels: Vector, found: MomentTargets, squares: Positions) -> Floats:
    """f of each row."""
    n = points.shape[1]
    out = np.empty((len(points), 2 * n + 1 + len(squares)), dtype=np.float32)
    for start in range(0, len(points), _CACHED):
        part = slice(start, start + _CACHED)
        v = (points[part] - found.mean).astype(np.float32)
        residual = (labels[part] - v @ found.start).astype(np.float32)
        out[part, 0], out[part, 1 : n + 1] = labels[part], v
        np.multiply(v, residual[:, None], out=out[part, n + 1 : 2 * n + 1])
        np.square(v[:, squares], out=out[part, 2 * n + 1 :])
    return out


def _weighted_means(weights: Vector, features: Floats) -> Vector:
    """Single precision within a block of rows, double from block to block."""
    found, single = np.zeros(features.shape[1]), weights.astype(np.float32)
    for start in range(0, len(features), _BLOCK):
        found += single[start : start + _BLOCK] @ features[start : start + _BLOCK]
    return found


def _tilt_weights(features: Floats, theta: Vector, base: Vector) -> Vector:
    energy = (features @ theta.astype(np.float32)).astype(np.float64)
    weights = base * np.exp(np.clip(energy - np.median(energy), -4.0, 4.0))
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True, eq=False)
class LocalReference(RakedRecords):
    """Labelled rows with weights; solves the local problem on them."""

    radius: float
    bias: float  # τ²
    rows: int  # private ones, as far as that is public

    @cached_property
    def _everyone(self) -> tuple[Matrix, Vector, Vector]:
        """Σ g xxᵀ, Σ g x and Σ g y x over all rows, each divided by their number."""
        first, label = self._packed.sums(self.weights, self.labels) / len(self.points)
        return self._records.products(self.weights) / len(self.points), first, label

    def answer(self, queries: Matrix, weight: Weight, anchors: Vector | None = None) -> PlaneAnswers:
        """Explanations at encoded queries, (q, n); with `anchors`, one a query, they fit y - anchor."""
        levels = np.zeros(len(queries)) if anchors is None else anchors
        values, errors, parts = np.empty_like(queries), np.empty_like(queries), no_parts(len(queries))
        for i, (query, level) in enumerate(zip(queries, levels, strict=True)):
            values[i], errors[i], parts[i, APART] = self._solve_query(query, weight, float(level))
        return PlaneAnswers(values, errors, parts)

    def _solve_query(self, query: Vector, weight: Weight, anchor: float) -> tuple[Vector, Vector, Vector]:
        """Slopes, their errors, and the parts of these."""
        share = self._local_shares(query, weight)
        few = float(share @ share)
        (first, label), level = self._packed.sums(share, self.labels), float(share @ self.labels) - anchor
        A, b = self._moments_around(query, anchor)
        A = _centre_moments(query, self._records.products(share), first, 1.0) + few * A
        b = label - anchor * first - level * query + few * b
        phi = minimise_2(A, b, self.radius, _UNDETERMINED)
        variance, tables, drawn = self._variance(query, share, first, phi, anchor)
        K, multiplier = self._inverse(A, b, phi)
        found = np.sqrt(np.maximum(np.einsum("ij,ij->i", K @ variance, K), 0.0))
        errors = np.where(np.diag(A) < few, np.maximum(found, few / (multiplier + few)), found)
        total = float(np.square(errors).sum())
        return phi, errors, split_records(total, tables @ K, total - float(np.square(found).sum()), drawn) / len(phi)

    def _variance(self, query: Vector, share: Vector, centre: Vector, phi: Vector, anchor: float) -> tuple[Matrix, Matrix, float]:
        """The variance of b - Aφ from sampling, bias and noise; the first two from rows that represent all.

        With T, TᵀT the part from noise, and the share of the rest that comes from sampling.
        """
        few = float(share @ share)  # one over the effective rows
        counted = min(1 / (few * len(share)), 1.0)  # n/N
        residuals = self.labels - anchor - self._records.times(phi) + float(query @ phi)
        drawn, pull = (share - counted**2 / len(share) * self.weights) * residuals, share * residuals
        positions, times = self._packed.thin(share, centre, max(_PER_COLUMN * len(query), _FEWEST_ROWS))
        rows, squares = self._records.take(positions), times * np.square(drawn[positions])
        spread = _centre_moments(query, rows.products(squares), rows.sums(squares), float(squares.sum()))
        pulls = self._changes * pull[:, None]
        moved = self._records.sums_of_each(pulls) - np.outer(pulls.sum(axis=0), query)
        sampled, rehearsals = _DRAWN + len(share) / self.rows, max(len(moved) / 2, 1)
        own = sampled + self.bias / few * (1 - counted)
        return np.asarray(own * spread + moved.T @ moved / rehearsals), moved / sqrt(rehearsals), sampled / own

    def _moments_around(self, query: Vector, anchor: float) -> tuple[Matrix, Vector]:
        """(A, b) of all rows alike."""
        second, first, label = self._everyone
        mean_label = float(self.weights @ self.labels) / len(self.labels) - anchor
        return _centre_moments(query, second, first, 1.0), label - anchor * first - mean_label * query

    def _inverse(self, A: Matrix, b: Vector, phi: Vector) -> tuple[Matrix, float]:
        """(K, λ): the inverse of A + λI, along the sphere where the ball binds."""
        length = float(phi @ phi)
        multiplier = max(float(phi @ (b - A @ phi)) / max(length, 1e-300), 0.0)
        values, vectors = scipy.linalg.eigh(A)
        # directions that no row has, such as the sum over a code, move nowhere
        known = values > _UNDETERMINED * float(values[-1])
        K = (vectors * np.divide(1.0, values + multiplier, out=np.zeros_like(values), where=known)) @ vectors.T
        q = K @ phi
        if length > (1 - 1e-9) * self.radius**2 and float(phi @ q) > 1e-12 * length:
            K = K - np.outer(q, q) / float(phi @ q)
        return K, multiplier


def _centre_moments(query: Vector, second: Matrix, first: Vector, total: float) -> Matrix:
    """Σ w (x - z)(x - z)ᵀ, from Σ w xxᵀ, Σ w x and Σ w."""
    cross = np.outer(first, query)
    return np.asarray(second - cross - cross.T + total * np.outer(query, query))
