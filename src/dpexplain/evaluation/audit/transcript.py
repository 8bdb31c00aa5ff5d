"""The transcript of a run: each number that passes the door, and each number that an answer contains.

The transcript is what accounting assumes an attacker sees; an answer (the last iterate, say) is less. Beside the numbers themselves it holds their
log-likelihood ratio: an attacker who knows both data sets knows what each release would have been without noise, given the public parameters at
which it was made (such as φ_t), so that Σ_t (m₁ - m₀)·(r_t - (m₁ + m₀)/2)/σ² is the optimal score where noise is Gaussian.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.mechanisms.door import ReadOnce
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.ports import Mechanism, Plan, Rows, UsesModel
from dpexplain.mechanisms.setting import Setting
from dpexplain.mechanisms.start import Start


@dataclass(slots=True)
class Ratio:
    """Log-likelihood ratios of releases between two data sets that the attacker knows."""

    inside: Rows
    outside: Rows
    known: dict[int, tuple[Any, Vector, Vector]] = field(default_factory=dict)

    def of(self, mechanism: GaussianMechanism[Any], at: Any, released: Vector) -> tuple[float, float]:
        """(log-likelihood ratio, squared distance of the two means), in units of the noise."""
        first, second = self._means(mechanism, at)
        apart = first - second
        ratio = float((apart * (released.ravel() - (first + second) / 2)).sum()) / mechanism.sigma**2
        return ratio, float((apart * apart).sum()) / mechanism.sigma**2

    def _means(self, mechanism: GaussianMechanism[Any], at: Any) -> tuple[Vector, Vector]:
        """The query's values on both data sets, cached where it has no parameters. The query is cached with them, so that its id is not reused."""
        query = mechanism.query
        if at is None and id(query) in self.known:
            return self.known[id(query)][1:]
        first, second = (query.evaluate(rows, at).ravel() for rows in (self.inside, self.outside))
        if at is None:
            self.known[id(query)] = query, first, second
        return first, second

    def with_stored_sums(self) -> Ratio:
        """A copy that caches the sums of a local question, for which every step of a descent asks."""
        return Ratio(ReadOnce.of(self.inside), ReadOnce.of(self.outside), self.known)


@dataclass(slots=True)
class Record:
    """What one run released: `released` in units of the noise on it, `details` as the numbers in its answers, and what was reserved to pay for it."""

    ratio: Ratio | None = None
    released: list[Vector] = field(default_factory=list)
    values: list[Vector] = field(default_factory=list)
    details: list[float] = field(default_factory=list)
    likelihood: float = 0.0
    apart: float = 0.0  # the sum of the squared distances of both data sets' means, in units of the noise
    quanta: int = 0

    @property
    def transcript(self) -> Vector:
        """All that accounting assumes an attacker sees, after its log-likelihood ratio."""
        return np.concatenate([[self.likelihood], *self.released, np.array(self.details)])

    @property
    def answer(self) -> Vector:
        """All that a user sees."""
        return np.concatenate([*self.values, np.array(self.details)])

    def hear_release(self, mechanism: GaussianMechanism[Any], at: Any, released: Vector) -> None:
        """Record a release that passes the door."""
        self.released.append(released.ravel() / mechanism.sigma)
        if self.ratio is not None:
            ratio, apart = self.ratio.of(mechanism, at, released)
            self.likelihood, self.apart = self.likelihood + ratio, self.apart + apart

    def hear_answer(self, answer: Any) -> None:
        """Record an `Explanation`: its numbers, and all else that it contains."""
        self.values += [answer.values] if answer.error is None else [answer.values, answer.error]
        self.details += [answer.cost.mu, float(answer.copied), *numbers(answer.details)]


@dataclass(slots=True)
class PlannedOnce:
    """A mechanism that caches its plans of first queries: they follow from public information alone, and runs of an audit share them."""

    given: Mechanism
    first: dict[bytes, Plan[Any]] = field(default_factory=dict)

    @property
    def delta(self) -> float:
        return self.given.delta

    @property
    def private(self) -> bool:
        return self.given.private

    def to_dict(self) -> dict[str, Any]:
        return self.given.to_dict()

    def with_model(self, model: Callable[[Matrix], Vector]) -> PlannedOnce:
        given = self.given.with_model(model) if isinstance(self.given, UsesModel) else self.given
        return PlannedOnce(given, self.first)

    def plan(self, point: Vector, setting: Setting, history: History, hint: Start | None = None) -> Plan[Any]:
        if len(history):
            return self.given.plan(point, setting, history, hint)
        key = point.tobytes()
        if key not in self.first:
            self.first[key] = self.given.plan(point, setting, history, hint)
        return self.first[key]


def numbers(details: Any) -> list[float]:
    """Every number in an answer's details, in order of their names; then each text, which counts as a number of its own.

    Texts come last because some are there in some runs only: the place of a number must not depend on them.
    """
    return [float(one) for one in _entries(details, (int, float))] + [
        crc32(one.encode()) / 2**32 for one in _entries(details, (str,))
    ]


def _entries(details: Any, kinds: tuple[type, ...]) -> list[Any]:
    if isinstance(details, dict):
        return [entry for key in sorted(details) for entry in _entries(details[key], kinds)]
    if isinstance(details, (list, tuple)):
        return [entry for one in details for entry in _entries(one, kinds)]
    return [details] if isinstance(details, kinds) else []
