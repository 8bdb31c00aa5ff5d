"""Distance from the exact local optimum (SPEC §1): excess loss, relative excess, cosine, top-k overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.ball import Ball
from dpexplain.core.moments import LocalMoments, Moments
from dpexplain.core.weights import Stable, Weight
from dpexplain.data import PrivateData
from dpexplain.evaluation.baselines.inputs import encoded_point
from dpexplain.evaluation.metrics.agreement import cosine, strongest


@dataclass(frozen=True, slots=True)
class Score:
    """How an explanation φ compares with the exact optimum φ* on the private rows. Not private: never publish one unpaid.

    `relative_excess` is (L(φ) - L(φ*)) / (L(0) - L(φ*)): 0 is perfect, 1 is no better than no explanation.
    """

    excess_loss: float
    relative_excess: float
    cosine: float
    top_k_overlap: float


def optimum(
    data: PrivateData, query: Any, *, weight: Weight | None = None, radius: float = 1.0, norm: int = 2, anchor: float = 0.0
) -> Vector:
    """φ*: the exact minimiser of the local loss over the ball. `anchor` is taken from every label: f(query), for anchored answers."""
    moments = local_moments(data, query, weight).anchored(anchor)
    return Ball(radius, norm).minimise(moments.A, moments.b)


def score(
    values: Vector, data: PrivateData, query: Any, *, weight: Weight | None = None, radius: float = 1.0, norm: int = 2, k: int = 5
) -> Score:
    """Compare `values` with the exact optimum at `query`; `k` is for the overlap of the strongest features."""
    moments = local_moments(data, query, weight)
    best = Ball(radius, norm).minimise(moments.A, moments.b)
    return compare(np.asarray(values, dtype=np.float64), best, moments, data.size, k)


def compare(values: Vector, best: Vector, moments: Moments, size: int, k: int = 5) -> Score:
    """The same from moments that were computed already."""
    excess = (_loss(values, moments) - _loss(best, moments)) / size
    gain = -_loss(best, moments) / size  # L(0) - L(φ*)
    shared = set(strongest(values, k)) & set(strongest(best, k))
    return Score(
        excess_loss=excess,
        relative_excess=excess / gain if gain > 0 else 0.0,
        cosine=cosine(values, best),
        top_k_overlap=len(shared) / min(k, len(best)),
    )


def local_moments(data: PrivateData, query: Any, weight: Weight | None = None) -> Moments:
    """(A, b) around a record of the domain, or around a point that is encoded already."""
    return local_moments_of(data, [query], weight)[0]


def local_moments_of(data: PrivateData, queries: Iterable[Any], weight: Weight | None = None) -> list[Moments]:
    """The same around each of several, from one read of the rows."""
    asked = [LocalMoments(encoded_point(data.domain, query), weight or Stable()) for query in queries]
    return data._rows.local_many(asked)


def _loss(phi: Vector, moments: Moments) -> float:
    """m̄(L(φ) - L(0)) = φᵀAφ - 2b·φ."""
    return float(phi @ moments.A @ phi - 2 * moments.b @ phi)
