"""Local explanations from labelled reference rows, raked to the released moments. Pure post-processing, for any weight and any query.

Moments say how the black box's answers y vary with x over the private rows; the reference says where rows are. Instead of adding the
difference of the two to every local problem, rows get weights g = exp(θ·f), f = (y, v, (y - φ₀·v)v), v = x - μ, so that the reference has the
released moments itself (raking: a control variate that keeps A positive and adapts to the locality). φ₀ is the explanation that the moments
alone give at μ: raking the moments of its *residual*, not of y, leaves A and b of the reference in tune where its covariance is a little off.
Then, with u = x - z and α the local weight,

    A = Σ gα uuᵀ / Σ gα,    b = Σ gα yu / Σ gα,    each plus κ times the same without α,    κ = 1/(effective rows),

so that where hardly a row is near z, the directions that nothing local determines follow the whole reference.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpexplain.core.answer import Answers
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.ball import minimise_2
from dpexplain.core.weights import Weight

_PRIOR = 0.1  # how large θ is expected to be, for columns of unit spread
_LEAST = 1e-4
_STEPS = 12
_NEGLIGIBLE = 1e-9  # weights below this share of the largest are left out

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class MomentTargets:
    """Released moments of rows weighted by w(x): mean μ, covariance C, E y = t0, E y(x - μ) = t1, and the standard errors of C and t1."""

    mean: Vector
    covariance: Matrix
    t0: float
    t1: Vector
    second_error: float
    label_error: float
    radius: float

    @property
    def start(self) -> Vector:
        """φ₀: the explanation at μ where every row counts alike."""
        return minimise_2(self.covariance, self.t1, self.radius)


def rake_to_moments(points: Matrix, labels: Vector, base: Vector, found: MomentTargets) -> Vector:
    """Weights g, of mean one, for which Σ g·base·f / Σ g·base has the released moments, up to their own error. Newton's method."""
    v, start = (points - found.mean).astype(np.float32), found.start
    residual = (labels - v @ start).astype(np.float32)
    features = np.column_stack([labels.astype(np.float32), v, v * residual[:, None]])
    target = np.concatenate([[found.t0], np.zeros(len(start)), found.t1 - found.covariance @ start])
    error = np.hypot(found.label_error, found.second_error * np.linalg.norm(start))
    base = base / base.sum()
    spread = np.maximum(base @ np.square(features.astype(np.float64)), 1e-6)
    ridge = np.maximum(error**2 / (spread * _PRIOR**2), _LEAST)
    theta = np.zeros(len(target))
    for _ in range(_STEPS):
        weights = _tilted(features, theta, base)
        means = weights @ features
        second = (features * weights[:, None].astype(np.float32)).T @ features - np.outer(means, means)
        step = linalg.solve(second + np.diag(ridge), target - means - ridge * theta, assume_a="pos")
        theta = theta + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-5:
            break
    weights = _tilted(features, theta, base) / base
    return np.asarray(weights / weights.mean())


def _tilted(features: Floats, theta: Vector, base: Vector) -> Vector:
    energy = (features @ theta.astype(np.float32)).astype(np.float64)
    weights = base * np.exp(np.clip(energy - np.median(energy), -4.0, 4.0))
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True, slots=True, eq=False)
class LocalReference:
    """Labelled rows with weights; solves the local problem on them."""

    points: Matrix
    labels: Vector
    weights: Vector
    radius: float
    error: float  # standard error of the released label moments
    _points: Floats = field(init=False)
    _norms: Vector = field(init=False)
    _everyone: tuple[Matrix, Vector, Vector] = field(init=False)

    def __post_init__(self) -> None:
        points = self.points.astype(np.float32)
        weighted = (points * self.weights[:, None].astype(np.float32)).T
        labels, rows = self.labels.astype(np.float32), len(points)
        second, label = (weighted @ points / rows).astype(np.float64), (weighted @ labels / rows).astype(np.float64)
        object.__setattr__(self, "_points", points)
        object.__setattr__(self, "_norms", np.square(self.points).sum(axis=1))
        object.__setattr__(self, "_everyone", (second, self.weights @ self.points / rows, label))

    def answer(self, queries: Matrix, weight: Weight) -> Answers:
        """Explanations at encoded queries, (q, n)."""
        pairs = [self._one(query, weight) for query in queries]
        empty = np.zeros((0, self.points.shape[1]))
        if not pairs:
            return Answers(empty, empty)
        return Answers(np.array([value for value, _ in pairs]), np.array([error for _, error in pairs]))

    def effective_rows(self, query: Vector, weight: Weight) -> float:
        """(Σα)²/Σα² over the reference: how many rows an explanation at `query` rests on."""
        local = self._local(query, weight)
        return float(local.sum() ** 2 / max(float(local @ local), 1e-300))

    def _local(self, query: Vector, weight: Weight) -> Vector:
        squared = self._norms - 2 * (self.points @ query) + query @ query
        return weight(np.sqrt(np.maximum(squared, 0.0))) * self.weights

    def _one(self, query: Vector, weight: Weight) -> tuple[Vector, Vector]:
        local = self._local(query, weight)
        total = float(local.sum())
        if not total > 0:
            local, total = self.weights, float(self.weights.sum())
        near = np.flatnonzero(local > _NEGLIGIBLE * local.max())
        share, y = local[near] / total, self.labels[near]
        u = self._points[near] - query.astype(np.float32)
        scaled = u * share[:, None].astype(np.float32)
        few = float(np.square(share).sum())
        A, b = self._around(query)
        A = (scaled.T @ u).astype(np.float64) + few * A
        b = (scaled.T @ y.astype(np.float32)).astype(np.float64) + few * b
        phi = minimise_2(A, b, self.radius)
        residual = (y - u @ phi.astype(np.float32)).astype(np.float32)[:, None] * scaled
        return phi, self._errors(A, b, phi, (residual.T @ residual).astype(np.float64))

    def _around(self, query: Vector) -> tuple[Matrix, Vector]:
        """(A, b) of all rows alike."""
        second, first, label = self._everyone
        cross, mean_label = np.outer(first, query), float(self.weights @ self.labels) / len(self.labels)
        return second - cross - cross.T + np.outer(query, query), label - mean_label * query

    def _errors(self, A: Matrix, b: Vector, phi: Vector, scatter: Matrix) -> Vector:
        """√diag(K (scatter + error²I) K), K the inverse of A + λI, along the sphere where the ball binds."""
        length = float(phi @ phi)
        multiplier = max(float(phi @ (b - A @ phi)) / max(length, 1e-300), 0.0)
        K = linalg.pinvh(A + (multiplier + 1e-9) * np.eye(len(b)))
        if length > (1 - 1e-9) * self.radius**2:
            q = K @ phi
            K = K - np.outer(q, q) / max(float(phi @ q), 1e-300)
        variance = np.einsum("ij,jk,ik->i", K, scatter + self.error**2 * np.eye(len(b)), K)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))
