"""Noisy histograms: how many rows fall into each cell of some attributes. `proofs/marginals.md`."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Vector
from dpexplain.core.cells import number_cells
from dpexplain.core.layout import Layout
from dpexplain.core.marginals import Histograms, NumberCounts
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.ports import Rows
from dpexplain.mechanisms.setting import Setting

_LEAST_SHARE, _MOST_SHARE = 0.005, 0.03  # of μ², for histograms of numbers beside moments
_COUNT_ERROR = 0.001  # of the rows: counts that are known to this need not be known better
_NOISIEST = 0.025  # of the rows: counts with more noise are useless


@dataclass(frozen=True, slots=True, eq=False)
class HistogramCounts:
    """The bounded query of histograms. Counts are exact, so no summation error is added to their sensitivity."""

    what: str
    asked: Histograms
    setting: Setting

    @property
    def sensitivity(self) -> float:
        return self.asked.sensitivity() * self.setting.neighbours.multiplier

    @property
    def dimension(self) -> int:
        return self.asked.dimension

    def evaluate(self, rows: Rows, at: None = None) -> Vector:
        del at
        return rows.histograms(self.asked)


def number_counts_share(layout: Layout, mu: float, setting: Setting) -> float:
    """The share of μ² for histograms of numbers, from public numbers: less where there are many rows for their noise, and none where there are too few."""
    noise = sensitivity.histograms(len(layout.numbers)) * setting.neighbours.multiplier / (setting.size * mu)
    if not layout.numbers.size or noise > _NOISIEST * sqrt(_MOST_SHARE):
        return 0.0
    return float(np.clip((noise / _COUNT_ERROR) ** 2, _LEAST_SHARE, _MOST_SHARE))


def plan_number_counts(layout: Layout, mu: float, setting: Setting) -> GaussianMechanism[HistogramCounts]:
    """Histograms of all numbers of a layout, which cost `mu`."""
    asked = Histograms(number_cells(layout, setting.levels))
    return GaussianMechanism(HistogramCounts("release: numbers", asked, setting), mu)


def release_number_counts(counts: GaussianMechanism[HistogramCounts], door: Door) -> NumberCounts:
    """The noisy histograms of numbers."""
    asked = counts.query.asked
    return NumberCounts.of(asked.cells, asked.split(door.release(counts)), counts.sigma, counts.query.setting.size)
