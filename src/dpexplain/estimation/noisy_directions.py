"""Directions of a covariance whose whole variance may be noise, as where numbers nearly determine each other. Pure post-processing.

Noise N of size e in each entry moves the eigenvalue λ of a direction v by vᵀNv, whose variance is e²(2 - Σ v⁴), and mixes it with other directions that
noise may have made: each adds e². So s, how far λ is moved, is about e√K for K directions without variance, and at most e√2 for one that is
alone, however many columns there are.

Two explanations compete. Numbers determine each other and noise made all of λ: its likelihood is m = exp(-λ²/2s²). Or the columns
vary by a share of what they would add to λ if they were uncorrelated, a, and every share is equally likely: its likelihood is

    ∫ exp(-(λ - xa)²/2s²) dx = √(2π) s/a (Φ((a - λ)/s) - Φ(-λ/s)),    0 ≤ x ≤ 1.

Either is equally likely beforehand. With probability p of the first, a slope's error is one of two, and two standard errors are to cover it in
95.45 % of all cases: of the mean square h of a slope that nothing shows they have to count (z/2)² h, z the quantile of the normal distribution at
1 - 0.0455/2p. Where p is below 4.55 % that is nothing, and for p = 1 it is all of h.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import pi, sqrt

import numpy as np
import scipy

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Indices

_OUTSIDE = 0.0455  # P(|N| > 2)
_ROUNDS = 5  # s depends on how many directions noise may have made, which depends on s


@dataclass(frozen=True, eq=False)
class NoisyDirections:
    """Eigenvalues and eigenvectors of a covariance, the standard error of its entries, and which columns are numbers.

    Those of several estimates have one more axis, the first.
    """

    eigenvalues: Vector
    vectors: Matrix
    error: Vector | float
    numbers: Indices

    @cached_property
    def uncorrelated_variance(self) -> tuple[Vector, Vector]:
        """The variance of each direction if columns were uncorrelated, and what numbers add to it."""
        squared = np.square(self.vectors)
        apart = squared @ self.eigenvalues[..., None] * squared
        return np.maximum(apart.sum(axis=-2), 1e-300), apart[..., self.numbers, :].sum(axis=-2)

    @cached_property
    def collinearity(self) -> Vector:
        """How nearly a direction's numbers determine each other: 0 where they vary freely, 1 where the direction hardly varies at all."""
        total, numbers = self.uncorrelated_variance
        return np.asarray(numbers / total * np.clip(1 - self.eigenvalues / total, 0.0, 1.0) ** 2)

    @property
    def largest_shift(self) -> Vector:
        """How far noise moves eigenvalues at most: if it had made all of them."""
        return np.asarray(self.error)[..., None] * sqrt(self.vectors.shape[-1])

    @cached_property
    def shift(self) -> Vector:
        """s: how far noise moves each eigenvalue."""
        square = np.square(np.asarray(self.error))[..., None]
        alone = square * (2 - np.square(np.square(self.vectors)).sum(axis=-2))
        found = np.broadcast_to(self.largest_shift, self.eigenvalues.shape)
        for _ in range(_ROUNDS):
            made = self._likelihood(found)
            found = np.sqrt(alone + square * (made.sum(axis=-1, keepdims=True) - made))
        return np.asarray(found)

    @cached_property
    def probability(self) -> Vector:
        """p: how likely noise made all of each eigenvalue."""
        shift, total = np.maximum(self.shift, 1e-100), self.uncorrelated_variance[0]
        inside = scipy.special.ndtr((total - self.eigenvalues) / shift) - scipy.special.ndtr(-self.eigenvalues / shift)
        made, free = self._likelihood(shift), sqrt(2 * pi) * shift / total * inside
        return np.asarray(made / np.maximum(made + free, 1e-300))

    @cached_property
    def counted_share(self) -> Vector:
        """(z/2)²: the share of the mean square of a slope that nothing shows which an error has to count."""
        inside = 1 - _OUTSIDE / 2 / np.maximum(self.probability, _OUTSIDE)
        return np.asarray(np.square(scipy.special.ndtri(inside) / 2))

    def _likelihood(self, shift: Vector) -> Vector:
        """m."""
        return np.asarray(np.exp(-np.square(self.eigenvalues / np.maximum(shift, 1e-100)) / 2))
