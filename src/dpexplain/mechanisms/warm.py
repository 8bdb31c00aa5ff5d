"""Noisy descent from a start that is near the answer: fewer steps, at a lower price."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from dpexplain.mechanisms.basic import NoisyDescent
from dpexplain.mechanisms.descent import Schedule
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.gradient import Gradient
from dpexplain.mechanisms.model_start import ModelPlane
from dpexplain.mechanisms.plane_choice import travel_of
from dpexplain.mechanisms.ports import Plan
from dpexplain.mechanisms.setting import Outcome
from dpexplain.mechanisms.start import Start, cold_start
from dpexplain.privacy import gdp
from dpexplain.privacy.events import PrivacyEvent

if TYPE_CHECKING:
    from dpexplain.mechanisms.adaptive import Adaptive


_FEWEST = 20
_NOISY_POWER = 0.25  # more than the root's, of a start's distance, where noise dominates


@dataclass(frozen=True, slots=True)
class WithDetails:
    """A plan with further public facts for the answer's details."""

    plan: Plan[Outcome]
    details: dict[str, Any]

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return self.plan.events

    def run(self, door: Door) -> Outcome:
        outcome = self.plan.run(door)
        return replace(outcome, details={**outcome.details, **self.details})


def warm_plan(parameters: Adaptive, gradient: Gradient, start: Start, share: float, plane: ModelPlane | None) -> WithDetails:
    """A plan at `share` of (ε, δ)'s μ², with the schedule that Basic has in a ball of radius √`start.distance`·k and at most T-1 gradients.

    The root is used because predictions err most where the curvature is small and the distance long. With `start.distance` itself, answers were
    worse than fresh ones of the same price where noise is small (`tests/statistical/test_reuse.py`). Where noise dominates, the root mostly adds noise
    to the answer, and the next predictions, which miss that noise, cost more: the paper's plane takes the power 3/4 there.
    """
    descent = _descent(parameters, gradient, start, share, None)
    if plane is not None:
        mu = gdp.part(gdp.mu(parameters.epsilon, parameters.delta), share)
        descent = replace(descent, guide=plane.guide(gradient, mu, sqrt(start.distance)))
    return WithDetails(descent, {"start": start.kind, "distance": start.distance, "share": share})


def cold_plan(parameters: Adaptive, gradient: Gradient) -> WithDetails:
    """The plan of the first query: it starts at zero, takes all T-1 gradients and costs (ε, δ)."""
    descent = _descent(parameters, gradient, cold_start(gradient.dimension), 1.0, parameters.most_steps - 1)
    return WithDetails(descent, {"start": "cold"})


def _descent(parameters: Adaptive, gradient: Gradient, start: Start, share: float, gradients: int | None) -> NoisyDescent:
    mu = gdp.part(gdp.mu(parameters.epsilon, parameters.delta), share)
    noisy_share = start.distance**_NOISY_POWER if parameters.plane == "paper" else 1.0
    steepest, travel = gradient.curvatures.state, travel_of(gradient, mu, sqrt(start.distance), noisy_share)
    count = gradients or min(max(ceil(2 * travel * steepest), _FEWEST), parameters.most_steps - 1)
    gaussian = GaussianMechanism(gradient, gdp.part(mu, 1 / count))
    return NoisyDescent(gaussian, np.array(start.values), Schedule(count, travel, steepest), parameters.norm)
