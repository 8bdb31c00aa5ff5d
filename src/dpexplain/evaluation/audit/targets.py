"""Targets of an audit: anything that releases, run once on given data by the production code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from warnings import catch_warnings

import numpy as np

from dpexplain.core.label_moments import LabelMoments
from dpexplain.core.layout import Layout
from dpexplain.data import PrivateData
from dpexplain.errors import ParameterError, WeakBudget
from dpexplain.evaluation.audit.transcript import PlannedOnce, Ratio, Record
from dpexplain.explainer import Explainer
from dpexplain.mechanisms.door import listening
from dpexplain.mechanisms.label_moments_plan import LabelMomentsPlan, plan_label_moments
from dpexplain.mechanisms.ports import Mechanism, Noise
from dpexplain.mechanisms.release_plan import ReleasePlan
from dpexplain.mechanisms.setting import AuditSetup
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.events import price
from dpexplain.release.making import release
from dpexplain.release.plan_for_data import plan_release

_AMPLE = 1000.0  # ε: a budget that no audit exhausts


class Subject(Protocol):
    """One run of something that releases. With `ratio`, the record has the log-likelihood ratio of all that passed the door."""

    def run(self, data: PrivateData, noise: Noise, ratio: Ratio | None = None) -> Record: ...


@dataclass(frozen=True, slots=True)
class Releasing:
    """`dpx.release(data, budget, reference=…)` as something to audit."""

    epsilon: float = 1.0
    delta: float = 1e-6
    reference: bool = False

    def __post_init__(self) -> None:
        Budget(self.epsilon, self.delta)  # raises ParameterError for invalid values

    @property
    def budget(self) -> Budget:
        return Budget(self.epsilon, self.delta)

    @property
    def audit_setup(self) -> AuditSetup:
        return AuditSetup("spread")

    def to_dict(self) -> dict[str, Any]:
        kind = "release with reference" if self.reference else "release"
        return {"mechanism": kind, "epsilon": self.epsilon, "delta": self.delta}

    def plan(self, data: PrivateData) -> ReleasePlan:
        return plan_release(data, self.budget.mu, int(self.reference))


@dataclass(frozen=True, slots=True)
class Refining:
    """`release.refine(data, model, Budget(ε, δ))` as something to audit: the label moments that it buys. The release is public; any centre will do."""

    epsilon: float = 1.0
    delta: float = 1e-6

    @property
    def audit_setup(self) -> AuditSetup:
        return AuditSetup("spread")

    def to_dict(self) -> dict[str, Any]:
        return {"mechanism": "refinement", "epsilon": self.epsilon, "delta": self.delta}

    def plan(self, data: PrivateData) -> LabelMomentsPlan:
        centre, variance = (np.full(data.domain.width, number) for number in (0.5, 1 / 12))
        asked = LabelMoments(Layout.of(data.domain.blocks), centre, variance)
        return plan_label_moments(asked, Budget(self.epsilon, self.delta).mu, data.setting)


class Answering:
    """Answers to `queries`, one after another, from an `Explainer` that is opened for this run."""

    def __init__(self, mechanism: Mechanism, queries: Sequence[Any]) -> None:
        self._queries, self._delta = queries, mechanism.delta
        self._mechanism = PlannedOnce(mechanism)

    def run(self, data: PrivateData, noise: Noise, ratio: Ratio | None = None) -> Record:
        record = Record(ratio)
        with catch_warnings(action="ignore", category=WeakBudget):  # nobody is promised this budget
            explainer = Explainer(data, Budget(_AMPLE, self._delta), self._mechanism, noise=noise)
        with listening(record.hear_release):
            for query in self._queries:
                record.hear_answer(explainer.explain(query))
        record.quanta = _reserved_quanta(data)
        return record


class Sketching:
    """What `dpx.release` or `release.refine` releases of the rows; everything else in it is computed from that."""

    def __init__(self, target: Releasing | Refining) -> None:
        self._target = target
        self._plan: ReleasePlan | LabelMomentsPlan | None = None

    def run(self, data: PrivateData, noise: Noise, ratio: Ratio | None = None) -> Record:
        record = Record(ratio)
        self._plan = self._plan or self._target.plan(data)
        record.quanta = price(self._plan.events)
        with listening(record.hear_release):
            next(data.run_plans([(self._plan, record.quanta)], noise))
        return record


@dataclass(frozen=True, slots=True)
class Publishing:
    """A whole `dpx.release`; its moments and its answers to `queries` are recorded. It takes about a second a run."""

    releasing: Releasing
    queries: Sequence[Any]

    def run(self, data: PrivateData, noise: Noise, ratio: Ratio | None = None) -> Record:
        record, given = Record(ratio), self.releasing
        with listening(record.hear_release):
            made = release(data, given.budget, noise=noise, reference=given.reference)
        solver = made.solver
        moments = (solver.eigenvectors * solver.eigenvalues) @ solver.eigenvectors.T
        record.values = [solver.mean, solver.t1, moments.ravel(), np.array([solver.t0])]
        for query in self.queries:
            record.hear_answer(made.explain(query))
        record.quanta = _reserved_quanta(data)
        return record


def _reserved_quanta(data: PrivateData) -> int:
    """Everything that was reserved, in quanta: what this run claims, whatever was settled."""
    return sum(entry.quanta for ledger in data.ledgers for entry in ledger.entries() if entry.kind == "reserve")


def subject_of(mechanism: Mechanism | Releasing | Refining, queries: Sequence[Any], view: str) -> Subject:
    if not isinstance(mechanism, (Releasing, Refining)):
        return Answering(mechanism, queries)
    if view == "transcript":
        return Sketching(mechanism)
    if isinstance(mechanism, Refining):
        raise ParameterError("a refinement has no answer of its own. Audit it with view='transcript'")
    return Publishing(mechanism, queries)
