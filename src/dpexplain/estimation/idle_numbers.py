"""Numbers that use hardly any of their declared ranges, such as an income declared up to ten million: noise hides how little they vary.

Counts of their cells show it as far as they are above their own noise (`estimation/counted_variances.py`). What is left unknown belongs into error bars.
"""

from __future__ import annotations

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.layout import Indices
from dpexplain.estimation.counted_variances import IDLE, counted_variances
from dpexplain.estimation.denoise import Estimate, Flags, apply
from dpexplain.estimation.global_slopes import Slopes

_NARROWEST = 0.25  # of λ: for one that is smaller than this errors count how far the mean moves, and no larger variance


def use_little(variance: Vector, error: Vector | float) -> Flags:
    """Which variances of columns are so small that noise of this standard error does not hide it."""
    return np.asarray(variance + 2 * error < IDLE)


def idle_columns(found: Estimate, numbers: Indices) -> Flags:
    """Which columns are numbers that noise or counts of cells show to use hardly any of their ranges."""
    idle, error = np.zeros(found.values.shape, dtype=bool), np.asarray(found.spread.squares)[..., None]
    idle[..., numbers] = use_little(apply(np.square(found.vectors), found.values), error)[..., numbers]
    if found.margins is not None:
        idle[..., numbers] |= ~np.isnan(counted_variances(found.margins).values)
    return idle


def idle_errors(found: Estimate, numbers: Indices, slopes: Slopes) -> Vector:
    """Of each direction of the covariance: what the error of its slope lacks because λ is not known along such numbers.

    With noise s of τ = λφ + e the posterior has the precision 1/P = 1/v + λ²/s² and the mean P(c/v + λτ/s²); v and c are those of the prior. Were λ another
    one, ℓ, precision and mean would change by (ℓ² - λ²)/s² and (ℓ - λ)τ/s². Noise of size n in λ may have made 2n of it, or hidden as much. But λ
    is at least what counts of cells show, and no slope explains more than all, τ²/λ ≤ E(y - ȳ)² ≤ 1 - ȳ², because |y| ≤ 1. Labels are compared with
    a plane, so that φ is measured from its slopes.
    """
    across, back = found.vectors.swapaxes(-2, -1), np.square(found.vectors).swapaxes(-2, -1)
    error, idle, counted = np.asarray(found.spread.squares)[..., None], idle_columns(found, numbers), np.zeros(found.values.shape)
    if not idle.any():
        return counted
    if found.margins is not None:
        counted[..., numbers] = np.nan_to_num(counted_variances(found.margins).least)
    most = np.maximum(1 - np.square(np.asarray(found.t0)), 1e-6)[..., None]
    explained = np.square(apply(across, found.t1)) / most + 1e-300
    least = np.minimum(np.maximum(np.maximum(found.values - 2 * error, explained), apply(back, counted)), found.values)
    lower, higher = (_other_posterior(found, slopes, other)[0] for other in (least, found.values + 2 * error))
    wider = _other_posterior(found, slopes, np.maximum(least, _NARROWEST * found.values))[1]
    missing = np.square(np.maximum(lower, higher) / 2) + np.maximum(wider - np.square(slopes.seen.spread), 0.0)
    return np.asarray(apply(back, idle.astype(np.float64)) * np.sqrt(missing))


def _other_posterior(found: Estimate, slopes: Slopes, other: Vector) -> tuple[Vector, Vector]:
    """How far the mean of each direction's slope moves where λ is another one, and the variance there; they are never less certain than without a prior."""
    across, away = found.vectors.swapaxes(-2, -1), slopes.values - found.expected
    length = np.square(away).sum(axis=-1, keepdims=True)
    noise = np.square(np.asarray(found.centred_error))[..., None] + np.square(np.asarray(found.spread.s2))[..., None] * length
    noise, variance = np.maximum(noise, 1e-300), np.maximum(np.square(slopes.seen.spread), 1e-300)
    mean, target = apply(across, away), apply(across, found.t1) - found.values * apply(across, found.expected)
    precision, least = 1 / variance + (np.square(other) - np.square(found.values)) / noise, np.square(other) / noise
    moved = (mean / variance + (other - found.values) * target / noise) / np.maximum(precision, 1e-300)
    moved = np.where(precision > least, moved, target / other)
    return np.abs(moved - mean), 1 / np.maximum(np.maximum(precision, least), 1e-300)
