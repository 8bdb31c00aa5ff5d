"""Maps each attribute of an encoded row to one of finitely many public cells, and back. Each row is mapped by itself.

A *code* of k columns has k + 1 cells: which column is 1, or none (an unknown value, or a binary 0). A *scale* of k ordered levels has a cell
for each level and one for the middle that stands for a missing level. A *line*, a number in [0, 1], has `FINE` equal cells and two more for
exactly 0 and exactly 1, where clamped and unused values pile up; inside a cell a number is drawn uniformly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import BlockLike, Layout

FINE = 256
CellCodes: TypeAlias = NDArray[np.int64]
Columns: TypeAlias = Matrix | NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class CodeCells:
    """k columns in {0, 1}, at most one of them 1."""

    start: int
    stop: int
    ordered = False

    @property
    def count(self) -> int:
        return self.stop - self.start + 1

    @property
    def unknown(self) -> int | None:
        return None if self.count == 2 else self.count - 1

    def of(self, columns: Columns) -> CellCodes:
        set_ = np.greater(columns.T, 0.5, order="C")
        # from the last cell, for which no column is 1
        distances = set_ * np.arange(self.count - 1, 0, -1, dtype=np.float32)[:, None]
        return np.asarray(self.count - 1 - distances.max(axis=0).astype(np.int64))

    def columns(self, cells: CellCodes, uniform: Vector) -> Matrix:
        del uniform
        return np.eye(self.count)[cells, :-1]


@dataclass(frozen=True, slots=True)
class LevelCells:
    """One column with k equally spaced levels in [0, 1]; 1/2, unless it is a level, means missing."""

    start: int
    levels: int
    ordered = True

    @property
    def stop(self) -> int:
        return self.start + 1

    @property
    def count(self) -> int:
        return self.levels + 1 - self.levels % 2

    @property
    def unknown(self) -> int | None:
        return None if self.levels % 2 else self.levels

    def of(self, columns: Columns) -> CellCodes:
        position = columns[:, 0].astype(np.float64) * (self.levels - 1)
        level = np.rint(position)
        between = np.abs(position - level) > 0.25
        return np.where(between & (self.levels % 2 == 0), self.levels, np.clip(level, 0, self.levels - 1)).astype(np.int64)

    def columns(self, cells: CellCodes, uniform: Vector) -> Matrix:
        del uniform
        return np.append(np.linspace(0.0, 1.0, self.levels), 0.5)[cells][:, None]


@dataclass(frozen=True, slots=True)
class NumberCells:
    """One column in [0, 1]: the cells {0}, (0, 1/FINE], …, (1 - 1/FINE, 1), {1}."""

    start: int
    ordered = True
    unknown = None

    @property
    def stop(self) -> int:
        return self.start + 1

    @property
    def count(self) -> int:
        return FINE + 2

    def of(self, columns: Columns) -> CellCodes:
        value = columns[:, 0].astype(np.float64)
        return np.where(value >= 1, FINE + 1, np.clip(np.ceil(value * FINE), 0, FINE)).astype(np.int64)

    def columns(self, cells: CellCodes, uniform: Vector) -> Matrix:
        inside = (cells - 1 + uniform) / FINE
        return np.where(cells == 0, 0.0, np.where(cells == FINE + 1, 1.0, inside))[:, None]


Cells: TypeAlias = CodeCells | LevelCells | NumberCells
"""One attribute's columns ↔ cell numbers 0 … count-1: `of` maps encoded columns (m, stop-start) to cells (m,), and `columns` maps back.

Neighbouring cells may be joined where they are `ordered`. `unknown` is the cell of missing values where there is one that may be empty, else None.
"""


def cells_of(blocks: Iterable[BlockLike], levels: Iterable[int]) -> tuple[Cells, ...]:
    """The cells of each attribute; `levels` is the number of an ordinal's levels and 0 for everything else."""
    return tuple(_cells(block, count) for block, count in zip(blocks, levels, strict=True))


def number_cells(layout: Layout, levels: Sequence[int]) -> tuple[Cells, ...]:
    """The cells of numbers alone, in the order of their columns; `levels` as for `cells_of`, or empty where no attribute is ordered."""
    numbers = [a for a, number in enumerate(layout.is_number) if number]
    return tuple(_number_cells(layout.starts[a], levels[a] if levels else 0) for a in numbers)


def _cells(block: BlockLike, levels: int) -> Cells:
    if block.kind != "numeric":
        return CodeCells(block.start, block.stop)
    return _number_cells(block.start, levels)


def _number_cells(start: int, levels: int) -> LevelCells | NumberCells:
    return LevelCells(start, levels) if 2 <= levels <= FINE else NumberCells(start)
