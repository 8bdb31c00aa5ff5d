"""How wrong a plane's local change may be: the part of a slope by which it differs near a record from the plane through all rows. Pure post-processing.

Let δ = φ - φ₀ be that change. Public points and records follow the model, but not the private rows' relations in detail, and the error of δ was
found to be a share of δ itself, of every column's own and of the size that is usual for the record. For a linear function d·φ of the slopes it adds

    a (d·δ)² + Σ dⱼ²(l uⱼ + (1 - n)vⱼ)n^(-1/4),    l = Σ wⱼδⱼ²,

w the columns' variances over their number: l is the mean square change in standardised columns at this record, and u = b over a column's variance, so
that columns of little variance, such as rare codes, may be wrong by more. n is the share of rows that count, so that a plane for all of them has no
such error. v is of numbers alone: o = Σ V² h²/λ over eigenvectors V of the covariance, h the share of a direction that is left to the plane through
all rows, times a part of the residuals' variance, for directions in which numbers nearly determine each other. A change along such a direction is not
seen at all. λ is not taken for smaller than a share of what the columns would add to it if they were uncorrelated.

v also has a part of e², e the difference between a number's slope in the plane through all rows and in the plane through the public points' own answers,
as far as noise does not explain it: where the points' margin of a number is wrong, as with spikes and heaps, their change near a record is wrong too.

Without a model to ask, nothing is known about δ: v then has a larger part of the residuals' variance in all directions, of codes too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout

OWN = 0.25  # a
NEARER = 0.25  # power of n by which what is usual is larger near a record
_USUAL = 0.1  # b
_NUMBERS, _CODES = 0.25, 0.04  # what numbers and codes have instead of b where no model was asked
_CLOSEST = 0.05  # the smallest share of its columns' variance that a direction is taken to have
_SMALLEST = 1e-6  # variance of a column
_UNSEEN, _UNASKED = 0.012, 0.25  # usual l, as a share of the residuals' variance: along unseen directions, and without a model
_APART = 0.6  # part of e²


@dataclass(frozen=True, slots=True, eq=False)
class LocalChange:
    """w, u and v of each column."""

    shares: Vector
    usual: Vector
    unseen: Vector

    @classmethod
    def of(
        cls,
        covariance: tuple[Vector, Matrix],
        left: Vector,
        layout: Layout,
        residual: float,
        *,
        asked: bool,
        apart: Vector | float = 0.0,
    ) -> LocalChange:
        """Built from eigenvalues and eigenvectors.

        `left` is h, `residual` the residuals' variance, `apart` e² of columns, `asked` whether a model was asked.
        """
        eigenvalues, vectors = covariance
        squared, numbers = np.square(vectors), np.zeros(layout.width)
        numbers[layout.numbers] = 1.0
        variance = np.maximum(squared @ eigenvalues, _SMALLEST)
        free = np.maximum(variance @ squared, 1e-300)  # a direction's variance if columns were uncorrelated
        each = np.square(left) * (numbers @ squared) / np.maximum(eigenvalues, _CLOSEST * free)
        tied = np.clip(1 - eigenvalues / free, 0.0, 1.0) ** 2 * ((numbers * variance) @ squared) / free
        unseen = _UNSEEN * numbers * (squared @ (tied * each))
        if not asked:
            unseen = _UNASKED * (numbers * (_NUMBERS / variance + squared @ each) + (1 - numbers) * _CODES / variance)
        return cls(variance / layout.width, _USUAL / variance, residual * unseen + _APART * numbers * apart)

    def variances(self, change: Matrix, share: Vector) -> Matrix:
        """(l u + (1 - n)v)n^(-1/4), one row a query."""
        usual = np.square(change) @ self.shares / share**NEARER
        return np.asarray(np.outer(usual, self.usual) + self.unseen_variances(share))

    def unseen_variances(self, share: Vector) -> Matrix:
        """The second part alone."""
        return np.outer((1 - share) / share**NEARER, self.unseen)
