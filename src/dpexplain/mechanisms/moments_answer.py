"""Answers by noisy moments: a query pays for the sums that a release takes, and its plane, error bars and contributions follow from them.

The sums are those of `mechanisms/moments_plan.py`, with the same bounds (`proofs/release_moments.md`); the whole price of the query pays for them. All
else is post-processing of what was released, by the code that a release uses: the model is asked about public points that are drawn from the released
moments, and the noise is rehearsed for the error bars.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from dpexplain.arguments import quote
from dpexplain.core.arrays import Vector
from dpexplain.core.release_moments import WIDEST_PAID
from dpexplain.errors import ParameterError
from dpexplain.estimation.plane_building import FoundPlane, PlaneQuestion, fit_one_plane
from dpexplain.estimation.planes import Planes
from dpexplain.estimation.public_points import PublicModel
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.moments_plan import SketchPlan, plan_sketch
from dpexplain.mechanisms.released_centres import ReleasedCentres
from dpexplain.mechanisms.setting import Outcome, Setting
from dpexplain.privacy import gdp
from dpexplain.privacy.events import PrivacyEvent

if TYPE_CHECKING:
    from dpexplain.mechanisms.adaptive import Adaptive
    from dpexplain.mechanisms.basic import Basic

By = Literal["moments", "descent"]


@dataclass(frozen=True, slots=True, eq=False)
class MomentsAnswer:
    """A plan: release noisy moments of all rows, then fit the plane at `point` to them."""

    sketch: SketchPlan
    asked: PlaneQuestion
    size: int  # public row count
    model: PublicModel | None = None
    centres: ReleasedCentres | None = None
    events: tuple[PrivacyEvent, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", self.sketch.events)

    def run(self, door: Door) -> Outcome:
        """All after the sums is post-processing of what was released at the door."""
        centre = door.release(self.sketch.centre)
        sketch = self.sketch.run_around(centre, door, self.centres)
        found = fit_one_plane(sketch, self.asked, self.model, door.auxiliary_normal)
        return replace(moments_outcome(found, self.asked, self.size), centre=centre)


def moments_outcome(found: FoundPlane, asked: PlaneQuestion, size: int) -> Outcome:
    """The outcome of the plane that was `found`, from `size` rows."""
    planes = found.planes
    return Outcome(
        values=planes.values[0],
        error=planes.errors[0],
        plane="fitted" if asked.anchor is None else "anchored",
        intercept=float(planes.answer[0]),
        details=_details(found, asked, size),
        added=_contributions(planes, asked.baseline),
        related=found.related,
    )


def _details(found: FoundPlane, asked: PlaneQuestion, size: int) -> dict[str, Any]:
    details: dict[str, Any] = {
        "by": "moments",
        "weight": asked.weight.to_dict(),
        "effective_rows": round(float(found.planes.share[0]) * size),
        "error_parts": found.error_parts,
        "capped": bool(found.planes.capped[0]),
    }
    if asked.radius is not None:
        details["radius"] = asked.radius
    return details if asked.anchor is None else details | {"anchor": asked.anchor}


def _contributions(found: Planes, baseline: Vector | None) -> dict[str, Any]:
    """The contributions of one answer, in labels, as a ledger stores them, and the record that they are compared with, if not the average."""
    return {
        "values": found.added[0].tolist(),
        "error": found.added_errors[0].tolist(),
        "base": float(found.base[0]),
        "base_error": float(found.base_error[0]),
        "answer_error": float(found.answer_error[0]),
        **({} if baseline is None else {"baseline": baseline.tolist()}),
    }


def require_by(asked: Basic | Adaptive) -> None:
    """Raise ParameterError unless the answer can be found by what is asked for."""
    if asked.by is not None and not (isinstance(asked.by, str) and asked.by in ("moments", "descent")):
        raise ParameterError(f"by must be 'moments' or 'descent', got {quote(asked.by)}")
    if asked.by == "moments" and not has_moments(asked):
        raise ParameterError(
            "by='moments' has no steps, no paper's plane, noise or rule, no norm=1, and no radius for anchored planes. Leave one of them out"
        )


def has_moments(asked: Basic | Adaptive) -> bool:
    """Whether moments can answer: they know fitted planes, in a ball of L2 norm or free, and anchored ones that are free."""
    free = asked.plane == "fitted" or (asked.plane == "anchored" and asked.radius is None)
    return free and asked.steps is None and asked.norm == 2 and asked.rule != "paper"


def chosen_by(asked: Basic | Adaptive, setting: Setting) -> By:
    """Moments or descent, from public facts alone: as asked for, or else what is closer on most tables (`docs/notes/interactive.md`)."""
    if asked.by is not None:
        return asked.by
    return "moments" if has_moments(asked) and setting.layout is not None and setting.width <= WIDEST_PAID else "descent"


def answer_by_moments(
    asked: Basic, point: Vector, setting: Setting, anchor: float | None = None, model: PublicModel | None = None
) -> MomentsAnswer:
    """A plan that costs (ε, δ)."""
    if setting.layout is None:
        raise ParameterError("by='moments' needs a declared domain. Leave by= out")
    sketch = plan_sketch(setting.layout, gdp.mu(asked.epsilon, asked.delta), setting, model)
    question = PlaneQuestion(point, asked.weight, anchor, asked.radius, setting.levels, setting.baseline)
    return MomentsAnswer(sketch, question, setting.size, model, setting.centres)
