"""Fitted and anchored planes from released moments and a few thousand public points. Pure post-processing.

Where all rows count alike the plane is known from the moments: t₀ + φ₀·(x - μ) (`estimation/slopes.py`). What a local weight α changes is read off
the residuals r = y - t₀ - φ₀·(x - μ) of N public points, which the model (or, where there is none to ask, the most random labels with the released
moments) has answered. With point weights gᵣ (raked to the released moments) and local weights sᵣ ∝ αᵣgᵣ, centre m = Σ s(x - μ), u = x - μ - m:

    (A + κI)δ = Σ s r u - β Σ (g/N)(r - r̄)(x - μ),    A = Σ s u uᵀ,    φ = φ₀ + δ,

and the plane's level at the centre is t₀ + φ₀·m + Σ s r - βr̄, r̄ = Σ (g/N) r. The sums over g would be 0 if the points had the released moments exactly: a
control variate. β = (Σα)²/(NΣα²), the share of effective rows, because what is wrong on average says less about a small neighbourhood.
δ is found by a few steps of conjugate gradients that start from the moments' own inverse, so that directions which nothing determines are never entered.

Through the model's answer c at z instead, with h = μ + m - z:  φ + g(a - c),  g = A⁻¹h/(1 + h·A⁻¹h),  a the fitted plane's answer at z.

Errors have two parts. Noise and shrinkage: the posterior of φ₀, scaled by rehearsals (`estimation/calibrate.py`). Reference: the sum above moves
by Σ qᵣξᵣu, q = (s - βg/N)r, when the points' residuals are wrong by a share τ of themselves, ξ ~ N(0, τ²N).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
import scipy

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.core.weights import Weight
from dpexplain.estimation.planes import Average, Planes, Variances, assemble, directions, hold_in_ball
from dpexplain.estimation.slopes import Slopes, spread_of, typical_ridge

STEPS = 3  # of conjugate gradients
EVERY = 16  # which points the reference's error is estimated from
KEPT = 2.0  # how much of an error of φ₀ is left in φ, for each share of effective rows
LIMIT = 6.0  # how many effective points one point may count for in the reference's error: its neighbours' errors are not its own
_IN_CACHE = 1 << 18  # entries: a matrix this small is read faster as it is than through indices
_DENSE = 0.4  # share of entries that are not zero from which a dense matrix is read faster than a sparse one


@dataclass(frozen=True, eq=False)
class MomentPlanes:
    """Everything a plane is computed from; all of it public."""

    mean: Vector  # μ of the rows as the moments weigh them
    t0: float
    slopes: Slopes
    eigenvalues: Vector
    eigenvectors: Matrix
    layout: Layout
    points: Matrix
    labels: Vector
    inverse_weight: Vector  # from rows as the moments weigh them to rows that count alike
    raked: Vector  # g, of mean one
    average: Average
    factors: Vector  # what rehearsals say about each column's error
    t0_error: float
    second_error: float

    @property
    def ridge(self) -> float:
        """κ."""
        return typical_ridge(self.eigenvalues)

    @cached_property
    def inverse(self) -> Vector:
        """(C + κI)⁻¹ in the eigenbasis, κ at least the covariance's own noise."""
        return 1 / (self.eigenvalues + max(self.ridge, spread_of(self.second_error, len(self.eigenvalues))))

    @cached_property
    def _inverse(self) -> Matrix:
        return np.asarray((self.eigenvectors * self.inverse) @ self.eigenvectors.T)

    @cached_property
    def _norms(self) -> Vector:
        return np.asarray(np.square(self.points).sum(axis=1))

    @cached_property
    def residuals(self) -> Vector:
        """r of each point."""
        return np.asarray(self.labels - self.t0 - (self.points - self.mean) @ self.slopes.values)

    @cached_property
    def _global(self) -> tuple[float, Vector]:
        """r̄ = Σ (g/N) r and Σ (g/N)(r - r̄)(x - μ)."""
        share = self.raked / len(self.points)
        level = float(share @ self.residuals)
        return level, (share * (self.residuals - level)) @ (self.points - self.mean)

    @cached_property
    def _maps(self) -> tuple[Any, Any]:
        """The points and their transpose as maps of one vector: sparse where that touches less memory."""
        if self.points.size <= _IN_CACHE or np.count_nonzero(self.points) > _DENSE * self.points.size:
            return self.points, self.points.T
        return scipy.sparse.csr_array(self.points), scipy.sparse.csr_array(self.points.T)

    @cached_property
    def _root(self) -> Matrix:
        return self.factors[:, None] * self.slopes.root(self.eigenvectors)

    @cached_property
    def _noise(self) -> Vector:
        """Variance of each column's slope from noise and shrinkage."""
        return np.asarray(np.square(self._root).sum(axis=1))

    @cached_property
    def _moved(self) -> Matrix:
        """A⁻¹(x - μ) of some points, with the moments' own inverse: how far each pulls the slopes."""
        return np.asarray((self.points[::EVERY] - self.mean) @ self._inverse)

    def fit(self, queries: Matrix, weight: Weight, anchors: Vector | None = None, radius: float | None = None) -> Planes:
        """The planes at encoded queries, (q, n); through `anchors`, one a query, where they are given; in a ball where a radius is given."""
        share, local = self._local(queries, weight)
        centre = self._back(local) - self.mean
        pull = local * self.residuals
        level, (level0, slope0) = pull.sum(axis=1), self._global
        right = self._back(pull) - (self.mean + centre) * level[:, None] - share[:, None] * slope0
        values, capped = hold_in_ball(
            self.slopes.values + self._solve(local, centre, right), self.eigenvalues, self.eigenvectors, radius
        )
        away = self.mean + centre - queries  # h
        answer = self.t0 + centre @ self.slopes.values + level - share * level0 - _dots(away, values)
        turn: list[Vector | None] = [None] * len(queries)
        if anchors is not None:
            along = self._solve(local, centre, away)
            turn = list(along / (1 + _dots(away, along))[:, None])
            values, answer = values + np.array(turn).reshape(values.shape) * (answer - anchors)[:, None], anchors
        rows = zip(queries, local, share, centre, turn, strict=True)
        variances = [self._variances(*row) for row in rows]
        return assemble(queries, values, answer, share, capped, variances, self.average, self.layout)

    def _local(self, queries: Matrix, weight: Weight) -> tuple[Vector, Matrix]:
        """(share of effective rows, s)."""
        squared = self._norms - 2 * self._onto(queries) + np.square(queries).sum(axis=1)[:, None]
        local = weight(np.sqrt(np.maximum(squared, 0.0))) * self.inverse_weight
        local[~(local.sum(axis=1) > 0)] = self.inverse_weight  # where no point is near, all count alike
        share = np.square(local.sum(axis=1)) / (local.shape[1] * np.square(local).sum(axis=1))
        local = local * self.raked
        return share, local / local.sum(axis=1)[:, None]

    def _onto(self, rows: Matrix) -> Matrix:
        return np.asarray(rows @ self.points.T) if len(rows) != 1 else np.asarray(self._maps[0] @ rows[0])[None]

    def _back(self, rows: Matrix) -> Matrix:
        return np.asarray(rows @ self.points) if len(rows) != 1 else np.asarray(self._maps[1] @ rows[0])[None]

    def _solve(self, local: Matrix, centre: Matrix, right: Matrix) -> Matrix:
        """(A + κI)⁻¹ right by conjugate gradients, preconditioned by the moments' inverse."""
        found, rest, middle = np.zeros_like(right), right, self.mean + centre
        ahead = rest @ self._inverse
        size = _dots(rest, ahead)
        for _ in range(STEPS):
            weighed = local * (self._onto(ahead) - _dots(ahead, middle)[:, None])
            bent = self._back(weighed) - middle * weighed.sum(axis=1)[:, None] + self.ridge * ahead
            length = size / np.maximum(_dots(ahead, bent), 1e-300)
            found, rest = found + length[:, None] * ahead, rest - length[:, None] * bent
            step = rest @ self._inverse
            left = _dots(rest, step)
            ahead, size = step + (left / np.maximum(size, 1e-300))[:, None] * ahead, left
        return found

    def _variances(self, query: Vector, local: Vector, share: float, centre: Vector, turn: Vector | None) -> Variances:
        """For one query; `turn` is g where the plane goes through an anchor."""
        kept = min(1.0, KEPT * share)  # a local answer rests on the points, not on φ₀
        root, noise = kept * self._root, kept**2 * self._noise
        pull = len(local) * local[::EVERY] - share * self.raked[::EVERY]
        pull = np.square(np.clip(pull, -LIMIT / share, LIMIT / share) * self.residuals[::EVERY])
        pull *= self.slopes.doubt / sqrt(share) / len(pull)
        moved, away = self._moved - centre @ self._inverse, self.mean + centre - query
        if turn is not None:
            root = root - np.outer(turn, away @ root)
            noise = np.square(root).sum(axis=1) + np.square(turn * self.t0_error)
            moved = moved - np.outer(moved @ away - 1.0, turn)
        offset, known = query - self.average.values, turn is not None
        across = directions(offset, np.zeros_like(away) if known else -away, self.layout)
        reference, level = moved @ across, 0.0 if known else self.t0_error**2
        if not known:
            reference[:, -2:] += 1.0
        added = np.square(across.T @ root).sum(axis=1) + pull @ np.square(reference)
        added[-2:] += level
        return Variances(noise, pull @ np.square(moved), added)


def _dots(a: Matrix, b: Matrix) -> Vector:
    return np.asarray(np.einsum("ij,ij->i", a, b))
