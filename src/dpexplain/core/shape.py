"""Noise with a scale for each column, chosen from the public encoding: less noise in total at the same sensitivity. Proof: `proofs/shape.md`.

In a one-hot block of K categories a record differs from the query z by u = e_j - e_z, by -e_z (no category), or not at all. Such u have
length √2, 1 or 0, and none points anywhere else, so isotropic noise protects directions that no record can take. Dividing the query's own
coordinate by κ/s and the others by κ, with κ² = (1 + s²)/2 and s ≤ 1, leaves every such u at most as long as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.layout import is_code


def noise_shape(point: Vector, one_hot: Iterable[tuple[int, int]]) -> Vector:
    """One positive factor for each column: noise on that column is multiplied by it. 1 where nothing is known.

    s = (K - 1)^(-1/4) makes the block's total variance smallest: (1 + √(K-1))²/2 instead of K.
    """
    shape = np.ones(len(point))
    for start, stop in one_hot:
        block = point[start:stop]
        if stop - start > 2 and is_code(block) and block.sum() == 1:
            s = (stop - start - 1) ** -0.25
            others = sqrt((1 + s * s) / 2)
            shape[start:stop] = np.where(block == 1, others / s, others)
    return shape
