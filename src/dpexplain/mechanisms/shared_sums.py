"""Noisy sums that paid answers released, stored so that later answers can use them again, and pooled. All of it is public.

A paid answer by moments releases two vectors: sums around the public centre, which give a centre, and moments of normalised rows around that centre
(`mechanisms/moments_plan.py`). Later answers may buy further sums around the *same* centre. All are then Gaussian around the same exact sums, with known
noise σᵢ, so the best estimate is their mean with weights 1/σᵢ², and its noise has the variance 1/Σ σᵢ⁻².
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from math import floor, log2, sqrt
from typing import Any
from zlib import compress, decompress

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.cells import number_cells
from dpexplain.core.expected_labels import ExpectedLabels
from dpexplain.core.layout import Layout
from dpexplain.core.marginals import Histograms, NumberCounts
from dpexplain.core.release_moments import CentreMoments, NormalisedMoments, NormalisedSums, centre_of, normalised_dimension
from dpexplain.errors import InputError
from dpexplain.estimation.denoise import NoisySketch

_FINENESS = 64  # steps in a standard deviation of the noise: rounding to them adds 2·10⁻⁵ of its variance


@dataclass(frozen=True, slots=True, eq=False)
class NoisyNumbers:
    """Released numbers, each with noise of standard deviation `sigma`, and rounded to a power of two below σ/64, so that they are short to store."""

    values: Vector
    sigma: float

    @classmethod
    def from_release(cls, released: Vector, sigma: float) -> NoisyNumbers:
        step = _step(sigma)
        return cls(np.rint(released / step) * step + 0.0, sigma)  # no negative zeros: they are not stored

    def to_dict(self) -> dict[str, Any]:
        """The numbers as compressed 64-bit integers, all lowest bytes first: the higher ones hardly differ."""
        units = np.rint(self.values / _step(self.sigma)).astype("<i8")
        planes = units.view(np.uint8).reshape(-1, 8).T.tobytes()
        return {"sigma": self.sigma, "numbers": b64encode(compress(planes, 9)).decode("ascii")}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> NoisyNumbers:
        planes = np.frombuffer(decompress(b64decode(value["numbers"])), dtype=np.uint8)
        units = np.ascontiguousarray(planes.reshape(8, -1).T).view("<i8").ravel()
        return cls(units * _step(value["sigma"]), float(value["sigma"]))


def _step(sigma: float) -> float:
    return float(2.0 ** floor(log2(sigma))) / _FINENESS


def pool(parts: Sequence[NoisyNumbers]) -> NoisyNumbers:
    """The mean with weights 1/σ²."""
    weights = np.array([part.sigma**-2 for part in parts])
    values = sum(weight * part.values for weight, part in zip(weights, parts, strict=True)) / weights.sum()
    return NoisyNumbers(np.asarray(values), 1 / sqrt(float(weights.sum())))


@dataclass(frozen=True, eq=False)
class PaidSums:
    """What one paid answer released. `labels` identifies the answers that were summed, and `around` the paid sums whose centre it used (None: its own)."""

    labels: str
    size: int  # public row count
    centre: NoisyNumbers
    moments: NoisyNumbers
    around: str | None = None
    expected: ExpectedLabels | None = None  # what labels were compared with before they were summed
    numbers: NoisyNumbers | None = None  # histograms of numbers, one after the other

    @cached_property
    def digest(self) -> str:
        return sha256(self.centre.values.tobytes() + self.moments.values.tobytes()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        return {
            "labels": self.labels,
            "size": self.size,
            "centre": self.centre.to_dict(),
            "moments": self.moments.to_dict(),
            **({} if self.around is None else {"around": self.around}),
            **({} if self.expected is None else {"expected": self.expected.to_dict()}),
            **({} if self.numbers is None else {"numbers": self.numbers.to_dict()}),
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> PaidSums:
        try:
            centre, moments = NoisyNumbers.from_dict(value["centre"]), NoisyNumbers.from_dict(value["moments"])
            expected = ExpectedLabels.from_dict(value["expected"]) if "expected" in value else None
            numbers = NoisyNumbers.from_dict(value["numbers"]) if "numbers" in value else None
            return cls(value["labels"], value["size"], centre, moments, value.get("around"), expected, numbers)
        except Exception:
            raise InputError(
                "the sums of a paid answer cannot be read. Restore the ledger or the history, or upgrade dpexplain if a newer version wrote them"
            ) from None

    def fits(self, layout: Layout) -> bool:
        """Whether these can be sums of encoded rows of this layout."""
        sizes = CentreMoments(layout).dimension, normalised_dimension(layout)
        return (len(self.centre.values), len(self.moments.values)) == sizes


@dataclass(frozen=True, eq=False)
class SumPool:
    """All sums around one centre; the first of `parts` is the one whose centre it is."""

    parts: tuple[PaidSums, ...]
    layout: Layout

    @property
    def centre_name(self) -> str:
        return self.parts[0].digest

    @cached_property
    def digest(self) -> str:
        return " ".join(part.digest for part in self.parts)

    @property
    def precision(self) -> float:
        """1/σ² of the pooled moments."""
        return sum(part.moments.sigma**-2 for part in self.parts)

    def with_part(self, further: PaidSums) -> SumPool:
        return SumPool((*self.parts, further), self.layout)

    @cached_property
    def query(self) -> NormalisedMoments:
        """The query that all parts answer: around the centre that the first part found, with the labels that it expected."""
        first = self.parts[0]
        around = NormalisedMoments.after(first.centre.values, self.layout, first.size, first.centre.sigma)
        return replace(around, expected=first.expected)

    def sketch(self, levels: Sequence[int]) -> NoisySketch:
        """The pooled sums, and how numbers are distributed; `levels` is how many levels each attribute has, 0 where it is not ordered."""
        size = self.parts[0].size
        centre, moments = pool([part.centre for part in self.parts]), pool([part.moments for part in self.parts])
        sums = NormalisedSums.from_vector(moments.values, self.query.scales, self.layout)
        average, _ = centre_of(centre.values, self.layout, size, centre.sigma)
        query = replace(self.query, margins=self._margins(levels))
        return NoisySketch(sums, query, moments.sigma, centre.sigma / size, average)

    def _margins(self, levels: Sequence[int]) -> NumberCounts | None:
        asked, counted = Histograms(number_cells(self.layout, levels)), self.parts[0].numbers
        if counted is None or len(counted.values) != asked.dimension:
            return None
        return NumberCounts(asked.cells, tuple(asked.split(counted.values)), counted.sigma)


def best_pool(paid: Iterable[PaidSums], layout: Layout) -> SumPool | None:
    """The most precise of the pools that these sums form: concurrent first answers have a centre each. None where there are no sums."""
    groups: dict[str, list[PaidSums]] = {}
    for one in paid:
        if one.around is None and one.fits(layout):
            groups.setdefault(one.digest, []).append(one)
        elif one.around in groups and one.fits(layout):
            groups[one.around].append(one)
    pools = [SumPool(tuple(group), layout) for group in groups.values()]
    return max(pools, key=lambda one: one.precision, default=None)
