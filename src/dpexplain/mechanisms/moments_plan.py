"""The moments of a release: two Gaussian releases, from which every explanation follows by post-processing. `proofs/release_moments.md`.

Stage 1 takes a twentieth of μ² and finds the centre and the spread of the columns; stage 2 releases moments of normalised rows around
that centre. Both noise scales are known before a row is read: neither bound depends on what stage 1 finds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nextafter, sqrt
from typing import ClassVar

from dpexplain.core.arrays import Vector
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import CentreMoments, NormalisedMoments, NormalisedSums, stage_bounds
from dpexplain.estimation.denoise import NoisySketch as NoisySketch
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.ports import Rows
from dpexplain.mechanisms.setting import Setting
from dpexplain.privacy.events import PrivacyEvent

CENTRE_SHARE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class CentreSum:
    """The bounded query of stage 1: sums around the public centre."""

    what: ClassVar[str] = "release: centre"
    asked: CentreMoments
    sensitivity: float
    dimension: int

    def evaluate(self, rows: Rows, at: None = None) -> Vector:
        del at
        return rows.centre(self.asked)


@dataclass(frozen=True, slots=True, eq=False)
class NormalisedSum:
    """The bounded query of stage 2: moments of rows scaled to length one, around any centre and with any spread."""

    what: ClassVar[str] = "release: moments"
    sensitivity: float
    dimension: int

    def evaluate(self, rows: Rows, at: NormalisedMoments) -> Vector:
        return at.vector(rows.normalised(at))


@dataclass(frozen=True, slots=True)
class SketchPlan:
    """A plan with two releases, made from public information only."""

    layout: Layout
    size: int
    centre: GaussianMechanism[CentreSum]
    moments: GaussianMechanism[NormalisedSum]
    events: tuple[PrivacyEvent, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", (self.centre.event(), self.moments.event()))

    def run(self, door: Door) -> NoisySketch:
        first = door.release(self.centre)
        query = NormalisedMoments.after(first, self.layout, self.size, self.centre.sigma)
        released = door.release(self.moments, query)
        sums = NormalisedSums.from_vector(released, query.scales, self.layout)
        return NoisySketch(sums, query, self.moments.sigma, self.centre.sigma / self.size)


def plan_sketch(layout: Layout, mu: float, setting: Setting) -> SketchPlan:
    """A plan that costs at most `mu`: μ₁² + μ₂² ≤ μ²."""
    sound, bounds = nextafter(mu, 0.0) * (1 - 2.0**-50), stage_bounds(layout)
    centre = setting.sensitivity_of_sum(bounds.centre, terms=3 * bounds.centre)
    moments = setting.sensitivity_of_sum(bounds.moments, bounds.moments_terms)
    return SketchPlan(
        layout,
        setting.size,
        GaussianMechanism(CentreSum(CentreMoments(layout), centre, bounds.centre_dimension), sound * sqrt(CENTRE_SHARE)),
        GaussianMechanism(NormalisedSum(moments, bounds.moments_dimension), sound * sqrt(1 - CENTRE_SHARE)),
    )
