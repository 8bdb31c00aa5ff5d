"""Regression of past explanations φ on their queries z, with leave-one-out errors.

Ridge regression chooses λ and measures itself by leave-one-out residuals, in closed form (exact with an unpenalised mean, Golub, Heath &
Wahba 1979), so nothing is fitted twice:

    φ_j ≈ φ̄ + (z_j - z̄)W,     residual_j = (φ_j - fitted_j)/(1 - h_j),     h the diagonal of the hat matrix.

It misses what matters most to the loss. All explanations of one model predict nearly the same label at the mean of the data: φ_j·(z̄ - z_j) hardly
varies, while its direction z̄ - z_j carries most of the curvature. So `LevelledRegression` moves a prediction along z̄ - z towards that common
level. A plane that also has an answer a_j at z_j, as one value more, predicts a_j + φ_j·(z̄ - z_j) there: its direction is (z̄ - z_j, 1).

Nothing depends on the unit of a column: with all points multiplied by s and all slopes divided by it, predictions are the same planes. So the
penalty is relative to the inputs, and slopes and answers, which have different units, are never added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy

from dpexplain.core.arrays import Matrix, Vector

# of the inputs' mean squared distance from their centre: no scale of its own
PENALTIES = (0.006, 0.02, 0.06, 0.2, 0.6, 2.0, 6.0, 20.0, 60.0)


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
        """Fit on at least two rows; λ is the one of `PENALTIES` with the smallest leave-one-out error, as a share of how values vary."""
        count = len(inputs)
        centre, mean = inputs.mean(axis=0), values.mean(axis=0)
        along, axes, eigenvalues = _principal(inputs - centre)
        offsets = values - mean
        targets = along.T @ offsets
        unit, slopes = float(eigenvalues.sum()) / count or 1.0, inputs.shape[1]
        penalties = [unit * penalty for penalty in PENALTIES]
        errors = {penalty: _leave_one_out(along, eigenvalues, offsets, targets, penalty, count) for penalty in penalties}
        best = min(errors, key=lambda penalty: _misfit(errors[penalty], offsets, slopes))
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
    """Ridge predictions, moved to a common label at the mean by one Kalman step: prior variances `loose` of the values, `tight` of the level."""

    ridge: Ridge
    level: float
    loose: Vector
    tight: float
    errors: Vector  # root mean square leave-one-out error of each value

    @classmethod
    def fit(cls, points: Matrix, values: Matrix) -> LevelledRegression:
        """Fit on at least two past explanations, one a row."""
        ridge = Ridge.fit(points, values)
        towards = _middle(ridge.centre - points, values.shape[1])
        levels = np.einsum("ij,ij->i", values, towards)
        level, tight = float(levels.mean()), float(levels.var()) + 1e-12
        loose = _variances(ridge.left_out, points.shape[1])
        seen = levels - np.einsum("ij,ij->i", ridge.left_out, towards)  # labels that the left-out predictions have at the mean
        moved = _towards(towards, loose, tight) * (level - seen)[:, None]
        return cls(ridge, level, loose, tight, np.sqrt(np.square(ridge.left_out - moved).mean(axis=0)))

    def predict(self, point: Vector) -> Vector:
        raw = self.ridge.predict(point)
        towards = _middle(self.ridge.centre - point, len(raw))
        return np.asarray(raw + _towards(towards, self.loose, self.tight) * (self.level - float(raw @ towards)))


def _middle(offsets: Matrix, width: int) -> Matrix:
    """The directions along which values give a label at the mean: the offsets, and 1 for an answer at the point where there is one."""
    if offsets.shape[-1] == width:
        return offsets
    return np.concatenate([offsets, np.ones((*offsets.shape[:-1], 1))], axis=-1)


def _towards(directions: Matrix, loose: Vector, tight: float) -> Matrix:
    """The Kalman gain of one observation φ·d = level for each direction d."""
    squared = (loose * np.square(directions)).sum(axis=-1, keepdims=True)
    return np.asarray(loose * directions / (squared + tight))


def _variances(errors: Matrix, slopes: int) -> Vector:
    """Mean squared error of each value: the same for all slopes, and that of the answer where there is one."""
    squares = np.square(errors).mean(axis=0)
    return np.concatenate([np.full(slopes, squares[:slopes].mean()), squares[slopes:]])


def _misfit(errors: Matrix, offsets: Matrix, slopes: int) -> float:
    """Squared errors of slopes, and of answers, each as a share of how much they vary."""
    parts = (slice(0, slopes), slice(slopes, None))
    return sum(float(np.square(errors[:, part]).sum()) / (float(np.square(offsets[:, part]).sum()) or 1.0) for part in parts)


def _principal(inputs: Matrix) -> tuple[Matrix, Matrix, Vector]:
    """(inputs along their principal axes, the axes, eigenvalues), by the smaller of the two Gram matrices."""
    rows, columns = inputs.shape
    gram = inputs.T @ inputs if rows > columns else inputs @ inputs.T
    eigenvalues, vectors = scipy.linalg.eigh(gram)
    keep = eigenvalues > max(float(eigenvalues[-1]), 1e-300) * 1e-12
    eigenvalues, vectors = eigenvalues[keep], vectors[:, keep]
    axes = vectors if rows > columns else inputs.T @ vectors / np.sqrt(eigenvalues)
    return inputs @ axes, axes, eigenvalues


def _leave_one_out(along: Matrix, eigenvalues: Vector, offsets: Matrix, targets: Matrix, penalty: float, count: int) -> Matrix:
    shrunk = 1 / (eigenvalues + penalty)
    hat = np.square(along) @ shrunk + 1 / count
    return np.asarray((offsets - (along * shrunk) @ targets) / (1 - np.minimum(hat, 0.999))[:, None])
