"""Algorithm 1: noisy gradient descent on the private rows, one query at a time.

`calibration="exact"` spends exactly (ε, δ) a query: T-1 noisy gradients, each μ(ε, δ)/√(T-1)-GDP. `calibration="paper"` uses the paper's σ
and steps; its noise is 17 to 20 times larger than its claim needs, and is charged at what it really costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.ball import Ball
from dpexplain.core.descent import HarmonicSchedule, Schedule, descend, schedule
from dpexplain.core.moments import LocalMoments
from dpexplain.core.reach import Reach
from dpexplain.core.shape import noise_shape
from dpexplain.core.weights import Stable, Weight
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.base import AuditSetup, Calibration, Outcome, Setting, WithModel, require_calibration, require_steps
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.gradient import GradientSum, Place
from dpexplain.mechanisms.history import History
from dpexplain.privacy import gdp, paper
from dpexplain.privacy.events import PrivacyEvent

_PAPER_STEPS = 300
ANCHORED = "anchored optima"


@dataclass(frozen=True, slots=True)
class NoisyDescent:
    """A plan: where to start, which steps to take, and the noise on each gradient sum. `proofs/noisy_gradient.md`.

    Noise at φ is multiplied by the share of the sensitivity that records can reach there (`proofs/reach.md`), except in the last step
    (`proofs/training.md`).
    """

    gaussian: GaussianMechanism[GradientSum]
    start: Vector
    schedule: Schedule | HarmonicSchedule
    ball: Ball

    @property
    def query(self) -> LocalMoments:
        return self.gradient.local

    @property
    def gradient(self) -> GradientSum:
        return self.gaussian.query

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.gaussian.event(self.schedule.gradients),)

    def run(self, door: Door) -> Outcome:
        release, path, steps = door.releases(self.gaussian, self.schedule.gradients), self.gradient.path(), self.schedule.steps

        def noisy_gradient(at: Place) -> Vector:
            return self.gradient.mean(release(at), at)

        near = descend(self.start, steps[:-1], lambda phi: noisy_gradient(path(phi)), self.ball)
        values = descend(near, steps[-1:], lambda phi: noisy_gradient(Place(phi)), self.ball)
        quietest = self.gaussian.sigma / self.gradient.setting.size * float(np.min(self.gradient.shape))
        details = {"gradients": self.schedule.gradients, "last_step": float(steps[-1]), "sigma": quietest}
        return Outcome(values, details=details)


@dataclass(frozen=True, slots=True)
class AnchoredDescent:
    """A plan: the same descent on labels y - f(z)."""

    descent: NoisyDescent

    @property
    def query(self) -> LocalMoments:
        return self.descent.query

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return self.descent.events

    def run(self, door: Door) -> Outcome:
        outcome = self.descent.run(door)
        anchor = self.descent.gradient.anchor
        return replace(outcome, details={"quantity": ANCHORED, "gradients": outcome.details["gradients"], "anchor": anchor})


@dataclass(frozen=True, slots=True)
class Basic:
    """Explain each query afresh at (ε, δ). `steps` is the paper's T; None chooses it from public quantities.

    The paper's plane φ·(x - z) goes through 0 at z. `anchored` lets it go through the model's answer there: it fits y - f(z), as LIME and SHAP
    do in effect, and needs the model to be asked about the query, which is public.
    """

    epsilon: float = 0.1
    delta: float = 1e-6
    steps: int | None = None
    calibration: Calibration = "exact"
    weight: Weight = field(default_factory=Stable)
    radius: float = 1.0
    norm: int = 2
    anchored: bool = False

    def __post_init__(self) -> None:
        if self.anchored and self.calibration == "paper":
            raise ParameterError("the paper has no anchored explanations: leave out calibration='paper' or anchored=True")
        gdp.mu(self.epsilon, self.delta)  # refuses what has no meaning
        require_steps(self.steps)
        require_calibration(self.calibration)
        Ball(self.radius, self.norm)
        sensitivity.gradient(self.weight, self.radius)

    @property
    def private(self) -> bool:
        return True

    @property
    def audit_setup(self) -> AuditSetup:
        return AuditSetup("pull")

    def with_model(self, model: Callable[[Matrix], Vector]) -> Basic | AnchoredBasic:
        """The same, with a black box at hand that answers about encoded public points."""
        return AnchoredBasic(self, model) if self.anchored else self

    def plan(self, point: Vector, setting: Setting, history: History, hint: object = None) -> NoisyDescent:
        del history, hint
        return self.plan_alone(point, setting)

    def plan_alone(self, point: Vector, setting: Setting) -> NoisyDescent:
        if self.anchored:
            raise ParameterError("anchored=True needs the model's answer at the query: register the data with model=")
        make = exact_descent if self.calibration == "exact" else self._paper_descent
        return make(self, point, setting)

    def _paper_descent(self, _: Basic, point: Vector, setting: Setting) -> NoisyDescent:
        steps = self.steps or _PAPER_STEPS
        sigma = paper.basic_sigma(setting.size, self.epsilon, self.delta, steps)
        rate = paper.learning_rate(setting.width, sigma, sensitivity.gradient(self.weight, self.radius))
        gradient = GradientSum(LocalMoments(point, self.weight), self.radius, setting)
        gaussian = GaussianMechanism(gradient, gradient.sensitivity / (sigma * setting.size))
        return NoisyDescent(gaussian, np.zeros(setting.width), HarmonicSchedule(steps - 1, rate), Ball(self.radius, self.norm))

    def to_dict(self) -> dict[str, Any]:
        kind = {"quantity": ANCHORED} if self.anchored else {}
        return kind | {
            "mechanism": "basic",
            "epsilon": self.epsilon,
            "delta": self.delta,
            "steps": self.steps,
            "calibration": self.calibration,
            "weight": self.weight.to_dict(),
            "radius": self.radius,
            "norm": self.norm,
        }


@dataclass(frozen=True, slots=True)
class AnchoredBasic(WithModel[Basic]):
    """`Basic` with the black box that it asks about each query. The query is public, so asking costs nothing."""

    def plan(self, point: Vector, setting: Setting, history: History, hint: object = None) -> AnchoredDescent:
        del history, hint
        return self.plan_alone(point, setting)

    def plan_alone(self, point: Vector, setting: Setting) -> AnchoredDescent:
        anchor = float(np.clip(self.model(point[None])[0], -1.0, 1.0))
        return AnchoredDescent(exact_descent(self.given, point, setting, anchor))


def exact_descent(basic: Basic, point: Vector, setting: Setting, anchor: float = 0.0) -> NoisyDescent:
    """T-1 noisy gradients that together cost exactly (ε, δ), with steps from public quantities, for labels y - `anchor`."""
    mu = gdp.mu(basic.epsilon, basic.delta)
    gradient = local_gradient(point, setting, basic.weight, basic.radius, anchor)
    noise_norm = gradient.noise_norm / mu  # of one gradient that takes the whole budget
    curvature = sensitivity.quadratic(basic.weight)  # λmax(A)/m̄ ≤ sup αd²
    steps = schedule(basic.radius / noise_norm, setting.width, curvature, basic.steps and basic.steps - 1)
    gaussian = GaussianMechanism(gradient, gdp.part(mu, 1 / steps.gradients))
    return NoisyDescent(gaussian, np.zeros(setting.width), steps, Ball(basic.radius, basic.norm))


def local_gradient(point: Vector, setting: Setting, weight: Weight, radius: float, anchor: float = 0.0) -> GradientSum:
    """The gradient around `point` with the noise shaped to the encoding, and to what the domain's records can do where one is declared."""
    reach = None if setting.layout is None else Reach.around(point, setting.layout, weight, radius, anchor)
    return GradientSum(LocalMoments(point, weight), radius, setting, anchor, noise_shape(point, setting.one_hot), reach)
