"""Private bounds and categories from noisy counts: of public bins, which are refined twice, and of every possible text. Proof: `proofs/discover.md`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Vector
from dpexplain.core.text_prior import TextPrior
from dpexplain.core.value_bins import COARSE, FINE, coarse_range, fine_range, median, visible_zeros
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import Cut, GaussianMechanism
from dpexplain.mechanisms.ports import UndeclaredColumns
from dpexplain.privacy import gdp
from dpexplain.privacy.events import PrivacyEvent
from dpexplain.privacy.relation import Neighbours

ROUNDS = 2  # of zooming in, after the coarse bins
TEXT_WEIGHT, COARSE_WEIGHT, FINE_WEIGHT = 2.0, 1.0, 0.5  # of μ², for each column


@dataclass(frozen=True, slots=True)
class BinCounts:
    """What coarse and fine bins share: a record adds 1 to at most one bin of each column."""

    bins: ClassVar[int]
    names: tuple[str, ...]
    neighbours: Neighbours

    @property
    def sensitivity(self) -> float:
        return sensitivity.histograms(len(self.names)) * self.neighbours.multiplier

    @property
    def dimension(self) -> int:
        return len(self.names) * self.bins


class CoarseCounts(BinCounts):
    """The bounded query of coarse bins."""

    __slots__ = ()
    what: ClassVar[str] = "discover: coarse bins"
    bins = COARSE

    def evaluate(self, rows: Any, at: None = None) -> Vector:
        del at
        return cast(UndeclaredColumns, rows).coarse(self.names)


class FineCounts(BinCounts):
    """The bounded query of equal bins, over any range of each column."""

    __slots__ = ()
    what: ClassVar[str] = "discover: fine bins"
    bins = FINE

    def evaluate(self, rows: Any, at: Mapping[str, tuple[float, float]]) -> Vector:
        if tuple(at) != self.names or not all(low < high for low, high in at.values()):
            raise ParameterError("fine bins need a range for each planned column. Pass them in the planned order")
        return cast(UndeclaredColumns, rows).fine(at)


@dataclass(frozen=True, slots=True)
class TextCounts:
    """The bounded query of how often each text occurs, over every text of up to 64 characters: a record adds 1 to one text of each column.

    `dimension` is the number of counts in which neighbours can differ; all others are the same on both sides. `visible` returns
    the texts whose noisy counts pass their public thresholds, from the exact counts and a source of noise.
    """

    what: ClassVar[str] = "discover: categories"
    priors: tuple[tuple[str, TextPrior], ...]
    neighbours: Neighbours

    @property
    def sensitivity(self) -> float:
        return sensitivity.histograms(len(self.priors)) * self.neighbours.multiplier

    @property
    def dimension(self) -> int:
        return len(self.priors) * self.neighbours.multiplier

    def evaluate(self, rows: Any, at: str) -> Vector:
        """The counts of one column in the order of its texts; only a `Door` calls it, and only for `visible`."""
        texts = cast(UndeclaredColumns, rows).texts(at)
        return np.array([texts[text] for text in sorted(texts)], dtype=np.float64)

    def visible(
        self, rows: Any, noisy: Callable[[Vector], Vector], cut: Cut, uniform: Callable[[int], Vector]
    ) -> dict[str, list[str]]:
        """For each column, the texts whose noisy counts pass their limits. Texts that occur in no row are included."""
        found = {}
        for name, prior in self.priors:
            texts = sorted(cast(UndeclaredColumns, rows).texts(name))
            counts = noisy(self.evaluate(rows, name)) if texts else np.zeros(0)
            passed = [text for text, count in zip(texts, counts, strict=True) if count > cut.limit_at(prior.threshold(text))]
            lifted = prior.spurious(uniform, frozenset(texts), lambda threshold: cut.chance(cut.limit_at(threshold)))
            found[name] = sorted([*passed, *lifted])
        return found


@dataclass(frozen=True, slots=True)
class DiscoveredColumns:
    """What was released: a range and a middle for each column of numbers (None: nothing visible), the visible texts of the others."""

    ranges: dict[str, tuple[float, float] | None]
    middles: dict[str, float]
    texts: dict[str, list[str]]

    def to_dict(self) -> dict[str, Any]:
        ranges = {name: None if ends is None else list(ends) for name, ends in self.ranges.items()}
        return {"ranges": ranges, "middles": self.middles, "texts": self.texts}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> DiscoveredColumns:
        ranges = {name: None if ends is None else (ends[0], ends[1]) for name, ends in value["ranges"].items()}
        return cls(ranges, value["middles"], value["texts"])


@dataclass(frozen=True, slots=True)
class DiscoveryPlan:
    """Coarse bins, then fine ones twice, each within what the release before it showed; texts at once."""

    coarse: GaussianMechanism[CoarseCounts] | None
    fine: GaussianMechanism[FineCounts] | None
    texts: GaussianMechanism[TextCounts] | None

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        found: list[PrivacyEvent] = []
        if self.coarse is not None and self.fine is not None:
            found += [self.coarse.event(), self.fine.event(ROUNDS)]
        if self.texts is not None:
            found.append(self.texts.event())
        return tuple(found)

    def run(self, door: Door) -> DiscoveredColumns:
        ranges, middles = self._bounds(door)
        return DiscoveredColumns(ranges, middles, {} if self.texts is None else door.visible(self.texts))

    def _bounds(self, door: Door) -> tuple[dict[str, tuple[float, float] | None], dict[str, float]]:
        if self.coarse is None or self.fine is None:
            return {}, {}
        names = self.coarse.query.names
        counts = door.release(self.coarse).reshape(len(names), COARSE)
        seen = {name: coarse_range(counts[i], self.coarse.sigma) for i, name in enumerate(names)}
        zeros = {name: visible_zeros(counts[i], self.coarse.sigma) for i, name in enumerate(names)}
        ranges, middles = {name: ends or (-1.0, 1.0) for name, ends in seen.items()}, dict[str, float]()
        release = door.releases(self.fine, ROUNDS)
        for _ in range(ROUNDS):
            fine = release(ranges).reshape(len(names), FINE)
            middles = {name: median(fine[i], *ranges[name]) for i, name in enumerate(names)}
            ranges = {name: fine_range(fine[i], self.fine.sigma, *ranges[name], zeros[name]) for i, name in enumerate(names)}
        return {name: None if seen[name] is None else ranges[name] for name in names}, middles


def plan_discovery(
    numbers: tuple[str, ...], priors: tuple[tuple[str, TextPrior], ...], mu: float, neighbours: Neighbours
) -> DiscoveryPlan:
    """A plan that costs at most `mu`, shared by the number of columns: more for texts, whose thresholds are higher."""
    weights = {"texts": TEXT_WEIGHT * len(priors), "coarse": COARSE_WEIGHT * len(numbers), "fine": FINE_WEIGHT * len(numbers)}
    total = weights["texts"] + weights["coarse"] + ROUNDS * weights["fine"]
    if not total:
        raise ParameterError(
            "there is nothing to discover: every column is declared. Leave one undeclared, or do not call discover"
        )
    share = {name: gdp.part(mu, weight / total) for name, weight in weights.items()}
    return DiscoveryPlan(
        GaussianMechanism(CoarseCounts(numbers, neighbours), share["coarse"]) if numbers else None,
        GaussianMechanism(FineCounts(numbers, neighbours), share["fine"]) if numbers else None,
        GaussianMechanism(TextCounts(priors, neighbours), share["texts"]) if priors else None,
    )
