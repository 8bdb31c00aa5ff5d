"""Bounded queries about the gradient of the local loss: the gradient sum at any φ of the ball, and its norm at one φ.

The bound is sup 2α(d)d(kd + l) for labels |y - c| ≤ l (`proofs/sensitivity.md`), in coordinates divided by the noise's shape (`proofs/shape.md`). Where a
domain says what records look like, values at φ are also divided by the share of that bound that records can reach there (`proofs/reach.md`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Vector
from dpexplain.core.moments import LocalMoments
from dpexplain.core.reach import LEAST_SHARE, Reach
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.base import Setting
from dpexplain.mechanisms.ports import Rows

_ROUNDINGS = 1.25  # anchoring rounds twice more, and a backend's error is at least ten roundings
_ROUNDED = 1 + 2.0**-30  # a projection's own rounding


class Place(NamedTuple):
    """Where a gradient is asked, and the share of the sensitivity that records can reach there. `GradientSum` makes it."""

    phi: Vector
    share: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class GradientSum:
    """Σ 2α(φ·u + c - y)u around a point, at any φ with ‖φ‖₂ ≤ radius. Noise on column j is `shape[j]` times σ and the share at φ."""

    what: ClassVar[str] = "gradient"
    local: LocalMoments
    radius: float
    setting: Setting
    anchor: float = 0.0  # c
    shape: Vector | float = 1.0
    reach: Reach | None = None
    sensitivity: float = field(init=False)

    def __post_init__(self) -> None:
        per_record = sensitivity.gradient(self.local.weight, self.radius, 1 + abs(self.anchor))
        terms = per_record if self.anchor == 0 else _ROUNDINGS * per_record
        terms = terms if self.reach is None else terms / LEAST_SHARE  # rounding errors are divided by the share, too
        object.__setattr__(self, "sensitivity", self.setting.sensitivity_of_sum(per_record, terms=terms))

    @property
    def dimension(self) -> int:
        return self.setting.width

    @property
    def noise_norm(self) -> float:
        """How long the noise on a mean gradient is at μ = 1: Δ/m̄ times the norm of the shape, which takes the place of √n."""
        return self.sensitivity / self.setting.size * float(np.linalg.norm(self.shape))

    def evaluate(self, rows: Rows, at: Place) -> Vector:
        require_inside(at.phi, self.radius)
        moments = rows.local(self.local)
        moments = moments.anchored(self.anchor) if self.anchor else moments
        return moments.gradient(at.phi) / (self.shape * at.share)

    def mean(self, released: Vector, at: Place) -> Vector:
        """The noisy gradient of the mean loss, in its own units."""
        return released * (self.shape * at.share) / self.setting.size

    def path(self) -> Callable[[Vector], Place]:
        """Places along one path of descent, with the share at each."""
        if self.reach is None:
            return Place
        share = self.reach.along()
        return lambda phi: Place(phi, share(phi))


@dataclass(frozen=True, slots=True, eq=False)
class GradientNorm:
    """‖Σ 2α(φ·u - y)u‖ at one φ of the ball: 1-Lipschitz in the sum, and computing it adds at most (n + 4) roundings of 2m̄c."""

    what: ClassVar[str] = "gradient norm"
    dimension: ClassVar[int] = 1
    gradient: GradientSum
    phi: Vector
    sensitivity: float = field(init=False)

    def __post_init__(self) -> None:
        require_inside(self.phi, self.gradient.radius)
        given = self.gradient
        largest = 2 * given.setting.size * sensitivity.gradient(given.local.weight, given.radius)
        reach = given.setting.sensitivity_of_sum(sensitivity.gradient(given.local.weight, given.radius))
        object.__setattr__(self, "sensitivity", reach + 2 * (given.setting.width + 4) * 2.0**-53 * largest)

    def evaluate(self, rows: Rows, at: None = None) -> Vector:
        del at
        return np.array([np.linalg.norm(rows.local(self.gradient.local).gradient(self.phi))])


def require_inside(phi: Vector, radius: float) -> None:
    """The bound holds inside the ball and nowhere else. φ is public, so saying so costs nothing."""
    if not float(phi @ phi) <= (radius * _ROUNDED) ** 2:
        raise ParameterError(
            f"a gradient was asked at ‖φ‖ = {float(np.linalg.norm(phi)):.4g}, outside the ball of radius {radius:g}: project it first"
        )
