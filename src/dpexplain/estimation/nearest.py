"""Widths of Gaussian weights that let a wanted share of rows count, from released records. Pure post-processing (`proofs/nearest.md`).

Of records at distances d with base weights g, the share that counts at width w is (Σgα)²/(NΣ(gα)²), α = exp(-(d/w)²). The width is the smallest of
the public grid 2^(k/8) at which that share reaches the wanted one: with equal g it rises with w, and a little other noise leaves the width as it is.
"""

from __future__ import annotations

import numpy as np

from dpexplain.core.arrays import Matrix, Vector

STEPS = 8  # widths in each doubling
FEWEST = 10  # effective records for each column that an answer rests on at least
_LEAST, _MOST = -60 * STEPS, 60 * STEPS  # of the grid's exponents: any width that a domain can need


def width_at(step: int) -> float:
    """The width number `step` of the public grid."""
    return float(2.0 ** (step / STEPS))


def wanted_share(rows: float, size: int, records: int, width: int) -> float:
    """The share of `records` that shall count where `rows` of `size` rows are wanted: never too few to estimate `width` slopes."""
    return min(max(rows / size, FEWEST * width / records), 1.0)


def choose_widths(points: Matrix, base: Vector, queries: Matrix, share: float, metric: Vector | float = 1.0) -> Vector:
    """One width of the grid a query; the largest where the wanted share is never reached. `metric` has the squares of the columns' scales."""
    norms = (np.square(points) * metric).sum(axis=1)
    measured = zip(queries, queries * metric, strict=True)
    return np.array([_choose(norms - 2 * (points @ far) + query @ far, base, share) for query, far in measured])


def _choose(squared: Vector, base: Vector, share: float) -> float:
    squared = np.maximum(squared, 0.0)
    few, enough = _LEAST, _MOST
    while enough - few > 1:
        step = (few + enough) // 2
        few, enough = (few, step) if _share(squared, base, width_at(step)) >= share else (step, enough)
    return width_at(enough)


def _share(squared: Vector, base: Vector, width: float) -> float:
    """The share of records that count; 0 where none is near."""
    local = np.exp(-(squared - squared.min()) / width**2) * base  # a common factor of the weights changes nothing
    return float(local.sum() ** 2 / (len(local) * np.square(local).sum()))
