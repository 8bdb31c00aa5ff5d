"""Explanations from released moments and their reference: two ball solves with one locality correction between them.

With h = μ - z, rows that count alike have A = C + hhᵀ and b = t₁ + t₀h. A local weight α changes the problem by what the reference says:
at the first solution φ₀ the gradient of the local loss differs from that of the uniform one by

    g = (1/N) Σ (αᵣ/mean α - 1)(yᵣ - φ₀·uᵣ)uᵣ,    uᵣ = xᵣ - z,

which is added to b before the second solve: one Newton-like step towards the local optimum. Errors of the reference only enter through this
difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.denoise import Estimate
from dpexplain.core.layout import Layout
from dpexplain.core.local_solve import error_shape, solve
from dpexplain.core.reference import Reference
from dpexplain.core.weights import Weight

BATCH = 64  # queries at a time: the (BATCH, N) arrays stay in cache


@dataclass(frozen=True, slots=True)
class NoiseLevels:
    """Standard errors of the moments, and how much larger or smaller the error of each value is than they alone say."""

    t1: float
    s2: float
    s1: float
    calibration: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """One row for each query."""

    values: Matrix
    errors: Matrix


@dataclass(frozen=True, slots=True, eq=False)
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
    _points: Matrix = field(init=False)
    _norms: Vector = field(init=False)
    _squared: Matrix = field(init=False)
    _rotated: Vector = field(init=False)

    def __post_init__(self) -> None:
        points = self.reference.points(self.layout)
        object.__setattr__(self, "_points", points)
        object.__setattr__(self, "_norms", np.square(points).sum(axis=1))
        object.__setattr__(self, "_squared", np.square(self.eigenvectors))
        object.__setattr__(self, "_rotated", self.t1 @ self.eigenvectors)

    @classmethod
    def of(cls, estimate: Estimate, reference: Reference, layout: Layout, radius: float, calibration: Vector) -> Solver:
        noise = NoiseLevels(estimate.spread.t1, estimate.spread.s2, estimate.spread.s1, calibration)
        return cls(estimate.mean, estimate.values, estimate.vectors, estimate.t0, estimate.t1, radius, noise, layout, reference)

    def answer(self, queries: Matrix, weight: Weight) -> Answers:
        """Explanations at encoded queries, (q, n)."""
        H = (self.mean - queries) @ self.eigenvectors
        B = self._rotated + self.t0 * H
        start = solve(self.eigenvalues, H, B, self.radius).values @ self.eigenvectors.T
        corrected = B + self._correction(queries, start, weight) @ self.eigenvectors
        solutions = solve(self.eigenvalues, H, corrected, self.radius)
        p, noise = solutions.values, self.noise
        shape = error_shape(self.eigenvalues, self.eigenvectors, self._squared, H, solutions)
        along = np.square(np.einsum("ij,ij->i", H, p))
        variance = noise.t1**2 + noise.s2**2 * np.einsum("ij,ij->i", p, p) + noise.s1**2 * along
        return Answers(p @ self.eigenvectors.T, noise.calibration * np.sqrt(shape * variance[:, None]))

    def _correction(self, queries: Matrix, start: Matrix, weight: Weight) -> Matrix:
        """g for each query."""
        squared = self._norms - 2 * (queries @ self._points.T) + np.square(queries).sum(axis=1)[:, None]
        local = weight(np.sqrt(np.maximum(squared, 0.0))) * self.reference.inverse_weight
        mean = local.mean(axis=1)[:, None]
        local /= np.where(mean > 0, mean, 1.0)
        local -= mean > 0
        offset = np.einsum("ij,ij->i", start, queries)[:, None]
        local *= self.reference.labels - start @ self._points.T + offset
        return np.asarray((local @ self._points - local.sum(axis=1)[:, None] * queries) / len(self._points))
