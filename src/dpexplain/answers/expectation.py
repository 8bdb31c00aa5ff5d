"""The expected error of an answer whose mechanism has no error bars: an estimate from public numbers, the same as that of `dpexplain plan`."""

from __future__ import annotations

from collections.abc import Sequence
from math import acos, sin, sqrt, tan
from typing import Any, NamedTuple

import numpy as np

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.privacy.budget import Guarantee
from dpexplain.privacy.expected_quality import Facts, basic_of

_USUAL_LENGTH = 1.0  # of slopes per whole range, in labels


class AskedData(NamedTuple):
    """The data that were asked: their public row count, and whether a model is known."""

    rows: int
    model: bool


def expected_error(
    values: Sequence[float], plane: str | None, about: AskedData, cost: Guarantee, scale: AnswerScale
) -> dict[str, Any]:
    """{"expected": …} for the details of a paid plane: cosine to the exact answer, and the root mean square error of its slopes.

    Empty for other quantities, anchored planes and free answers, for which nothing was measured. If the angle to the exact slopes is θ, then
    their distance is about ‖φ‖ tan θ, shared by all columns. θ is of models with slopes of usual length, and noise does not get less where a model is
    flatter: the distance is at least that of slopes of length 1 that are mostly noise, sin θ.
    """
    if plane not in ("fitted", "paper") or not cost.mu > 0 or not len(values):
        return {}
    found = basic_of(cost, about.rows, len(values), Facts(model=about.model), plane="fitted" if plane == "fitted" else "paper")
    angle = acos(min(max(found.cosine, 0.05), 1.0))
    error = max(float(np.linalg.norm(values)) * tan(angle), _USUAL_LENGTH * sin(angle)) / sqrt(len(values))
    span = "" if found.cosine_interval is None else f", usually {found.cosine_interval[0]:.2f} to {found.cosine_interval[1]:.2f}"
    text = (
        f"This mechanism gives no error bars. A forecast from the numbers of rows and columns and the price, not measured on these data: "
        f"{found.verdict} (cosine to the exact answer about {found.cosine:.2f}{span}), and an error of about "
        f"{scale.format_size(error)} in each effect."
    )
    return {"expected": {"cosine": found.cosine, "cosine_interval": found.cosine_interval, "error": error, "text": text}}
