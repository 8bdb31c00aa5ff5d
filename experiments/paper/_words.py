"""Sums around many reviews that are sets of words: A and b of the paper's plane for all scales of the columns from one count.

The library counts, for each distance from the review, the rows that differ from it in a pair of words (`dpexplain.backends.sparse`). The counts do
not depend on the scale, only the weights of the distances do. `tests/unit/test_words.py` compares the sums with the library's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from dpexplain import weights
from dpexplain.backends import _bit_kernels as bits
from dpexplain.backends.sparse import GRID, SparseRows, _bits_of

LANES = 4  # scales that are summed together at most


class Sums(NamedTuple):
    """Means over rows at columns in [0, s], x - z = u: Σ α uuᵀ, Σ α y u and Σ α u."""

    A: np.ndarray
    b: np.ndarray
    first: np.ndarray


class Words(SparseRows):
    """Which words each review has, as bits."""

    @classmethod
    def of(cls, rows, labels):
        return cls([rows], labels, rows.shape[1])

    def sums(self, point, scales):
        """{scale: Sums} around a 0/1 point."""
        asked = _bits_of(np.asarray(point))
        squared = self._squared_distances(asked)
        sizes = np.bincount(squared)
        distances = np.flatnonzero(sizes)
        edges, order = np.concatenate([[0], np.cumsum(sizes[distances])]), np.argsort(squared, kind="stable")
        alpha = np.zeros((len(distances), LANES))
        alpha[:, : len(scales)] = np.array([weights.Stable()(scale * np.sqrt(distances)) for scale in scales]).T
        out = np.zeros((LANES, self.width + 1, self.width + 2))
        _add_distances(self._bits, self._labels.view(np.uint64)[:, None], asked, order, edges, alpha, out)
        return {scale: self._around(point, one, scale) for scale, one in zip(scales, out, strict=False)}

    def _around(self, point, sums, scale):
        n, sign = self.width, 1 - 2 * np.asarray(point)
        upper, pull = np.triu(sums[:n, :n]), sums[:n, -1] * 2.0**-GRID
        both = (upper + np.triu(upper, 1).T) * np.outer(sign, sign)
        share = scale / len(self)
        return Sums(both * (share * scale), sign * pull * share, sign * np.diag(upper) * share)


@njit(cache=True, nogil=True)
def _add_distances(rows, labels, point, order, edges, weights, out):  # pragma: no cover
    """The library's `add_distances`, with several weights for each distance."""
    columns = out.shape[1]
    size = -(-(columns + bits.LABEL_BITS) // bits._TILE) * bits._TILE
    memory, counts = bits._on_lines(size), np.zeros((size, size), dtype=np.int64)
    most = bits._LINES * bits._LINE * bits.WORD
    for d in range(len(edges) - 1):
        for start in range(edges[d], edges[d + 1], most):
            chosen = order[start : min(start + most, edges[d + 1])]
            bits._pack(rows, labels, point, chosen, columns, memory)
            bits._add_counts(memory, -(-chosen.shape[0] // (bits._LINE * bits.WORD)) * bits._LINE, columns, counts)
        for i in range(columns):
            for lane in range(out.shape[0]):
                weight, line = weights[d, lane], out[lane, i]
                for j in range(i, columns):
                    line[j] += weight * counts[i, j]
                line[columns] += weight * bits._total(counts[i, columns:])
            counts[i, i:] = 0
