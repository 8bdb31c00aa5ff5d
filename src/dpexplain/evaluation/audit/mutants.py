"""Mutation tests of the privacy checks: one fault at a time, and what detects it: the door, an audit, or the check of registration.

A check that never failed may be unable to fail. Every mutant here is a fault that would make a printed guarantee false. Offline only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast
from unittest.mock import PropertyMock, patch

import numpy as np

from dpexplain.backends.dense import DenseRows
from dpexplain.backends.oracle import OracleRows
from dpexplain.core import baseline_shapley, row_hash, sensitivity
from dpexplain.core.arrays import Vector
from dpexplain.core.ball import Ball
from dpexplain.core.cells import NumberCells
from dpexplain.core.expected_labels import ExpectedLabels
from dpexplain.core.layout import Layout
from dpexplain.core.marginals import Histograms
from dpexplain.core.plane import PLANES
from dpexplain.core.reach import Codes, FreeReach, Reach
from dpexplain.core.release_moments import NormalisedMoments
from dpexplain.core.weights import Gaussian, Stable
from dpexplain.data import PrivateData
from dpexplain.domain import Binary, Categorical, Domain, Numeric
from dpexplain.errors import DpexplainError
from dpexplain.evaluation.audit.audit import audit
from dpexplain.evaluation.audit.registration_audit import registration_moves
from dpexplain.evaluation.audit.setup import random_rows
from dpexplain.evaluation.audit.targets import Releasing
from dpexplain.explainer import Explainer
from dpexplain.ledger.memory import MemoryLedger
from dpexplain.mechanisms.basic import NoisyDescent
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gradient import plane_gradient
from dpexplain.mechanisms.history import History, ReleasedAnswer
from dpexplain.mechanisms.influence import NoisyInfluence
from dpexplain.mechanisms.measured import MeasuredDescent
from dpexplain.mechanisms.moments_plan import SketchPlan
from dpexplain.mechanisms.ports import Rows
from dpexplain.mechanisms.registry import Adaptive, Basic, Influence
from dpexplain.mechanisms.setting import Outcome, Setting
from dpexplain.mechanisms.shared_answer import SharedAnswer
from dpexplain.mechanisms.shared_sums import PaidSums
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.events import GaussianEvent
from dpexplain.privacy.relation import Neighbours, Relation
from dpexplain.progress import with_bar
from dpexplain.registration import owners
from dpexplain.registration.declared_answers import Reading
from dpexplain.registration.labels import Labeller

Check = Callable[[int], str | None]
"""Runs → what was noticed; None if nothing was."""

_CLAIM = (1.0, 1e-6)
_CODES = Domain([*(Categorical(name, values=[0, 1, 2]) for name in "abc"), Binary("d"), Numeric("e", 0, 1)])
_BINARY = Domain([Binary(name) for name in "abcdef"])


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault, a context that inserts it, and the check that should detect it."""

    name: str
    broken: Callable[[], AbstractContextManager[Any]]
    check: Check


@dataclass(frozen=True, slots=True)
class Verdict:
    """What detected a mutant; `by` is None for one that survived, and `sound` is whether the same check passes without the fault."""

    name: str
    by: str | None
    sound: bool

    @property
    def caught(self) -> bool:
        return self.by is not None and self.sound


def find_mutants(runs: int = 600, names: tuple[str, ...] | None = None) -> Iterator[Verdict]:
    """Each mutant with what detected it; every check is also run on the sound library."""
    chosen = [one for one in MUTANTS if names is None or one.name in names]
    for mutant in with_bar(chosen, "mutants"):
        sound = mutant.check(runs) is None
        with mutant.broken():
            yield Verdict(mutant.name, mutant.check(runs), sound)


def _by_audit(mechanism: Any, *, times: int = 1, **options: Any) -> Check:
    """An audit with `times` as many runs as are asked for."""

    def check(runs: int) -> str | None:
        try:
            found = audit(mechanism, runs=times * runs, seed=1, **options)
        except DpexplainError as error:
            return f"refused: {error}"
        return None if found.passed else f"audit of {found.name}: μ ≥ {found.mu:.3f} where {found.claimed_mu:.3f} is claimed"

    return check


def _by_registration(_: int) -> str | None:
    worst = max(registration_moves(), key=lambda one: one.ratio)
    return None if worst.ratio <= 1 + 1e-9 else f"registration: {worst}"


def _by_single_records(_: int) -> str | None:
    """The gradient of one record at a time, at a public φ that favours it, against the bound that its noise is scaled to."""
    layout = Layout.of(_BINARY.blocks)
    setting, z = Setting(_BINARY.width, 100, Neighbours(), 1e-13, layout=layout), np.zeros(_BINARY.width)
    worst = 0.0
    for plane in PLANES:
        gradient = plane_gradient(z, setting, Stable(), 1.0, plane, anchor=-0.5 if plane == "anchored" else None)
        for count in range(_BINARY.width + 1):
            record = (np.arange(_BINARY.width) < count).astype(np.float64)
            state = np.append(record / np.sqrt(max(count, 1)), np.ones(gradient.dimension - _BINARY.width))
            rows = cast(Rows, OracleRows(record[None], np.array([-1.0])))
            moved = np.linalg.norm(gradient.evaluate(rows, gradient.path()(state)))
            worst = max(worst, float(moved) / gradient.sensitivity)
    return None if worst <= 1 else f"single records: one moved a gradient by {worst:.3g} times its bound"


def _by_compared_labels(_: int) -> str | None:
    """The moments of one record whose label is far from what was expected, against the bound that their noise is scaled to."""
    layout, half = Layout.of(_BINARY.blocks), np.full(_BINARY.width, 0.5)
    query = NormalisedMoments(layout, half, half**2, ExpectedLabels(0.5, half, 0.25))
    rows = OracleRows(np.ones((1, _BINARY.width)), np.array([-1.0]))
    moved = float(np.linalg.norm(query.vector(rows.normalised(query)))) / query.sensitivity()
    return None if moved <= 1 else f"single records: one moved the moments of a release by {moved:.3g} times their bound"


def _by_counted_numbers(_: int) -> str | None:
    """The histograms of one record with two numbers, against the bound that their noise is scaled to."""
    asked = Histograms((NumberCells(0), NumberCells(1)))
    moved = float(np.linalg.norm(OracleRows(np.array([[0.2, 0.7]]), np.zeros(1)).histograms(asked))) / asked.sensitivity()
    return None if moved <= 1 else f"single records: one moved the histograms of two numbers by {moved:.3g} times their bound"


def _by_audit_of_many_rows(runs: int) -> str | None:
    """A release with reference of so many declared rows that labels in tables are bought."""
    domain = Domain([Binary(name) for name in "abcdefghij"])
    records = domain.decode(random_rows(domain, 400, SeededNoise(0)))
    many = PrivateData(records, domain, labels=np.ones(400), size=10_000_000, name="many")
    many.attach_model(Labeller(lambda rows: 1 - 2 * rows[:, 0], 1, None, domain.encode))
    return _by_audit(Releasing(*_CLAIM, reference=True), data=many)(runs)


def _by_the_door(_: int) -> str | None:
    """A start from a larger ball, as an older history can hold it."""
    past = History.of([ReleasedAnswer(np.full(2, 5.0), np.array([10.0, 14.6]))])
    mechanism = Adaptive(*_CLAIM, steps=20, rule="paper", radius=1.0, plane="paper")
    try:
        mechanism.plan(np.zeros(2), Setting(2, 100, Neighbours(), 1e-13), past)
    except DpexplainError as error:
        return f"refused: {error}"
    return None


def _by_raised_price(_: int) -> str | None:
    """A second answer by moments, at twice the price of the first: it pays for what the first one's sums lack."""
    points, budget = np.linspace(0, 1, 100)[:, None], Budget(*_CLAIM)
    data = PrivateData(points, Domain.encoded(1), labels=points[:, 0], name="raised")
    ledger, noise = MemoryLedger(data.account(budget)), SeededNoise(0)
    try:
        for share in (0.5, 1.0):
            Explainer(data, budget, Adaptive(share * _CLAIM[0], _CLAIM[1]), ledger=ledger, noise=noise).explain([0.5])
    except DpexplainError as error:
        return f"refused: {error}"
    return None


def _less_noise() -> AbstractContextManager[Any]:
    honest = SeededNoise.standard_normal
    return patch.object(SeededNoise, "standard_normal", lambda self, size: 0.8 * honest(self, size))


def _wrong_constant() -> AbstractContextManager[Any]:
    return patch.object(sensitivity, "gradient", lambda *given, **options: 1.0)


def _reserve_half() -> AbstractContextManager[Any]:
    honest = NoisyDescent.__post_init__

    def half(self: NoisyDescent) -> None:
        honest(self)
        events = tuple(replace(event, count=event.count // 2) for event in self.events if isinstance(event, GaussianEvent))
        object.__setattr__(self, "events", events)

    return patch.object(NoisyDescent, "__post_init__", half)


def _one_for_two() -> AbstractContextManager[Any]:
    return patch.object(Relation, "factor", new_callable=PropertyMock, return_value=1)


@contextmanager
def _apply_all(*faults: AbstractContextManager[Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for fault in faults:
            stack.enter_context(fault)
        yield


def _open_to_exact_values() -> AbstractContextManager[Any]:
    """Doors that let exact values through, as those of reproduction-only mechanisms do."""
    honest = PrivateData.run_plans
    return patch.object(
        PrivateData, "run_plans", lambda self, paid, noise, *, private=True: honest(self, paid, noise, private=False)
    )


def _exact_norm() -> AbstractContextManager[Any]:
    def exact(self: MeasuredDescent, door: Door) -> float:
        return float(door.exact(self.norm.query)[0]) / self.finest.query.setting.size

    return _apply_all(_open_to_exact_values(), patch.object(MeasuredDescent, "measure", exact))


def _publish_exact_sum() -> AbstractContextManager[Any]:
    honest = NoisyInfluence.run

    def run(self: NoisyInfluence, door: Door) -> Outcome:
        outcome = honest(self, door)
        exact = door.exact(replace(self.gaussian.query, sign=0.0))
        return replace(outcome, details=outcome.details | {"sum": float(exact.sum())})

    return _apply_all(_open_to_exact_values(), patch.object(NoisyInfluence, "run", run))


def _short_reach() -> AbstractContextManager[Any]:
    honest = Reach.bound_at
    return patch.object(Reach, "bound_at", lambda self, phi: 0.7 * honest(self, phi))


def _small_gains() -> AbstractContextManager[Any]:
    honest = Codes.arrays.fget  # type: ignore[attr-defined]
    return patch.object(Codes, "arrays", property(lambda self: (*honest(self)[:-1], 0.5 * self.scale)))


def _no_constant() -> AbstractContextManager[Any]:
    honest = FreeReach.with_constant.__func__  # type: ignore[attr-defined]

    def shorten_pulls(cls: Any, point: Any, layout: Any, weight: Any, radius: float, constant: float) -> FreeReach:
        bounded: FreeReach = honest(cls, point, layout, weight, radius, constant)
        narrow: FreeReach = honest(cls, point, layout, weight, radius, 1e-6 * constant)
        return replace(bounded, pulls=narrow.pulls)

    return patch.object(FreeReach, "with_constant", classmethod(shorten_pulls))


def _by_row_count() -> AbstractContextManager[Any]:
    honest, counts = DenseRows.local_many, list[int]()

    def scale_moments(self: DenseRows, queries: Any) -> Any:
        counts.append(len(self))
        share = counts[0] / len(self)  # the first rows that are asked are those without a canary
        return [
            replace(one, A=share * one.A, b=share * one.b, s=share * one.s, S0=share * one.S0, t0=share * one.t0)
            for one in honest(self, queries)
        ]

    return patch.object(DenseRows, "local_many", scale_moments)


def _labels_by_dtype() -> AbstractContextManager[Any]:
    honest = Reading.labels

    def labels(self: Reading, answers: Any, count: int) -> Any:
        given = np.asarray(answers, dtype=None if None not in answers else object)
        return honest(self, answers, count) if given.dtype != object else np.where(given == self.target, 1.0, -1.0)

    return patch.object(Reading, "labels", labels)


def _owners_by_repr() -> AbstractContextManager[Any]:
    return patch.object(owners, "owner_name", repr)


def _orders_by_position() -> AbstractContextManager[Any]:
    def orders(rows: Any, players: int) -> Any:
        return baseline_shapley.orders_from(row_hash.uniforms(row_hash.mix(np.arange(len(rows), dtype=np.uint64)), players))

    return patch.object(baseline_shapley, "walk_orders", orders)


def _quiet_further_sums() -> AbstractContextManager[Any]:
    honest = SharedAnswer.buy

    def buy(self: SharedAnswer, lacking: SketchPlan, door: Door) -> PaidSums:
        twice = replace(lacking, moments=replace(lacking.moments, mu=2 * lacking.moments.mu))
        return honest(self, lacking if self.held is None else twice, door)

    return patch.object(SharedAnswer, "buy", buy)


def _skip_clipping() -> AbstractContextManager[Any]:
    def differences(self: ExpectedLabels, labels: Vector, products: Vector) -> Vector:
        return np.asarray((labels - self.level - products) / self.scale)

    return patch.object(ExpectedLabels, "differences", differences)


def _one_histogram_for_all() -> AbstractContextManager[Any]:
    return patch.object(sensitivity, "histograms", lambda attributes: 1.0)


def _one_table_for_all() -> AbstractContextManager[Any]:
    return patch.object(sensitivity, "label_tables", lambda attributes: 1.0)


def _skip_projection() -> AbstractContextManager[Any]:
    return patch.object(Ball, "project", lambda self, phi: phi)


_PAPER = Basic(*_CLAIM, steps=5, plane="paper")
MUTANTS = (
    Mutant("noise a fifth too small", _less_noise, _by_audit(Influence(*_CLAIM), times=4)),
    Mutant(
        "exp(-d²) with the constant 1 instead of 1.527",
        _wrong_constant,
        _by_audit(Basic(*_CLAIM, 6, weight=Gaussian(1.0), plane="paper")),
    ),
    Mutant("half of the steps reserved", _reserve_half, _by_audit(_PAPER)),
    Mutant(
        "noise for an added record under a claim for a replaced one",
        _one_for_two,
        _by_audit(Influence(*_CLAIM, others="against"), relation="replace-one"),
    ),
    Mutant(
        "an exact gradient norm that nobody paid for",
        _exact_norm,
        _by_audit(Adaptive(*_CLAIM, 4, rule="paper", plane="paper"), view="answer"),
    ),
    Mutant("an exact sum in an answer's details", _publish_exact_sum, _by_audit(Influence(*_CLAIM), view="answer")),
    Mutant("reach times 0.7", _short_reach, _by_audit(Basic(*_CLAIM, 12, plane="paper"), domain=_CODES)),
    Mutant("code gains times 0.5", _small_gains, _by_single_records),
    Mutant("the constant of a free plane left out of its reach", _no_constant, _by_single_records),
    Mutant("sums scaled by the private row count", _by_row_count, _by_audit(_PAPER)),
    Mutant("labels read by the type of the whole column", _labels_by_dtype, _by_registration),
    Mutant("owners told apart by repr", _owners_by_repr, _by_registration),
    Mutant("Shapley orders by position", _orders_by_position, _by_registration),
    Mutant("a start that is not projected", _skip_projection, _by_the_door),
    Mutant("labels that are compared and not clipped", _skip_clipping, _by_compared_labels),
    Mutant("histograms of several numbers with the bound of one", _one_histogram_for_all, _by_counted_numbers),
    Mutant("labels in all tables with the bound of one", _one_table_for_all, _by_audit_of_many_rows),
    Mutant("further sums with half of the noise that is paid for", _quiet_further_sums, _by_raised_price),
)
