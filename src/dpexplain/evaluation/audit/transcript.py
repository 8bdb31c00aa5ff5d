"""Writing down everything that leaves: each number that passes the one door, and each number that an answer tells.

`GaussianMechanism` is the only way out for numbers computed from private rows. A plan that is run with a listening one in its place does what it
always does, on the code that always runs, and what it released can be read afterwards. That transcript is what accounting assumes an
attacker sees; an answer (the last iterate, say) is less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.mechanisms.base import AsksModel, Mechanism, Plan, Setting
from dpexplain.mechanisms.gaussian import GaussianMechanism, Release
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.ports import Noise
from dpexplain.mechanisms.start import Start
from dpexplain.privacy.events import price

Part = TypeVar("Part")


@dataclass(slots=True)
class Record:
    """What one run let out: `released` in units of the noise on it, `told` in its answers, and what was reserved to pay for it."""

    released: list[Vector] = field(default_factory=list)
    values: list[Vector] = field(default_factory=list)
    told: list[float] = field(default_factory=list)
    quanta: int = 0

    @property
    def transcript(self) -> Vector:
        """All that accounting assumes is seen."""
        return np.concatenate([*self.released, np.array(self.told)])

    @property
    def answer(self) -> Vector:
        """All that a user sees."""
        return np.concatenate([*self.values, np.array(self.told)])

    def hear(self, answer: Any) -> None:
        """An `Explanation`: its numbers, and whatever else it says."""
        self.values += [answer.values] if answer.error is None else [answer.values, answer.error]
        self.told += [answer.cost.mu, float(answer.copied), *numbers(answer.details)]


@dataclass(frozen=True, slots=True)
class ListenedGaussian(GaussianMechanism):
    """The same mechanism, with whatever it releases written down."""

    record: Record = field(default_factory=Record, compare=False)

    def releases(self, noise: Noise, count: int) -> Release:
        release, sigma = GaussianMechanism.releases(self, noise, count), self.sigma

        def heard(value: Vector) -> Vector:
            out = release(value)
            self.record.released.append(out.ravel() / sigma)
            return out

        return heard


def record_transcript(part: Part, record: Record) -> Part:
    """A plan, or any part of one, with every `GaussianMechanism` in it replaced by one that is listened to."""
    if isinstance(part, GaussianMechanism):
        return ListenedGaussian(part.sensitivity, part.dimension, part.mu, record)  # type: ignore[return-value]
    if not is_dataclass(part) or isinstance(part, type):
        return part
    inside = {one.name: getattr(part, one.name) for one in fields(part)}
    changed = {name: now for name, value in inside.items() if (now := record_transcript(value, record)) is not value}
    return replace(part, **changed) if changed else part


@dataclass(slots=True)
class ListenedMechanism:
    """A mechanism for an `Explainer` whose plans are listened to. `record` is changed before each run.

    A plan follows from public things alone, so the plan of a first query is made once and kept for the runs that come.
    """

    given: Mechanism
    record: Record = field(default_factory=Record)
    first: dict[bytes, Plan] = field(default_factory=dict)

    @property
    def delta(self) -> float:
        return self.given.delta

    @property
    def private(self) -> bool:
        return self.given.private

    def to_dict(self) -> dict[str, Any]:
        return self.given.to_dict()

    def asking(self, model: Callable[[Matrix], Vector]) -> ListenedMechanism:
        informed = self.given.asking(model) if isinstance(self.given, AsksModel) else self.given
        return ListenedMechanism(informed, self.record, self.first)

    def plan(self, point: Vector, setting: Setting, history: History, hint: Start | None = None) -> Plan:
        key = point.tobytes()
        plan = self.first.get(key) if not len(history) else None
        plan = plan or self.given.plan(point, setting, history, hint)
        if not len(history):
            self.first[key] = plan
        self.record.quanta += price(plan.events)
        return record_transcript(plan, self.record)


def numbers(said: Any) -> list[float]:
    """Every number in an answer's details, in order of their names; a word counts as a number of its own."""
    if isinstance(said, dict):
        return [number for key in sorted(said) for number in numbers(said[key])]
    if isinstance(said, (list, tuple)):
        return [number for one in said for number in numbers(one)]
    if isinstance(said, str):
        return [crc32(said.encode()) / 2**32]
    return [float(said)] if isinstance(said, (int, float)) else []
