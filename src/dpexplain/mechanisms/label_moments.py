"""Pay for another model's label moments alone: one Gaussian release of n + 1 numbers. `proofs/label_moments.md`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nextafter
from typing import ClassVar, cast

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.label_moments import LabelMoments
from dpexplain.core.shapley import row_wise
from dpexplain.mechanisms.base import Setting
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.ports import RelabelledRows, Rows
from dpexplain.privacy.events import PrivacyEvent

Ask = Callable[[Matrix], Vector]


@dataclass(frozen=True, slots=True, eq=False)
class LabelMomentSum:
    """The bounded query. `ask` answers about encoded rows with labels in [-1, 1]; None takes the labels that rows were registered with."""

    what: ClassVar[str] = "refine: label moments"
    asked: LabelMoments
    setting: Setting
    ask: Ask | None

    @property
    def sensitivity(self) -> float:
        return self.setting.sensitivity_of_sum(self.asked.sensitivity())

    @property
    def dimension(self) -> int:
        return self.asked.dimension

    def evaluate(self, rows: Rows, at: None = None) -> Vector:
        del at
        asked = rows if self.ask is None else cast(RelabelledRows, rows).relabel(row_wise(self.ask))
        return self.asked.vector(asked.normalised(self.asked))


@dataclass(frozen=True, slots=True)
class LabelMomentsPlan:
    """One release, planned from public things only."""

    mechanism: GaussianMechanism[LabelMomentSum]

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.mechanism.event(),)

    def run(self, door: Door) -> Vector:
        return door.release(self.mechanism)


def plan_label_moments(asked: LabelMoments, mu: float, setting: Setting, ask: Ask | None = None) -> LabelMomentsPlan:
    """A plan that costs at most `mu`."""
    return LabelMomentsPlan(GaussianMechanism(LabelMomentSum(asked, setting, ask), nextafter(mu, 0.0)))
