"""Explanations one query at a time, each at (ε, δ): by noisy moments, or by Algorithm 1, noisy gradient descent on the private rows.

In a descent `calibration="exact"` spends exactly (ε, δ) a query: T-1 noisy gradients, each μ(ε, δ)/√(T-1)-GDP. `calibration="paper"` uses the paper's σ
and steps; its noise is 17 to 20 times larger than its claim needs, and is charged at what it really costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.moments import LocalMoments
from dpexplain.core.plane import Plane
from dpexplain.core.weights import DEFAULT_WEIGHT, Weight
from dpexplain.estimation.public_points import PublicModel
from dpexplain.mechanisms.descent import (
    MOST,
    Guide,
    HarmonicSchedule,
    Schedule,
    descend,
    schedule,
)
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.gradient import Gradient, GradientSum, Place, plain_gradient
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.idle import remove_idle
from dpexplain.mechanisms.model_start import ModelPlane, StartsFromModel
from dpexplain.mechanisms.moments_answer import By, MomentsAnswer, answer_by_moments, chosen_by, has_moments, require_by
from dpexplain.mechanisms.plane_choice import answer_at, choose_plane, described_plane, paid_gradient, require_model, travel_of
from dpexplain.mechanisms.setting import AuditSetup, Calibration, Outcome, Setting, require_calibration, require_steps
from dpexplain.privacy import gdp, paper
from dpexplain.privacy.events import PrivacyEvent

_PAPER_STEPS = 300


@dataclass(frozen=True, slots=True)
class NoisyDescent:
    """A plan: where to start, which steps to take, and the noise on each gradient sum. `proofs/noisy_gradient.md`.

    Noise at φ is multiplied by the share of the sensitivity that records can reach there (`proofs/reach.md`), except in the last step
    (`proofs/training.md`).
    """

    gaussian: GaussianMechanism[Gradient]
    start: Vector
    schedule: Schedule | HarmonicSchedule
    norm: int = 2
    guide: Guide | None = None
    kind: str = "cold"  # of the start
    events: tuple[PrivacyEvent, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", (self.gaussian.event(self.schedule.gradients),))

    @property
    def query(self) -> LocalMoments:
        return self.gradient.local

    @property
    def gradient(self) -> Gradient:
        return self.gaussian.query

    def run(self, door: Door) -> Outcome:
        gradient, steps, ball = self.gradient, self.schedule.steps, self.gradient.feasible(self.norm)
        release, path = door.releases(self.gaussian, self.schedule.gradients), self.gradient.path()

        shares: list[float] = []

        def noisy_gradient(at: Place) -> Vector:
            shares.append(at.share)
            found = gradient.mean(release(at), at)
            return found if self.guide is None else self.guide.turn(found)

        near = descend(self.start, steps[:-1], lambda phi: noisy_gradient(path(phi)), ball)
        state = descend(near, steps[-1:], lambda phi: noisy_gradient(Place(phi)), ball)
        answer = answer_at(state, gradient, self.norm, self._details)
        if isinstance(self.schedule, HarmonicSchedule):  # the paper's own answers are not changed
            return answer
        idle_steps = steps if self.guide is None else steps * self.guide.rest  # a guide's direction has no part along idle ones
        state = remove_idle(state, gradient, self.gaussian.sigma / gradient.setting.size, idle_steps, np.array(shares))
        return replace(answer, values=gradient.setting.out_of_scaled(state)[: gradient.setting.width])

    @property
    def _details(self) -> dict[str, Any]:
        """Public facts about the descent. `privacy.training` needs the last step; it is proven for the paper's plane over unscaled columns only."""
        details: dict[str, Any] = {"gradients": self.schedule.gradients}
        details |= {} if isinstance(self.schedule, HarmonicSchedule) else {"start": self.kind}
        if not isinstance(self.gradient, GradientSum):
            return details
        if self.gradient.anchor is not None:
            return details | {"anchor": self.gradient.anchor}
        if self.gradient.setting.scale is not None:
            return details
        quietest = self.gaussian.sigma / self.gradient.setting.size * self.gradient.quietest
        return details | {"last_step": float(self.schedule.steps[-1]), "sigma": quietest}


@dataclass(frozen=True, slots=True)
class Basic:
    """Explain each query afresh at (ε, δ).

    - `by="moments"` pays for the sums that a release takes and fits the plane to them, with error bars and contributions. An explainer's answers centre
      these sums at the mean of all centres they have released (`mechanisms/released_centres.py`). `by="descent"` takes noisy gradients. None chooses by
      public facts what is closer on most tables: moments for fitted and anchored planes of at most 256 columns.
    - `steps`, the paper's T, asks for a descent of so many iterations; a descent without it chooses them from public quantities.
    - `plane` is "fitted" (free at the query, as LIME's is; the default), "anchored" (through the model's answer at the query, about which the model is asked:
      the query is public) or "paper" (through 0). calibration="paper" implies the last.
    - `radius` caps ‖φ‖. None chooses it from what accuracy is paid for, and 1 for the paper's plane. An answer's details say whether the cap binds.
    """

    private: ClassVar[bool] = True
    rule: ClassVar[None] = None  # for the use of history: there is none
    epsilon: float = 0.1
    delta: float = 1e-6
    steps: int | None = None
    calibration: Calibration = "exact"
    weight: Weight = DEFAULT_WEIGHT
    radius: float | None = None
    norm: int = 2
    plane: Plane | None = None
    by: By | None = None

    def __post_init__(self) -> None:
        gdp.mu(self.epsilon, self.delta)  # raises ParameterError for invalid values
        require_steps(self.steps)
        require_calibration(self.calibration)
        plane, radius = choose_plane(self.plane, self.radius, self.norm, self.calibration, self.weight)
        object.__setattr__(self, "plane", plane)
        object.__setattr__(self, "radius", radius)
        require_by(self)

    @property
    def audit_setup(self) -> AuditSetup:
        return AuditSetup("spread" if self.by != "descent" and has_moments(self) else "pull")

    def with_model(self, model: Callable[[Matrix], Vector]) -> Basic | BasicWithModel:
        """The mechanism with a black box that answers about encoded public points. The paper's plane does not use it."""
        return self if self.plane == "paper" else BasicWithModel(self, model)

    def plan(self, point: Vector, setting: Setting, history: History, hint: object = None) -> NoisyDescent | MomentsAnswer:
        del history, hint
        return self.plan_alone(point, setting)

    def plan_alone(self, point: Vector, setting: Setting) -> NoisyDescent | MomentsAnswer:
        require_model(self.plane)
        if chosen_by(self, setting) == "moments":
            return answer_by_moments(self, point, setting)
        return exact_descent(self, point, setting) if self.calibration == "exact" else self._paper_descent(point, setting)

    def _paper_descent(self, point: Vector, setting: Setting) -> NoisyDescent:
        steps, radius = self.steps or _PAPER_STEPS, self.radius or 1.0
        sigma = paper.basic_sigma(setting.size, self.epsilon, self.delta, steps)
        gradient = plain_gradient(point, setting, self.weight, radius)
        rate = paper.learning_rate(setting.width, sigma, gradient.per_record)
        gaussian: GaussianMechanism[Gradient] = GaussianMechanism(gradient, gradient.sensitivity / (sigma * setting.size))
        return NoisyDescent(gaussian, np.zeros(setting.width), HarmonicSchedule(steps - 1, rate), self.norm)

    def to_dict(self) -> dict[str, Any]:
        return {
            "mechanism": "basic",
            "epsilon": self.epsilon,
            "delta": self.delta,
            "steps": self.steps,
            "calibration": self.calibration,
            "weight": self.weight.to_dict(),
            "radius": self.radius,
            "norm": self.norm,
            **described_plane(self.plane),
            **({} if self.by is None else {"by": self.by}),
        }


@dataclass(frozen=True, slots=True)
class BasicWithModel(StartsFromModel[Basic]):
    """`Basic` with the black box: moments are sharpened by its answers at public points, descents start from its plane, and anchored planes go through
    its answer at the query."""

    def plan(self, point: Vector, setting: Setting, history: History, hint: object = None) -> NoisyDescent | MomentsAnswer:
        del history, hint
        return self.plan_alone(point, setting)

    def plan_alone(self, point: Vector, setting: Setting) -> NoisyDescent | MomentsAnswer:
        anchor = self.anchor_of(self.given.plane, point)
        if chosen_by(self.given, setting) == "moments":
            return answer_by_moments(self.given, point, setting, anchor, PublicModel(self.model))
        return exact_descent(self.given, point, setting, anchor, self.public.plane(setting))


def exact_descent(
    basic: Basic, point: Vector, setting: Setting, anchor: float | None = None, plane: ModelPlane | None = None
) -> NoisyDescent:
    """T-1 noisy gradients that together cost exactly (ε, δ), with steps from public quantities, from the model's plane where there is one."""
    mu = gdp.mu(basic.epsilon, basic.delta)
    gradient: Gradient = paid_gradient(basic, point, setting, anchor)
    most = 2 * MOST if gradient.dimension > setting.width else MOST  # a plane that is free at the query is steeper
    steps = schedule(travel_of(gradient, mu), gradient.curvatures.state, basic.steps and basic.steps - 1, most)
    gaussian = GaussianMechanism(gradient, gdp.part(mu, 1 / steps.gradients))
    if plane is None:
        return NoisyDescent(gaussian, np.zeros(gradient.dimension), steps, basic.norm)
    return NoisyDescent(gaussian, plane.state(gradient), steps, basic.norm, plane.guide(gradient, mu), "model")
