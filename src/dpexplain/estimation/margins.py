"""How each number is distributed among public points: as a Beta, or as noisy counts of its cells show. Pure post-processing.

A Beta distribution has the released mean and variance, and knows of no spike, heap or long tail. Counts of cells do, but most of them are noise. So

1. cells that hold more than the cells beside them, beyond noise, are spikes; a Beta with the moments of what they leave has the rest;
2. its share of every cell is corrected from the whole to halves, quarters and so on: a stretch of cells is split as its counts are where noise does not
   explain the difference, and as the Beta has it everywhere else.

The released moments are far more accurate than the counts, so the shares p are tilted to

    p exp(a₁z + a₂(z² - variance)),    z = x - mean,

the distribution nearest to p that has the released mean and variance, up to their own noise.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import Cells, NumberCells

_SEEN = 4.0  # standard deviations of noise from which a spike or a split of counts is followed
_BESIDE = 4  # cells on either side of a spike
_LEAST_REST = 24.0  # standard deviations of noise: where spikes leave less, tails cannot be seen, and no count is followed
_EMPTY = 1e-12  # share of a stretch that the Beta leaves out
_LEAST_ERROR = 1e-5  # of a mean and of a variance: what is known better than this need not be matched better
_ROUNDS, _CLOSE = 40, 1e-12  # of Newton's method


def place_as_beta(standard: Vector, mean: float, variance: float) -> Vector:
    """Standard normal numbers turned into Beta numbers of this mean and variance."""
    grid, shares = _normal_grid()
    place = np.clip((standard - grid[0]) / (grid[1] - grid[0]), 0.0, len(grid) - 1)
    below = np.minimum(place.astype(np.intp), len(grid) - 2)
    used, first = slice(int(below.min()), int(below.max()) + 2), int(below.min())  # quantiles take longer than anything else here
    quantiles = scipy.special.betaincinv(*_beta_parameters(mean, variance), shares[used])
    lower = quantiles[below - first]
    return np.asarray(np.clip(lower + (place - below) * (quantiles[below - first + 1] - lower), 0.0, 1.0))


def place_in_cells(standard: Vector, cell: Cells, shares: Vector) -> Vector:
    """Numbers in the same order as these, so many of them in each cell as it has shares, spread evenly within it."""
    u = np.empty(len(standard))
    u[np.argsort(standard, kind="stable")] = (np.arange(len(standard)) + 0.5) / len(standard)
    order = np.argsort(_middles(cell), kind="stable")
    edges = np.concatenate([[0.0], np.cumsum(shares[order])])
    edges /= edges[-1]
    found = np.clip(np.searchsorted(edges, u, side="right") - 1, 0, len(order) - 1)
    within = (u - edges[found]) / np.maximum(edges[found + 1] - edges[found], _EMPTY)
    return cell.columns(order[found], np.clip(within, 0.0, 1.0))[:, 0]


def cell_shares(
    cell: Cells,
    counted: Vector,
    sigma: float,
    moments: tuple[float, float],
    errors: tuple[float, float] = (0.0, 0.0),
    *,
    within_bins: bool = False,
) -> Vector:
    """The share of each cell, from shares that were counted with noise `sigma`, and from (mean, variance) with these standard errors.

    `within_bins` are shares that divide bins only, whose own shares are known better: spikes are followed there whatever they leave.
    """
    middles = _middles(cell)
    order = np.argsort(middles, kind="stable")
    spikes = _find_spikes(counted, sigma) if isinstance(cell, NumberCells) else np.zeros(cell.count)
    rest = 1 - float(spikes.sum())
    if within_bins:
        rest = max(rest, _SEEN * sigma)
    elif not rest > _LEAST_REST * sigma:
        return _beta_shares(cell, middles, *moments)
    expected = _beta_shares(cell, middles, *_moments_of_rest(moments, spikes, middles, rest))
    found = spikes[order] + rest * _follow_counts(expected[order], (counted - spikes)[order] / rest, sigma / rest)
    shares = np.empty(cell.count)
    shares[order] = _match_moments(found / found.sum(), middles[order], *moments, np.maximum(errors, _LEAST_ERROR))
    return shares


def _find_spikes(counts: Vector, sigma: float) -> Vector:
    """What each cell holds more than the mean of the cells beside it, where that is more than noise; 0 elsewhere."""
    window = np.ones(2 * _BESIDE + 1)
    window[_BESIDE] = 0.0
    beside = np.convolve(np.ones(len(counts)), window, mode="same")
    more = counts - np.convolve(counts, window, mode="same") / beside
    return np.where(more > _SEEN * sigma * np.sqrt(1 + 1 / beside), more, 0.0)


def _moments_of_rest(moments: tuple[float, float], spikes: Vector, middles: Vector, rest: float) -> tuple[float, float]:
    """The mean and variance of what spikes leave, `rest` of the rows; any numbers where noise makes them impossible."""
    mean, variance = moments
    left = (mean - float(spikes @ middles)) / rest
    second = (variance + mean**2 - float(spikes @ np.square(middles))) / rest
    return left, second - left**2


def _follow_counts(expected: Vector, counts: Vector, sigma: float) -> Vector:
    """The expected shares of cells in order, corrected where counts differ from them by more than noise."""
    depth = max(len(counts) - 1, 1).bit_length()
    room = (0, (1 << depth) - len(counts))
    values = np.pad(np.stack([expected, counts, np.ones(len(counts))]), ((0, 0), room))
    shares = np.ones(1)
    for level in range(1, depth + 1):
        share, count, cells = values.reshape(3, 1 << level, -1).sum(axis=2).reshape(3, -1, 2)
        shares = (shares[:, None] * _split(share, count, cells, sigma)).ravel()
    return np.asarray(shares[: len(counts)])


def _split(share: Matrix, count: Matrix, cells: Matrix, sigma: float) -> Matrix:
    """How each stretch divides into its two halves, (stretches, 2); `cells` is how many cells each half has."""
    there, counted = share.sum(axis=1, keepdims=True), count.sum(axis=1, keepdims=True)
    even = cells / np.maximum(cells.sum(axis=1, keepdims=True), 1.0)
    expected = np.where(there > _EMPTY, share / np.maximum(there, _EMPTY), even)
    other = expected[:, ::-1]
    apart = np.abs(count[:, 0] * other[:, 0] - count[:, 1] * other[:, 1])
    noise = sigma * np.sqrt((cells * np.square(other)).sum(axis=1))
    seen = (apart > _SEEN * noise) & (counted[:, 0] > _SEEN * sigma * np.sqrt(cells.sum(axis=1)))
    measured = np.clip(count / np.maximum(counted, _EMPTY), 0.0, 1.0)
    measured /= np.maximum(measured.sum(axis=1, keepdims=True), _EMPTY)
    return np.asarray(np.where(seen[:, None], measured, expected))


def _match_moments(shares: Vector, middles: Vector, mean: float, variance: float, errors: Vector) -> Vector:
    """The shares tilted to this mean and variance; errors in these are a ridge, so that there is always a solution."""
    z = middles - mean
    features, ridge = np.stack([z, z * z - variance]), np.diag(np.square(errors))

    def tilt(a: Vector) -> tuple[float, Vector]:
        power = a @ features
        largest = float(power[shares > 0].max())
        tilted = shares * np.exp(np.minimum(power - largest, 0.0))
        total = float(tilted.sum())
        return np.log(total) + largest + float(a @ ridge @ a) / 2, tilted / total

    a = np.zeros(2)
    value, tilted = tilt(a)
    for _ in range(_ROUNDS):
        found = features @ tilted
        gradient, curvature = found + ridge @ a, (features * tilted) @ features.T - np.outer(found, found) + ridge
        step = np.linalg.solve(curvature, gradient)
        size, decrease = 1.0, float(gradient @ step)
        following, next_tilted = tilt(a - size * step)
        while following > value - 1e-4 * size * decrease and size > 1e-3:
            size /= 2
            following, next_tilted = tilt(a - size * step)
        a, value, tilted = a - size * step, following, next_tilted
        if decrease < _CLOSE:
            break
    return tilted


def _beta_shares(cell: Cells, middles: Vector, mean: float, variance: float) -> Vector:
    """The Beta's share of each cell. A value of its own, such as exactly 0 or a missing level, has none."""
    if isinstance(cell, NumberCells):
        inner = np.diff(scipy.special.betainc(*_beta_parameters(mean, variance), np.linspace(0.0, 1.0, cell.count - 1)))
        return np.concatenate([[0.0], inner, [0.0]])
    levels = cell.count if cell.unknown is None else cell.count - 1
    edges = np.concatenate([[0.0], (middles[1:levels] + middles[: levels - 1]) / 2, [1.0]])
    inner = np.diff(scipy.special.betainc(*_beta_parameters(mean, variance), edges))
    return np.append(inner, np.zeros(cell.count - levels))


def _middles(cell: Cells) -> Vector:
    return cell.columns(np.arange(cell.count), np.full(cell.count, 0.5))[:, 0]


def _beta_parameters(mean: float, variance: float) -> tuple[float, float]:
    middle = min(max(mean, 1e-3), 1 - 1e-3)
    most = middle * (1 - middle)
    concentration = most / min(max(variance, 1e-5), 0.98 * most) - 1
    return middle * concentration, (1 - middle) * concentration


@cache
def _normal_grid() -> tuple[Vector, Vector]:
    """Standard normal numbers, and the probability of smaller ones."""
    grid = np.linspace(-4.5, 4.5, 91)
    return grid, np.asarray(scipy.special.ndtr(grid))
