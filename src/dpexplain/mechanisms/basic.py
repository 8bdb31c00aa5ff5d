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
from dpexplain.core.moments import LocalMoments, Moments
from dpexplain.core.reach import LEAST_SHARE, Reach
from dpexplain.core.shape import noise_shape
from dpexplain.core.weights import Stable, Weight
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.base import Calibration, Informed, Outcome, Setting, require_calibration, require_steps
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.ports import Noise, Rows
from dpexplain.privacy import gdp, paper
from dpexplain.privacy.events import GaussianEvent, PrivacyEvent

_PAPER_STEPS = 300
_ROUNDINGS = 1.25  # anchoring rounds twice more, and a backend's error is at least ten roundings
ANCHORED = "anchored optima"


@dataclass(frozen=True, slots=True)
class NoisyDescent:
    """A plan: where to start, which steps to take, and the noise on each gradient sum. `proofs/noisy_gradient.md`.

    Noise on column j is `shape[j]` times σ; the shape leaves the sensitivity as it is (`proofs/shape.md`). At φ all of it is multiplied by
    the share of the sensitivity that records can reach there (`proofs/reach.md`), except in the last step (`proofs/training.md`).
    """

    query: LocalMoments
    start: Vector
    schedule: Schedule | HarmonicSchedule
    gaussian: GaussianMechanism
    ball: Ball
    size: int
    shape: Vector | float = 1.0
    reach: Reach | None = None

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        noise = self.gaussian
        return (GaussianEvent("gradient", noise.rounded_sensitivity, noise.sigma, self.schedule.gradients),)

    def run(self, rows: Rows, noise: Noise) -> Outcome:
        return self.finish(rows.local(self.query), noise)  # one pass serves every step: the loss is a quadratic

    def finish(self, moments: Moments, noise: Noise) -> Outcome:
        release = self.gaussian.releases(noise, self.schedule.gradients)

        def noisy_gradient(phi: Vector, share: float = 1.0) -> Vector:
            scale = self.shape * share
            return release(moments.gradient(phi) / scale) * scale / self.size

        steps, share = self.schedule.steps, self.reach.along() if self.reach else _everything
        near = descend(self.start, steps[:-1], lambda phi: noisy_gradient(phi, share(phi)), self.ball)
        values = descend(near, steps[-1:], noisy_gradient, self.ball)
        quietest = self.gaussian.sigma / self.size * float(np.min(self.shape))
        told = {"gradients": self.schedule.gradients, "last_step": float(steps[-1]), "sigma": quietest}
        return Outcome(values, self.events, details=told)


def _everything(phi: Vector) -> float:
    """The share of the sensitivity that counts at φ where no domain says what records look like."""
    del phi
    return 1.0


@dataclass(frozen=True, slots=True)
class AnchoredDescent:
    """A plan: the same descent on labels y - f(z)."""

    descent: NoisyDescent
    anchor: float

    @property
    def query(self) -> LocalMoments:
        return self.descent.query

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return self.descent.events

    def run(self, rows: Rows, noise: Noise) -> Outcome:
        return self.finish(rows.local(self.query), noise)

    def finish(self, moments: Moments, noise: Noise) -> Outcome:
        outcome = self.descent.finish(moments.anchored(self.anchor), noise)
        return replace(outcome, details={"quantity": ANCHORED, "gradients": outcome.details["gradients"], "anchor": self.anchor})


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

    def asking(self, model: Callable[[Matrix], Vector]) -> Basic | AnchoredBasic:
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
        reach = setting.sensitivity_of_sum(sensitivity.gradient(self.weight, self.radius))
        gaussian = GaussianMechanism(reach, setting.width, reach / (sigma * setting.size))
        query, ball = LocalMoments(point, self.weight), Ball(self.radius, self.norm)
        return NoisyDescent(query, np.zeros(setting.width), HarmonicSchedule(steps - 1, rate), gaussian, ball, setting.size)

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
class AnchoredBasic(Informed[Basic]):
    """`Basic` with the black box that it asks about each query. The query is public, so asking costs nothing."""

    def plan(self, point: Vector, setting: Setting, history: History, hint: object = None) -> AnchoredDescent:
        del history, hint
        return self.plan_alone(point, setting)

    def plan_alone(self, point: Vector, setting: Setting) -> AnchoredDescent:
        anchor = float(np.clip(self.model(point[None])[0], -1.0, 1.0))
        return AnchoredDescent(exact_descent(self.given, point, setting, anchor), anchor)


def exact_descent(basic: Basic, point: Vector, setting: Setting, anchor: float = 0.0) -> NoisyDescent:
    """T-1 noisy gradients that together cost exactly (ε, δ), with steps from public quantities, for labels y - `anchor`."""
    mu = gdp.mu(basic.epsilon, basic.delta)
    sum_sensitivity = shared_sensitivity(setting, basic.weight, basic.radius, anchor)
    shape = noise_shape(point, setting.one_hot)
    noise_norm = sum_sensitivity / setting.size * float(np.linalg.norm(shape)) / mu  # of one gradient that takes the whole budget
    curvature = sensitivity.quadratic(basic.weight)  # λmax(A)/m̄ ≤ sup αd²
    steps = schedule(basic.radius / noise_norm, setting.width, curvature, basic.steps and basic.steps - 1)
    gaussian = GaussianMechanism(sum_sensitivity, setting.width, gdp.part(mu, 1 / steps.gradients))
    query, ball = LocalMoments(point, basic.weight), Ball(basic.radius, basic.norm)
    reach = reach_around(point, setting, basic.weight, basic.radius, anchor)
    return NoisyDescent(query, np.zeros(setting.width), steps, gaussian, ball, setting.size, shape, reach)


def shared_sensitivity(setting: Setting, weight: Weight, radius: float, anchor: float = 0.0) -> float:
    """How far neighbours can move a computed gradient sum that is divided by its share: rounding errors are, too."""
    per_record = sensitivity.gradient(weight, radius, 1 + abs(anchor))
    rounded = per_record if anchor == 0 else _ROUNDINGS * per_record
    return setting.sensitivity_of_sum(per_record, terms=rounded / LEAST_SHARE)


def reach_around(point: Vector, setting: Setting, weight: Weight, radius: float, anchor: float = 0.0) -> Reach | None:
    """What the domain's records can do to gradients around `point`, where a domain is declared."""
    return None if setting.layout is None else Reach.around(point, setting.layout, weight, radius, anchor)
