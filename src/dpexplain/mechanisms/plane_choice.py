"""The plane of a mechanism's explanations: its kind, the bound on its slopes, and what an answer states about it."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.plane import PAPER_RADIUS, Plane
from dpexplain.core.plane_bounds import require_bounded
from dpexplain.core.weights import Weight
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.descent import free_travel_length, travel_length
from dpexplain.mechanisms.gradient import FreeGradientSum, Gradient, GradientSum, plane_gradient
from dpexplain.mechanisms.setting import Outcome, Setting
from dpexplain.privacy import gdp

if TYPE_CHECKING:
    from dpexplain.mechanisms.adaptive import Adaptive
    from dpexplain.mechanisms.basic import Basic

LEAST_RADIUS, LARGEST_RADIUS = 2.0, 20.0
_PER_ROOT = 0.3  # the cap times the root of the noise on one gradient
QUIET = 1 / 350  # noise on one gradient below which weights are flat up to a shorter distance
_USUAL_CURVATURE = 0.41  # of the default weight in a table of about ten columns, where the number above was found
_FLAT_SHARE = 0.4  # of how far apart codes can be
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
        raise ParameterError(f"calibration='paper' has no {chosen} planes. Leave out calibration='paper' or plane={chosen!r}")
    return chosen, PAPER_RADIUS if radius is None and chosen == "paper" else radius


def described_plane(plane: Plane | None) -> dict[str, Any]:
    """The plane as part of a mechanism's description. The paper's plane is left out, because ledgers that are older than planes have no such entry."""
    return {} if plane in (None, "paper") else {"plane": plane}


def paid_gradient(
    asked: Basic | Adaptive, point: Vector, setting: Setting, anchor: float | None = None
) -> GradientSum | FreeGradientSum:
    """The gradient whose noisy values a descent takes: of the plane that was asked for, with the weight and the cap on ‖φ‖ that suit what is paid.

    Both follow from public numbers, and every admissible weight has its own bound, so privacy and price do not depend on the choice.
    """
    plane, radius, flat = asked.plane or "fitted", asked.radius, 0.0
    if plane != "paper":
        mu = gdp.mu(asked.epsilon, asked.delta)
        flat = flat_distance(unit_noise(plane_gradient(point, setting, asked.weight, 1.0, plane, anchor)) / mu, setting)
        if radius is None:
            radius = radius_for(unit_noise(plane_gradient(point, setting, asked.weight, 1.0, plane, anchor, flat)) / mu)
    return plane_gradient(point, setting, asked.weight, PAPER_RADIUS if radius is None else radius, plane, anchor, flat)


def unit_noise(gradient: Gradient) -> float:
    """The length of the noise on one mean gradient at μ = 1, in units of the usual curvature."""
    return gradient.planned_noise * gradient.setting.largest_scale * _USUAL_CURVATURE / gradient.curvatures.slopes


def travel_of(gradient: Gradient, mu: float, way: float = 1.0, noisy_share: float = 1.0) -> float:
    """How far a descent at accuracy μ should walk, in units of its steps; `way` is the share of the way that is left from its start.

    Through a given point, only `noisy_share` of that is walked where noise dominates.
    """
    curvature, width = gradient.curvatures.slopes, gradient.setting.width
    accuracy = way * mu / gradient.noise_norm
    if gradient.dimension > width:
        return free_travel_length(accuracy / gradient.setting.largest_scale, curvature)
    return travel_length(accuracy * gradient.radius, width, curvature, noisy_share)


def radius_for(noise: float) -> float:
    """The default cap on ‖φ‖ where one mean gradient that takes the whole budget has noise of this length, in units of the usual curvature.

    Noise at a known φ depends on φ and not on the cap, so a larger cap does not add noise by itself. But the larger φ may become, the farther the
    descent follows noise in directions that records hardly determine: the cap grows with the accuracy that is paid for. Numbers whose declared range is
    wider than what rows use need long slopes, which a smaller cap would cut (`docs/notes/interactive.md`).
    """
    return min(max(_PER_ROOT / sqrt(noise), LEAST_RADIUS), LARGEST_RADIUS)


def flat_distance(noise: float, setting: Setting) -> float:
    """The distance within which all records have the same weight, at the noise of `radius_for`.

    The sensitivity is that of a record near the query, where α(d)d is largest; but records with several codes are rarely that near. Weights that are flat
    up to a share of the largest distance between codes reduce the noise, and change the answer little; the share falls with the noise.
    """
    if setting.layout is None:
        return 0.0
    farthest = min(_FLAT_SHARE * setting.layout.codes_apart, sqrt(2) * setting.largest_scale)
    return farthest * min(noise / QUIET, 1.0)


def require_model(plane: Plane | None) -> None:
    if plane == "anchored":
        raise ParameterError("plane='anchored' needs the model's answer at the query. Register the data with model=")


def answer_at(state: Vector, gradient: Gradient, norm: int, details: dict[str, Any]) -> Outcome:
    """The outcome of a descent that ended at `state`. All of it is public: φ was released."""
    intercept = gradient.intercept(state)
    setting = gradient.setting
    inside, values = state[: setting.width], setting.out_of_scaled(state[: setting.width])
    capped = bool(np.linalg.norm(inside, norm) >= gradient.radius * _NEARLY)
    details = details | {"radius": gradient.radius * setting.largest_scale, "capped": capped}
    plane: Plane = "paper" if intercept is None else "fitted" if len(state) > len(values) else "anchored"
    if plane != "paper":
        details |= {"weight": gradient.local.weight.to_dict()}  # may be flat farther than the weight asked for
    return Outcome(values, details=details, plane=plane, intercept=0.0 if intercept is None else intercept)
