"""A public choice for a plane a + φ·u that is free at the query: how noise is shared between a and φ.

One record's gradient is (2αru, s·2αr) for any public constant s; noise is then σ on each slope and σ/s on a. A larger s makes a
more accurate and the sensitivity 2 sup α√(d² + s²)|r| larger. The total variance, sup α²(d² + s²) · (‖shape‖² + t²/s²), is smallest at `constant_for`;
for the stable weight that is s = √(rt/‖shape‖), r its knee. t is that of `intercept_unit`. `docs/interactive.md` has what other choices give.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, log

import numpy as np
import scipy

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Vector
from dpexplain.core.weights import DEFAULT_WEIGHT, Weight

# |φ·u + a - y| of the record that moves a gradient most, as noise is planned for; what is charged does not depend on it
TYPICAL_RESIDUAL = 1.5
_SMALLEST, _LARGEST = 0.01, 3.0  # in units of t


def intercept_unit(weight: Weight, within: float) -> float:
    """t: a descent's last coordinate is a/t, so that steps that suit the slopes suit a as well. It has the unit of distances: where α(d)d is
    largest, in units of the default weight's; or half the distance of the farthest record, if that is less."""
    return min(weight.peak / DEFAULT_WEIGHT.peak, within / 2)


def constant_for(weight: Weight, shape: Vector, within: float = inf) -> float:
    """The s with the least total noise variance, for noise of this shape on the slopes."""
    return _constant(weight, round(float(np.linalg.norm(shape)), 9), within)


@lru_cache(maxsize=256)
def _constant(weight: Weight, shape: float, within: float) -> float:
    unit = intercept_unit(weight, within)

    def variance(exponent: float) -> float:
        s = exp(exponent)
        return log(sensitivity.free_pull(weight, s, within)) + log(shape**2 + (unit / s) ** 2) / 2

    found = scipy.optimize.minimize_scalar(
        variance, bounds=(log(_SMALLEST * unit), log(_LARGEST * unit)), method="bounded", options={"xatol": 1e-3}
    )
    return unit * float(f"{exp(float(found.x)) / unit:.3g}")
