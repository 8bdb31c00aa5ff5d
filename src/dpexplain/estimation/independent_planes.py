"""Planes fitted to a model's answers at points whose features are drawn independently of each other, as LIME draws them. Pure post-processing.

Features have the margins of released records. Where features are correlated in the data, a plane fitted to the records attributes effects of one
to the other. Here each has its own effect, which is what SHAP with absent features, deletion and a change of one value measure.

With s ∝ α, the local centre m = Σ s x, u = x - m and D the columns' variances:  (A + D/n)φ = Σ s y u,  A = Σ s u uᵀ,  n = 1/Σ s².

Errors. Points: V = Σ s² r² uuᵀ of the residuals r, as if points were drawn at random, which is more than the low-discrepancy sequence errs. Noise:
a margin that is wrong by its standard error e tilts the points' weights by e(x_j - p_j)/var_j, which moves Σ s r u by Σ s r u times that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.core.weights import Weight
from dpexplain.estimation.error_parts import APART, COMMON, NOISE, SAMPLING, no_parts
from dpexplain.estimation.planes import Average, FittedPlanes, Planes, Variances, assemble, directions
from dpexplain.estimation.reference import Codes, sobol

POINTS = 1 << 15
_SMALLEST = 1e-6  # variance of a column

Floats = NDArray[np.float32]


def independent_codes(codes: Codes, weights: Vector, points: int = POINTS) -> Codes:
    """Codes with the weighted margins of the given ones, each attribute drawn by itself; (attributes, points)."""
    uniforms, found = sobol(len(codes), points), np.empty((len(codes), points), dtype=np.int64)
    for a, code in enumerate(codes):
        values, places = np.unique(code, return_inverse=True)
        below = np.cumsum(np.bincount(places, weights=weights))
        found[a] = values[np.minimum(np.searchsorted(below / below[-1], uniforms[a]), len(values) - 1)]
    return found


@dataclass(frozen=True, eq=False)
class IndependentPlanes:
    """Points of independent features with the model's labels there, and the average record that contributions are compared with."""

    points: Matrix
    labels: Vector
    average: Average
    layout: Layout

    @cached_property
    def _points(self) -> Floats:
        return self.points.astype(np.float32)

    @cached_property
    def _norms(self) -> Vector:
        return np.asarray((np.square(self.points) * self.layout.metric).sum(axis=1))

    @cached_property
    def _variance(self) -> Vector:
        return np.asarray(np.maximum(self.points.var(axis=0), _SMALLEST))

    @cached_property
    def _tilts(self) -> Floats:
        """What a standard error of each margin changes about the points' log weights, (points, columns)."""
        error = self.average.error
        steepness = error / np.maximum(self._variance, error)
        return np.asarray((self.points - self.points.mean(axis=0)) * steepness, dtype=np.float32)

    def fit(self, queries: Matrix, weight: Weight, anchors: Vector | None = None, radius: float | None = None) -> Planes:
        """The planes at encoded queries, (q, n); neither anchored nor held in a ball, so the last two are not used."""
        del anchors, radius
        n, found = queries.shape[1], [self._solve_query(query, weight) for query in queries]
        values = np.array([one[0] for one in found]).reshape(queries.shape)
        answer, share = (np.array([one[i] for one in found]) for i in (1, 2))
        sizes = (n, n, self.layout.attributes + 2)
        noise, points, added = (np.array([one[3][i] for one in found]).reshape(-1, size) for i, size in enumerate(sizes))
        parts = no_parts(len(queries))
        parts[:, COMMON, NOISE], parts[:, APART, SAMPLING] = noise.mean(axis=1), points.mean(axis=1)
        capped = np.zeros(len(queries), dtype=bool)
        fitted = FittedPlanes(values, answer, share, capped)
        return assemble(queries, fitted, Variances(noise, points, added, parts), self.average, self.layout)

    def _solve_query(self, query: Vector, weight: Weight) -> tuple[Vector, float, float, tuple[Vector, Vector, Vector]]:
        """(slopes, answer, share of effective points, variances)."""
        measured = self.layout.metric * query
        distance = np.sqrt(np.maximum(self._norms - 2 * (self.points @ measured) + query @ measured, 0.0))
        local = weight(distance)
        local = local if float(local.sum()) > 0 else np.ones_like(distance)
        s = local / local.sum()
        few = float(np.square(s).sum())
        centre = s @ self.points
        u = self._points - centre.astype(np.float32)
        scaled, level = u * s[:, None].astype(np.float32), float(s @ self.labels)
        A = (scaled.T @ u).astype(np.float64) + few * np.diag(self._variance)
        K = np.linalg.inv(A)
        values = K @ (scaled.T @ (self.labels - level).astype(np.float32)).astype(np.float64)
        residuals = self.labels - level - u @ values.astype(np.float32)
        answer = level + float((query - centre) @ values)
        return values, answer, 1 / (few * len(s)), self._variances(query, query - centre, (s * residuals), u, K)

    def _variances(self, query: Vector, towards: Vector, pulls: Vector, u: Floats, K: Matrix) -> tuple[Vector, Vector, Vector]:
        """The variances of slopes by noise, of slopes by points, and of contributions with base and answer."""
        n = len(query)
        extended = np.column_stack([u, np.ones(len(u), dtype=np.float32)]) * pulls[:, None].astype(np.float32)
        drawn, moved = ((part.T @ extended).astype(np.float64) for part in (extended, self._tilts))
        across = np.zeros((n + 1, self.layout.attributes + 2))
        across[:n] = K @ directions(query - self.average.values, towards, self.layout)
        across[n, -2:] = 1.0
        noise, points = np.square(moved[:, :n] @ K).sum(axis=0), np.einsum("ij,jk,ik->i", K, drawn[:n, :n], K)
        added = np.einsum("ij,ik,kj->j", across, drawn, across) + np.square(moved @ across).sum(axis=0)
        return noise, np.maximum(points, 0.0), np.maximum(added, 0.0)
