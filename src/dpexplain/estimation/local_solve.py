"""Solves many local problems at once: argmin over ‖φ‖ ≤ k of φᵀ(C + hhᵀ)φ - 2b·φ, with C factorised once.

In the eigenbasis of C the matrix is diag(w) + HHᵀ, inverted in O(n) by Sherman-Morrison. The multiplier λ ≥ 0 of the ball is the root of a
secular equation: 1/‖p(λ)‖ is nearly linear and concave in λ, so Newton lands left of the root from anywhere and then rises to it
monotonically (Moré & Sorensen 1983); a step below 0 means that the ball does not bind.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpexplain.core.arrays import Matrix, Vector

_MOST_STEPS = 100
_CLOSE = 4e-15


@dataclass(frozen=True, slots=True, eq=False)
class Solutions:
    """One row for each problem, in the eigenbasis; `multiplier` is 0 where the ball does not bind."""

    values: Matrix
    multiplier: Vector


def solve(eigenvalues: Vector, H: Matrix, B: Matrix, radius: float, guess: float | Vector = 0.0) -> Solutions:
    """The minimisers for each row of (H, B), all eigenvalues positive; `guess` is where the search for each multiplier starts."""
    multiplier = np.full(len(H), guess)
    values = np.empty_like(B)
    ceiling = _norms(B) / radius  # ‖p(λ)‖ ≤ ‖B‖/λ
    active = np.arange(len(H))
    for _ in range(_MOST_STEPS):
        current, h, b = multiplier[active], H[active], B[active]
        inverse = 1 / (eigenvalues + current[:, None])
        x, y = inverse * b, inverse * h
        gain = 1 + _dots(h, y)
        values[active] = p = x - y * (_dots(h, x) / gain)[:, None]
        scaled, length = inverse * p, _norms(p)
        slope = _dots(p, scaled) - np.square(_dots(h, scaled)) / gain
        excess = length / radius - 1
        moved = np.clip(current + excess * np.square(length) / np.maximum(slope, 1e-300), 0.0, ceiling[active])
        still = (np.abs(excess) > _CLOSE) & (moved != current)
        multiplier[active] = np.where(still, moved, current)
        active = active[still]
        if not active.size:
            break
    return Solutions(_scale_into_ball(values, radius), multiplier)


def solve_one(eigenvalues: Vector, h: Vector, b: Vector, radius: float, guess: float = 0.0) -> tuple[Vector, float]:
    """`solve` for a single problem, without the cost of rows: (values, multiplier)."""
    multiplier, ceiling = guess, sqrt(b @ b) / radius
    for _ in range(_MOST_STEPS):
        inverse = 1 / (eigenvalues + multiplier)
        y, x = inverse * h, inverse * b
        gain = 1 + h @ y
        p = x - y * (h @ x / gain)
        length = sqrt(p @ p)
        excess, scaled = length / radius - 1, inverse * p
        slope = float(p @ scaled - (h @ scaled) ** 2 / gain)
        moved = min(max(multiplier + excess * length**2 / max(slope, 1e-300), 0.0), ceiling)
        if abs(excess) <= _CLOSE or moved == multiplier:
            break
        multiplier = moved
    return p * min(1.0, radius / max(length, 1e-300)), float(multiplier)


def _dots(a: Matrix, b: Matrix) -> Vector:
    return np.asarray(np.einsum("ij,ij->i", a, b))


def _norms(rows: Matrix) -> Vector:
    return np.sqrt(_dots(rows, rows))


def _scale_into_ball(values: Matrix, radius: float) -> Matrix:
    """Scale rows back into the ball that rounding left a few ulps outside."""
    lengths = _norms(values)
    return np.asarray(values * np.minimum(1.0, radius / np.maximum(lengths, 1e-300))[:, None])


def error_shape(eigenvalues: Vector, vectors: Matrix, squared: Matrix, H: Matrix, solutions: Solutions) -> Matrix:
    """diag(K²) for each problem, K the inverse of its matrix restricted to the sphere's tangent where the ball binds.

    White noise of variance s² on b moves φ by a vector with these variances times s². K = diag(D) - k₁k₁ᵀ - k₂k₂ᵀ in the eigenbasis;
    `squared` holds the squares of `vectors`.
    """
    p, inverse = solutions.values, 1 / (eigenvalues + solutions.multiplier[:, None])
    y = inverse * H
    k1 = y / np.sqrt(1 + _dots(H, y))[:, None]
    q = inverse * p - k1 * _dots(k1, p)[:, None]
    k2 = q * ((solutions.multiplier > 0) / np.sqrt(np.maximum(_dots(p, q), 1e-300)))[:, None]
    s11, s22, s12 = (_dots(a, b)[:, None] for a, b in ((k1, k1), (k2, k2), (k1, k2)))
    a1, a2, b1, b2 = (np.array([k1, k2, inverse * k1, inverse * k2]).reshape(-1, p.shape[1]) @ vectors.T).reshape(4, *p.shape)
    plain = np.square(inverse) @ squared.T
    shape = plain - 2 * a1 * b1 - 2 * a2 * b2 + a1 * a1 * s11 + a2 * a2 * s22 + 2 * a1 * a2 * s12
    return np.asarray(np.maximum(shape, 1e-12 * plain))
