"""The paper's rule for T' and σ, made private: both depend only on β̃, which is released with noise and paid for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log, sqrt
from typing import TYPE_CHECKING

from dpexplain.core.arrays import Vector
from dpexplain.core.moments import LocalMoments
from dpexplain.mechanisms.descent import HarmonicSchedule, descend
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.gradient import Gradient, GradientNorm, Place
from dpexplain.mechanisms.plane_choice import answer_at
from dpexplain.mechanisms.setting import Outcome
from dpexplain.mechanisms.start import Start
from dpexplain.privacy import gdp, paper
from dpexplain.privacy.events import PrivacyEvent

if TYPE_CHECKING:
    from dpexplain.mechanisms.adaptive import Adaptive


NORM_SHARE = 0.01  # of a query's μ², spent on β̃


@dataclass(frozen=True, slots=True)
class MeasuredDescent:
    """A plan: release β̃ at `start`, then gradients whose number and noise follow from β̃. `proofs/adaptive.md`."""

    start: Start
    norm: GaussianMechanism[GradientNorm]
    finest: GaussianMechanism[Gradient]  # of one gradient at σ_min, the least noise a gradient ever gets
    steps: int
    only_beta: bool
    norm_of_ball: int

    @property
    def query(self) -> LocalMoments:
        return self.finest.query.local

    @property
    def floor(self) -> float:
        """√n σ_min, with the norm of the noise's shape in the place of √n."""
        return self._noise_norm(self.finest)

    def _noise_norm(self, gaussian: GaussianMechanism[Gradient]) -> float:
        return gaussian.query.shape_norm * gaussian.sigma / self._size

    @property
    def _size(self) -> int:
        return self.finest.query.setting.size

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """β̃, and the most expensive descent that any β̃ can lead to: a larger s takes s times the steps, at 1/s² of the price each."""
        most = min(max(ceil(self.floor * sqrt(log(self.steps)) * self.steps), 1), self.steps - 1)
        return (self.norm.event(), self.finest.event(most))

    def run(self, door: Door) -> Outcome:
        beta = self.measure(door)
        gaussian, rate, iterations = self.settings(beta)
        release, gradient = door.releases(gaussian, iterations - 1), gaussian.query

        def noisy_gradient(phi: Vector) -> Vector:
            at = Place(phi)
            return gradient.mean(release(at), at)

        schedule = HarmonicSchedule(iterations - 1, rate)
        state = descend(self.start.values, schedule.steps, noisy_gradient, gradient.feasible(self.norm_of_ball))
        details = {"start": self.start.kind, "gradients": iterations - 1, "beta": beta}
        return answer_at(state, gradient, self.norm_of_ball, details)

    def measure(self, door: Door) -> float:
        """β̃ = max(‖∇L(start)‖ + noise, 0)."""
        return max(float(door.release(self.norm)[0]) / self._size, 0.0)

    def settings(self, beta: float) -> tuple[GaussianMechanism[Gradient], float, int]:
        """(noise, step constant, T') from β̃ alone: s = max(β̃, √n σ_min), σ = s/√n."""
        quiet = beta <= self.floor * (1 + 1e-9)  # then exactly σ_min: rounding must not raise its price above the reservation
        level = self.floor if quiet else beta
        gaussian = self.finest if quiet else self._at_noise_level(level)
        rate = paper.warm_rate(1, self._noise_norm(gaussian), beta, self.steps)
        return gaussian, rate, paper.iterations(beta if self.only_beta else level, self.steps)

    def _at_noise_level(self, level: float) -> GaussianMechanism[Gradient]:
        return replace(self.finest, mu=self.finest.mu * self.floor / level)


def measured_plan(parameters: Adaptive, gradient: Gradient, start: Start) -> MeasuredDescent:
    """σ_min is such that β̃ and T-1 gradients at σ_min cost (ε, δ) together. `gradient` follows the ball's bound, not what φ reaches."""
    mu = gdp.mu(parameters.epsilon, parameters.delta)
    return MeasuredDescent(
        start=start,
        norm=GaussianMechanism(GradientNorm(gradient, start.values), gdp.part(mu, NORM_SHARE)),
        finest=GaussianMechanism(gradient, gdp.part(mu, (1 - NORM_SHARE) / (parameters.most_steps - 1))),
        steps=parameters.most_steps,
        only_beta=parameters.only_beta,
        norm_of_ball=parameters.norm,
    )
