"""Newton steps for labels y = tanh(β₀ + β·x) fitted to label moments: the Hessian H = mean (1 - y²) z zᵀ + ridge, z = (1, x).

H takes N n² operations where the gradient takes N n. With many columns one H therefore serves several steps (the chord method): the steps still
end where the gradient is 0, only their number grows.
"""

from __future__ import annotations

import numpy as np
import scipy

from dpexplain.core.arrays import Matrix, Vector

_WORTH = 0.3  # what a step with an old Hessian has to reduce the decrement g·H⁻¹g to; otherwise the next one gets a new Hessian


class LabelNewton:
    """A new Hessian for each step."""

    most_steps, close = 30, 1e-9  # the decrement g·H⁻¹g at which the last step was taken

    def __init__(self, Z: Matrix, ridge: Vector) -> None:
        self._Z, self._ridge = Z, ridge

    def step(self, labels: Vector, gradient: Vector) -> Vector:
        """H⁻¹g at the labels."""
        root = self._Z * np.sqrt((1 - labels * labels) / len(labels))[:, None]
        hessian = root.T @ root  # a matrix times its own transpose: half the operations
        hessian.flat[:: len(hessian) + 1] += self._ridge
        found = np.linalg.solve(hessian, gradient)  # of some ten columns: checks of other solvers take longer than it does
        return np.asarray(found, dtype=np.float64)


class ReusedLabelNewton(LabelNewton):
    """A Hessian, summed in single precision, for as long as its steps make quick progress; gradients stay in double precision."""

    most_steps, close = 60, 1e-11  # old Hessians leave more to do after a step

    def __init__(self, Z: Matrix, ridge: Vector) -> None:
        super().__init__(Z, ridge)
        self._single = Z.astype(np.float32)
        self._factor: tuple[Matrix, bool] | None = None
        self._decrement = 0.0

    def step(self, labels: Vector, gradient: Vector) -> Vector:
        if self._factor is not None:
            found = np.asarray(scipy.linalg.cho_solve(self._factor, gradient))
            before, self._decrement = self._decrement, float(gradient @ found)
            if self._decrement <= _WORTH * before:
                return found
        self._factor = scipy.linalg.cho_factor(self._hessian(labels), lower=True)
        found = np.asarray(scipy.linalg.cho_solve(self._factor, gradient))
        self._decrement = float(gradient @ found)
        return found

    def _hessian(self, labels: Vector) -> Matrix:
        root = self._single * np.sqrt((1 - labels * labels) / len(labels)).astype(np.float32)[:, None]
        hessian = (root.T @ root).astype(np.float64)  # a matrix times its own transpose: half the operations
        hessian.flat[:: len(hessian) + 1] += self._ridge
        return hessian
