"""The plane that a mechanism explains by: its kind, the bound on its slopes, and what an answer states about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.plane import PAPER_RADIUS, Plane
from dpexplain.core.plane_bounds import require_bounded
from dpexplain.core.weights import Weight
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.gradient import Gradient, plane_gradient
from dpexplain.mechanisms.setting import Outcome, Setting

LEAST_RADIUS, LARGEST_RADIUS = 1.0, 20.0
_PER_UNIT = 70.0  # 1/(noise on one gradient) that each unit of the cap takes
_USUAL_CURVATURE = 0.41  # of the default weight in a table of about ten columns, where the number above was found
_NEARLY = 1 - 1e-6


def choose_plane(
    plane: Plane | None, radius: float | None, norm: int, calibration: str, weight: Weight
) -> tuple[Plane, float | None]:
    """The plane that is asked for and the cap on ‖φ‖, both checked.

    The plane is "fitted" unless another is asked for, and the paper's in the paper's own calibration. The cap is 1 for the paper's plane; None where
    it is chosen with the plan.
    """
    wanted = ("paper" if calibration == "paper" else "fitted") if plane is None else plane
    chosen = require_bounded(wanted, 1.0 if radius is None else radius, norm, weight)
    if calibration == "paper" and chosen != "paper":
        raise ParameterError(f"the paper has no {chosen} planes: leave out calibration='paper' or plane={chosen!r}")
    return chosen, PAPER_RADIUS if radius is None and chosen == "paper" else radius


def described_plane(plane: Plane | None) -> dict[str, Any]:
    """The plane as part of a mechanism's description. The paper's plane is left out, because ledgers that are older than planes have no such entry."""
    return {} if plane in (None, "paper") else {"plane": plane}


def radius_within(
    radius: float | None, point: Vector, setting: Setting, weight: Weight, plane: Plane, anchor: float | None, mu: float
) -> float:
    """The cap that was asked for, or the one that accuracy μ pays for."""
    if radius is not None:
        return radius
    gradient = plane_gradient(point, setting, weight, 1.0, plane, anchor)
    return radius_for(gradient.planned_noise / mu * setting.largest_scale * _USUAL_CURVATURE / gradient.curvatures.slopes)


def radius_for(noise: float) -> float:
    """The default cap on ‖φ‖ where one mean gradient that takes the whole budget has noise of this length, in units of the usual curvature.

    Noise at a known φ depends on φ and not on the cap, so a cap costs nothing by itself. But the larger φ may become, the more directions that
    records hardly determine are followed, and filled with noise: the cap grows with the accuracy that is paid for. Numbers whose declared range is
    wider than what rows use need long slopes, which a smaller cap would cut (`docs/notes/interactive.md`).
    """
    return min(max(1 / (noise * _PER_UNIT), LEAST_RADIUS), LARGEST_RADIUS)


def require_model(plane: Plane | None) -> None:
    if plane == "anchored":
        raise ParameterError("plane='anchored' needs the model's answer at the query: register the data with model=")


def answer_at(state: Vector, gradient: Gradient, norm: int, details: dict[str, Any]) -> Outcome:
    """The outcome of a descent that ended at `state`. All of it is public: φ was released."""
    intercept = gradient.intercept(state)
    setting = gradient.setting
    inside, values = state[: setting.width], setting.out_of_scaled(state[: setting.width])
    capped = bool(np.linalg.norm(inside, norm) >= gradient.radius * _NEARLY)
    details = details | {"radius": gradient.radius * setting.largest_scale, "capped": capped}
    plane: Plane = "paper" if intercept is None else "fitted" if len(state) > len(values) else "anchored"
    return Outcome(values, details=details, plane=plane, intercept=0.0 if intercept is None else intercept)
