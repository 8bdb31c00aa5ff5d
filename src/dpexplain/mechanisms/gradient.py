"""Bounded queries about the gradient of the local loss: the gradient sum at any φ of the ball, and its norm at one φ.

Through a given point (0, or the model's answer c) the bound is sup 2α(d)d(kd + l) for labels |y - c| ≤ l (`proofs/sensitivity.md`); for a plane that is
free at the query, whose state is (φ, a), it is sup 2α(d)√(d² + s²)(kd + 2) (`proofs/free_plane.md`). Both are in coordinates divided by the noise's shape
(`proofs/shape.md`). Where the possible records are declared, values are also divided by the share of the bound that records can reach at
that φ (`proofs/reach.md`). All of it is over columns multiplied by the domain's public scales, and so are states and radii here
(`proofs/scale.md`); `plane_gradient` takes a radius of slopes per whole range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Vector
from dpexplain.core.ball import Ball, FreeBall
from dpexplain.core.free_plane import TYPICAL_RESIDUAL, intercept_unit
from dpexplain.core.moments import LocalMoments
from dpexplain.core.plane import Plane
from dpexplain.core.plane_bounds import Curvatures, plane_geometry
from dpexplain.core.reach import LEAST_FREE_SHARE, LEAST_SHARE, Reach, SharePath
from dpexplain.core.weights import Weight
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.ports import Rows
from dpexplain.mechanisms.setting import Setting

_ROUNDINGS = 1.25  # anchoring rounds twice more, and a backend's error is at least ten roundings
_ROUNDED = 1 + 2.0**-30  # a projection's own rounding
_UNBOUNDED = Curvatures(inf, inf)  # no bound is known


class Place(NamedTuple):
    """The state at which a gradient is evaluated, and the share of the sensitivity that records can reach there. `Gradient.path` builds it."""

    phi: Vector
    share: float = 1.0


class Gradient(Protocol):
    """The gradient of a plane's loss as a bounded query, and the public numbers that a descent uses."""

    what: ClassVar[str]

    @property
    def local(self) -> LocalMoments: ...
    @property
    def radius(self) -> float: ...
    @property
    def setting(self) -> Setting: ...
    @property
    def sensitivity(self) -> float: ...
    @property
    def dimension(self) -> int: ...
    @property
    def largest_distance(self) -> float:
        """The largest distance of a record from the point, over scaled columns; inf where nothing is declared."""
        ...

    @property
    def noise_norm(self) -> float:
        """The length of the noise on a mean gradient at μ = 1: Δ/m̄ times the norm of the shape, which takes the place of √n."""
        ...

    @property
    def planned_noise(self) -> float:
        """`noise_norm` for noise that is scaled to what records can reach. It is an estimate where that share is not known yet."""
        ...

    @property
    def shape_norm(self) -> float:
        """The norm of the noise's shape over all coordinates."""
        ...

    @property
    def curvatures(self) -> Curvatures:
        """Public bounds on how curved the loss is."""
        ...

    @property
    def quietest(self) -> float:
        """The least noise on any coordinate, as a multiple of σ."""
        ...

    @property
    def per_record(self) -> float:
        """How far one record can move the exact sum."""
        ...

    def require(self, state: Vector) -> None:
        """Raise ParameterError for states that are not feasible, where the bound does not hold. A state is public, so the error reveals nothing."""
        ...

    def exact(self, rows: Rows, state: Vector) -> Vector:
        """The sum whose length `per_record` bounds."""
        ...

    def evaluate(self, rows: Rows, at: Place) -> Vector: ...

    def mean(self, released: Vector, at: Place) -> Vector:
        """The noisy gradient of the mean loss, in its own units."""
        ...

    def path(self) -> Callable[[Vector], Place]:
        """Places along one path of descent, with the share at each."""
        ...

    def feasible(self, norm: int) -> Ball | FreeBall:
        """Where the state of a descent may be."""
        ...

    def intercept(self, state: Vector) -> float | None:
        """The plane's answer at the query; None for the paper's plane, which has 0 there."""
        ...


class ShapedNoise:
    """What gradients with shaped noise share: noise on coordinate j is `shape[j]` times σ and the share at φ."""

    __slots__ = ()
    setting: Setting
    shape: Vector | float
    reach: Reach | None

    @property
    def shape_norm(self) -> float:
        return float(np.linalg.norm(self.shape))

    @property
    def quietest(self) -> float:
        return float(np.min(self.shape))

    def mean(self, released: Vector, at: Place) -> Vector:
        return released * (self.shape * at.share) / self.setting.size

    def path(self) -> Callable[[Vector], Place]:
        return _path(self.reach)


@dataclass(frozen=True, slots=True, eq=False)
class GradientSum(ShapedNoise):
    """Σ 2α(φ·u + c - y)u around a point, at any φ with ‖φ‖₂ ≤ radius. Noise on column j is `shape[j]` times σ and the share at φ."""

    what: ClassVar[str] = "gradient"
    local: LocalMoments
    radius: float
    setting: Setting
    anchor: float | None = None  # c; None: 0, which is the paper's plane
    shape: Vector | float = 1.0
    reach: Reach | None = None
    curvatures: Curvatures = _UNBOUNDED
    largest_distance: float = inf  # how far a record can be from the point
    sensitivity: float = field(init=False)

    def __post_init__(self) -> None:
        per_record = self.per_record
        plain = self._c == 0 and self.setting.scale is None
        terms = per_record if plain else _ROUNDINGS * per_record
        terms = terms if self.reach is None else terms / LEAST_SHARE  # rounding errors are divided by the share, too
        object.__setattr__(self, "sensitivity", self.setting.sensitivity_of_sum(per_record, terms=terms))

    @property
    def _c(self) -> float:
        return self.anchor or 0.0

    @property
    def per_record(self) -> float:
        return sensitivity.gradient(self.local.weight, self.radius, 1 + abs(self._c), self.largest_distance)

    @property
    def dimension(self) -> int:
        return self.setting.width

    @property
    def noise_norm(self) -> float:
        return self.sensitivity / self.setting.size * self.shape_norm

    @property
    def planned_noise(self) -> float:
        return self.noise_norm

    def evaluate(self, rows: Rows, at: Place) -> Vector:
        return self.exact(rows, at.phi) / (self.shape * at.share)

    def require(self, state: Vector) -> None:
        require_inside(state, self.radius)

    def exact(self, rows: Rows, state: Vector) -> Vector:
        self.require(state)
        moments = rows.local(self.local).scale_columns(self.setting.scale)
        return (moments.relabelled_from(self._c) if self._c else moments).gradient(state)

    def feasible(self, norm: int) -> Ball:
        return Ball(self.radius, norm)

    def intercept(self, state: Vector) -> float | None:
        del state
        return self.anchor


@dataclass(frozen=True, slots=True, eq=False)
class FreeGradientSum(ShapedNoise):
    """(Σ 2αru, s·Σ 2αr) with r = φ·u + a - y, at any state (φ, a) with ‖φ‖₂ ≤ radius and |a| ≤ 1: noise on a's own gradient is σ/s.

    Descents take steps in (φ, a/t), t = `unit`, so that one step size suits both: what they are given of ∇_a is t²∇_a.
    """

    what: ClassVar[str] = "gradient"
    local: LocalMoments
    radius: float
    setting: Setting
    constant: float  # s
    slopes: Vector  # the noise's shape on the slopes
    reach: Reach | None = None
    curvatures: Curvatures = _UNBOUNDED
    largest_distance: float = inf  # how far a record can be from the point
    unit: float = field(init=False)
    sensitivity: float = field(init=False)
    shape: Vector = field(init=False)
    _scaled: Vector = field(init=False)

    def __post_init__(self) -> None:
        per_record = self.per_record
        terms = _ROUNDINGS * per_record / (1.0 if self.reach is None else LEAST_FREE_SHARE)
        object.__setattr__(self, "sensitivity", self.setting.sensitivity_of_sum(per_record, terms=terms))
        object.__setattr__(self, "unit", intercept_unit(self.local.weight, self.largest_distance))
        object.__setattr__(self, "shape", np.append(self.slopes, self.unit / self.constant))
        object.__setattr__(self, "_scaled", np.append(self.slopes, 1.0))

    @property
    def per_record(self) -> float:
        return sensitivity.free_gradient(self.local.weight, self.radius, self.constant, self.largest_distance)

    @property
    def dimension(self) -> int:
        return self.setting.width + 1

    @property
    def noise_norm(self) -> float:
        return self.planned_noise if self.reach else self.sensitivity / self.setting.size * self.shape_norm

    @property
    def planned_noise(self) -> float:
        """An estimate, for residuals of `TYPICAL_RESIDUAL`."""
        typical = (
            2
            * TYPICAL_RESIDUAL
            * sensitivity.free_pull(self.local.weight, self.constant, self.largest_distance)
            / self.per_record
        )
        return min(typical, 1.0) * self.sensitivity / self.setting.size * self.shape_norm

    def evaluate(self, rows: Rows, at: Place) -> Vector:
        return self.exact(rows, at.phi) / (self._scaled * at.share)

    def mean(self, released: Vector, at: Place) -> Vector:
        gradient = ShapedNoise.mean(self, released, at)
        gradient[-1] *= self.unit
        return gradient

    def require(self, state: Vector) -> None:
        require_inside(state[:-1], self.radius)
        if not abs(state[-1]) <= 1:
            raise ParameterError(f"a plane's answer at the query is a label from -1 to 1, got {state[-1]}. Project it first")

    def exact(self, rows: Rows, state: Vector) -> Vector:
        self.require(state)
        gradient = rows.local(self.local).free_gradient(state, self.setting.scale)
        gradient[-1] *= self.constant
        return gradient

    def feasible(self, norm: int) -> FreeBall:
        return FreeBall(Ball(self.radius, norm))

    def intercept(self, state: Vector) -> float | None:
        return float(state[-1])


@dataclass(frozen=True, slots=True, eq=False)
class GradientNorm:
    """The norm of a gradient sum at one state: 1-Lipschitz in the sum, and computing it adds at most (n + 4) roundings of 2m̄ bounds."""

    what: ClassVar[str] = "gradient norm"
    dimension: ClassVar[int] = 1
    gradient: Gradient
    phi: Vector
    sensitivity: float = field(init=False)

    def __post_init__(self) -> None:
        setting, per_record = self.gradient.setting, self.gradient.per_record
        self.gradient.require(self.phi)
        rounding = 2 * (self.gradient.dimension + 4) * 2.0**-53 * 2 * setting.size * per_record
        object.__setattr__(self, "sensitivity", setting.sensitivity_of_sum(per_record) + rounding)

    def evaluate(self, rows: Rows, at: None = None) -> Vector:
        del at
        return np.array([np.linalg.norm(self.gradient.exact(rows, self.phi))])


def _path(reach: Reach | None) -> Callable[[Vector], Place]:
    if reach is None:
        return Place
    share = SharePath(reach)
    return lambda phi: Place(phi, share(phi))


def require_inside(phi: Vector, radius: float) -> None:
    """Raise ParameterError outside the ball, where the bound does not hold. φ is public, so the error reveals nothing."""
    if not float(phi @ phi) <= (radius * _ROUNDED) ** 2:
        length = float(np.linalg.norm(phi))
        raise ParameterError(
            f"a gradient was asked at ‖φ‖ = {length:.4g}, outside the ball of radius {radius:g}. Project it first"
        )


def inner_radius(radius: float, setting: Setting) -> float:
    """The radius of a ball over scaled columns in which slopes per whole range are at most `radius` long."""
    return radius / setting.largest_scale


def plain_gradient(point: Vector, setting: Setting, weight: Weight, radius: float) -> GradientSum:
    """The paper's own: noise alike on all columns, for the bound of the whole ball."""
    return GradientSum(LocalMoments(point, weight, setting.scale), inner_radius(radius, setting), setting)


def plane_gradient(
    point: Vector,
    setting: Setting,
    weight: Weight,
    radius: float,
    plane: Plane,
    anchor: float | None = None,
    flat: float = 0.0,
) -> GradientSum | FreeGradientSum:
    """The gradient of a plane's loss, with noise shaped to the encoding, and to what the domain's records can do where one is declared.

    Its weight is flat up to the distance `flat`, where such a weight is known.
    """
    asked, inner = LocalMoments(point, weight, setting.scale), inner_radius(radius, setting)
    found = plane_geometry(asked, setting.one_hot, setting.layout, inner, plane, anchor, flat)
    bounds = found.reach, found.curvatures, found.within
    if found.constant is not None:
        return FreeGradientSum(found.local, inner, setting, found.constant, found.shape, *bounds)
    return GradientSum(found.local, inner, setting, anchor if plane == "anchored" else None, found.shape, *bounds)
