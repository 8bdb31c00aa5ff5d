"""Algorithms 2 and 3 to the letter: exponential mechanism over the history, exact β, the paper's σ and bookkeeping. Not private.

β decides T' and σ without noise, and both show in what is spent and in how long it takes (SPEC §9.1). For reproduction only.

With `stop_at`, Algorithm 2's own (ε, δ), the stream ends where its test says so: ε_spent > ε or δ_spent ≥ δ, the answer in question included, which is
then not reported. An explainer's `Budget` stops by exact accounting beside it, and before.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.moments import LocalMoments
from dpexplain.mechanisms.basic import NoisyDescent
from dpexplain.mechanisms.descent import HarmonicSchedule, descend
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.gradient import Gradient, GradientSum, Place
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.plane_choice import answer_at
from dpexplain.mechanisms.ports import Plan, Rows
from dpexplain.mechanisms.setting import Outcome
from dpexplain.mechanisms.warm import WithDetails
from dpexplain.privacy import paper
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.events import PrivacyEvent, PureEvent
from dpexplain.privacy.paper import Bookkeeping

if TYPE_CHECKING:
    from dpexplain.mechanisms.adaptive import Adaptive


@dataclass(frozen=True, slots=True)
class PaperConstants:
    """The constants of Algorithm 2 for one setting."""

    epsilon: float
    delta: float
    steps: int
    gradient: GradientSum  # one record moves it by its sensitivity; the paper assumes 1

    @property
    def size(self) -> int:
        return self.gradient.setting.size

    @property
    def dimension(self) -> int:
        return self.gradient.dimension

    @property
    def step_epsilon(self) -> float:
        return paper.step_epsilon(self.epsilon, self.delta, self.steps)

    @property
    def sigma_min(self) -> float:
        return paper.adaptive_sigma(self.size, self.epsilon, self.delta, self.steps)

    def gaussian(self, sigma: float) -> GaussianMechanism[GradientSum]:
        """The paper's noise, charged at what it really costs."""
        return GaussianMechanism(self.gradient, self.gradient.sensitivity / (sigma * self.size))

    def account_for(self, before: Bookkeeping, sigma: float, gradients: int, selected: bool) -> dict[str, Any]:
        """ε and δ of this answer and of all so far, by the paper's bookkeeping: strong composition with slack δ_min/2."""
        own = Bookkeeping().add(self.step_epsilon) if selected else Bookkeeping()
        each, slack = paper.gradient_epsilon(self.size, sigma, self.delta, self.steps), self.delta / 2
        delta = self.delta / (2 * self.steps)
        own = own.add(each, delta, gradients)
        total = before.add(self.step_epsilon) if selected else before
        total = total.add(each, delta, gradients)
        return {
            "epsilon": own.epsilon(slack),
            "delta": own.deltas + slack,
            "total_epsilon": total.epsilon(slack),
            "total_delta": total.deltas + slack,
            "sums": total.to_dict(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class StartingPoint:
    """Past answers with probability ∝ exp(-m ε_ite ‖∇L‖/2). One record moves the score by Δ/m, so that it is (ε_ite · Δ)-DP."""

    gradient: GradientSum
    candidates: Matrix  # past answers, one a row
    epsilon: float

    @property
    def event(self) -> PrivacyEvent:
        return PureEvent("starting point", self.epsilon * self.gradient.sensitivity)

    def exponents(self, rows: Rows) -> Vector:
        moments = rows.local(self.gradient.local).scale_columns(self.gradient.setting.scale)
        norms = np.linalg.norm(2 * (self.candidates @ moments.A - moments.b), axis=1)  # m ‖∇L‖
        return np.asarray(-self.epsilon * norms / 2)


@dataclass(frozen=True, slots=True)
class Ended:
    """A plan that reads no row and has no answer: the stopping rule has ended the stream at these totals."""

    totals: dict[str, Any]

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return ()

    def run(self, door: Door) -> Outcome:
        del door
        return _no_answer(self.totals)


@dataclass(frozen=True, slots=True)
class PaperDescent:
    """A plan with Algorithm 3's parameter selection inside."""

    selection: StartingPoint
    constants: PaperConstants
    before: Bookkeeping
    only_beta: bool
    norm: int
    stop_at: Budget | None = None

    @property
    def query(self) -> LocalMoments:
        return self.constants.gradient.local

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        floor = sqrt(self.constants.dimension) * self.constants.sigma_min
        steps = self.constants.steps
        most = min(max(ceil(floor * sqrt(log(steps)) * steps), 1), steps - 1)
        return (self.selection.event, self.constants.gaussian(self.constants.sigma_min).event(most))

    def run(self, door: Door) -> Outcome:
        constants = self.constants
        start: Vector = self.selection.candidates[door.select(self.selection)]
        beta = float(np.linalg.norm(door.exact(constants.gradient, Place(start)))) / constants.size
        sigma, rate, iterations = self.settings(beta)
        totals = constants.account_for(self.before, sigma, iterations - 1, selected=True)
        if is_stopped(totals, self.stop_at):  # its gradients would not be reported, so they are not taken
            return _no_answer(_with_limit(totals, self.stop_at))
        release = door.releases(constants.gaussian(sigma), iterations - 1)
        steps = HarmonicSchedule(iterations - 1, rate).steps
        state = descend(start, steps, lambda phi: release(Place(phi)) / constants.size, constants.gradient.feasible(self.norm))
        details = {
            "start": "selected",
            "gradients": iterations - 1,
            "exact_beta": beta,
            "paper": totals,
        }
        return answer_at(state, constants.gradient, self.norm, details)

    def settings(self, beta: float) -> tuple[float, float, int]:
        """(σ, step constant, T') of Algorithm 3."""
        constants = self.constants
        root = sqrt(constants.dimension)
        quiet = beta <= root * constants.sigma_min * (1 + 1e-9)
        sigma = constants.sigma_min if quiet else beta / root
        rate = paper.warm_rate(constants.dimension, sigma, beta, constants.steps)
        return sigma, rate, paper.iterations(beta if self.only_beta else root * sigma, constants.steps)


def paper_plan(parameters: Adaptive, gradient: GradientSum, history: History) -> Plan[Outcome]:
    """Algorithm 3 on this history, or DPGrad from zero with σ_min and T when it is empty."""
    constants, before = (
        PaperConstants(parameters.epsilon, parameters.delta, parameters.most_steps, gradient),
        _last_bookkeeping(history),
    )
    if history.computed_count:
        ball = gradient.feasible(parameters.norm)
        candidates = np.array(
            [ball.project(gradient.setting.into_scaled(one.state)) for one in history]
        )  # copies too, as in the paper
        selection = StartingPoint(gradient, candidates, constants.step_epsilon)
        return PaperDescent(selection, constants, before, parameters.only_beta, parameters.norm, parameters.stop_at)
    sigma = constants.sigma_min
    totals = constants.account_for(before, sigma, parameters.most_steps - 1, selected=False)
    if is_stopped(totals, parameters.stop_at):  # β has no part in a first answer: this is known before a row is read
        return Ended(_with_limit(totals, parameters.stop_at))
    rate = paper.learning_rate(gradient.dimension, sigma, gradient.per_record)
    schedule = HarmonicSchedule(parameters.most_steps - 1, rate)
    gaussian: GaussianMechanism[Gradient] = constants.gaussian(sigma)  # type: ignore[assignment]
    first = NoisyDescent(gaussian, np.zeros(gradient.dimension), schedule, parameters.norm)
    return WithDetails(first, {"start": "cold", "paper": totals})


def plan_end(stop_at: Budget | None, history: History) -> Ended | None:
    """A plan that answers nothing where the stream has ended; None while it goes on. Copies end too: Algorithm 2 leaves its loop."""
    totals = history.stopped
    return Ended(_with_limit(totals, stop_at)) if totals is not None and is_stopped(totals, stop_at) else None


def is_stopped(totals: dict[str, Any], stop_at: Budget | None) -> bool:
    """Algorithm 2's test of ε_spent and δ_spent; without limits it never stops."""
    if stop_at is None:
        return False
    return paper.is_exhausted(totals["total_epsilon"], totals["total_delta"], stop_at.epsilon, stop_at.delta)


def _with_limit(totals: dict[str, Any], stop_at: Budget | None) -> dict[str, Any]:
    return totals if stop_at is None else totals | {"stop_at": {"epsilon": stop_at.epsilon, "delta": stop_at.delta}}


def _no_answer(totals: dict[str, Any]) -> Outcome:
    return Outcome(np.empty(0), stopped=True, details={"start": "stopped", "gradients": 0, "paper": totals})


def _last_bookkeeping(history: History) -> Bookkeeping:
    """The running sums after the last answer that was computed, reported or not."""
    reported = (one.details["paper"] for one in reversed(history) if not one.copied and "paper" in one.details)
    known = [totals for totals in (next(reported, None), history.stopped) if totals is not None]
    return max((Bookkeeping(**totals["sums"]) for totals in known), key=lambda one: one.squares, default=Bookkeeping())
