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


class RelatedPair(NamedTuple):
    """Two attributes and their canonical correlation."""

    first: int
    second: int
    strength: float


def related_pairs(eigenvalues: Vector, vectors: Matrix, second_error: float, layout: Layout) -> tuple[RelatedPair, ...]:
    """The strongest pairs of attributes, strongest first; empty where none is strong."""
    covariance = (vectors * eigenvalues) @ vectors.T
    roots, ridge = (
        np.zeros_like(covariance),
        noise_ridge(second_error, layout),
    )  # values of codes that hardly anybody has count little
    for a in range(layout.attributes):
        block = layout.columns(a)
        values, axes = scipy.linalg.eigh(covariance[block, block])
        added = second_error if layout.is_number[a] else ridge
        roots[block, block] = (axes / np.sqrt(np.maximum(values, _LEAST) + added)) @ axes.T
    whitened = roots @ covariance @ roots
    squares = layout.per_attribute(layout.per_attribute(np.square(whitened)).T)  # at least the largest singular value, squared
    near = [(int(a), int(b)) for a, b in zip(*np.nonzero(np.triu(squares, 1) >= STRONG**2), strict=True)]
    found = [RelatedPair(a, b, float(np.linalg.norm(whitened[layout.columns(a), layout.columns(b)], 2))) for a, b in near]
    return tuple(sorted((one for one in found if one.strength >= STRONG), key=lambda one: -one.strength)[:_MOST])
