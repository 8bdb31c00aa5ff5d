"""Numbers that are known to use hardly any of their declared ranges, such as an income declared up to ten million: noise hides how little they vary."""

from __future__ import annotations

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.layout import Indices
from dpexplain.estimation.denoise import Estimate, Flags, apply

IDLE = 1e-3  # largest variance of such a number: it varies by 3 % of its range


def use_little(variance: Vector, error: Vector | float) -> Flags:
    """Which variances of columns are so small that noise of this standard error does not hide it."""
    return np.asarray(variance + 2 * error < IDLE)


def idle_errors(found: Estimate, numbers: Indices, slopes: Vector) -> Vector:
    """Of each direction of the covariance: half of how much longer the slope along such numbers may be.

    A slope is τ/λ. Noise of size s may have made 2s of λ, which matters where λ itself is hardly larger. But no slope explains more than all,
    τ²/λ ≤ E(y - ȳ)² ≤ 1 - ȳ², because |y| ≤ 1.
    """
    squared, across = np.square(found.vectors), found.vectors.swapaxes(-2, -1)
    error = np.asarray(found.spread.squares)[..., None]
    idle = np.zeros(found.values.shape)
    idle[..., numbers] = use_little(apply(squared, found.values), error)[..., numbers]
    along, target = np.abs(apply(across, slopes)), np.abs(apply(across, found.t1))
    most = np.maximum(1 - np.square(np.asarray(found.t0)), 1e-6)[..., None]
    least = np.maximum(found.values - 2 * error, np.square(target) / most + 1e-300)
    return np.asarray(apply(squared.swapaxes(-2, -1), idle) * np.maximum(target / least - along, 0.0) / 2)
