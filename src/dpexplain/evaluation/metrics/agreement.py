"""How far two explanations of one point agree: cosine, ranks, strongest features. Names and directions follow OpenXAI: higher is better."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpexplain.core.arrays import Vector


@dataclass(frozen=True, slots=True)
class Agreement:
    """All from -1 or 0 (none) to 1 (full).

    `cosine` of the two vectors; `rank_correlation` (RC): Spearman's, of magnitudes; `top_k_overlap` (FA): share of the k strongest features in
    common; `sign_agreement` (SA): the same, counting only those with the same sign.
    """

    cosine: float
    rank_correlation: float
    top_k_overlap: float
    sign_agreement: float


def agreement(first: Vector, second: Vector, k: int = 5) -> Agreement:
    """Compare two explanations, one number for each column."""
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    k = min(k, len(first))
    shared = sorted(set(strongest(first, k)) & set(strongest(second, k)))
    same = np.sign(first[shared]) == np.sign(second[shared])
    return Agreement(
        cosine(first, second), rank_correlation(np.abs(first), np.abs(second)), len(shared) / k, float(same.sum()) / k
    )


def cosine(first: Vector, second: Vector) -> float:
    """0 where one of them is zero."""
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / lengths if lengths else 0.0


def rank_correlation(first: Vector, second: Vector) -> float:
    """Spearman's ρ, ties sharing their mean rank; 0 where all of one are equal."""
    a, b = _ranks(first), _ranks(second)
    return cosine(a - a.mean(), b - b.mean())


def strongest(values: Vector, k: int) -> list[int]:
    """The k largest magnitudes, in order; earlier columns first among equals."""
    return [int(i) for i in np.argsort(-np.abs(values), kind="stable")[:k]]


def _ranks(values: Vector) -> Vector:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[place], dtype=np.float64)
