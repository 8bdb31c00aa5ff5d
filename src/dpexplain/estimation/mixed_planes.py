"""Planes from moments and from reference records as one, weighted by their errors. Pure post-processing.

Both estimate the same plane: the moments' plane has the more accurate label moments, the records' plane resolves narrow weights. With E the
expected squared error of the slopes in what they predict, Σ vⱼσⱼ² over columns of variance v near the query, and D = Σ vⱼδⱼ², δ the difference of a
plane from the records' own plane through all rows,

    w = √(E_r D_m)/(√(E_r D_m) + √(E_m D_r)) · min(1, n/b)

is the share of the moments' plane: the surer plane counts more; and where the moments' plane differs from the records' plane through all rows and the
records' plane does not, they disagree about all rows, which the moments know better. n is the share of rows that count. Where it is below b, hardly
one of the moments' few points is near the query. Noise that both planes have counts in E as far as planes follow the plane through all rows, because
it does not favour one of them.

Everything is averaged by w, so that contributions still add up. Errors that both planes have from the moments' noise are fully correlated,
w σ + (1 - w) σ'; errors of their points and records are independent; and disagreement that neither explains, w(1 - w)((φ - φ')² - σ² - σ'²), is part of the
error bar: of its bias, because one of the planes is wrong by more than it knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.weights import Weight
from dpexplain.estimation.error_parts import APART, BIAS, COMMON, Parts, mix_common, no_parts
from dpexplain.estimation.moment_planes import BROAD, KEPT, MomentPlanes
from dpexplain.estimation.planes import Planes, dots
from dpexplain.estimation.reference_planes import ReferencePlanes


@dataclass(frozen=True, eq=False)
class MixedPlanes:
    """Two sources of planes for the same rows."""

    moments: MomentPlanes
    reference: ReferencePlanes

    def fit(self, queries: Matrix, weight: Weight, anchors: Vector | None = None, radius: float | None = None) -> Planes:
        """The planes at encoded queries, (q, n); through `anchors`, one a query, where they are given; in a ball where a radius is given."""
        few = self.moments.fit(queries, weight, anchors, radius)
        many, near = self.reference.fit_near(queries, weight, anchors, radius)
        return mix(few, many, share_of(few, many, near, self.reference.slopes.values))


def share_of(few: Planes, many: Planes, variance: Matrix, start: Vector) -> Vector:
    """w of each query; `variance` is that of each column near it, `start` the slopes of the records' plane through all rows."""
    rows = many.share
    left = 1 - np.square(np.minimum(KEPT * rows, 1.0))[:, None]
    first, second = (dots(np.square(one.errors) - left * np.square(one.noise_errors), variance) for one in (few, many))
    moved, moved_too = (dots(np.square(one.values - start), variance) for one in (few, many))
    odds, against = np.sqrt(second * moved), np.sqrt(first * moved_too)
    return np.asarray(odds / np.maximum(odds + against, 1e-300) * np.minimum(rows / BROAD, 1.0))


def mix(few: Planes, many: Planes, share: Vector) -> Planes:
    """share·few + (1 - share)·many, with one share for each query."""
    w, shared = share[:, None], [_ratio(np.square(one.common), np.square(one.own)) for one in (few, many)]
    noises = [_ratio(np.square(one.noise_errors), np.square(one.errors) - np.square(one.noise_errors)) for one in (few, many)]
    slopes = (few.values, many.values, few.errors, many.errors)
    added = (few.added, many.added, few.added_errors, many.added_errors)
    base = (few.base, many.base, few.base_error, many.base_error)
    answer = (few.answer, many.answer, few.answer_error, many.answer_error)
    return Planes(
        values=_mean(w, *slopes[:2]),
        errors=_error(w, *slopes, *noises),
        noise_errors=_mean(w, few.noise_errors, many.noise_errors),
        answer=_mean(share, *answer[:2]),
        answer_error=_error(share, *answer, *shared),
        base=_mean(share, *base[:2]),
        base_error=_error(share, *base, *shared),
        added=_mean(w, *added[:2]),
        added_errors=_error(w, *added, *(one[:, None] for one in shared)),
        share=many.share,
        capped=few.capped | many.capped,
        common=_mean(share, few.common, many.common),
        own=np.sqrt(np.square(share * few.own) + np.square((1 - share) * many.own)),
        parts=_mix_parts(share, few, many),
    )


def _mix_parts(share: Vector, few: Planes, many: Planes) -> Parts:
    """Parts whose squares add up to those of `_error`; what the planes disagree about is bias."""
    w, parts = share[:, None], (few.parts, many.parts)
    found = no_parts(len(share))
    found[:, COMMON] = mix_common(share, (few.noise_errors, many.noise_errors), parts)
    found[:, APART] = np.square(w) * few.parts[:, APART] + np.square(1 - w) * many.parts[:, APART]
    apart = np.square(few.values - many.values) - np.square(few.errors) - np.square(many.errors)
    found[:, APART, BIAS] += share * (1 - share) * np.maximum(apart, 0.0).mean(axis=1)
    return found


def _mean(share: Matrix, first: Matrix, second: Matrix) -> Matrix:
    return np.asarray(share * first + (1 - share) * second)


def _ratio(part: Matrix, rest: Matrix) -> Matrix:
    return np.asarray(part / np.maximum(part + rest, 1e-300))


def _error(w: Matrix, x: Matrix, y: Matrix, first: Matrix, second: Matrix, shared: Matrix, other: Matrix) -> Matrix:
    """The error of wx + (1 - w)y, x and y having these errors; `shared` and `other` are the parts of each variance that both have in common."""
    common = np.square(_mean(w, first * np.sqrt(shared), second * np.sqrt(other)))
    own = np.square(w * first) * (1 - shared) + np.square((1 - w) * second) * (1 - other)
    apart = np.square(x - y) - np.square(first) - np.square(second)
    return np.asarray(np.sqrt(common + own + w * (1 - w) * np.maximum(apart, 0.0)))
