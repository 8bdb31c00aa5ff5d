"""What every mechanism is: a planner from public things, and a plan that runs once it is paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, runtime_checkable

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.core.moments import LocalMoments, Moments
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.ports import Noise, Rows
from dpexplain.privacy.events import PrivacyEvent
from dpexplain.privacy.relation import Neighbours

if TYPE_CHECKING:
    from dpexplain.mechanisms.start import Start

Calibration = Literal["exact", "paper"]


@dataclass(frozen=True, slots=True)
class Setting:
    """The public facts about private data that a plan may use."""

    width: int
    size: int  # m̄, the public normaliser; the data hold at most 2m̄ rows (checked at registration)
    neighbours: Neighbours
    summation_error: float
    one_hot: tuple[tuple[int, int], ...] = ()  # column ranges that hold one 1 or none
    single_rows: bool = False  # whether the rows are where a black box can be asked about each
    layout: Layout | None = None  # what a record can look like; None: anything

    def sensitivity_of_sum(self, per_record: float, terms: float | None = None) -> float:
        """How far neighbours can move a *computed* sum of which one record moves the true one by `per_record`.

        True sums differ by multiplier · per_record; each computed one is off by at most summation_error · Σ|terms|, and there are
        at most 2m̄ terms of size per_record (`proofs/summation.md`), or of size `terms` where a record's share is computed as a
        difference of larger numbers.
        """
        rounding = 2 * self.summation_error * 2 * self.size
        return per_record * self.neighbours.multiplier + (per_record if terms is None else terms) * rounding


@dataclass(frozen=True, slots=True)
class Outcome:
    """A released explanation: public. `events` is what really ran, never more than was planned."""

    values: Vector
    events: tuple[PrivacyEvent, ...]
    error: Vector | None = None
    copied: bool = False
    details: dict[str, Any] = field(default_factory=dict)


class Plan(Protocol):
    """What a mechanism will do and pay, computed before any row is read."""

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """The worst case: reserved before `run`."""
        ...

    def run(self, rows: Rows, noise: Noise) -> Outcome: ...


@runtime_checkable
class LocalPlan(Plan, Protocol):
    """A plan that asks the rows one question, which others can share a read with: run(rows, noise) = finish(rows.local(query), noise)."""

    @property
    def query(self) -> LocalMoments: ...

    def finish(self, moments: Moments, noise: Noise) -> Outcome: ...


def run_each(plans: Sequence[Plan], rows: Rows, noise: Noise) -> Iterator[Outcome]:
    """The outcomes of plans that are paid for, in order and each with its own noise; all local questions share one read of the rows."""
    questions = [plan.query for plan in plans if isinstance(plan, LocalPlan)]
    moments = iter(rows.local_many(questions) if questions else ())
    for plan in plans:
        yield plan.finish(next(moments), noise) if isinstance(plan, LocalPlan) else plan.run(rows, noise)


class Mechanism(Protocol):
    """How a point of interest is explained. Its fields are public parameters."""

    @property
    def delta(self) -> float:
        """The δ at which one answer's cost is told."""
        ...

    @property
    def private(self) -> bool:
        """False for reproduction-only settings that leak: never served."""
        ...

    def plan(self, point: Vector, setting: Setting, history: History, hint: Start | None = None) -> Plan:
        """Decide everything from public things; `hint` is a start that somebody else knows of, such as a release."""
        ...

    def to_dict(self) -> dict[str, Any]: ...


@runtime_checkable
class StandsAlone(Protocol):
    """A mechanism whose answers know nothing of each other: several can be planned, and paid for, before the first is given."""

    def plan_alone(self, point: Vector, setting: Setting) -> LocalPlan:
        """`plan` without a past."""
        ...


@runtime_checkable
class AsksModel(Protocol):
    """A mechanism that can use the black box itself, where there is one to ask."""

    def asking(self, model: Callable[[Matrix], Vector]) -> Mechanism:
        """The same mechanism with the black box at hand, a function from encoded rows to labels in [-1, 1]."""
        ...


Given = TypeVar("Given", bound=Mechanism)


@dataclass(frozen=True, slots=True)
class Informed(Generic[Given]):
    """A private mechanism together with the black box it asks; a subclass plans. A query is public, so asking about it costs nothing."""

    given: Given
    model: Callable[[Matrix], Vector]

    @property
    def delta(self) -> float:
        return self.given.delta

    @property
    def private(self) -> bool:
        return True

    def to_dict(self) -> dict[str, Any]:
        return self.given.to_dict()


def require_steps(steps: int | None) -> None:
    """T gradient iterations make T-1 noisy gradients, so at least 2."""
    if steps is not None and not (isinstance(steps, int) and steps >= 2):
        raise ParameterError(f"steps must be a whole number of at least 2 (T-1 noisy gradients are taken), got {steps}")


def require_calibration(calibration: str) -> None:
    if calibration not in ("exact", "paper"):
        raise ParameterError(f"calibration must be 'exact' or 'paper', got {calibration!r}")
