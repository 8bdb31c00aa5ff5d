"""Sums around reviews at several scales of the columns: a weight that sees distances times s is the stable weight of columns in [0, s]."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import dpexplain as dpx
from dpexplain import evaluation


class Sums(NamedTuple):
    """Means over rows at columns in [0, s], x - z = u: Σ α uuᵀ, Σ α y u and Σ α u."""

    A: np.ndarray
    b: np.ndarray
    first: np.ndarray


class Nearer(dpx.weights.Stable):
    """The stable weight of distances times s."""

    scale: float

    def __init__(self, scale):
        super().__init__()
        object.__setattr__(self, "scale", scale)

    def __call__(self, distance):
        return super().__call__(np.asarray(distance) * self.scale)

    def to_dict(self):
        return super().to_dict() | {"scale": self.scale}  # what caches of sums know it by


def sums_around(data, point, scales):
    """{scale: Sums} around a point, by the library."""
    found = {}
    for scale in scales:
        sums = evaluation.local_moments_of(data, [point], Nearer(scale))[0]
        share = scale / data.size
        found[scale] = Sums(sums.A * (scale * share), sums.b * share, sums.s * share)
    return found
