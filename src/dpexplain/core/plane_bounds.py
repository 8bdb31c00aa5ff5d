"""Public numbers that noise on the gradient of a plane depends on: whether one record is bounded, the noise's geometry, and curvatures."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, NamedTuple, TypeAlias

from dpexplain.arguments import require_kind
from dpexplain.core import sensitivity
from dpexplain.core.arrays import Vector
from dpexplain.core.ball import Ball
from dpexplain.core.free_plane import constant_for, intercept_unit
from dpexplain.core.layout import Layout
from dpexplain.core.moments import LocalMoments
from dpexplain.core.plane import Plane, require_plane
from dpexplain.core.reach import FreeReach, Reach
from dpexplain.core.shape import noise_shape
from dpexplain.core.weights import Weight

OneHot: TypeAlias = tuple[tuple[int, int], ...]


class Curvatures(NamedTuple):
    """Bounds on the largest eigenvalue of the mean loss's matrix: on the slopes, λmax(A)/m̄ ≤ sup αd², and over the plane's whole state."""

    slopes: float
    state: float


class PlaneGeometry(NamedTuple):
    """The question with the weight that its gradient has, the noise's shape on the slopes, the constant s of a plane that is free at the query, what
    records can reach where a layout is declared, how curved the loss can be, and how far a record can be from the query."""

    local: LocalMoments
    shape: Vector
    constant: float | None
    reach: Reach | None
    curvatures: Curvatures
    within: float


def require_bounded(plane: Any, radius: float, norm: int, weight: Weight) -> Plane:
    """`plane`, if it is known, `radius` and `norm` make a ball, and one record moves its gradient by a bounded amount; ParameterError otherwise."""
    known = require_plane(plane)
    require_kind("weight", weight, Weight, "Pass one such as dpx.weights.Gaussian(0.8)")
    if known == "fitted":
        sensitivity.free_gradient(weight, 1.0, 1.0)  # refuses a weight without a bound at the query
    Ball(radius, norm)
    sensitivity.gradient(weight, radius)
    return known


def plane_geometry(
    asked: LocalMoments,
    one_hot: OneHot,
    layout: Layout | None,
    radius: float,
    plane: Plane,
    anchor: float | None,
    flat: float,
) -> PlaneGeometry:
    """The geometry of noise around a point, for slopes in a ball of this radius and weights that are flat up to the distance `flat`.

    `one_hot` are column ranges that hold one 1 or none."""
    local = replace(asked, weight=asked.weight.flatten(flat))
    point, weight = local.point, local.weight
    shape, within = noise_shape(point, one_hot), inf if layout is None else layout.diameter(point)
    curved = bound_curvatures(weight, plane, within)
    if plane == "fitted":
        s = constant_for(weight, shape, within)
        free = None if layout is None else FreeReach.with_constant(point, layout, weight, radius, s)
        return PlaneGeometry(local, shape, s, free, curved, within)
    reach = None if layout is None else Reach.around_point(point, layout, weight, radius, anchor or 0.0)
    return PlaneGeometry(local, shape, None, reach, curved, within)


def bound_curvatures(weight: Weight, plane: Plane, within: float) -> Curvatures:
    """The bounds for records within this distance of the query."""
    slopes = sensitivity.quadratic(weight, within)
    if plane != "fitted":
        return Curvatures(slopes, slopes)
    return Curvatures(slopes, sensitivity.free_quadratic(weight, intercept_unit(weight, within), within))
