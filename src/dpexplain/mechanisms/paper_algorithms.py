"""Algorithms 2 and 3 to the letter: exponential mechanism over the history, exact β, the paper's σ and bookkeeping. Not private.

β decides T' and σ without noise, and both show in what is spent and in how long it takes (SPEC §9.1). For reproduction only.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.ball import Ball
from dpexplain.core.descent import HarmonicSchedule, descend
from dpexplain.core.moments import LocalMoments, Moments
from dpexplain.mechanisms.base import Outcome, Plan, Setting
from dpexplain.mechanisms.basic import NoisyDescent
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.ports import Noise, Rows
from dpexplain.mechanisms.warm import Parameters, Told, gradient_reach
from dpexplain.privacy import paper
from dpexplain.privacy.events import GaussianEvent, PrivacyEvent, PureEvent
from dpexplain.privacy.paper import Bookkeeping


@dataclass(frozen=True, slots=True)
class Quoted:
    """The constants of Algorithm 2 for one setting."""

    epsilon: float
    delta: float
    steps: int
    size: int
    dimension: int
    reach: float  # of one record on the gradient sum; the paper assumes 1

    @property
    def step_epsilon(self) -> float:
        return paper.step_epsilon(self.epsilon, self.delta, self.steps)

    @property
    def sigma_min(self) -> float:
        return paper.adaptive_sigma(self.size, self.epsilon, self.delta, self.steps)

    def gaussian(self, sigma: float) -> GaussianMechanism:
        """The paper's noise, charged at what it really costs."""
        return GaussianMechanism(self.reach, self.dimension, self.reach / (sigma * self.size))

    def booked(self, before: Bookkeeping, sigma: float, gradients: int, selected: bool) -> dict[str, Any]:
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


@dataclass(frozen=True, slots=True)
class LiteralDescent:
    """A plan with Algorithm 3's parameter selection inside."""

    query: LocalMoments
    candidates: Matrix  # past answers, one a row
    quoted: Quoted
    before: Bookkeeping
    only_beta: bool
    ball: Ball

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        floor = sqrt(self.quoted.dimension) * self.quoted.sigma_min
        steps = self.quoted.steps
        most = min(max(ceil(floor * sqrt(log(steps)) * steps), 1), steps - 1)
        return (self._selection, _event(self.quoted.gaussian(self.quoted.sigma_min), most))

    @property
    def _selection(self) -> PrivacyEvent:
        """exp(-m ε_ite ‖∇L‖/2), whose score one record moves by reach/m, is (ε_ite · reach)-DP."""
        return PureEvent("starting point", self.quoted.step_epsilon * self.quoted.reach)

    def run(self, rows: Rows, noise: Noise) -> Outcome:
        moments, quoted = rows.local(self.query), self.quoted
        start = self.select(moments, noise)
        beta = float(np.linalg.norm(moments.gradient(start))) / quoted.size
        sigma, rate, iterations = self.settings(beta)
        gaussian = quoted.gaussian(sigma)
        release = gaussian.releases(noise, iterations - 1)

        def noisy_gradient(phi: Vector) -> Vector:
            return release(moments.gradient(phi)) / quoted.size

        values = descend(start, HarmonicSchedule(iterations - 1, rate).steps, noisy_gradient, self.ball)
        told = {
            "start": "selected",
            "gradients": iterations - 1,
            "exact_beta": beta,
            "paper": quoted.booked(self.before, sigma, iterations - 1, selected=True),
        }
        return Outcome(values, (self._selection, _event(gaussian, iterations - 1)), details=told)

    def select(self, moments: Moments, noise: Noise) -> Vector:
        """A past answer with probability ∝ exp(-m ε_ite ‖∇L‖/2): the largest of the exponents plus Gumbel noise."""
        norms = np.linalg.norm(2 * (self.candidates @ moments.A - moments.b), axis=1)  # m ‖∇L‖
        gumbel = -np.log(-np.log(noise.uniform(len(norms))))
        chosen: Vector = self.candidates[int(np.argmax(gumbel - self.quoted.step_epsilon * norms / 2))]
        return chosen

    def settings(self, beta: float) -> tuple[float, float, int]:
        """(σ, step constant, T') of Algorithm 3."""
        quoted = self.quoted
        root = sqrt(quoted.dimension)
        quiet = beta <= root * quoted.sigma_min * (1 + 1e-9)
        sigma = quoted.sigma_min if quiet else beta / root
        rate = paper.warm_rate(quoted.dimension, sigma, beta, quoted.steps)
        return sigma, rate, paper.iterations(beta if self.only_beta else root * sigma, quoted.steps)


def literal_plan(parameters: Parameters, point: Vector, setting: Setting, history: History) -> Plan:
    """Algorithm 3 on this history, or DPGrad from zero with σ_min and T when it is empty."""
    reach = gradient_reach(parameters, setting)
    quoted = Quoted(parameters.epsilon, parameters.delta, parameters.steps, setting.size, setting.width, reach)
    query, before = LocalMoments(point, parameters.weight), _booked_before(history)
    if history.computed:
        candidates = history.latest(history.computed)[1]
        return LiteralDescent(query, candidates, quoted, before, parameters.only_beta, parameters.ball)
    sigma = quoted.sigma_min
    rate = paper.learning_rate(setting.width, sigma, sensitivity.gradient(parameters.weight, parameters.radius))
    schedule = HarmonicSchedule(parameters.steps - 1, rate)
    first = NoisyDescent(query, np.zeros(setting.width), schedule, quoted.gaussian(sigma), parameters.ball, setting.size)
    return Told(first, {"start": "cold", "paper": quoted.booked(before, sigma, parameters.steps - 1, selected=False)})


def _booked_before(history: History) -> Bookkeeping:
    """The running sums in the last answer that was computed."""
    for released in reversed(history):
        if not released.copied and "paper" in released.details:
            return Bookkeeping(**released.details["paper"]["sums"])
    return Bookkeeping()


def _event(gaussian: GaussianMechanism, count: int) -> PrivacyEvent:
    return GaussianEvent("gradient", gaussian.rounded_sensitivity, gaussian.sigma, count)
