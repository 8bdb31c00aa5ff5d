"""How much numbers vary that use little of their declared ranges, from noisy counts of their cells. Pure post-processing.

The noise of a released variance does not depend on how large the variance is: an income declared up to two million, with a standard deviation of a
hundredth of that, has a variance that noise hides. Its counts are far above their noise in the few cells where rows are, so that these say how much
rows vary there: V, the variance of the cells' middles less that within a cell (Sheppard's correction). What they cannot say is whether a few rows are
far away, too few for any cell to show: these may add as much as the noise of all counted rows could hide, at the far end of the range.

So there are two explanations: no row is far away, and the variance is V; or some are, and every order of magnitude between V and that most is equally
likely. Either is equally likely beforehand, and the released variance, which has noise of its own, decides. A slope is a covariance divided by the
variance, so that its expectation is the covariance times E(1/variance).
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, hypot, sqrt
from typing import NamedTuple

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.cells import FINE, Cells, NumberCells
from dpexplain.core.layout import Indices
from dpexplain.core.marginals import NumberCounts

IDLE = 1e-3  # largest variance of such a number: it varies by 3 % of its range
_SEEN = 4.0  # standard deviations of noise from which a cell is known to hold rows
_NONE_LEFT = 3.0  # … up to which no others are known to be elsewhere
_MOST_HIDDEN = 0.2  # of the rows: where noise could hide more, a long tail may be among them
# cells on either side that may hold rows too, as a share of those between the first and the last that do; and how many rows may be elsewhere
_WINDOWS = (1.0, 1.0), (0.5, 0.1), (0.0, 0.1)
_KNOWN = 2.0  # standard errors that V must have
_ALIKE = 0.05  # of V, which counts all rows alike: released moments do not
_SURELY = 0.5  # of V: there is at least that much
_TRIED = 24  # variances between V and the most


class CountedVariances(NamedTuple):
    """V of each number, its standard error, and the most that rows far away may make of it; NaN where counts do not show that it uses little of its range."""

    values: Vector
    errors: Vector
    most: Vector

    @property
    def least(self) -> Vector:
        return np.asarray(np.maximum(self.values - 2 * self.errors, _SURELY * self.values))


@lru_cache(maxsize=16)  # rehearsals ask about the same counts
def counted_variances(margins: NumberCounts) -> CountedVariances:
    found = [_count_variance(cell, shares, margins.sigma) for cell, shares in zip(margins.cells, margins.shares, strict=True)]
    return CountedVariances(*np.array(found).reshape(-1, 3).T)


def counted_columns(margins: NumberCounts | None, numbers: Indices) -> Indices | None:
    """Which of these columns counts show to use little of their ranges; None where there are no counts."""
    return None if margins is None else numbers[~np.isnan(counted_variances(margins).values)]


def expect_variances(released: Vector, expected: Vector, error: Vector | float, margins: NumberCounts) -> Vector:
    """1/E(1/variance) of `released` variances with this error; `expected` is what they are expected to be where counts show nothing."""
    counted = counted_variances(margins)
    known = ~np.isnan(counted.values)
    if not known.any():
        return expected
    values, doubt, most = (one[known] for one in counted)
    noise = np.maximum(np.broadcast_to(error, released.shape)[..., known], 1e-300)
    away = (released[..., known] - values) / np.hypot(noise, doubt)
    both = (values * np.square(noise) + released[..., known] * np.square(doubt)) / (np.square(noise) + np.square(doubt))
    more = np.geomspace(values, most, _TRIED)  # (tried, known)
    farther = (released[..., None, known] - more) / noise[..., None, :]
    log_likelihood = -np.square(np.concatenate([away[..., None, :], farther], axis=-2)) / 2
    before = np.array([0.5] + [0.5 / _TRIED] * _TRIED)[:, None]
    likely = before * np.exp(log_likelihood - log_likelihood.max(axis=-2, keepdims=True))
    inverse = likely[..., 0, :] / np.maximum(both, _SURELY * values) + (likely[..., 1:, :] / more).sum(axis=-2)
    found = expected.copy()
    found[..., known] = likely.sum(axis=-2) / inverse
    return found


def _count_variance(cell: Cells, shares: Vector, sigma: float) -> tuple[float, float, float]:
    middles = cell.columns(np.arange(cell.count), np.full(cell.count, 0.5))[:, 0]
    order = np.argsort(middles, kind="stable")
    middles, shares = middles[order], shares[order]
    seen = np.flatnonzero(shares > _SEEN * sigma)
    within = 1 / (12 * FINE**2) if isinstance(cell, NumberCells) else 0.0
    for beside, left in _WINDOWS if seen.size else ():
        cells = ceil(beside * (seen[-1] - seen[0] + 1))
        inside = slice(max(int(seen[0]) - cells, 0), int(seen[-1]) + cells + 1)
        variance, error, hidden = _variance_of(middles[inside], shares[inside], sigma, left)
        if variance + 2 * error < IDLE and variance > _KNOWN * error:
            variance = max(variance - within, within)
            return variance, hypot(error, _ALIKE * variance), variance + hidden
    return np.nan, np.nan, np.nan


def _variance_of(x: Vector, shares: Vector, sigma: float, left: float) -> tuple[float, float, float]:
    """The variance of numbers at x with these noisy shares, its standard error, and the share of rows that may be elsewhere.

    NaN where some are elsewhere, or many may be.
    """
    total, noise = float(shares.sum()), sigma * sqrt(len(x))
    if _NONE_LEFT * noise > _MOST_HIDDEN or not abs(1 - total) <= min(_NONE_LEFT * noise, left):
        return np.nan, np.nan, np.nan
    squares = np.square(x - float(shares @ x) / total)
    variance = float(shares @ squares) / total
    return variance, sigma * float(np.linalg.norm(squares - variance)) / total, max(1 - total, 0.0) + noise
