"""The paper's rule for T' and σ, made private: β̃ is released with noise, paid for, and the only thing they depend on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log, sqrt

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Vector
from dpexplain.core.ball import Ball
from dpexplain.core.descent import HarmonicSchedule, descend
from dpexplain.core.moments import LocalMoments, Moments
from dpexplain.core.shape import noise_shape
from dpexplain.mechanisms.base import Outcome, Setting
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.ports import Noise, Rows
from dpexplain.mechanisms.start import Start
from dpexplain.mechanisms.warm import Parameters, gradient_reach
from dpexplain.privacy import gdp, paper
from dpexplain.privacy.events import GaussianEvent, PrivacyEvent

NORM_SHARE = 0.01  # of a query's μ², spent on β̃


@dataclass(frozen=True, slots=True)
class MeasuredDescent:
    """A plan: release β̃ at `start`, then take as many and as noisy gradients as β̃ asks for. `proofs/adaptive.md`."""

    query: LocalMoments
    start: Start
    norm: GaussianMechanism
    finest: GaussianMechanism  # of one gradient at σ_min, the least noise a gradient ever gets
    steps: int
    only_beta: bool
    ball: Ball
    size: int
    shape: Vector  # noise on column j is shape[j]·σ (`proofs/shape.md`), so its norm takes the place of √n

    @property
    def floor(self) -> float:
        """√n σ_min."""
        return self._noise_norm(self.finest)

    def _noise_norm(self, gaussian: GaussianMechanism) -> float:
        return float(np.linalg.norm(self.shape)) * gaussian.sigma / self.size

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """β̃, and the dearest descent that any β̃ could ask for: a larger s takes s times the steps, at 1/s² of the price each."""
        most = min(max(ceil(self.floor * sqrt(log(self.steps)) * self.steps), 1), self.steps - 1)
        return (self._norm_event, _event(self.finest, most))

    @property
    def _norm_event(self) -> PrivacyEvent:
        return GaussianEvent("gradient norm", self.norm.rounded_sensitivity, self.norm.sigma)

    def run(self, rows: Rows, noise: Noise) -> Outcome:
        moments = rows.local(self.query)
        beta = self.measure(moments, noise)
        gaussian, rate, iterations = self.settings(beta)
        release = gaussian.releases(noise, iterations - 1)

        def noisy_gradient(phi: Vector) -> Vector:
            return release(moments.gradient(phi) / self.shape) * self.shape / self.size

        schedule = HarmonicSchedule(iterations - 1, rate)
        values = descend(self.start.values, schedule.steps, noisy_gradient, self.ball)
        told = {"start": self.start.kind, "gradients": iterations - 1, "beta": beta}
        return Outcome(values, (self._norm_event, _event(gaussian, iterations - 1)), details=told)

    def measure(self, moments: Moments, noise: Noise) -> float:
        """β̃ = max(‖∇L(start)‖ + noise, 0)."""
        norm = np.array([np.linalg.norm(moments.gradient(self.start.values))])
        return max(float(self.norm.release(norm, noise)[0]) / self.size, 0.0)

    def settings(self, beta: float) -> tuple[GaussianMechanism, float, int]:
        """(noise, step constant, T') from β̃ alone: s = max(β̃, √n σ_min), σ = s/√n."""
        quiet = beta <= self.floor * (1 + 1e-9)  # then exactly σ_min: rounding must not price it above the reservation
        level = self.floor if quiet else beta
        gaussian = self.finest if quiet else self._noisier(level)
        rate = paper.warm_rate(1, self._noise_norm(gaussian), beta, self.steps)
        return gaussian, rate, paper.iterations(beta if self.only_beta else level, self.steps)

    def _noisier(self, level: float) -> GaussianMechanism:
        return replace(self.finest, mu=self.finest.mu * self.floor / level)


def measured_plan(parameters: Parameters, point: Vector, setting: Setting, start: Start) -> MeasuredDescent:
    """σ_min is such that β̃ and T-1 gradients at σ_min cost (ε, δ) together."""
    mu, reach = gdp.mu(parameters.epsilon, parameters.delta), gradient_reach(parameters, setting)
    return MeasuredDescent(
        query=LocalMoments(point, parameters.weight),
        start=start,
        norm=GaussianMechanism(norm_reach(parameters, setting), 1, gdp.part(mu, NORM_SHARE)),
        finest=GaussianMechanism(reach, setting.width, gdp.part(mu, (1 - NORM_SHARE) / (parameters.steps - 1))),
        steps=parameters.steps,
        only_beta=parameters.only_beta,
        ball=parameters.ball,
        size=setting.size,
        shape=noise_shape(point, setting.one_hot),
    )


def norm_reach(parameters: Parameters, setting: Setting) -> float:
    """A norm is 1-Lipschitz, so it moves no further than the gradient; computing it adds at most (n + 4) roundings of 2m̄c."""
    largest = 2 * setting.size * sensitivity.gradient(parameters.weight, parameters.radius)
    return gradient_reach(parameters, setting) + 2 * (setting.width + 4) * 2.0**-53 * largest


def _event(gaussian: GaussianMechanism, count: int) -> PrivacyEvent:
    return GaussianEvent("gradient", gaussian.rounded_sensitivity, gaussian.sigma, count)
