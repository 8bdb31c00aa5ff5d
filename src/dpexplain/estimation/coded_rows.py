"""Records of a table held as numbers and category numbers instead of one-hot columns: products with them take a fraction of the time.

A code of k columns that hold one 1 or none is one cell number from 0 to k, k for none. Then Xv is a look-up, Xᵀw a count with weights, and a block of
Xᵀ diag(w) X for two codes is a count of pairs of cells.
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

Cells = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows X, (N, width): columns that stay as they are, and codes as cell numbers."""

    width: int
    plain: NDArray[np.intp]  # the columns that stay
    numbers: Matrix  # (len(plain), N)
    blocks: tuple[slice, ...]
    cells: tuple[Cells, ...]  # (N,) for each block

    @classmethod
    def of(cls, points: Matrix, layout: Layout) -> CodedRows:
        large = [b for b in map(layout.columns, layout.codes) if b.stop - b.start >= _FEWEST_COLUMNS]
        blocks = tuple(b for b in large if _is_one_hot(points[:, b]))
        coded = {column for b in blocks for column in range(b.start, b.stop)}
        plain = np.array([j for j in range(points.shape[1]) if j not in coded], dtype=np.intp)
        numbers = np.ascontiguousarray(points[:, plain].T, dtype=np.float64)
        return cls(points.shape[1], plain, numbers, blocks, tuple(_cells(points[:, b]) for b in blocks))

    @cached_property
    def _one_hot(self) -> Any:
        """The codes' columns one below the other, as a sparse matrix."""
        rows = [start + cells for start, cells in zip(self._starts, self.cells, strict=True)]
        count, total = self.numbers.shape[1], sum(self._sizes)
        where = np.concatenate(rows), np.tile(np.arange(count), len(rows))
        return scipy.sparse.csr_array((np.ones(len(where[0])), where), shape=(total, count))

    @property
    def _sizes(self) -> list[int]:
        """Cells of each code, the one for none included."""
        return [b.stop - b.start + 1 for b in self.blocks]

    @property
    def _starts(self) -> list[int]:
        return [sum(self._sizes[:i]) for i in range(len(self.blocks))]

    @cached_property
    def _pairs(self) -> dict[tuple[int, int], Cells]:
        """The joint cell number of each two codes."""
        sizes, codes = self._sizes, range(len(self.blocks))
        return {(i, j): self.cells[i] * sizes[j] + self.cells[j] for i in codes for j in codes if i < j}

    def times(self, vector: Vector) -> Vector:
        """Xv."""
        found = vector[self.plain] @ self.numbers
        for block, cells in zip(self.blocks, self.cells, strict=True):
            found += np.append(vector[block], 0.0)[cells]
        return np.asarray(found)

    def sums(self, weights: Vector) -> Vector:
        """Xᵀw."""
        found = np.empty(self.width)
        found[self.plain] = self.numbers @ weights
        for block, cells, size in zip(self.blocks, self.cells, self._sizes, strict=True):
            found[block] = np.bincount(cells, weights, size)[:-1]
        return found

    def sums_of_each(self, weights: Matrix) -> Matrix:
        """Xᵀw for each row w, (K, width)."""
        found, across = np.empty((len(weights), self.width)), np.ascontiguousarray(weights.T)
        found[:, self.plain] = weights @ self.numbers.T
        if self.blocks:
            sums = self._one_hot @ across
            for block, start in zip(self.blocks, self._starts, strict=True):
                found[:, block] = sums[start : start + block.stop - block.start].T
        return found

    def products(self, weights: Vector) -> Matrix:
        """Xᵀ diag(w) X."""
        found, weighted = np.zeros((self.width, self.width)), self.numbers * weights
        found[np.ix_(self.plain, self.plain)] = weighted @ self.numbers.T
        if not self.blocks:
            return found
        mixed, sizes = self._one_hot @ weighted.T, self._sizes
        for i, (block, start) in enumerate(zip(self.blocks, self._starts, strict=True)):
            size = sizes[i] - 1
            found[block, self.plain] = mixed[start : start + size]
            found[self.plain, block] = mixed[start : start + size].T
            found[block, block] = np.diag(np.bincount(self.cells[i], weights, sizes[i])[:-1])
        for (i, j), cells in self._pairs.items():
            table = np.bincount(cells, weights, sizes[i] * sizes[j]).reshape(sizes[i], sizes[j])[:-1, :-1]
            found[self.blocks[i], self.blocks[j]], found[self.blocks[j], self.blocks[i]] = table, table.T
        return found


def _is_one_hot(columns: Matrix) -> bool:
    return bool(np.isin(columns, (0.0, 1.0)).all() and (columns.sum(axis=1) <= 1).all())


def _cells(columns: Matrix) -> Cells:
    """Which column is 1; their number where none is."""
    return np.asarray(np.where(columns.any(axis=1), columns.argmax(axis=1), columns.shape[1]), dtype=np.intp)
