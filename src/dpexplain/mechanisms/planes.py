"""The plane that a mechanism explains by: its kind, the bound on its slopes, and what an answer states about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Vector
from dpexplain.core.ball import Ball
from dpexplain.core.free_plane import radius_for
from dpexplain.core.plane import PAPER_RADIUS, Plane, require_plane
from dpexplain.core.weights import Weight
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.base import Outcome, Setting
from dpexplain.mechanisms.gradient import Gradient, plane_gradient

_NEARLY = 1 - 1e-6


def chosen_plane(plane: Plane | None, calibration: str, weight: Weight) -> Plane:
    """The plane that is asked for: "fitted" unless another is, and the paper's in the paper's own calibration."""
    chosen = require_plane(("paper" if calibration == "paper" else "fitted") if plane is None else plane)
    if calibration == "paper" and chosen != "paper":
        raise ParameterError(f"the paper has no {chosen} planes: leave out calibration='paper' or plane={chosen!r}")
    if chosen == "fitted":
        sensitivity.free_gradient(weight, 1.0, 1.0)  # refuses a weight without a bound at the query
    return chosen


def chosen_radius(radius: float | None, norm: int, plane: Plane | None, weight: Weight) -> float | None:
    """The cap on ‖φ‖ that is asked for, checked; 1 for the paper's plane; None where it is chosen with the plan."""
    chosen = PAPER_RADIUS if radius is None and plane == "paper" else radius
    Ball(1.0 if chosen is None else chosen, norm)
    sensitivity.gradient(weight, 1.0 if chosen is None else chosen)
    return chosen


def described_plane(plane: Plane | None) -> dict[str, Any]:
    """The plane as part of a mechanism's description. The paper's plane is left out, because ledgers that are older than planes have no such entry."""
    return {} if plane in (None, "paper") else {"plane": plane}


def radius_within(
    radius: float | None, point: Vector, setting: Setting, weight: Weight, plane: Plane, anchor: float | None, mu: float
) -> float:
    """The cap that was asked for, or the one that accuracy μ pays for."""
    if radius is not None:
        return radius
    gradient = plane_gradient(point, replace(setting, layout=None), weight, 1.0, plane, anchor)
    return radius_for(gradient.planned_noise / mu)


def require_model(plane: Plane | None) -> None:
    if plane == "anchored":
        raise ParameterError("plane='anchored' needs the model's answer at the query: register the data with model=")


def answer_at(state: Vector, gradient: Gradient, norm: int, details: dict[str, Any]) -> Outcome:
    """The outcome of a descent that ended at `state`. All of it is public: φ was released."""
    intercept = gradient.intercept(state)
    values = state[: gradient.setting.width]
    capped = bool(np.linalg.norm(values, norm) >= gradient.radius * _NEARLY)
    details = details | {"radius": gradient.radius, "capped": capped}
    plane: Plane = "paper" if intercept is None else "fitted" if len(state) > len(values) else "anchored"
    return Outcome(values, details=details, plane=plane, intercept=0.0 if intercept is None else intercept)
