"""Public bins for numbers of unknown scale, and estimates of where the numbers are from noisy counts of the bins."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Vector

_MAGNITUDES = np.array([step * 10.0**power for power in range(-6, 13) for step in (1, 2, 5)])
EDGES: Vector = np.concatenate([-_MAGNITUDES[::-1], [0.0], _MAGNITUDES])
"""Edges of the coarse bins: every 1, 2 and 5 times a power of ten from 10⁻⁶ to 5·10¹², of both signs."""

COARSE = len(EDGES) + 1 + 1  # a bin below, between and above the edges, and one for 0 itself: the last
FINE = 16
LONGEST_RUN = 4
TAIL = 0.005  # of the numbers may be clamped at either end for the sake of a finer range
_FALSE = 0.02  # chance that noise alone extends a range


def coarse_bins(values: Vector) -> NDArray[np.int64]:
    """The bin of each number; -1 for NaN, which is counted nowhere."""
    found = np.searchsorted(EDGES, values, side="right")
    found[values == 0] = COARSE - 1
    found[np.isnan(values)] = -1
    return found.astype(np.int64)


def coarse_range(counts: Vector, sigma: float) -> tuple[float, float] | None:
    """The outermost edges of bins that visibly hold numbers; None where none does."""
    ordered = counts[:-1]
    found = visible_range(ordered, sigma)
    has_zero = visible_zeros(counts, sigma) > 0
    if found is None:
        return (-1.0, 1.0) if has_zero else None
    low = EDGES[max(found[0] - 1, 0)]
    high = EDGES[min(found[1], len(EDGES) - 1)]
    return (min(float(low), 0.0), max(float(high), 0.0)) if has_zero else (float(low), float(high))


def fine_bins(values: Vector, low: float, high: float) -> NDArray[np.int64]:
    """FINE equal bins from low to high; numbers outside count in the nearest one, NaN nowhere (-1)."""
    with np.errstate(all="ignore"):
        place = np.floor((np.clip(values, low, high) - low) / (high - low) * FINE)
    return np.where(np.isnan(values), -1, np.clip(np.nan_to_num(place), 0, FINE - 1)).astype(np.int64)


def visible_zeros(counts: Vector, sigma: float) -> float:
    """How many numbers are 0, by the noisy coarse counts; 0 where noise may have made all of them."""
    zeros = float(counts[-1])
    return zeros if zeros > _least_deviations(len(counts)) * sigma else 0.0


def fine_range(counts: Vector, sigma: float, low: float, high: float, zeros: float = 0.0) -> tuple[float, float]:
    """[low, high] without the bins at its ends that hold next to nothing of the numbers that are not 0, of which there are so many.

    0 itself is known to be in the range. Where most numbers are 0, a share of all of them would be a large share of the others.
    """
    others = float(counts.sum()) - zeros
    if zeros > others and others < 2 * sigma * sqrt(FINE):  # nothing but noise beside the zeros
        return low, high
    first, last = _empty_ends(counts, sigma, others), FINE - _empty_ends(counts[::-1], sigma, others)
    if first >= last:  # nothing but noise
        return low, high
    width = (high - low) / FINE
    return low + first * width, low + last * width


def _empty_ends(counts: Vector, sigma: float, others: float) -> int:
    """How many bins from the start hold at most TAIL of so many numbers, by the noisy counts."""
    outside = np.cumsum(counts)
    allowed = TAIL * max(others, 0.0) + sigma * np.sqrt(np.arange(1, len(counts) + 1))
    beyond = np.flatnonzero(outside > allowed)
    return int(beyond[0]) if len(beyond) else len(counts)


def median(counts: Vector, low: float, high: float) -> float:
    """Where half of the positive part of the counts lies."""
    mass = np.cumsum(np.maximum(counts, 0.0))
    if not mass[-1] > 0:
        return (low + high) / 2
    place = int(np.searchsorted(mass, mass[-1] / 2))
    before = mass[place - 1] if place else 0.0
    inside = (mass[-1] / 2 - before) / max(mass[place] - before, 1e-300)
    return float(low + (place + inside) * (high - low) / len(counts))


def visible_range(counts: Vector, sigma: float) -> tuple[int, int] | None:
    """The first and last bin of the runs of up to LONGEST_RUN bins whose sum stands out of the noise."""
    bins = len(counts)
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    found = [
        (start, start + length - 1)
        for length in range(1, LONGEST_RUN + 1)
        for start in range(bins - length + 1)
        if sums[start + length] - sums[start] > _least_deviations(bins) * sigma * sqrt(length)
        and _ends_in_mass(counts, start, length)
    ]
    return (min(start for start, _ in found), max(stop for _, stop in found)) if found else None


def _ends_in_mass(counts: Vector, start: int, length: int) -> bool:
    """Whether both ends hold their share. A run with an empty end is visible because of its middle, and a shorter run is too."""
    share = counts[start : start + length].sum() / (2 * length)
    return bool(counts[start] >= share and counts[start + length - 1] >= share)


def _least_deviations(bins: int) -> float:
    """Standard deviations that no run of pure noise passes, but for a chance of _FALSE."""
    return sqrt(2 * log(LONGEST_RUN * bins / _FALSE))
