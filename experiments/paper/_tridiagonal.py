"""Sums of thousands of columns, turned so that A has three diagonals: a step then takes as long as its noise does, and so does the optimum.

Noise and ball look the same from all sides, so Algorithm 1 is the same in any orthonormal basis, and so are losses and cosines. Eigenvectors, which
`_exact.py` takes, would need three times as long.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, solveh_banded
from scipy.optimize import brentq

from experiments.paper._cells import compiled

ROUNDING = 4 * float(np.finfo(np.float32).eps)  # of A, by its largest entry: a smaller ν means nothing


class Tridiagonal:
    """A symmetric matrix by its diagonal and what stands beside it."""

    __array_ufunc__ = None  # values @ this is __rmatmul__, not numpy's

    def __init__(self, diagonal, beside):
        self.diagonal, self.beside = np.asarray(diagonal, float), np.asarray(beside, float)

    @classmethod
    def turn(cls, A, b):
        """(A, b) in a basis where A has three diagonals, from A's lower triangle. In single precision, like the products that A is made of."""
        room, _ = lapack.ssytrd_lwork(len(b), lower=1)
        turned, diagonal, beside, scales, info = lapack.ssytrd(np.asarray(A, np.float32, order="F"), lower=1, lwork=int(room))
        assert info == 0
        # Q is the product of reflections, each kept below its column's second entry.
        moved = np.array(b, float)
        _reflect(turned, scales, moved)
        return cls(diagonal, beside), moved

    def __rmatmul__(self, values):
        found = values * self.diagonal
        found[..., 1:] += values[..., :-1] * self.beside
        found[..., :-1] += values[..., 1:] * self.beside
        return found

    def minimise_in_ball(self, b):
        """The minimiser of φᵀAφ - 2b·φ over the ball of radius 1: (A + ν)⁻¹b with the smallest ν ≥ 0 that holds it there."""
        bands = np.zeros((2, len(b)))
        bands[1, :-1] = self.beside

        def answer(nu):
            bands[0] = self.diagonal + nu
            return solveh_banded(bands, b, lower=True)

        least = ROUNDING * float(np.abs(self.diagonal).max())
        if np.linalg.norm(answer(least)) <= 1:
            return answer(least)
        most = float(np.linalg.norm(b))
        return answer(brentq(lambda nu: float(np.linalg.norm(answer(nu))) - 1, least, most, xtol=1e-300, rtol=1e-13))

    def descend(self, b, start, sigma, rate, noise):
        """As `_lanes.descend`."""
        phi = np.array(start, float)
        for lane, each in enumerate(noise):
            _walk(self.diagonal, self.beside, b, phi[lane], sigma[lane], rate[lane], each)
        return phi


@compiled
def _reflect(turned, scales, vector):  # pragma: no cover
    """Qᵀ times the vector, in place, by reflections I - τvvᵀ with v = (0, …, 0, 1, turned[k+2:, k])."""
    for k in range(len(scales)):
        along = vector[k + 1]
        for i in range(k + 2, len(vector)):
            along += turned[i, k] * vector[i]
        along *= scales[k]
        vector[k + 1] -= along
        for i in range(k + 2, len(vector)):
            vector[i] -= along * turned[i, k]


@compiled
def _walk(diagonal, beside, target, phi, sigma, rate, noise):  # pragma: no cover
    """The steps of one lane, in place."""
    last, gradient = len(phi) - 1, np.empty(len(phi))
    for t in range(len(noise)):
        step, square = rate / np.sqrt(t + 1.0), 0.0
        for j in range(last + 1):
            gradient[j] = 2 * (diagonal[j] * phi[j] - target[j]) + sigma * noise[t, j]
        for j in range(last):
            gradient[j] += 2 * beside[j] * phi[j + 1]
            gradient[j + 1] += 2 * beside[j] * phi[j]
        for j in range(last + 1):
            phi[j] -= step * gradient[j]
            square += phi[j] * phi[j]
        if square > 1:
            length = np.sqrt(square)
            for j in range(last + 1):
                phi[j] /= length
