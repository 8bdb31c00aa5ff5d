"""Explanations from released moments and their reference: two ball solves with one locality correction between them.

With h = μ - z, rows of equal weight have A = C + hhᵀ and b = t₁ + t₀h. The reference estimates how a local weight α changes the problem:
at the first solution φ₀ the gradient of the local loss differs from that of the uniform one by

    g = (1/N) Σ (αᵣ/mean α - 1)(yᵣ - φ₀·uᵣ)uᵣ,    uᵣ = xᵣ - z,

which is added to b before the second solve: one Newton-like step towards the local optimum. Errors of the reference only enter through this
difference.

Anchored at the model's answer c = f(z), the plane goes through c at z instead of 0: labels are y - c, so t₀ - c takes the place of t₀, yᵣ - c that
of yᵣ, and t₁ stays, because v = x - μ has mean zero.
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
from dpexplain.core.release_moments import Scales
from dpexplain.core.weights import Weight
from dpexplain.estimation.denoise import Estimate
from dpexplain.estimation.error_parts import Parts
from dpexplain.estimation.local_solve import Solutions, error_shape, solve, solve_one
from dpexplain.estimation.reference import Reference

_DENSE = 0.4  # share of entries that are not zero from which a dense matrix is read faster than a sparse one
BATCH = 128  # queries at a time: products of matrices are fast, and the (BATCH, N) arrays stay in cache

LinearMap = Any  # an array, dense or sparse: anything that @ takes


@dataclass(frozen=True, slots=True)
class NoiseLevels:
    """Standard errors of the moments, and the factor by which the error of each value differs from what they alone imply."""

    t1: float
    s2: float
    s1: float
    calibration: Vector


@dataclass(frozen=True, slots=True, eq=False)
class PlaneAnswers:
    """One row for each query."""

    values: Matrix
    errors: Matrix
    parts: Parts | None = None  # of the errors; None where these are from noise and shrinkage alone


@dataclass(frozen=True, eq=False)
class Solver:
    """Everything an explanation is computed from; all of it public."""

    mean: Vector
    eigenvalues: Vector
    eigenvectors: Matrix
    t0: float
    t1: Vector
    radius: float
    noise: NoiseLevels
    layout: Layout
    reference: Reference

    @cached_property
    def _points(self) -> Matrix:
        return self.reference.points(self.layout)

    @cached_property
    def _norms(self) -> Vector:
        return np.asarray((np.square(self._points) * self.layout.metric).sum(axis=1))

    @cached_property
    def _maps(self) -> tuple[LinearMap, LinearMap]:
        """The points and their transpose as maps of one vector: sparse where that touches less memory."""
        if np.count_nonzero(self._points) > _DENSE * self._points.size:
            return self._points, self._points.T
        return scipy.sparse.csr_array(self._points), scipy.sparse.csr_array(self._points.T)

    @cached_property
    def _squared_eigenvectors(self) -> Matrix:
        return np.square(self.eigenvectors)

    @cached_property
    def _rotated_t1(self) -> Vector:
        return np.asarray(self.t1 @ self.eigenvectors)

    @cached_property
    def _guess(self) -> float:
        """The multiplier of a query at the mean: the starting value of the search for any other query's."""
        return solve_one(self.eigenvalues, np.zeros_like(self.mean), self._rotated_t1, self.radius)[1]

    @classmethod
    def of(cls, estimate: Estimate, reference: Reference, layout: Layout, radius: float, calibration: Vector) -> Solver:
        noise = NoiseLevels(estimate.spread.t1, estimate.spread.s2, estimate.spread.s1, calibration)
        return cls(estimate.mean, estimate.values, estimate.vectors, estimate.t0, estimate.t1, radius, noise, layout, reference)

    def answer(self, queries: Matrix, weight: Weight, anchors: Vector | None = None) -> PlaneAnswers:
        """Explanations at encoded queries, (q, n); `anchors`, one a query, are 0 unless they are given."""
        c = np.zeros(len(queries)) if anchors is None else anchors
        H = (self.mean - queries) @ self.eigenvectors
        B = self._rotated_t1 + (self.t0 - c)[:, None] * H
        if len(queries) == 1:
            return self._with_errors(H, self._solve_query(queries[0], H[0], B[0], weight, float(c[0])), c)
        first = solve(self.eigenvalues, H, B, self.radius, self._guess)
        corrected = B + self._corrections(queries, first.values @ self.eigenvectors.T, weight, c) @ self.eigenvectors
        return self._with_errors(H, solve(self.eigenvalues, H, corrected, self.radius, first.multiplier), c)

    def influence(self, query: Vector, weight: Weight) -> tuple[Vector, Vector]:
        """(1/m) Σ α y (x - z) and its standard error: the signed influence sum b_z for a weight α, from moments and reference.

        Moments give it for rows of equal weight, b = t₁ + t₀h. The reference gives the change due to α: with κ the mean of α over it,
        κb + mean((α - κ)yu). Errors are those of the moments' noise and of a sample as large as the reference.
        """
        h, points, y = self.mean - query, self._points, self.reference.labels
        everyone = self.reference.inverse_weight / float(self.reference.inverse_weight.mean())
        measured = self.layout.metric * query
        local = weight(np.sqrt(np.maximum(self._norms - 2 * (points @ measured) + query @ measured, 0.0))) * everyone
        share = float(local.mean())
        terms = ((local - share) * y)[:, None] * (points - query)
        variance = self.noise.t1**2 + (self.t0 * self.noise.s1) ** 2 + np.square(h * self.t0_error)
        error = np.sqrt(share**2 * variance + terms.var(axis=0) / len(points))
        return share * (self.t1 + self.t0 * h) + terms.mean(axis=0), error

    @property
    def t0_error(self) -> float:
        """t₀ was released with t₁, at a scale that follows from the columns' variances."""
        return self.noise.t1 * sqrt(Scales.balance(self.layout, self._squared_eigenvectors @ self.eigenvalues).label)

    def _solve_query(self, query: Vector, h: Vector, b: Vector, weight: Weight, anchor: float) -> Solutions:
        p, multiplier = solve_one(self.eigenvalues, h, b, self.radius, self._guess)
        moved = b + self._correction(query, self.eigenvectors @ p, weight, anchor) @ self.eigenvectors
        p, multiplier = solve_one(self.eigenvalues, h, moved, self.radius, multiplier)
        return Solutions(p[None], np.array([multiplier]))

    def _with_errors(self, H: Matrix, solutions: Solutions, anchors: Vector) -> PlaneAnswers:
        p, noise = solutions.values, self.noise
        shape = error_shape(self.eigenvalues, self.eigenvectors, self._squared_eigenvectors, H, solutions)
        along = np.square(np.einsum("ij,ij->i", H, p) + anchors)  # the plane's label at the mean
        variance = noise.t1**2 + noise.s2**2 * np.einsum("ij,ij->i", p, p) + noise.s1**2 * along
        return PlaneAnswers(p @ self.eigenvectors.T, noise.calibration * np.sqrt(shape * variance[:, None]))

    def _corrections(self, queries: Matrix, start: Matrix, weight: Weight, anchors: Vector) -> Matrix:
        """g for each query."""
        measured = queries * self.layout.metric
        squared = self._norms - 2 * (measured @ self._points.T) + (measured * queries).sum(axis=1)[:, None]
        local = weight(np.sqrt(np.maximum(squared, 0.0))) * self.reference.inverse_weight
        mean = local.mean(axis=1)[:, None]
        local /= np.where(mean > 0, mean, 1.0)
        local -= mean > 0
        offset = (np.einsum("ij,ij->i", start, queries) - anchors)[:, None]
        local *= self.reference.labels - start @ self._points.T + offset
        return np.asarray((local @ self._points - local.sum(axis=1)[:, None] * queries) / len(self._points))

    def _correction(self, query: Vector, start: Vector, weight: Weight, anchor: float) -> Vector:
        """g for one query."""
        onto, back = self._maps
        measured = self.layout.metric * query
        squared = self._norms - 2 * (onto @ measured) + query @ measured
        local = weight(np.sqrt(np.maximum(squared, 0.0))) * self.reference.inverse_weight
        mean = float(local.mean())
        if not mean > 0:
            return np.zeros_like(query)
        local = (local / mean - 1) * (self.reference.labels - onto @ start + (start @ query - anchor))
        return np.asarray((back @ local - local.sum() * query) / len(local))
