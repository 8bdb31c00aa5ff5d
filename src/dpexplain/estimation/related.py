"""Features that go together among the records, from released moments. Pure post-processing.

A plane that is fitted to the distribution of records shares the effect of features that determine each other, while LIME and SHAP change one at a
time. The strength of a pair is the largest canonical correlation of their columns: with K = W C W, W the inverse roots of each feature's own block of the
covariance C plus the noise, it is the largest singular value of the pair's block of K.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.estimation.reference import noise_ridge

STRONG = 0.5  # correlation from which on a pair is named
_MOST = 3  # pairs that are named
_LEAST = 1e-9  # of a variance
_SIGNIFICANT = 3.0  # standard errors of the noise from which on a correlation is named
_NOISIEST = 0.02  # noise on a covariance above which none is named: ratios of sums that are mostly noise have heavy tails


class RelatedPair(NamedTuple):
    """Two attributes and their canonical correlation."""

    first: int
    second: int
    strength: float


def related_pairs(eigenvalues: Vector, vectors: Matrix, second_error: float, layout: Layout) -> tuple[RelatedPair, ...]:
    """The strongest pairs of attributes, strongest first; empty where none is strong."""
    if second_error > _NOISIEST:
        return ()
    covariance = (vectors * eigenvalues) @ vectors.T
    roots = np.zeros_like(covariance)
    ridge = noise_ridge(second_error, layout)  # values of codes that hardly anybody has count little
    for a in range(layout.attributes):
        block = layout.columns(a)
        values, axes = scipy.linalg.eigh(covariance[block, block])
        added = second_error if layout.is_number[a] else ridge
        roots[block, block] = (axes / np.sqrt(np.maximum(values, _LEAST) + added)) @ axes.T
    whitened = roots @ covariance @ roots
    squares = layout.per_attribute(layout.per_attribute(np.square(whitened)).T)  # at least the largest singular value, squared
    near = [(int(a), int(b)) for a, b in zip(*np.nonzero(np.triu(squares, 1) >= STRONG**2), strict=True)]
    found = [_strongest(whitened, roots, second_error, layout, pair) for pair in near]
    return tuple(sorted((one for one in found if one.strength >= STRONG), key=lambda one: -one.strength)[:_MOST])


def _strongest(whitened: Matrix, roots: Matrix, second_error: float, layout: Layout, pair: tuple[int, int]) -> RelatedPair:
    """The canonical correlation of a pair; 0 where it is not significant: noise moves it by second_error ‖W u‖‖W v‖ along its directions u and v."""
    first, second = (layout.columns(a) for a in pair)
    u, strengths, v = np.linalg.svd(whitened[first, second], full_matrices=False)
    noise = second_error * float(np.linalg.norm(roots[first, first] @ u[:, 0]) * np.linalg.norm(roots[second, second] @ v[0]))
    return RelatedPair(*pair, float(strengths[0]) if strengths[0] >= _SIGNIFICANT * noise else 0.0)
