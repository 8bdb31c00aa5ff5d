"""Distance from the exact local optimum (SPEC §1, §10): excess loss, relative excess, cosine, top-k overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.ball import Ball, minimise_free
from dpexplain.core.moments import LocalMoments, Moments, RawMoments
from dpexplain.core.plane import PAPER_RADIUS, Plane, plane_for
from dpexplain.core.weights import Stable, Weight
from dpexplain.data import PrivateData
from dpexplain.errors import ParameterError
from dpexplain.evaluation.baselines.inputs import column_scales, encoded_point
from dpexplain.evaluation.metrics.agreement import cosine, strongest


@dataclass(frozen=True, slots=True)
class Score:
    """How an explanation φ compares with the exact optimum φ* on the private rows. Not private: never publish one unpaid.

    `relative_excess` is (L(φ) - L(φ*)) / (L(0) - L(φ*)): 0 is perfect, 1 is no better than no explanation. For the fitted plane each φ is
    evaluated with its best constant, so 1 means: as good as the average answer.
    """

    excess_loss: float
    relative_excess: float
    cosine: float
    top_k_overlap: float


def optimum(
    data: PrivateData,
    query: Any,
    *,
    plane: Plane | None = None,
    anchor: float | None = None,
    weight: Weight | None = None,
    radius: float | None = None,
    norm: int = 2,
) -> Vector:
    """φ*: the exact minimiser of the local loss.

    `plane` is "fitted" (the default), "anchored" (with `anchor`, the model's answer at the query as a label in [-1, 1],
    as φ is of labels; `data.answer_scale.labels` converts) or "paper". A `radius` holds φ in that ball;
    without one only the paper's plane is held in a ball, of radius 1, and of all minimisers the shortest is taken.
    """
    moments = local_moments(data, query, weight, plane=plane, anchor=anchor)
    return minimiser(moments, plane_for(plane, anchor), radius, norm)


def score(
    values: Vector,
    data: PrivateData,
    query: Any,
    *,
    plane: Plane | None = None,
    anchor: float | None = None,
    weight: Weight | None = None,
    radius: float | None = None,
    norm: int = 2,
    k: int = 5,
) -> Score:
    """Compare `values` with the exact optimum of the same plane at `query`; `k` is for the overlap of the strongest features."""
    moments = local_moments(data, query, weight, plane=plane, anchor=anchor)
    best = minimiser(moments, plane_for(plane, anchor), radius, norm)
    given = np.asarray(values, dtype=np.float64)
    if given.shape != best.shape:
        raise ParameterError(f"values must be {len(best)} slopes, one for each encoded column, got shape {given.shape}")
    return compare(given, best, moments, data.size, k)


def minimise(A: Matrix, b: Vector, *, radius: float = PAPER_RADIUS, norm: int = 2) -> Vector:
    """The exact minimiser of φᵀAφ - 2b·φ in the ball of that radius; (A, b) as `local_moments` has them."""
    return Ball(radius, norm).minimise(A, b)


def compare(values: Vector, best: Vector, moments: Moments, size: int, k: int = 5) -> Score:
    """Compare `values` with the optimum `best` by moments that were computed before; `size` is the public row count."""
    excess = (_loss(values, moments) - _loss(best, moments)) / size
    gain = -_loss(best, moments) / size  # L(0) - L(φ*)
    shared = set(strongest(values, k)) & set(strongest(best, k))
    return Score(
        excess_loss=excess,
        relative_excess=excess / gain if gain > 0 else 0.0,
        cosine=cosine(values, best),
        top_k_overlap=len(shared) / min(k, len(best)),
    )


def local_moments(
    data: PrivateData, query: Any, weight: Weight | None = None, *, plane: Plane | None = None, anchor: float | None = None
) -> Moments:
    """(A, b) of the plane's loss φᵀAφ - 2b·φ around a record of the domain, or around a point that is encoded already."""
    if (chosen := plane_for(plane, anchor)) == "fitted":
        point = encoded_point(data.domain, query)
        return data.private_rows.raw(RawMoments(point, weight or Stable(), column_scales(data))).eliminate_intercept()
    plain = local_moments_of(data, [query], weight)[0]
    return plain.relabelled_from(float(anchor)) if chosen == "anchored" and anchor is not None else plain


def local_moments_of(data: PrivateData, queries: Iterable[Any], weight: Weight | None = None) -> list[Moments]:
    """(A, b) of the paper's plane around each of several queries, from one read of the rows."""
    scale = column_scales(data)
    asked = [LocalMoments(encoded_point(data.domain, query), weight or Stable(), scale) for query in queries]
    return data.private_rows.local_many(asked)


def minimiser(moments: Moments, plane: Plane, radius: float | None = None, norm: int = 2) -> Vector:
    """φ* of moments that were computed before; `radius` as for `optimum`."""
    ball = PAPER_RADIUS if radius is None and plane == "paper" else radius
    return minimise_free(moments.A, moments.b) if ball is None else Ball(ball, norm).minimise(moments.A, moments.b)


def _loss(phi: Vector, moments: Moments) -> float:
    """m̄(L(φ) - L(0)) = φᵀAφ - 2b·φ."""
    return float(phi @ moments.A @ phi - 2 * moments.b @ phi)
