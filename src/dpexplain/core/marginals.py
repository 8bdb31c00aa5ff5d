"""The statistics of private reference data: a histogram of each attribute, a table of each pair, and the labels in it. Proof: `proofs/marginals.md`.

A record falls into exactly one cell of each histogram and of each table, so A histograms together have L2 sensitivity √A and the A(A-1)/2
tables √(A(A-1)/2); so have the sums of labels in the cells of the tables, because a label is at most 1 in size. Counts, and labels that are rounded to a
grid row by row, are whole numbers below 2⁵³: their sums are exact, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import CellCodes, Cells, Columns

Joined = NDArray[np.int64]
_TOGETHER = 1 << 13  # rows that are counted together
LABEL_STEPS = 128  # labels are rounded to multiples of 1/128 each: 2¹³ of them add up exactly in float32


@dataclass(frozen=True, slots=True)
class Histograms:
    """A bounded query: how many rows fall into each cell of each attribute."""

    cells: tuple[Cells, ...]

    @property
    def dimension(self) -> int:
        return sum(cell.count for cell in self.cells)

    def sensitivity(self) -> float:
        return sensitivity.histograms(len(self.cells))

    def count(self, pieces: Iterable[Columns]) -> Vector:
        """Exact counts over pieces of encoded rows, (m, n) each."""
        counts = [np.zeros(cell.count) for cell in self.cells]
        for rows in pieces:
            for cell, count in zip(self.cells, counts, strict=True):
                count += np.bincount(cell.of(rows[:, cell.start : cell.stop]), minlength=cell.count)
        return np.concatenate(counts)

    def split(self, counts: Vector) -> list[Vector]:
        """One histogram for each attribute."""
        return np.split(counts, np.cumsum([cell.count for cell in self.cells])[:-1])


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Cells joined to at most `sizes[a]` bins: cell c of attribute a is in bin `joined[a][c]`. Any map is valid."""

    cells: tuple[Cells, ...]
    joined: tuple[Joined, ...]
    sizes: tuple[int, ...]

    @property
    def offsets(self) -> Joined:
        """Where each attribute's bins start among all of them; one entry more than there are attributes."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def total(self) -> int:
        return sum(self.sizes)

    def of(self, rows: Columns) -> CellCodes:
        """Encoded rows (m, n) → bins (m, attributes)."""
        parts = [joined[cell.of(rows[:, cell.start : cell.stop])] for cell, joined in zip(self.cells, self.joined, strict=True)]
        return np.column_stack(parts)


@dataclass(frozen=True, slots=True)
class PairTables:
    """A bounded query: how many rows fall into each pair of bins, for every two attributes."""

    bins: Bins

    @property
    def dimension(self) -> int:
        return table_cells(self.bins.sizes)

    def sensitivity(self) -> float:
        return sensitivity.pair_tables(len(self.bins.sizes))

    def count(self, pieces: Iterable[Columns]) -> Matrix:
        """Exact counts over pieces of encoded rows: symmetric, zero within an attribute."""
        counts = np.zeros((self.bins.total, self.bins.total))
        for rows in pieces:
            codes = self.bins.of(rows)
            for start in range(0, len(codes), _TOGETHER):
                inside = one_hot(codes[start : start + _TOGETHER], self.bins.offsets)
                counts += inside.T @ inside
        return self.clear_within(counts)

    def clear_within(self, counts: Matrix) -> Matrix:
        """The same with zeros within an attribute."""
        owner = np.repeat(np.arange(len(self.bins.sizes)), self.bins.sizes)
        return np.where(owner[:, None] == owner, 0.0, counts)

    def vector(self, counts: Matrix) -> Vector:
        """Each table once, from the symmetric matrix of all of them."""
        return counts[self._upper()]

    def matrix(self, vector: Vector) -> Matrix:
        """The symmetric matrix again; zero within an attribute."""
        counts = np.zeros((self.bins.total, self.bins.total))
        counts[self._upper()] = vector
        return counts + counts.T

    def _upper(self) -> tuple[Joined, Joined]:
        owner = np.repeat(np.arange(len(self.bins.sizes)), self.bins.sizes)
        first, second = np.nonzero(owner[:, None] < owner[None, :])
        return first, second


@dataclass(frozen=True, slots=True)
class LabelTables:
    """A bounded query: the sum of the labels of the rows in each cell of the tables of pairs, each label rounded to a multiple of 1/128."""

    tables: PairTables

    def sensitivity(self) -> float:
        return sensitivity.label_tables(len(self.tables.bins.sizes))

    def add_up(self, pieces: Iterable[Matrix]) -> Matrix:
        """Exact sums over pieces of encoded rows, each followed by its label, (m, n + 1): symmetric, zero within an attribute."""
        bins = self.tables.bins
        sums = np.zeros((bins.total, bins.total))
        for rows in pieces:
            codes, steps = bins.of(rows[:, :-1]), round_labels(rows[:, -1])
            for start in range(0, len(codes), _TOGETHER):
                inside = one_hot(codes[start : start + _TOGETHER], bins.offsets)
                sums += inside.T @ (inside * steps[start : start + _TOGETHER, None])
        return self.tables.clear_within(sums / LABEL_STEPS)


def round_labels(labels: Vector) -> NDArray[np.float32]:
    """Each label, within [-1, 1], as a whole number of steps."""
    return np.rint(np.clip(labels, -1.0, 1.0) * LABEL_STEPS).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class NumberCounts:
    """Noisy counts of each number's cells, in the order of the columns, as shares of the public row count; `sigma` is the noise of each share."""

    cells: tuple[Cells, ...]
    shares: tuple[Vector, ...]
    sigma: float

    @classmethod
    def of(cls, cells: tuple[Cells, ...], counts: Iterable[Vector], sigma: float, size: int) -> NumberCounts:
        """Read counts as they were released, with noise `sigma`, of `size` rows."""
        return cls(cells, tuple(count / size for count in counts), sigma / size)


def table_cells(sizes: tuple[int, ...]) -> int:
    """Cells of all tables together."""
    return sum(a * b for a, b in combinations(sizes, 2))


def one_hot(codes: CellCodes, offsets: Joined) -> NDArray[np.float32]:
    """(m, attributes) → (m, total): a 1 in each attribute's bin. float32 counts up to 2²⁴ rows exactly."""
    rows = np.zeros((len(codes), int(offsets[-1])), dtype=np.float32)
    starts = np.arange(len(codes))[:, None] * rows.shape[1] + offsets[:-1]
    rows.reshape(-1)[codes + starts] = 1.0
    return rows
