"""What every mechanism shares: the public facts a plan may use, the outcome of a plan, and a mechanism together with its black box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from dpexplain.arguments import quote
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.ports import Mechanism
from dpexplain.mechanisms.released_centres import ReleasedCentres
from dpexplain.privacy.relation import Neighbours

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
    scale: Vector | None = field(default=None, compare=False)  # of each column, in distances; None: 1
    levels: tuple[int, ...] = ()  # of each attribute that is ordered, 0 for others; () where none is declared
    baseline: Vector | None = field(default=None, compare=False)  # what contributions are compared with; None: the average
    centres: ReleasedCentres | None = field(default=None, compare=False, repr=False)  # of answers to other questions

    def keep(self, outcome: Outcome) -> None:
        """Remember what later answers may use of an answer that is stored."""
        if self.centres is not None and outcome.centre is not None:
            self.centres.keep(outcome.centre)

    def for_explainer(self, baseline: Vector | None) -> Setting:
        """The facts for the questions of one explainer, whose answers by moments share where their sums are centred."""
        return replace(self, baseline=baseline, centres=ReleasedCentres())

    @property
    def largest_scale(self) -> float:
        return 1.0 if self.scale is None else float(self.scale.max())

    def into_scaled(self, state: Vector) -> Vector:
        """A state (φ, a), or φ alone, of a plane over scaled columns: φ·u is the same number, so slopes are divided by the scale."""
        return self._multiply(state, None if self.scale is None else 1 / self.scale)

    def out_of_scaled(self, state: Vector) -> Vector:
        """The same plane over the columns themselves: slopes per whole range."""
        return self._multiply(state, self.scale)

    def _multiply(self, state: Vector, factors: Vector | None) -> Vector:
        if factors is None:
            return state
        return np.concatenate([state[: self.width] * factors, state[self.width :]])

    def sensitivity_of_sum(self, per_record: float, terms: float | None = None) -> float:
        """How far neighbours can move a *computed* sum of which one record moves the true one by `per_record`.

        True sums differ by multiplier · per_record; each computed one is off by at most summation_error · Σ|terms|, and there are
        at most 2m̄ terms of size per_record (`proofs/summation.md`), or of size `terms` where a record's share is computed as a
        difference of larger numbers.
        """
        rounding = 2 * self.summation_error * 2 * self.size
        return per_record * self.neighbours.multiplier + (per_record if terms is None else terms) * rounding


@dataclass(frozen=True, slots=True)
class AuditSetup:
    """The audit in which errors of a mechanism show most: where the other rows lie, how many queries are asked, and how far apart they are."""

    # rows pull φ to the ball's edge, lie at the query, or are spread over the domain
    rows: Literal["pull", "still", "spread"] = "still"
    queries: int = 1
    gap: float = 0.01


@dataclass(frozen=True, slots=True)
class Outcome:
    """A released explanation, which is public. Its cost is what the door counted."""

    values: Vector
    error: Vector | None = None
    copied: bool = False
    stopped: bool = False  # no answer: the paper's stopping rule has ended the stream, by the totals in `details`
    plane: str | None = None  # None: the values are not slopes of a plane
    intercept: float | None = None  # the plane's answer at the query, a label
    added: dict[str, Any] | None = None  # contributions compared with the baseline or a released average
    related: Sequence[tuple[int, int, float]] = ()  # attributes that go together among the records, by what was released
    details: dict[str, Any] = field(default_factory=dict)
    sums: dict[str, Any] | None = None  # that were bought for it, for later answers (`mechanisms/shared_sums.py`)
    # that was released for it, for later answers once this one is stored (`mechanisms/released_centres.py`)
    centre: Vector | None = None


Given = TypeVar("Given", bound=Mechanism)


@dataclass(frozen=True, slots=True)
class WithModel(Generic[Given]):
    """A private mechanism together with the black box it asks; a subclass plans. A query is public, so asking about it costs nothing."""

    private: ClassVar[bool] = True
    given: Given
    model: Callable[[Matrix], Vector]
    delta: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", self.given.delta)

    def to_dict(self) -> dict[str, Any]:
        return self.given.to_dict()

    def label_of(self, point: Vector) -> float:
        """The model's answer at an encoded public point, a label."""
        return float(np.clip(self.model(point[None])[0], -1.0, 1.0))


def require_steps(steps: int | None) -> None:
    """Raise ParameterError unless there are at least 2 steps: T iterations take T-1 noisy gradients."""
    if steps is not None and not (isinstance(steps, int) and steps >= 2):
        raise ParameterError(f"steps must be a whole number of at least 2 (T-1 noisy gradients are taken), got {quote(steps)}")


def require_calibration(calibration: str) -> None:
    if not (isinstance(calibration, str) and calibration in ("exact", "paper")):
        raise ParameterError(f"calibration must be 'exact' or 'paper', got {quote(calibration)}")
