"""Many local problems at once: argmin over ‖φ‖ ≤ k of φᵀ(C + hhᵀ)φ - 2b·φ, with C factorised once.

In the eigenbasis of C the matrix is diag(w) + HHᵀ, inverted in O(n) by Sherman-Morrison. The multiplier λ ≥ 0 of the ball is the root of a
secular equation: 1/‖p(λ)‖ is nearly linear and concave in λ, so Newton from the left converges monotonically (Moré & Sorensen 1983).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpexplain.core.arrays import Matrix, Vector

_MOST_STEPS = 100
_CLOSE = 4e-15


@dataclass(frozen=True, slots=True, eq=False)
class Solutions:
    """One row for each problem, in the eigenbasis; `multiplier` is 0 where the ball does not bind."""

    values: Matrix
    multiplier: Vector


def solve(eigenvalues: Vector, H: Matrix, B: Matrix, radius: float) -> Solutions:
    """The minimisers for each row of (H, B), all eigenvalues positive."""
    multiplier = np.zeros(len(H))
    values = _inverse_times(eigenvalues, multiplier, H, B)
    active = np.flatnonzero(_norms(values) > radius)
    ceiling = _norms(B) / radius  # ‖p(λ)‖ ≤ ‖B‖/λ
    for _ in range(_MOST_STEPS):
        if not active.size:
            break
        p, rows = values[active], active
        length = _norms(p)
        slope = np.einsum("ij,ij->i", p, _inverse_times(eigenvalues, multiplier[rows], H[rows], p))
        step = (length / radius - 1) * np.square(length) / slope
        moved = np.clip(multiplier[rows] + step, 0.0, ceiling[rows])
        values[rows] = _inverse_times(eigenvalues, moved, H[rows], B[rows])
        still = (np.abs(length / radius - 1) > _CLOSE) & (moved != multiplier[rows])
        multiplier[rows] = moved
        active = rows[still]
    return Solutions(_inside(values, radius), multiplier)


def _inverse_times(eigenvalues: Vector, multiplier: Vector, H: Matrix, B: Matrix) -> Matrix:
    """(diag(w) + λI + HHᵀ)⁻¹B, row by row."""
    inverse = 1 / (eigenvalues + multiplier[:, None])
    x, y = inverse * B, inverse * H
    along = np.einsum("ij,ij->i", H, x) / (1 + np.einsum("ij,ij->i", H, y))
    return np.asarray(x - y * along[:, None])


def _norms(rows: Matrix) -> Vector:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _inside(values: Matrix, radius: float) -> Matrix:
    """Rounding may leave a row a few ulps outside the ball."""
    lengths = _norms(values)
    return np.asarray(values * np.minimum(1.0, radius / np.maximum(lengths, 1e-300))[:, None])


def error_shape(eigenvalues: Vector, vectors: Matrix, squared: Matrix, H: Matrix, solutions: Solutions) -> Matrix:
    """diag(K²) for each problem, K the inverse of its matrix restricted to the sphere's tangent where the ball binds.

    White noise of variance s² on b moves φ by a vector with these variances times s². K = diag(D) - k₁k₁ᵀ - k₂k₂ᵀ in the eigenbasis;
    `squared` holds the squares of `vectors`.
    """
    p, inverse = solutions.values, 1 / (eigenvalues + solutions.multiplier[:, None])
    y = inverse * H
    k1 = y / np.sqrt(1 + np.einsum("ij,ij->i", H, y))[:, None]
    q = inverse * p - k1 * np.einsum("ij,ij->i", k1, p)[:, None]
    bends = (solutions.multiplier > 0) / np.sqrt(np.maximum(np.einsum("ij,ij->i", p, q), 1e-300))
    k2 = q * bends[:, None]
    s11, s22, s12 = (np.einsum("ij,ij->i", a, b)[:, None] for a, b in ((k1, k1), (k2, k2), (k1, k2)))
    a1, a2 = k1 @ vectors.T, k2 @ vectors.T
    b1, b2 = (inverse * k1) @ vectors.T, (inverse * k2) @ vectors.T
    plain = np.square(inverse) @ squared.T
    shape = plain - 2 * a1 * b1 - 2 * a2 * b2 + a1 * a1 * s11 + a2 * a2 * s22 + 2 * a1 * a2 * s12
    return np.asarray(np.maximum(shape, 1e-12 * plain))
