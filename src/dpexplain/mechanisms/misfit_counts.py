"""Noisy counts of rows that do not fit a domain, for each feature: clamped below or above, missing, or of an undeclared value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.privacy.events import PrivacyEvent
from dpexplain.privacy.relation import Neighbours

KINDS = ("below", "above", "missing", "undeclared")


@dataclass(frozen=True, slots=True)
class MisfitCounts:
    """The bounded query: a record adds 1 to at most one of four counts of each feature (`proofs/discover.md`, claim 1)."""

    what: ClassVar[str] = "check: rows that do not fit"
    features: int
    neighbours: Neighbours

    @property
    def sensitivity(self) -> float:
        return sensitivity.histograms(self.features) * self.neighbours.multiplier

    @property
    def dimension(self) -> int:
        return self.features * len(KINDS)

    def evaluate(self, rows: Any, at: None = None) -> Vector:
        del at
        counted: Vector = rows.misfits()
        return counted


@dataclass(frozen=True, slots=True)
class MisfitPlan:
    """A plan with one release of all counts."""

    mechanism: GaussianMechanism[MisfitCounts]

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.mechanism.event(),)

    def run(self, door: Door) -> Matrix:
        """(features, kinds), noisy."""
        return door.release(self.mechanism).reshape(-1, len(KINDS))
