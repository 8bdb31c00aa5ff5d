"""Removes directions that rows hardly determine from an answer where its component along them is no larger than noise. Post-processing.

Where z has a category, rows of other categories differ from it by e_j - e_z, whose entries sum to 0: the sum over a one-hot block is determined only by
rows without any category, and most tables have none. A descent then walks at random along it. Its noise is known: with steps η_t and shares ρ_t, the
mean over a block of K columns has standard deviation √(Σ η_t²ρ_t²)·σ‖shape‖/K.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.layout import is_code
from dpexplain.mechanisms.gradient import Gradient, ShapedNoise

_SIGNIFICANT = 3.0  # standard deviations


def remove_idle(state: Vector, gradient: Gradient, sigma: float, steps: Vector, shares: Vector) -> Vector:
    """The state with the mean of each one-hot block taken out, unless it is more than noise on the mean gradient, `sigma`, would make there."""
    walked = sigma * sqrt(float(np.square(steps * shares).sum()))
    found, point = state.copy(), gradient.local.point
    shape = gradient.shape if isinstance(gradient, ShapedNoise) else 1.0
    for start, stop in gradient.setting.one_hot:
        block = point[start:stop]
        if stop - start < 2 or block.sum() != 1 or not is_code(block):
            continue
        noise = walked * float(np.linalg.norm(np.broadcast_to(shape, state.shape)[start:stop])) / (stop - start)
        mean = float(state[start:stop].mean())
        if abs(mean) <= _SIGNIFICANT * noise:
            found[start:stop] -= mean
    return found
