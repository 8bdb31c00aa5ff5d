"""The moments of a release: two Gaussian releases, from which every explanation follows by post-processing. `proofs/release_moments.md`.

Stage 1 takes a twentieth of μ² and finds the centre and the spread of the columns; stage 2 releases moments of normalised rows around
that centre. Both noise scales are known before a row is read: neither bound depends on what stage 1 finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nextafter, sqrt
from typing import ClassVar

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Vector
from dpexplain.core.layout import Layout
from dpexplain.core.sketch import CentreMoments, CentreSums, NormalisedMoments, NormalisedSums, normalised_dimension
from dpexplain.estimation.denoise import centre_of
from dpexplain.mechanisms.base import Setting
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.ports import Rows
from dpexplain.privacy.events import PrivacyEvent

CENTRE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class NoisySketch:
    """What was released: noisy sums, the query they answer, and the standard deviation of each number of `sums.vector`."""

    sums: NormalisedSums
    query: NormalisedMoments
    sigma: float
    centre_error: float  # the standard error of each mean that stage 1 found


@dataclass(frozen=True, slots=True, eq=False)
class CentreSum:
    """The bounded query of stage 1: sums around the public centre."""

    what: ClassVar[str] = "release: centre"
    asked: CentreMoments
    setting: Setting

    @property
    def sensitivity(self) -> float:
        reach = self.asked.sensitivity()
        return self.setting.sensitivity_of_sum(reach, terms=3 * reach)

    @property
    def dimension(self) -> int:
        return self.asked.dimension

    def evaluate(self, rows: Rows, at: None = None) -> Vector:
        del at
        return rows.centre(self.asked).vector()


@dataclass(frozen=True, slots=True, eq=False)
class NormalisedSum:
    """The bounded query of stage 2: moments of rows scaled to length one, around any centre and with any spread."""

    what: ClassVar[str] = "release: moments"
    layout: Layout
    setting: Setting

    @property
    def sensitivity(self) -> float:
        return self.setting.sensitivity_of_sum(
            sensitivity.normalised_moments(), sensitivity.normalised_terms(len(self.layout.numbers))
        )

    @property
    def dimension(self) -> int:
        return normalised_dimension(self.layout)

    def evaluate(self, rows: Rows, at: NormalisedMoments) -> Vector:
        return rows.normalised(at).vector(at.scales, self.layout)


@dataclass(frozen=True, slots=True)
class SketchPlan:
    """A plan with two releases, made from public information only."""

    layout: Layout
    size: int
    centre: GaussianMechanism[CentreSum]
    moments: GaussianMechanism[NormalisedSum]

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.centre.event(), self.moments.event())

    def run(self, door: Door) -> NoisySketch:
        layout, first = self.layout, door.release(self.centre)
        centre, variance = centre_of(CentreSums.from_vector(first, layout), layout, self.size, self.centre.sigma)
        query = NormalisedMoments(layout, centre, variance)
        released = door.release(self.moments, query)
        return NoisySketch(
            NormalisedSums.from_vector(released, query.scales, layout), query, self.moments.sigma, self.centre.sigma / self.size
        )


def plan_sketch(layout: Layout, mu: float, setting: Setting) -> SketchPlan:
    """A plan that costs at most `mu`: μ₁² + μ₂² ≤ μ²."""
    sound = nextafter(mu, 0.0) * (1 - 2.0**-50)
    return SketchPlan(
        layout,
        setting.size,
        GaussianMechanism(CentreSum(CentreMoments(layout), setting), sound * sqrt(CENTRE_SHARE)),
        GaussianMechanism(NormalisedSum(layout, setting), sound * sqrt(1 - CENTRE_SHARE)),
    )
