"""Records of a table held as numbers and category numbers instead of one-hot columns: products with them take a fraction of the time.

A code of k columns that hold one 1 or none is one cell number from 0 to k, k for none. Then Xv is a look-up, Xᵀw a count with weights, and a block of
Xᵀ diag(w) X for two codes is a count of pairs of cells. For Xv and Xᵀw several codes are one, as long as their joint cells stay in the processor's
cache: one look-up or count for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout

_FEWEST_COLUMNS = 5  # of a code: counting pairs of smaller ones takes longer than multiplying their columns
_JOINT_CELLS = 1 << 12
_LEAST_SHARE = 1e-9

Cells = NDArray[np.intp]
Positions = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class JointCode:
    """Some codes as one: the joint cell of each row is Σ cellᵢ strideᵢ."""

    blocks: tuple[slice, ...]
    sizes: tuple[int, ...]  # cells of each
    cells: Cells

    def times(self, vector: Vector) -> Vector:
        return self._look_up([np.append(vector[block], 0.0) for block in self.blocks])

    def rarity(self, sums: Vector) -> Vector:
        """Σ over codes of 1/(the share of the row's cell), given those of all columns."""
        masses = [np.append(sums[block], 1 - sums[block].sum()) for block in self.blocks]
        return self._look_up([1 / np.maximum(mass, _LEAST_SHARE) for mass in masses])

    def _look_up(self, values: list[Vector]) -> Vector:
        table = np.zeros(1)
        for one in values:
            table = (table[:, None] + one).ravel()
        return table[self.cells]

    def add_sums(self, weights: Vector, out: Vector) -> None:
        table = np.bincount(self.cells, weights, int(np.prod(self.sizes))).reshape(self.sizes)
        for axis, block in enumerate(self.blocks):
            out[block] = table.sum(axis=tuple(i for i in range(len(self.sizes)) if i != axis))[:-1]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows X, (N, width): columns that stay as they are, and codes as cell numbers."""

    width: int
    plain: NDArray[np.intp]  # the columns that stay
    numbers: Matrix  # (len(plain), N)
    blocks: tuple[slice, ...]
    cells: Cells  # (blocks, N)

    @classmethod
    def of(cls, points: Matrix, layout: Layout) -> CodedRows:
        large = [b for b in map(layout.columns, layout.codes) if b.stop - b.start >= _FEWEST_COLUMNS]
        blocks = tuple(b for b in large if _is_one_hot(points[:, b]))
        coded = {column for b in blocks for column in range(b.start, b.stop)}
        plain = np.array([j for j in range(points.shape[1]) if j not in coded], dtype=np.intp)
        cells = np.array([_cells(points[:, b]) for b in blocks], dtype=np.intp).reshape(len(blocks), len(points))
        return cls(points.shape[1], plain, np.ascontiguousarray(points[:, plain].T, dtype=np.float64), blocks, cells)

    def take(self, positions: Positions) -> CodedRows:
        """Some of the rows."""
        return CodedRows(self.width, self.plain, self.numbers[:, positions], self.blocks, self.cells[:, positions])

    @cached_property
    def _one_hot(self) -> Any:
        """The codes' columns one below the other, the cells for none included, as a sparse matrix."""
        columns, (count, rows) = self.cells + np.array(self._starts, dtype=np.intp)[:, None], self.cells.shape
        shape = rows, sum(self._sizes)
        return scipy.sparse.csr_array(
            (np.ones(columns.size), columns.T.ravel(), np.arange(0, columns.size + 1, count)), shape=shape
        ).T

    @cached_property
    def _single(self) -> tuple[NDArray[np.intp], Matrix, tuple[JointCode, ...]]:
        """(columns that are numbers, these, all codes and columns of zeros and ones in as few joint codes as there may be)."""
        binary = np.array([_is_one_hot(row[:, None]) for row in self.numbers], dtype=bool)
        ones = [
            (slice(int(j), int(j) + 1), 1 - row.astype(np.intp))
            for j, row in zip(self.plain[binary], self.numbers[binary], strict=True)
        ]
        codes = sorted([*zip(self.blocks, self.cells, strict=True), *ones], key=lambda code: code[0].start - code[0].stop)
        return self.plain[~binary], self.numbers[~binary], _join(codes)

    @property
    def _sizes(self) -> list[int]:
        """Cells of each code, the one for none included."""
        return [b.stop - b.start + 1 for b in self.blocks]

    @property
    def _starts(self) -> list[int]:
        return [sum(self._sizes[:i]) for i in range(len(self.blocks))]

    def times(self, vector: Vector) -> Vector:
        """Xv."""
        columns, numbers, codes = self._single
        found = vector[columns] @ numbers
        for code in codes:
            found += code.times(vector)
        return np.asarray(found)

    def leverage(self, sums: Vector) -> Vector:
        """Approximate statistical leverage of rows, relative to their weights w, where Xᵀw = `sums` and Σw = 1: largest for rows of rare cells."""
        found = self._away + 1.0
        for code in self._single[2]:
            found += code.rarity(sums)
        return found

    @cached_property
    def _away(self) -> Vector:
        """For each row, the sum over its numbers of the squared distance from the mean, in variances."""
        numbers = self._single[1]
        away = np.square(numbers - numbers.mean(axis=1, keepdims=True))
        return np.asarray((1 / np.maximum(away.mean(axis=1), 1e-12)) @ away)

    def sums(self, weights: Vector) -> Vector:
        """Xᵀw."""
        columns, numbers, codes = self._single
        found = np.empty(self.width)
        found[columns] = numbers @ weights
        for code in codes:
            code.add_sums(weights, found)
        return found

    def sums_of_each(self, weights: Matrix) -> Matrix:
        """Xᵀw for each row w, (K, width)."""
        found = np.empty((len(weights), self.width))
        found[:, self.plain] = weights @ self.numbers.T
        if self.blocks:
            sums = self._one_hot @ np.ascontiguousarray(weights.T)
            for block, start in zip(self.blocks, self._starts, strict=True):
                found[:, block] = sums[start : start + block.stop - block.start].T
        return found

    def products(self, weights: Vector) -> Matrix:
        """Xᵀ diag(w) X."""
        found, weighted = np.zeros((self.width, self.width)), self.numbers * weights
        found[np.ix_(self.plain, self.plain)] = weighted @ self.numbers.T
        if not self.blocks:
            return found
        mixed, sizes = self._one_hot @ np.ascontiguousarray(weighted.T), self._sizes
        for i, (block, start) in enumerate(zip(self.blocks, self._starts, strict=True)):
            size = sizes[i] - 1
            found[block, self.plain] = mixed[start : start + size]
            found[self.plain, block] = mixed[start : start + size].T
            found[block, block] = np.diag(np.bincount(self.cells[i], weights, sizes[i])[:-1])
            for j in range(i):
                joint = self.cells[i] * sizes[j] + self.cells[j]
                table = np.bincount(joint, weights, sizes[i] * sizes[j]).reshape(sizes[i], sizes[j])[:-1, :-1]
                found[block, self.blocks[j]], found[self.blocks[j], block] = table, table.T
        return found


def thin(share: Vector, count: int) -> tuple[Positions, Vector]:
    """(positions, how many rows each represents): about `count` rows that represent all, each with a `share` of at least 0.

    Rows above a limit τ represent themselves. Of the others one is taken for every τ of their shares, so that it has the share τ in the end.
    With shares by `CodedRows.leverage`, Xᵀ diag(w) X of the chosen rows is near that of all in every direction (Drineas et al. 2006).
    """
    if count >= len(share):
        return np.arange(len(share)), np.ones(len(share))
    total = float(share.sum())
    limit = total / count
    for _ in range(4):  # each round finds rows that are above what is left for the others
        heavy = share[share >= limit]
        if len(heavy) < count:
            limit = (total - float(heavy.sum())) / (count - len(heavy))
    kept = np.minimum(share / max(limit, 1e-300), 1.0)
    reached = np.floor(np.cumsum(kept) + 0.5)
    positions = np.flatnonzero(np.diff(reached, prepend=0.0) > 0)
    return positions, 1 / kept[positions]


def _join(codes: list[tuple[slice, Cells]]) -> tuple[JointCode, ...]:
    """Each code with others of at most `_JOINT_CELLS` joint cells; the largest come first."""
    found: list[tuple[list[slice], list[int], Cells]] = []
    for block, cells in codes:
        size = block.stop - block.start + 1
        for i, (blocks, sizes, joint) in enumerate(found):
            if int(np.prod(sizes)) * size <= _JOINT_CELLS:
                found[i] = ([*blocks, block], [*sizes, size], joint * size + cells)
                break
        else:
            found.append(([block], [size], cells))
    return tuple(JointCode(tuple(blocks), tuple(sizes), joint) for blocks, sizes, joint in found)


def _is_one_hot(columns: Matrix) -> bool:
    return bool(np.isin(columns, (0.0, 1.0)).all() and (columns.sum(axis=1) <= 1).all())


def _cells(columns: Matrix) -> Cells:
    """Which column is 1; their number where none is."""
    return np.asarray(np.where(columns.any(axis=1), columns.argmax(axis=1), columns.shape[1]), dtype=np.intp)
