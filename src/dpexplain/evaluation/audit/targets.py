"""Targets of an audit: anything that releases, run once on given data by the production code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpexplain.data import PrivateData
from dpexplain.evaluation.audit.transcript import PlannedOnce, Ratio, Record
from dpexplain.explainer import Explainer
from dpexplain.mechanisms.door import listening
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


class Answering:
    """Answers to `queries`, one after another, from an `Explainer` that is opened for this run."""

    def __init__(self, mechanism: Mechanism, queries: Sequence[Any]) -> None:
        self._queries, self._delta = queries, mechanism.delta
        self._mechanism = PlannedOnce(mechanism)

    def run(self, data: PrivateData, noise: Noise, ratio: Ratio | None = None) -> Record:
        record = Record(ratio)
        explainer = Explainer(data, Budget(_AMPLE, self._delta), self._mechanism, noise=noise)
        with listening(record.hear_release):
            for query in self._queries:
                record.hear_answer(explainer.explain(query))
        record.quanta = _reserved_quanta(data)
        return record


class Sketching:
    """The two (with reference data, four) releases that `dpx.release` makes of the rows; everything else in it is computed from them."""

    def __init__(self, releasing: Releasing) -> None:
        self._releasing = releasing
        self._plan: ReleasePlan | None = None

    def run(self, data: PrivateData, noise: Noise, ratio: Ratio | None = None) -> Record:
        record, given = Record(ratio), self._releasing
        self._plan = self._plan or plan_release(data, given.budget.mu, int(given.reference))
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


def subject_of(mechanism: Mechanism | Releasing, queries: Sequence[Any], view: str) -> Subject:
    if not isinstance(mechanism, Releasing):
        return Answering(mechanism, queries)
    return Sketching(mechanism) if view == "transcript" else Publishing(mechanism, queries)
