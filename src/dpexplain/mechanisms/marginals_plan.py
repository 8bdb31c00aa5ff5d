"""A private model of the records: histograms, then tables of pairs over bins chosen from the histograms, and labels in these. `proofs/marginals.md`.

Labels are bought where rows are so many that their noise is quiet: they show how answers depend on two features at a time, which records that follow
the tables alone have from the model and from what they lack beyond pairs.

Bins are joined by the *noisy* histograms, which is post-processing and costs nothing; their number, and with it every noise scale, follows
from public numbers before a row is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import Cells
from dpexplain.core.marginals import Bins, Histograms, Joined, LabelTables, NumberCounts, PairTables, table_cells
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.histogram_counts import HistogramCounts
from dpexplain.mechanisms.ports import Rows
from dpexplain.mechanisms.setting import Setting
from dpexplain.privacy.events import PrivacyEvent

HISTOGRAM_SHARE = 0.1
LABEL_SHARE = 0.2  # of what tables cost, where labels are bought
QUIET = 5000.0  # rows for each standard deviation of the noise on a sum of labels, from which on they are worth their price
FEWEST_BINS, MOST_BINS = 4, 24
MOST_VALUES, MOST_CELLS, MOST_ATTRIBUTES = 256, 1 << 20, 128
_SIGNIFICANT = 3.0  # standard deviations of noise that the count of missing values must exceed


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMarginals:
    """What was released: noisy histograms and tables, sums of labels where they were bought, and the standard deviation of the noise on each."""

    bins: Bins
    histograms: tuple[Vector, ...]
    tables: Matrix
    histogram_sigma: float
    table_sigma: float
    labels: Matrix | None = None
    label_sigma: float = 0.0

    def numbers(self, size: int) -> NumberCounts:
        """The histograms of numbers alone, of `size` rows."""
        found = [(cell, counts) for cell, counts in zip(self.bins.cells, self.histograms, strict=True) if cell.ordered]
        cells, counts = tuple(cell for cell, _ in found), (counts for _, counts in found)
        return NumberCounts.of(cells, counts, self.histogram_sigma, size)


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
    """The bounded query of all tables of pairs, over any bins of these sizes: a record adds 1 to one cell of each pair's table."""

    what: ClassVar[str] = "reference: tables of pairs"
    sizes: tuple[int, ...]
    setting: Setting

    @property
    def sensitivity(self) -> float:
        return sensitivity.pair_tables(len(self.sizes)) * self.setting.neighbours.multiplier

    @property
    def dimension(self) -> int:
        return table_cells(self.sizes)

    def evaluate(self, rows: Rows, at: PairTables) -> Vector:
        return at.vector(rows.pair_tables(at))


@dataclass(frozen=True, slots=True, eq=False)
class PairLabels:
    """The bounded query of the labels in all tables of pairs: a record adds its label, at most 1 in size, to one cell of each."""

    what: ClassVar[str] = "reference: labels in tables of pairs"
    sizes: tuple[int, ...]
    setting: Setting

    @property
    def sensitivity(self) -> float:
        return sensitivity.label_tables(len(self.sizes)) * self.setting.neighbours.multiplier

    @property
    def dimension(self) -> int:
        return table_cells(self.sizes)

    def evaluate(self, rows: Rows, at: PairTables) -> Vector:
        return at.vector(rows.label_tables(LabelTables(at)))


@dataclass(frozen=True, slots=True)
class MarginalsPlan:
    """A plan with two releases of counts, and one of labels where they are quiet enough, made from public information only."""

    cells: tuple[Cells, ...]
    sizes: tuple[int, ...]
    first: GaussianMechanism[HistogramCounts]
    second: GaussianMechanism[PairCounts]
    third: GaussianMechanism[PairLabels] | None = None

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        labels = () if self.third is None else (self.third.event(),)
        return (self.first.event(), self.second.event(), *labels)

    def run(self, door: Door) -> NoisyMarginals:
        histograms = tuple(self.first.query.asked.split(door.release(self.first)))
        joined = tuple(
            join(cell, histogram, size, self.first.sigma)
            for cell, histogram, size in zip(self.cells, histograms, self.sizes, strict=True)
        )
        pairs = PairTables(Bins(self.cells, joined, self.sizes))
        found = NoisyMarginals(
            pairs.bins, histograms, pairs.matrix(door.release(self.second, pairs)), self.first.sigma, self.second.sigma
        )
        if self.third is None:
            return found
        return replace(found, labels=pairs.matrix(door.release(self.third, pairs)), label_sigma=self.third.sigma)


def plan_marginals(cells: tuple[Cells, ...], mu: float, setting: Setting, *, labelled: bool = False) -> MarginalsPlan:
    """A plan that costs at most `mu`; `labelled` says whether records will have labels, so that those of the rows can be of use."""
    _require_manageable(cells)
    sound, multiplier = mu * (1 - 2.0**-40), setting.neighbours.multiplier
    first, tables = sound * sqrt(HISTOGRAM_SHARE), sound * sqrt(1 - HISTOGRAM_SHARE)
    third = tables * sqrt(LABEL_SHARE)
    bought = labelled and setting.size >= QUIET * sensitivity.label_tables(len(cells)) * multiplier / third
    second = tables * sqrt(1 - LABEL_SHARE) if bought else tables
    bins = _bins(setting.size / (sensitivity.pair_tables(len(cells)) * multiplier / tables))
    sizes = tuple(min(cell.count, bins) if cell.ordered else cell.count for cell in cells)
    if table_cells(sizes) > MOST_CELLS:
        raise ParameterError(
            f"the pairs of these features have {table_cells(sizes):,} cells, more than {MOST_CELLS:,}. Join rare values of the largest "
            "categoricals in the domain, or release without reference=True"
        )
    return MarginalsPlan(
        cells,
        sizes,
        GaussianMechanism(HistogramCounts("reference: histograms", Histograms(cells), setting), first),
        GaussianMechanism(PairCounts(sizes, setting), second),
        GaussianMechanism(PairLabels(sizes, setting), third) if bought else None,
    )


def _bins(rows_per_noise: float) -> int:
    """How many bins a number gets: the cube root of m̄/σ balances the error of wide bins against the noise of narrow ones."""
    return int(np.clip(np.cbrt(rows_per_noise), FEWEST_BINS, MOST_BINS))


def _require_manageable(cells: tuple[Cells, ...]) -> None:
    if not 2 <= len(cells) <= MOST_ATTRIBUTES:
        raise ParameterError(
            f"reference data are modelled for 2 to {MOST_ATTRIBUTES} features, got {len(cells)}. Release without reference=True, "
            "or declare a domain of the features that matter"
        )
    widest = max((cell for cell in cells if not cell.ordered), key=lambda cell: cell.count, default=None)
    if widest is not None and widest.count > MOST_VALUES + 1:
        raise ParameterError(
            f"a categorical of {widest.count - 1} values is too wide for reference data (at most {MOST_VALUES}). Join rare values in "
            "the domain, or release without reference=True"
        )


def join(cell: Cells, histogram: Vector, size: int, sigma: float) -> Joined:
    """Which bin each cell falls into: codes keep theirs, ordered cells are joined to `size` bins of nearly equal noisy mass."""
    if not cell.ordered:
        return _without_unknown(np.arange(cell.count), cell, histogram, sigma)
    if cell.count <= size:
        return _without_unknown(np.arange(cell.count), cell, histogram, sigma)
    mass = np.maximum(histogram - sigma, 0.0) + 1e-9
    return _without_unknown(equal_mass(mass / mass.sum(), size), cell, histogram, sigma)


def _without_unknown(joined: Joined, cell: Cells, histogram: Vector, sigma: float) -> Joined:
    """Join the cell of missing values to the bin of the most frequent cell, unless its count exceeds the noise."""
    if cell.unknown is not None and histogram[cell.unknown] <= _SIGNIFICANT * sigma:
        joined = joined.copy()
        joined[cell.unknown] = joined[int(np.argmax(histogram))]
    return joined


def equal_mass(mass: Vector, size: int) -> Joined:
    """Consecutive cells, whose masses sum to one, in at most `size` bins; a cell heavier than a bin's share is a bin of its own.

    What such cells leave, ρ, is shared by size·∛ρ bins: as many as the other rows would get if they were all (`_bins`).
    """
    joined, bin_, filled = np.zeros(len(mass), dtype=np.int64), 0, 0.0
    heavy = mass > 1 / size
    left = float(mass[~heavy].sum())
    share = left / max(1.0, min(size - int(heavy.sum()), size * np.cbrt(left)))
    for cell, weight in enumerate(mass):
        if filled > 0 and filled + weight > 1.5 * share and bin_ < size - 1:
            bin_, filled = bin_ + 1, 0.0
        joined[cell] = bin_
        filled += weight
        if filled >= share and bin_ < size - 1 and cell + 1 < len(mass):
            bin_, filled = bin_ + 1, 0.0
    return joined
