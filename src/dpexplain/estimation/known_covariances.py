"""Tables of pairs that follow the released covariances too. Pure post-processing.

Tables and moments know the same twice. With B the columns that a record of each bin has on average, p the margins and P the table of two attributes,
B_a(P - p_a p_bᵀ)B_bᵀ is the covariance C of their columns. Moments know it with about a third of the tables' noise s, because rows are centred before
they are added up. With B - (its mean over bins) = U S Fᵀ, the best linear estimate of the table from both is

    P + F_a (g ∘ (S_a⁻¹U_aᵀ C U_bS_b⁻¹ - F_aᵀ(P - p_a p_bᵀ)F_b)) F_bᵀ,    g = S_a²S_b²/(S_a²S_b² + e²/s²),

e the error of C: of codes nearly all becomes known better, of numbers how their mean depends on the other attribute. Margins stay as they are.

Moments count rows with weights w(x), tables count them alike. What w changes about covariances is taken from preliminary records that follow the tables;
it has an error of drawing them, and is taken to be known to a fifth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import CellCodes
from dpexplain.core.layout import Layout
from dpexplain.estimation.denoise import Estimate
from dpexplain.estimation.population import shrink_tables
from dpexplain.estimation.raking import Tables

_WRONG = 0.2  # share of what weights change about covariances that may be wrong
_DETERMINED = 1e-5  # of the largest singular value


@dataclass(frozen=True, slots=True, eq=False)
class PreliminaryRecords:
    """Records that follow the tables: their bins, (N, attributes), their columns, and the weights that moments give them."""

    bins: CellCodes
    points: Matrix
    weights: Vector


class Basis(NamedTuple):
    """U, S and F of an attribute."""

    columns: Matrix
    sizes: Vector
    bins: Matrix


def add_covariances(found: Tables, known: Estimate, some: PreliminaryRecords, layout: Layout) -> Tables:
    """`known` are moments that are not shrunk: what is noise in them is decided here."""
    difference, doubt = _change_by_weights(some)
    covariance, variance = known.shrunk - difference, known.spread.s2**2 + doubt
    bases = [_basis(found, some, layout, a) for a in range(found.attributes)]
    pairs, errors = found.pairs.copy(), found.errors.copy()
    for a in range(found.attributes):
        for b in range(a):
            first, second, place = found.block(a), found.block(b), np.ix_(*(_columns(layout, one) for one in (a, b)))
            apart = found.pairs[first, second] - np.outer(found.p[first], found.p[second])
            noise = float(variance[place].mean()) / max(found.error, 1e-300) ** 2
            moved, left = _update(apart, covariance[place], noise, bases[a], bases[b])
            pairs[first, second] += moved
            errors[first, second] *= left
            pairs[second, first], errors[second, first] = pairs[first, second].T, errors[first, second].T
    return replace(found, pairs=pairs, errors=errors, smooth=shrink_tables(found.offsets, pairs, found.p, errors))


def _update(apart: Matrix, covariance: Matrix, noise: float, first: Basis, second: Basis) -> tuple[Matrix, Matrix]:
    """(what is added to a table, which share of its cells' error is left); `noise` is e²/s²."""
    sizes = np.outer(first.sizes, second.sizes)
    gain = np.square(sizes) / (np.square(sizes) + noise)
    wanted = first.columns.T @ covariance @ second.columns / sizes
    moved = first.bins @ (gain * (wanted - first.bins.T @ apart @ second.bins)) @ second.bins.T
    return moved, np.sqrt(np.maximum(1 - np.square(first.bins) @ gain @ np.square(second.bins).T, 0.0))


def _basis(found: Tables, some: PreliminaryRecords, layout: Layout, attribute: int) -> Basis:
    block, bins = found.block(attribute), some.bins[:, attribute]
    size = block.stop - block.start
    counts = np.maximum(np.bincount(bins, minlength=size), 1)
    means = np.array([np.bincount(bins, some.points[:, column], size) for column in _columns(layout, attribute)]) / counts
    present = found.p[block] > 0
    centred = np.where(present, means - means[:, present].mean(axis=1, keepdims=True), 0.0)
    columns, sizes, across = np.linalg.svd(centred, full_matrices=False)
    kept = sizes > _DETERMINED * max(float(sizes[0]), 1e-300)
    return Basis(columns[:, kept], sizes[kept], across[kept].T)


def _change_by_weights(some: PreliminaryRecords) -> tuple[Matrix, Matrix]:
    """(weighted minus plain covariances of the columns, the variance of its error)."""
    alike, weights = np.full(len(some.points), 1 / len(some.points)), some.weights / some.weights.sum()
    difference = _covariance(some.points, weights) - _covariance(some.points, alike)
    squares = np.square(some.points - some.points.mean(axis=0))
    drawn = (squares * np.square(weights - alike)[:, None]).T @ squares
    return difference, drawn + np.square(_WRONG * difference)


def _covariance(points: Matrix, weights: Vector) -> Matrix:
    mean = weights @ points
    return np.asarray((points * weights[:, None]).T @ points - np.outer(mean, mean))


def _columns(layout: Layout, attribute: int) -> range:
    return range(layout.starts[attribute], layout.stops[attribute])
