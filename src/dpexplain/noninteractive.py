"""Explanations computed from released answers alone. They cost nothing, also when the budget is exhausted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpexplain.answers.baseline import contributions_of, declared_baseline
from dpexplain.answers.expectation import AskedData
from dpexplain.answers.explanation import Explanation
from dpexplain.answers.paid import PaidExplanations, answer_in_batches
from dpexplain.answers.stored import explanation_of, stored_answer
from dpexplain.arguments import quote
from dpexplain.core.arrays import Vector
from dpexplain.core.ball import Ball
from dpexplain.core.plane import PAPER_RADIUS, Plane, require_plane
from dpexplain.core.weights import DEFAULT_WEIGHT, Weight, from_dict
from dpexplain.domain import DomainLike, QueryRules, read_queries, read_query
from dpexplain.domain.queries import Notes
from dpexplain.errors import ParameterError, QueryError
from dpexplain.estimation.plane_building import PlaneQuestion
from dpexplain.mechanisms.history import History, ReleasedAnswer
from dpexplain.mechanisms.history_prediction import Method, predict
from dpexplain.mechanisms.shared_answer import HeldSums
from dpexplain.privacy.budget import Guarantee
from dpexplain.privacy.relation import Neighbours

METHODS = ("moments", "regression", "labels", "neighbour")


class NonInteractive:
    """Answers new queries from a history: `NonInteractive(explainer.history).explain(record)`.

    method="moments" fits the plane to the sums that adaptive answers released, as those answers do, with error bars and contributions; it is the default
    where the history holds such sums. method="regression", the default elsewhere, predicts φ from z by ridge regression over the computed answers, with
    leave-one-out errors. method="labels" is the paper's non-interactive phase: the local loss on points z_j, with the planes' answers there for labels.
    method="neighbour" returns the nearest answer. `docs/interactive.md` compares them.

    Answers are planes of the same kind as the history's; `plane` says which kind is expected. `radius` caps ‖φ‖; None takes the largest cap in the
    history, for answers without a cap their length, and none by moments. `weight` is that of the last answer by default. `baseline` is a record that
    contributions are compared with, as for `Explainer`.
    """

    def __init__(
        self,
        history: History,
        method: Method | None = None,
        *,
        weight: Weight | None = None,
        radius: float | None = None,
        norm: int = 2,
        plane: Plane | None = None,
        baseline: Any = None,
    ) -> None:
        if method is not None and not (isinstance(method, str) and method in METHODS):
            raise ParameterError(f"method must be one of {', '.join(map(repr, METHODS))}, got {quote(method)}")
        self._history, self._method = history, method
        self._weight, self._radius, self._norm = weight, radius, norm
        self._expected = None if plane is None else require_plane(plane)
        Ball(1.0 if radius is None else radius, norm)
        self._baseline = None if baseline is None else declared_baseline(baseline, self._require_domain())

    @property
    def _ball(self) -> Ball:
        caps = (self._cap_of(one) for one in self._history)
        return Ball(max(caps, default=PAPER_RADIUS) if self._radius is None else self._radius, self._norm)

    def _cap_of(self, answer: ReleasedAnswer) -> float:
        """The cap on a past answer's slopes; those by moments have none and are as long as they are."""
        if "radius" in answer.details or (answer.plane or "paper") == "paper":
            return float(answer.details.get("radius", PAPER_RADIUS))
        return max(PAPER_RADIUS, float(np.linalg.norm(answer.values, self._norm)))

    @property
    def _plane(self) -> str | None:
        """The kind of plane that the history holds; None for other quantities."""
        last = self._history[-1] if len(self._history) else None
        if last is None or last.details.get("quantity"):
            return None
        return last.plane or "paper"

    def explain(self, record: Any) -> Explanation:
        """An explanation at `record` (or at an encoded point, if the history has no domain). Costs nothing."""
        point, notes = self._encode(record)
        return replace(self._explain_point(point, notes), record=record)

    def explain_many(self, records: Any) -> PaidExplanations:
        """The same for many records."""
        domain = self._history.domain
        if domain is None:
            questions = [(point, Notes()) for point in np.asarray(records, dtype=np.float64)]
        else:
            read = read_queries(domain, records, QueryRules())
            questions = list(zip(read.points, read.notes, strict=True))
        return answer_in_batches(questions, lambda group: ([self._explain_point(*one) for one in group], None))

    def _require_optima(self) -> None:
        """Regression and the paper's labels take answers for local optima; influence sums and Shapley values are none."""
        quantity = self._history[-1].details.get("quantity") if len(self._history) else None
        if quantity and self._method != "neighbour":
            raise ParameterError(f"this history holds {quantity}, not local optima. Use method='neighbour'")
        if self._expected is not None and len(self._history) and self._plane != self._expected:
            raise ParameterError(
                f"this history holds {self._plane} planes, not {self._expected}. Leave out plane=, or ask its explainer anew"
            )

    def _explain_point(self, point: Vector, notes: Notes) -> Explanation:
        self._require_optima()
        held = self._held_sums()
        return self._predict(point, notes) if held is None else self._fit(held, point, notes)

    def _held_sums(self) -> HeldSums | None:
        """The sums to answer from; None where another method is asked for, or where they cannot answer and none is."""
        if self._method not in (None, "moments"):
            return None
        held, plane = HeldSums.of(self._history), self._plane if len(self._history) else "fitted"
        if held is not None and self._norm == 2 and held.can_answer(plane or ""):
            return held
        if self._method == "moments":
            raise ParameterError(
                "this history holds no sums for planes of this kind: only adaptive answers by moments release them, and anchored planes need the "
                "model. Leave out method="
            )
        return None

    def _fit(self, held: HeldSums, point: Vector, notes: Notes) -> Explanation:
        plane, domain, scale = self._plane or "fitted", self._require_domain(), self._history.answer_scale
        baseline, levels = self._baseline, tuple(getattr(domain, "levels", ()))
        compared = None if baseline is None else baseline.values
        asked = PlaneQuestion(point, self._local_weight, None, self._radius, levels, compared)
        outcome = held.answer(self._history, asked, plane)
        stored = stored_answer(point, outcome)
        stored["details"] = {"start": "history", "method": "moments"} | outcome.details
        about, total = AskedData(held.pool.parts[0].size, held.model is not None), self._total
        return explanation_of(stored, notes, about, baseline, cost=self._free, guarantee=total, domain=domain, scale=scale)

    @property
    def _free(self) -> Guarantee:
        return replace(self._total, mu=0.0, subject="This answer")

    @property
    def _local_weight(self) -> Weight:
        """The weight that was asked for, or else that of the last answer, which is the default one where it cannot be read back."""
        described = self._history[-1].details.get("weight") if len(self._history) else None
        if self._weight is not None or described is None or described.get("kind") == "custom":
            return self._weight or DEFAULT_WEIGHT
        return from_dict(described)

    def _predict(self, point: Vector, notes: Notes) -> Explanation:
        method = self._method or "regression"
        found = predict(method, self._history, point, self._ball, self._weight or DEFAULT_WEIGHT)
        answer = Explanation(
            values=np.array(found.values),
            names=self._names(len(point)),
            point=point,
            cost=self._free,
            guarantee=self._total,
            error=found.error,
            details={"start": "history", "method": method, "gradients": 0} | ({"read_as": notes} if notes else {}),
            domain=self._history.domain,
            plane=self._plane,
            intercept=0.0 if self._plane == "paper" else found.intercept,
            scale=self._history.answer_scale,
        )
        domain = self._history.domain
        if domain is None:
            return answer
        stored: dict[str, Any] = {
            "point": point,
            "values": answer.values,
            "intercept": answer.intercept,
            "plane": answer.plane,
            "details": {},
        }
        return replace(answer, added=contributions_of(stored, domain, answer.scale, self._total, self._baseline))

    @property
    def _total(self) -> Guarantee:
        """What the history has cost; unknown, and stated to be unknown, when it came without a guarantee."""
        known = self._history.guarantee
        if known is not None:
            return known
        note = "this history does not say what was spent on it."
        return Guarantee(0.0, 1e-6, Neighbours(), private=False, note=note)

    def _require_domain(self) -> DomainLike:
        if self._history.domain is None:
            raise ParameterError(
                "baseline= needs the history of an explainer, which has the domain of records. Pass explainer.history"
            )
        return self._history.domain

    def _encode(self, record: Any) -> tuple[Vector, Notes]:
        domain = self._history.domain
        if domain is not None:
            return read_query(domain, record)
        point = np.array(record, dtype=np.float64)
        if len(self._history) and point.shape != self._history[0].point.shape:
            raise QueryError("this history knows no domain. Pass an encoded point, one number for each column")
        return point, Notes()

    def _names(self, width: int) -> tuple[str, ...]:
        domain = self._history.domain
        return tuple(f"x{i}" for i in range(width)) if domain is None else domain.names
