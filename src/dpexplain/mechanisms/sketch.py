"""Pay once: two Gaussian releases from which every explanation follows by post-processing. `proofs/release_moments.md`.

Stage 1 takes a twentieth of μ² and finds the centre and the spread of the columns; stage 2 releases moments of normalised rows around
that centre. Both noise scales are known before a row is read: neither bound depends on what stage 1 finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nextafter, sqrt

from dpexplain.core import sensitivity
from dpexplain.core.layout import Layout
from dpexplain.core.sketch import CentreMoments, CentreSums, NormalisedMoments, NormalisedSums, normalised_dimension
from dpexplain.estimation.denoise import centre_of
from dpexplain.mechanisms.base import Setting
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.ports import Noise, Rows
from dpexplain.privacy.events import GaussianEvent, PrivacyEvent

CENTRE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class NoisySketch:
    """What was released: noisy sums, the query they answer, and the standard deviation of each number of `sums.vector`."""

    sums: NormalisedSums
    query: NormalisedMoments
    sigma: float


@dataclass(frozen=True, slots=True)
class SketchPlan:
    """Two releases, planned from public things only."""

    layout: Layout
    size: int
    centre: GaussianMechanism
    moments: GaussianMechanism

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (
            GaussianEvent("release: centre", self.centre.rounded_sensitivity, self.centre.sigma),
            GaussianEvent("release: moments", self.moments.rounded_sensitivity, self.moments.sigma),
        )

    def run(self, rows: Rows, noise: Noise) -> NoisySketch:
        layout = self.layout
        first = self.centre.release(rows.centre(CentreMoments(layout)).vector(), noise)
        centre, variance = centre_of(CentreSums.from_vector(first, layout), layout, self.size, self.centre.sigma)
        query = NormalisedMoments(layout, centre, variance)
        released = self.moments.release(rows.normalised(query).vector(query.scales, layout), noise)
        return NoisySketch(NormalisedSums.from_vector(released, query.scales, layout), query, self.moments.sigma)


def plan_sketch(layout: Layout, mu: float, setting: Setting) -> SketchPlan:
    """A plan that costs at most `mu`: μ₁² + μ₂² ≤ μ²."""
    query, sound = CentreMoments(layout), nextafter(mu, 0.0) * (1 - 2.0**-50)
    first = setting.sensitivity_of_sum(query.sensitivity(), terms=3 * query.sensitivity())
    second = setting.sensitivity_of_sum(sensitivity.normalised_moments(), sensitivity.normalised_terms(len(layout.numbers)))
    return SketchPlan(
        layout,
        setting.size,
        GaussianMechanism(first, query.dimension, sound * sqrt(CENTRE_SHARE)),
        GaussianMechanism(second, normalised_dimension(layout), sound * sqrt(1 - CENTRE_SHARE)),
    )
