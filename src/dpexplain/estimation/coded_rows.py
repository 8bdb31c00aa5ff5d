"""Records of a table held as numbers and category numbers instead of one-hot columns: products with them take a fraction of the time.

A code of k columns that hold one 1 or none is one cell number from 0 to k, k for none. Then Xv is a look-up, Xᵀw a count with weights, and a block of
Xᵀ diag(w) X for two codes is a count of pairs of cells. For passes over all records several codes are one, as long as their joint cells stay in the
processor's cache, and numbers are in single precision. The loops are in `_record_kernels.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.estimation import _record_kernels as kernels

_FEWEST_COLUMNS = 5  # of a code: counting pairs of smaller ones takes longer than multiplying their columns
_JOINT_CELLS = 1 << 12
_LEAST_SHARE = 1e-9

Cells = NDArray[np.int32]
JointCells = NDArray[np.uint16] | NDArray[np.uint32]
Positions = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class CodedColumns:
    """Which columns stay as they are, and which are codes."""

    width: int
    plain: Positions  # the columns that stay
    blocks: tuple[slice, ...]

    @cached_property
    def starts(self) -> Positions:
        """Where the cells of each code begin among all, the cell for none last in each; one entry more than there are codes."""
        return np.concatenate([[0], np.cumsum([b.stop - b.start + 1 for b in self.blocks])]).astype(np.intp)

    @cached_property
    def code_columns(self) -> Positions:
        """The columns of all cells but those for none."""
        return np.concatenate([np.empty(0, np.intp), *(np.arange(b.start, b.stop) for b in self.blocks)])

    @cached_property
    def known(self) -> Positions:
        """All cells but those for none."""
        return np.delete(np.arange(self.starts[-1]), self.starts[1:] - 1)

    @cached_property
    def order(self) -> Positions:
        """The place of each column after `code_columns` and then `plain`."""
        return np.argsort(np.concatenate([self.code_columns, self.plain]))


@dataclass(frozen=True, slots=True, eq=False)
class CodedRows:
    """Rows X, (N, width): columns that stay as they are, and codes as cell numbers among those of all codes."""

    columns: CodedColumns
    numbers: Matrix  # (N, columns that stay)
    cells: Cells  # (N, codes)

    @classmethod
    def of(cls, points: Matrix, layout: Layout) -> CodedRows:
        large = [b for b in map(layout.columns, layout.codes) if b.stop - b.start >= _FEWEST_COLUMNS]
        blocks = tuple(b for b in large if _is_one_hot(points[:, b]))
        coded = {column for b in blocks for column in range(b.start, b.stop)}
        plain = np.array([j for j in range(points.shape[1]) if j not in coded], dtype=np.intp)
        columns, cells = CodedColumns(points.shape[1], plain, blocks), np.empty((len(points), len(blocks)), dtype=np.int32)
        for i, block in enumerate(blocks):
            cells[:, i] = _cells(points[:, block]) + columns.starts[i]
        return cls(columns, np.ascontiguousarray(points[:, plain], dtype=np.float64), cells)

    def take(self, positions: Positions) -> CodedRows:
        """Some of the rows."""
        return CodedRows(self.columns, self.numbers.take(positions, axis=0), self.cells.take(positions, axis=0))

    def times(self, vector: Vector) -> Vector:
        """Xv."""
        values = np.zeros(int(self.columns.starts[-1]))
        values[self.columns.known] = vector[self.columns.code_columns]
        found = self.numbers @ vector[self.columns.plain]
        kernels.add_cells(self.cells, values, found)
        return np.asarray(found)

    def sums(self, weights: Vector) -> Vector:
        """Xᵀw."""
        return np.asarray(self.sums_of_each(weights[:, None])[0])

    def sums_of_each(self, weights: Matrix) -> Matrix:
        """Xᵀw for each column w of weights, (K, width)."""
        cells = np.zeros((int(self.columns.starts[-1]), weights.shape[1]))
        kernels.add_values(self.cells, np.ascontiguousarray(weights), cells)
        return np.concatenate([cells[self.columns.known], self.numbers.T @ weights])[self.columns.order].T

    def products(self, weights: Vector) -> Matrix:
        """Xᵀ diag(w) X."""
        cells, known, order = int(self.columns.starts[-1]), self.columns.known, self.columns.order
        pairs, mixed = np.zeros((cells, cells)), np.zeros((cells, self.numbers.shape[1]))
        kernels.add_pairs(self.cells, weights, self.numbers, pairs, mixed)
        upper, beside, codes = pairs.take(known, axis=0).take(known, axis=1), mixed.take(known, axis=0), len(known)
        found = np.empty((len(order), len(order)))
        found[:codes, :codes] = upper + upper.T
        found[:codes, :codes][np.diag_indices(codes)] -= np.diag(upper)
        found[:codes, codes:], found[codes:, :codes] = beside, beside.T
        found[codes:, codes:] = self.numbers.T @ (self.numbers * weights[:, None])
        return found.take(order, axis=0).take(order, axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class JointCode:
    """Some codes as one: the joint cell of a row is Σ cellᵢ strideᵢ."""

    blocks: tuple[slice, ...]
    sizes: tuple[int, ...]  # cells of each

    def cells_of_each(self) -> Positions:
        """(joint cells, codes): the cell of each code."""
        return np.stack(np.unravel_index(np.arange(int(np.prod(self.sizes))), self.sizes), axis=1)


@dataclass(frozen=True, eq=False)
class PackedRows:
    """All codes and columns of zeros and ones in as few joint codes as there may be, and the numbers."""

    width: int
    columns: Positions  # that are numbers
    numbers: kernels.Floats  # (len(columns), N)
    codes: tuple[JointCode, ...]
    cells: JointCells  # (codes, N)

    @classmethod
    def of(cls, rows: CodedRows) -> PackedRows:
        """Each code with others of at most `_JOINT_CELLS` joint cells; the largest come first."""
        columns, plain = rows.columns, rows.columns.plain
        binary = np.array([_is_one_hot(column[:, None]) for column in rows.numbers.T], dtype=bool)
        ones = [
            (slice(int(j), int(j) + 1), 1 - column.astype(np.int32))
            for j, column in zip(plain[binary], rows.numbers.T[binary], strict=True)
        ]
        coded = zip(columns.blocks, rows.cells.T - columns.starts[:-1, None].astype(np.int32), strict=True)
        found: list[tuple[list[slice], list[int], Cells]] = []
        for block, own in sorted([*coded, *ones], key=lambda one: one[0].start - one[0].stop):
            size = block.stop - block.start + 1
            for i, (others, sizes, joint) in enumerate(found):
                if int(np.prod(sizes)) * size <= _JOINT_CELLS:
                    found[i] = ([*others, block], [*sizes, size], joint * np.int32(size) + own)
                    break
            else:
                found.append(([block], [size], own))
        largest = max((int(np.prod(sizes)) for _, sizes, _ in found), default=0)
        joined = np.array([joint for _, _, joint in found]).reshape(len(found), len(rows.numbers))
        cells = joined.astype(np.uint16) if largest < 1 << 16 else joined.astype(np.uint32)
        numbers = np.ascontiguousarray(rows.numbers.T[~binary], dtype=np.float32)
        codes = tuple(JointCode(tuple(others), tuple(sizes)) for others, sizes, _ in found)
        return cls(columns.width, plain[~binary], numbers, codes, cells)

    @cached_property
    def _starts(self) -> Positions:
        """Where the joint cells of each code begin among all; one entry more than there are codes."""
        return np.concatenate([[0], np.cumsum([np.prod(code.sizes) for code in self.codes])]).astype(np.intp)

    @cached_property
    def _blocks(self) -> tuple[slice, ...]:
        return tuple(block for code in self.codes for block in code.blocks)

    @cached_property
    def _places(self) -> kernels.Places:
        """(joint cells, most codes): the columns of each cell, `width` and more for the cells for none, one a code, and one place for nothing."""
        found = np.full((int(self._starts[-1]), max((len(code.blocks) for code in self.codes), default=0)), self._size - 1)
        none = iter(range(self.width, self._size))
        for code, start, stop in zip(self.codes, self._starts[:-1], self._starts[1:], strict=True):
            for i, (block, cells) in enumerate(zip(code.blocks, code.cells_of_each().T, strict=True)):
                found[start:stop, i] = np.append(np.arange(block.start, block.stop), next(none))[cells]
        return found.astype(np.uint32)

    @property
    def _size(self) -> int:
        """How many places there are."""
        return self.width + len(self._blocks) + 1

    def measure(self, squares: Vector, vector: Vector, own: float) -> Any:
        """The root of q + Xv + c for squares q and the number c: distances, in single precision, because weights take half as long then."""
        out = np.empty(len(squares), dtype=np.float32)
        kernels.measure(self.cells, self._starts, self._fill_table(vector), self.numbers, vector[self.columns], squares, own, out)
        return out

    def sums(self, weights: Vector, values: Vector) -> Matrix:
        """Xᵀw and Xᵀ diag(w) v, (2, width)."""
        table, numbers = self._empty(2)
        kernels.add_up(self.cells, self._starts, self.numbers, weights, values, table, numbers)
        return self._collect(table, numbers)

    def bend(self, weights: Vector, vector: Vector) -> Vector:
        """Xᵀ diag(w) Xv."""
        (table, numbers), values = self._empty(1), self._fill_table(vector)
        kernels.bend(self.cells, self._starts, values, self.numbers, vector[self.columns], weights, table, numbers)
        return np.asarray(self._collect(table, numbers)[0])

    def leverage(self, sums: Vector) -> Vector:
        """Approximate statistical leverage of rows, relative to their weights w, where Xᵀw = `sums` and Σw = 1: largest for rows of rare cells."""
        owner, columns = self._owner
        none = 1 - np.bincount(owner, weights=sums[columns], minlength=len(self._blocks))
        table = self._fill_table(1 / np.maximum(np.concatenate([sums, none]), _LEAST_SHARE))
        found = self._away.copy()
        kernels.look_up(self.cells, self._starts, table, self.numbers, np.zeros(len(self.columns)), found)
        return found

    @staticmethod
    def localise(weights: Vector | kernels.Floats, base: Vector, negligible: float) -> Vector:
        """Shares of weights times base, or of the base where all are 0, without those below a share of the largest."""
        out = np.empty(len(base))
        return out if kernels.localise(weights, base, negligible, out) > 0 else np.asarray(base / base.sum())

    def thin(self, share: Vector, sums: Vector, count: int) -> tuple[Positions, Vector]:
        """`thin` by share times leverage, where Xᵀ share = `sums`: about `count` rows whose Xᵀ diag(share) X is near that of all in every direction."""
        found = self.leverage(sums)
        found *= share
        return thin(found, count)

    @cached_property
    def _away(self) -> Vector:
        """For each row, one plus the sum over its numbers of the squared distance from the mean, in variances."""
        found = np.ones(self.numbers.shape[1])
        for number in self.numbers:
            away = np.square(number - number.mean(dtype=np.float64))
            found += away / max(float(away.mean()), 1e-12)
        return found

    @cached_property
    def _owner(self) -> tuple[Positions, Positions]:
        """(code, column) of each column of a code."""
        owner = np.repeat(np.arange(len(self._blocks)), [block.stop - block.start for block in self._blocks])
        return owner, np.concatenate([np.empty(0, np.intp), *(np.arange(b.start, b.stop) for b in self._blocks)])

    def _fill_table(self, values: Vector) -> Vector:
        """For each joint cell, the sum of the values at its places; 0 for those after the last value."""
        everywhere, out = np.zeros(self._size), np.empty(int(self._starts[-1]))
        everywhere[: len(values)] = values
        kernels.fill_table(self._places, everywhere, out)
        return out

    def _empty(self, sums: int) -> tuple[Matrix, Matrix]:
        return np.zeros((int(self._starts[-1]), sums)), np.zeros((len(self.columns), sums))

    def _collect(self, table: Matrix, numbers: Matrix) -> Matrix:
        found = np.zeros((self._size, table.shape[1]))
        kernels.add_margins(self._places, table, found)
        found[self.columns] = numbers
        return np.ascontiguousarray(found[: self.width].T)


def thin(share: Vector, count: int) -> tuple[Positions, Vector]:
    """(positions, how many rows each represents): about `count` rows that represent all, each with a `share` of at least 0.

    Rows above a limit τ represent themselves. Of the others one is taken for every τ of their shares, so that it has the share τ in the end.
    With shares by `PackedRows.leverage`, Xᵀ diag(w) X of the chosen rows is near that of all in every direction (Drineas et al. 2006).
    """
    if count >= len(share):
        return np.arange(len(share)), np.ones(len(share))
    positions, times = np.empty(count + 1, dtype=np.intp), np.empty(count + 1)
    found = kernels.thin(share, count, positions, times)
    return positions[:found], times[:found]


def _is_one_hot(columns: Matrix) -> bool:
    return bool(np.isin(columns, (0.0, 1.0)).all() and (columns.sum(axis=1) <= 1).all())


def _cells(columns: Matrix) -> Cells:
    """Which column is 1; their number where none is."""
    return np.asarray(np.where(columns.any(axis=1), columns.argmax(axis=1), columns.shape[1]), dtype=np.int32)
