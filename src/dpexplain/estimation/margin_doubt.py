"""How wrong the model's slopes at public points may be because numbers are distributed otherwise among the rows. Pure post-processing.

Public points have the released means and variances of numbers, and margins that are known in part (`estimation/margins.py`). Those of rows differ:
longer tails, smaller spikes.
Let q and p be the densities of rows and points, and q/p - 1 = a₃h₃(x) + a₄h₄(x), h₃ and h₄ the third and fourth orthonormal polynomials of a number x
with mean μ and variance v. By itself the number's slope among the rows then differs from that at the points by

    Σₖ aₖ E_p hₖ(x) r (x - μ) / v,

r the residuals of the model's answers at the points. A model that is straight in a number has no such residuals, so that the margin does not matter.
How large a₃ and a₄ usually are was measured on generated tables: they grow with the skewness of the Beta margin.
"""

from __future__ import annotations

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Indices

_THIRD = 0.02, 0.15  # standard deviation of a₃: without skewness, and for each unit of it
_FOURTH = 0.2, 0.2  # … of a₄
_STILL = 1e-9  # variance below which a number is the same at all points
_NO_MORE = 1e-6  # length of a polynomial below which the points take too few values to have it


def margin_variances(points: Matrix, residuals: Vector, share: Vector, numbers: Indices) -> Vector:
    """The variance that other margins give to each column's slope; 0 for codes. `share` are the points' weights, of sum one."""
    found, columns = np.zeros(points.shape[1]), points[:, numbers]
    centre = share @ columns
    variance = share @ np.square(columns) - np.square(centre)
    moving = variance > _STILL
    z = (columns[:, moving] - centre[moving]) / np.sqrt(variance[moving])
    third, fourth = _polynomials(z, share)
    skewness, pull = np.abs(share @ (z * z * z)), (share * residuals)[:, None] * z
    for values, (plain, skewed) in ((third, _THIRD), (fourth, _FOURTH)):
        found[numbers[moving]] += np.square((plain + skewed * skewness) * (pull * values).sum(axis=0)) / variance[moving]
    return found


def _polynomials(z: Matrix, share: Vector) -> tuple[Matrix, Matrix]:
    """h₃ and h₄ of standardised columns."""
    basis, power = [np.ones_like(z), z], z
    for _ in range(3):
        power = power * z
        rest = power
        for one in basis:
            rest = rest - one * (share @ (rest * one))
        length = np.sqrt(share @ np.square(rest))
        basis.append(np.where(length > _NO_MORE, rest / np.maximum(length, _NO_MORE), 0.0))
    return basis[3], basis[4]
