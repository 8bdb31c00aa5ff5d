"""Answers that pay only for what the history lacks: earlier answers' sums serve again, and the rest is bought. `proofs/shared_sums.md`.

The first answer releases a centre and sums around it at its full price. A later one takes all sums around that centre from the history. Where they
are as precise as a fresh answer's of the same price, it reads no row and costs nothing; else it buys further sums around the same centre for the
difference in μ². Which of these happens follows from what was released and from public numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import scipy

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.core.marginals import NumberCounts
from dpexplain.core.uniforms import Uniforms
from dpexplain.errors import ParameterError
from dpexplain.estimation.moment_planes import MomentPlanes
from dpexplain.estimation.plane_building import GUESSED, PlaneQuestion, build_planes_for, plane_at
from dpexplain.estimation.public_points import PublicModel
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.model_start import spread_points
from dpexplain.mechanisms.moments_answer import moments_outcome
from dpexplain.mechanisms.moments_plan import SketchPlan, plan_sketch
from dpexplain.mechanisms.setting import Outcome, Setting
from dpexplain.mechanisms.shared_sums import NoisyNumbers, PaidSums, SumPool
from dpexplain.privacy import gdp
from dpexplain.privacy.events import PrivacyEvent

if TYPE_CHECKING:
    from dpexplain.mechanisms.adaptive import Adaptive

NEGLIGIBLE = 1e-4  # of the price: an answer that lacks less is free
WORTHWHILE = 0.05  # of the price: where the history holds less, its centre is too noisy to buy further sums around
_ASKED = 256  # public points at which a model is recognised
_ROUNDED = 3  # decimals of its answers there, so that machines that add in another order agree


@dataclass(frozen=True, slots=True, eq=False)
class SharedAnswer:
    """A plan: release what is `lacking`, if anything is, then fit the plane at a point to that and to the sums `held`."""

    held: SumPool | None
    lacking: SketchPlan | None
    labels: str
    asked: PlaneQuestion
    layout: Layout
    size: int  # public row count
    history: History
    model: PublicModel | None = None
    events: tuple[PrivacyEvent, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", () if self.lacking is None else self.lacking.events)

    def run(self, door: Door) -> Outcome:
        """All after the sums is post-processing, and a function of them alone: the same question gets the same answer while nothing more is bought."""
        bought = None if self.lacking is None else self.buy(self.lacking, door)
        outcome = answer_from_pool(self._pool_with(bought), self.asked, self.history, self.model)
        return outcome if bought is None else replace(outcome, sums=bought.to_dict())

    def buy(self, lacking: SketchPlan, door: Door) -> PaidSums:
        """All releases are rounded first, so that this answer is computed from what is stored."""
        centre = NoisyNumbers.from_release(door.release(lacking.centre), lacking.centre.sigma)
        query = lacking.query_after(centre.values, door) if self.held is None else self.held.query
        moments = NoisyNumbers.from_release(door.release(lacking.moments, query), lacking.moments.sigma)
        around = None if self.held is None else self.held.centre_name
        return PaidSums(self.labels, self.size, centre, moments, around, query.expected, _stored_counts(query.margins))

    def _pool_with(self, bought: PaidSums | None) -> SumPool:
        if bought is None:
            if self.held is None:
                raise ParameterError("there are no sums to answer from. Plan with what is lacking")
            return self.held
        return SumPool((bought,), self.layout) if self.held is None else self.held.with_part(bought)


def _stored_counts(counted: NumberCounts | None) -> NoisyNumbers | None:
    return None if counted is None else NoisyNumbers.from_release(np.concatenate(counted.shares), counted.sigma)


def plan_shared_answer(
    asked: Adaptive,
    point: Vector,
    setting: Setting,
    history: History,
    anchor: float | None = None,
    model: PublicModel | None = None,
) -> SharedAnswer:
    """A plan that costs what the history lacks, and at most (ε, δ)."""
    layout = setting.layout
    if layout is None:
        raise ParameterError("by='moments' needs a declared domain. Leave by= out")
    name = history_label_name(history, model, layout, setting.levels)
    fresh = fresh_sketch(asked, layout, setting, history, model)
    held = history.pool(layout, name, setting.size)
    share = 1 - (0.0 if held is None else held.precision * fresh.moments.sigma**2)
    if share > 1 - WORTHWHILE:
        held, lacking = None, fresh
    elif share > NEGLIGIBLE:
        bought = share - NEGLIGIBLE / 2  # a little less, so that rounding leaves the total below the price
        lacking = plan_sketch(layout, gdp.part(gdp.mu(asked.epsilon, asked.delta), bought), setting)
    else:
        lacking = None
    question = PlaneQuestion(point, asked.weight, anchor, asked.radius, setting.levels, setting.baseline)
    return SharedAnswer(held, lacking, name, question, layout, setting.size, history, model)


def fresh_sketch(asked: Adaptive, layout: Layout, setting: Setting, history: History, model: PublicModel | None) -> SketchPlan:
    """What an answer would buy if nothing were held. It does not depend on the question, and is cached in the history."""
    key = asked.epsilon, asked.delta, layout, setting, None if model is None else model.model
    return history.sketches.find(key, lambda: plan_sketch(layout, gdp.mu(asked.epsilon, asked.delta), setting, model))


def answer_from_pool(pool: SumPool, asked: PlaneQuestion, history: History, model: PublicModel | None) -> Outcome:
    """The plane at a point, from pooled sums. Planes are built once for each pool, and cached in the history."""
    key = pool.digest, model is None, None if asked.baseline is None else asked.baseline.tobytes()
    found = plane_at(history.planes.find(key, lambda: build_shared_planes(pool, asked, model)), asked)
    outcome = moments_outcome(found, asked, pool.parts[0].size)
    return replace(outcome, details=outcome.details | {"pooled": len(pool.parts)})


@dataclass(frozen=True, slots=True, eq=False)
class HeldSums:
    """The sums that a history holds about the labels it was last asked about, and the model of these labels where it is known."""

    pool: SumPool
    model: PublicModel | None

    @classmethod
    def of(cls, history: History) -> HeldSums | None:
        """None where there is no domain, or nothing to answer from."""
        if history.domain is None or not history.sums:
            return None
        last, layout = history.sums[-1], Layout.of(history.domain.blocks)
        pool = history.pool(layout, last.labels, last.size)
        model = None if history.model is None else PublicModel(history.model)
        known = history_label_name(history, model, layout, getattr(history.domain, "levels", ())) == last.labels
        return None if pool is None else cls(pool, model if known else None)

    def can_answer(self, plane: str) -> bool:
        """Anchored planes need the model's answer at the query."""
        return plane == "fitted" or (plane == "anchored" and self.model is not None)

    def answer(self, history: History, asked: PlaneQuestion, plane: str) -> Outcome:
        """The plane of this kind at a point. It costs nothing."""
        if plane == "anchored" and self.model is not None:
            asked = replace(asked, anchor=float(np.clip(self.model.model(asked.point[None])[0], -1.0, 1.0)))
        return answer_from_pool(self.pool, asked, history, self.model)


def build_shared_planes(pool: SumPool, asked: PlaneQuestion, model: PublicModel | None) -> MomentPlanes:
    """Rehearsals draw public pseudo-random numbers, so that every process builds the same planes."""
    uniforms = Uniforms()

    def normals(count: int) -> Vector:
        return np.asarray(scipy.special.ndtri(uniforms.take(count)))

    return build_planes_for(pool.sketch(asked.levels), asked, model, normals, GUESSED)


def history_label_name(history: History, model: PublicModel | None, layout: Layout, levels: Sequence[int]) -> str:
    """`label_name` of a history's answers, cached, so that a model is asked once."""
    key = None if model is None else model.model
    return history.label_names.find((key, layout), lambda: label_name(history.answer_scale, model, layout, levels))


def label_name(scale: AnswerScale, model: PublicModel | None, layout: Layout, levels: Sequence[int]) -> str:
    """A name for the answers that are summed: sums over another model's answers must not be used.

    It is a digest of the answers' scale and of what the model answers about a few public points, spread evenly over the domain. Labels that were
    computed elsewhere have no model to ask: their owner gives other labels another data set name or ledger.
    """
    text = repr(sorted(scale.to_dict().items()))
    if model is not None:
        answers = _answers_at(model, _declared_points(layout, levels))
        text += np.array2string(np.round(answers, _ROUNDED) + 0.0, threshold=2 * _ASKED, precision=_ROUNDED)
    return sha256(text.encode()).hexdigest()[:16]


def _declared_points(layout: Layout, levels: Sequence[int]) -> Matrix:
    """Public points over the domain, ordered features at declared levels: there is no record between two of them."""
    points = spread_points(layout, _ASKED)
    for attribute, count in enumerate(levels):
        if count > 1:
            column = layout.columns(attribute)
            points[:, column] = np.rint(points[:, column] * (count - 1)) / (count - 1)
    return points


def _answers_at(model: PublicModel, points: Matrix) -> Vector:
    """Empty where the model raises, whatever it raises about points that no row may have."""
    try:
        return np.asarray(model.model(points), dtype=np.float64)
    except Exception:
        return np.empty(0)
