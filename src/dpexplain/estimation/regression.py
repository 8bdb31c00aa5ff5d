"""Regression of past explanations φ on their queries z, with leave-one-out errors.

Ridge regression chooses λ and measures itself by leave-one-out residuals, in closed form (exact with an unpenalised mean, Golub, Heath &
Wahba 1979), so nothing is fitted twice:

    φ_j ≈ φ̄ + (z_j - z̄)W,     residual_j = (φ_j - fitted_j)/(1 - h_j),     h the diagonal of the hat matrix.

It misses what matters most to the loss. All explanations of one model say nearly the same label for the middle of the data: φ_j·(z̄ - z_j) hardly
varies, while its direction z̄ - z_j carries most of the curvature. So `LevelledRegression` moves a prediction along z̄ - z towards that common
level. A plane that has found its answer a_j at z_j too, as one value more, says a_j + φ_j·(z̄ - z_j) there: its direction is (z̄ - z_j, 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy

from dpexplain.core.arrays import Matrix, Vector

PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True, slots=True, eq=False)
class Ridge:
    """A fitted ridge regression x ↦ values, with its leave-one-out errors."""

    centre: Vector
    mean: Vector
    axes: Matrix  # principal directions of the inputs, one a column
    eigenvalues: Vector  # the inputs' sum of squares along each
    penalty: float  # λ
    targets: Matrix  # inputs along the axes, times values
    left_out: Matrix  # leave-one-out errors, one a row

    @classmethod
    def fit(cls, inputs: Matrix, values: Matrix) -> Ridge:
        """Fit on at least two rows; λ is the one of `PENALTIES` with the smallest leave-one-out error."""
        count = len(inputs)
        centre, mean = inputs.mean(axis=0), values.mean(axis=0)
        along, axes, eigenvalues = _principal(inputs - centre)
        offsets = values - mean
        targets = along.T @ offsets
        errors = {penalty: _left_out(along, eigenvalues, offsets, targets, penalty, count) for penalty in PENALTIES}
        best = min(errors, key=lambda penalty: float(np.square(errors[penalty]).sum()))
        return cls(centre, mean, axes, eigenvalues, best, targets, errors[best])

    def predict(self, point: Vector) -> Vector:
        return np.asarray(self.mean + ((point - self.centre) @ self.axes / self._damped_eigenvalues) @ self.targets)

    def spread(self, point: Vector) -> float:
        """Expected error of a prediction at `point` relative to the average one: √((1 + h(x))/(1 + mean h))."""
        along = (point - self.centre) @ self.axes
        count = len(self.left_out)
        here = 1 / count + float(np.square(along) @ (1 / self._damped_eigenvalues))
        average = (1 + float(self.eigenvalues @ (1 / self._damped_eigenvalues))) / count
        return sqrt((1 + here) / (1 + average))

    @property
    def _damped_eigenvalues(self) -> Vector:
        return self.eigenvalues + self.penalty


@dataclass(frozen=True, slots=True, eq=False)
class LevelledRegression:
    """Ridge predictions that agree on the label in the middle, by one Kalman step: prior variance `loose` a value, the level's `tight`."""

    ridge: Ridge
    level: float
    loose: float
    tight: float
    errors: Vector  # root mean square leave-one-out error of each value

    @classmethod
    def fit(cls, points: Matrix, values: Matrix) -> LevelledRegression:
        """Fit on at least two past explanations, one a row."""
        ridge = Ridge.fit(points, values)
        towards = _middle(ridge.centre - points, values.shape[1])
        levels = np.einsum("ij,ij->i", values, towards)
        level, tight = float(levels.mean()), float(levels.var()) + 1e-12
        loose = float(np.square(ridge.left_out).mean())
        seen = levels - np.einsum("ij,ij->i", ridge.left_out, towards)  # what the left-out predictions say in the middle
        moved = _towards(towards, loose, tight) * (level - seen)[:, None]
        return cls(ridge, level, loose, tight, np.sqrt(np.square(ridge.left_out - moved).mean(axis=0)))

    @property
    def residual(self) -> float:
        """Root mean square length of a leave-one-out error."""
        return float(np.linalg.norm(self.errors))

    def predict(self, point: Vector) -> Vector:
        raw = self.ridge.predict(point)
        towards = _middle(self.ridge.centre - point, len(raw))
        return np.asarray(raw + _towards(towards, self.loose, self.tight) * (self.level - float(raw @ towards)))


def _middle(offsets: Matrix, width: int) -> Matrix:
    """The directions in which values say a label for the middle: the offsets, and 1 for an answer at the point where there is one."""
    if offsets.shape[-1] == width:
        return offsets
    return np.concatenate([offsets, np.ones((*offsets.shape[:-1], 1))], axis=-1)


def _towards(directions: Matrix, loose: float, tight: float) -> Matrix:
    """The Kalman gain of one observation φ·d = level for each direction d."""
    squared = np.square(directions).sum(axis=-1, keepdims=True)
    return np.asarray(loose * directions / (loose * squared + tight))


def _principal(inputs: Matrix) -> tuple[Matrix, Matrix, Vector]:
    """(inputs along their principal axes, the axes, eigenvalues), by the smaller of the two Gram matrices."""
    rows, columns = inputs.shape
    gram = inputs.T @ inputs if rows > columns else inputs @ inputs.T
    eigenvalues, vectors = scipy.linalg.eigh(gram)
    keep = eigenvalues > max(float(eigenvalues[-1]), 1e-300) * 1e-12
    eigenvalues, vectors = eigenvalues[keep], vectors[:, keep]
    axes = vectors if rows > columns else inputs.T @ vectors / np.sqrt(eigenvalues)
    return inputs @ axes, axes, eigenvalues


def _left_out(along: Matrix, eigenvalues: Vector, offsets: Matrix, targets: Matrix, penalty: float, count: int) -> Matrix:
    shrunk = 1 / (eigenvalues + penalty)
    hat = np.square(along) @ shrunk + 1 / count
    return np.asarray((offsets - (along * shrunk) @ targets) / (1 - np.minimum(hat, 0.999))[:, None])
