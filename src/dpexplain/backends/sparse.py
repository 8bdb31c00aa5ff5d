"""Private binary rows in memory, sparse: the words of a text. Every sum is exact before its last few roundings. `proofs/sparse.md`.

Around a binary point z, u = x - z is ±1 where x and z differ and 0 elsewhere, and ‖u‖² is a whole number. So rows are sorted by distance,
the differences x ⊕ z packed 64 rows to a word, and

    |Σ α u_i u_j| = Σ_d α(√d) · #{rows at distance d that differ from z in both i and j}

is a popcount for each pair and distance. It does not depend on how many words a row has. Around any other centre, weights are rounded down
to a public grid, by each row for itself, and pairs of ones are added up as integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from math import frexp, sqrt
from os import cpu_count
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpexplain.backends import _sparse_kernels as kernels
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.marginals import Histograms, PairTables
from dpexplain.core.moments import LocalMoments, Moments, RawMoments, RawSums
from dpexplain.core.sketch import SQUARES_CENTRE, CentreMoments, CentreSums, NormalisedMoments, NormalisedSums
from dpexplain.core.weights import Weight
from dpexplain.errors import DataError

T = TypeVar("T")
GRID = 36  # bits after the point of a label, and of a weight as a share of its bound
MOST_ROWS = 1 << 25  # as a public size, so at most twice as many: sums stay below 2⁶²
_UNIT_ROUNDOFF = 2.0**-53
_SLICE = 4096  # rows that are looked at as dense ones together


class SparseRows:
    """Binary rows as lists of their ones, with labels in fixed point. Implements the `Rows` port.

    Rounding a label towards zero to 36 bits is part of the public encoding, like float32 in `DenseRows`. `most` is a public bound on the
    number of rows.
    """

    def __init__(self, chunks: Iterable[Any], labels: Vector, width: int, most: int | None = None) -> None:
        if max(most or 0, len(labels)) > 2 * MOST_ROWS:
            raise DataError(f"sparse rows are summed exactly up to {MOST_ROWS:,} of them: split the data and register each part")
        self.width = width
        self._starts, self._indices = _joined(chunks, width)
        self._labels = np.trunc(np.asarray(labels, dtype=np.float64) * 2.0**GRID).astype(np.int64)

    @property
    def summation_error(self) -> float:
        """At most width + 1 distances are added, each term with ten roundings; a matrix-vector product takes as many again."""
        return (2 * self.width + 20) * _UNIT_ROUNDOFF

    def local(self, query: LocalMoments) -> Moments:
        sums = self.raw(RawMoments(query.point, query.weight))
        return Moments(sums.S2, sums.t1, sums.S1)

    def local_many(self, queries: Sequence[LocalMoments]) -> list[Moments]:
        return [self.local(query) for query in queries]

    def raw(self, query: RawMoments) -> RawSums:
        if np.isin(query.anchor, (0.0, 1.0)).all():
            return self._around_corner(query.anchor, query.weight)
        return self._around_any(query.anchor, query.weight)

    def centre(self, query: CentreMoments) -> CentreSums:
        layout, ones = query.layout, np.bincount(self._indices, minlength=self.width).astype(np.float64)
        zeros, present = len(self._labels) - ones, 1 - layout.centre
        squares = np.square(present) * ones + np.square(layout.centre) * zeros
        return CentreSums(present * ones - layout.centre * zeros, squares[layout.numbers] - SQUARES_CENTRE * len(self._labels))

    def normalised(self, query: NormalisedMoments) -> NormalisedSums:
        """1/‖F(x, 1)‖ ≤ 1/√(2g₀) bounds the weights."""
        found = self._fixed(1 / np.sqrt(self._squared_lengths(query)), 1 / sqrt(2 * query.scales.zeroth), query.centre)
        return NormalisedSums.from_moments(query, found.S2, found.S0, found.t0, found.S1, found.t1)

    def histograms(self, query: Histograms) -> Vector:
        return query.count(self._slices())

    def pair_tables(self, query: PairTables) -> Matrix:
        return query.count(self._slices())

    def select(self, positions: NDArray[np.int64], most: int | None = None) -> SparseRows:
        """A copy of the rows at these positions, in this order; `most` as for the constructor."""
        return SparseRows([self._matrix()[positions]], self._labels[positions] / 2.0**GRID, self.width, most)

    def _around_corner(self, point: Vector, weight: Weight) -> RawSums:
        """Sums around a binary point: the signs of u are public, so only |u_i u_j| is added up."""
        groups, squared = self._by_distance(point)
        alpha = np.asarray(weight(np.sqrt(squared.astype(np.float64))))
        pairs = self._pairs(point, groups, len(squared), alpha)
        sign, n = 1 - 2 * point, self.width
        upper = np.triu(pairs[:n, :n])
        second = (upper + np.triu(upper, 1).T) * np.outer(sign, sign)
        t1, t0 = self._label_sums(point, groups, alpha)
        return RawSums(float(pairs[n, n]), sign * np.diag(upper), second, t0, sign * t1)

    def _by_distance(self, point: Vector) -> tuple[kernels.Integers, kernels.Integers]:
        """(group of each row, squared distance of each group), groups in increasing order."""
        squared = np.empty(len(self._labels), dtype=np.int64)
        whole = point.astype(np.int64)
        self._split(lambda first, last: kernels.squared_distances(self._starts, self._indices, whole, first, last, squared))
        present = np.flatnonzero(np.bincount(squared, minlength=1))
        place = np.zeros(self.width + 1, dtype=np.int64)
        place[present] = np.arange(len(present))
        return place[squared], present

    def _pairs(self, point: Vector, groups: kernels.Integers, count: int, alpha: Vector) -> Matrix:
        """Σ α |u_i u_j| in the upper half, (n+1, n+1) or one more; the column after the last is 1 for every row."""
        columns = self.width + 1
        bits, edges = self._packed(groups, count, columns)
        bits[:columns][np.append(point == 1, False)] ^= bits[columns - 1]
        out, step = np.zeros((len(bits), len(bits))), 2 * _threads()
        _together([partial(kernels.weighted_pairs, bits, edges, alpha, first, step, out) for first in range(0, step, 2)])
        return out

    def _packed(self, groups: kernels.Integers, count: int, columns: int) -> tuple[kernels.Bits, kernels.Integers]:
        """(bits[column, word], edges): rows sorted by group, each group in words of its own, edges[d] … edges[d+1]-1."""
        sizes = np.bincount(groups, minlength=count)
        edges = np.concatenate([[0], np.cumsum(-(-sizes // kernels.WORD))])
        order = np.argsort(groups.astype(np.uint16 if count < 2**16 else np.int64), kind="stable")
        before = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        places = np.arange(len(order)) + (edges[:-1] * kernels.WORD - before)[groups[order]]
        bits = np.zeros((columns + columns % 2, int(edges[-1])), dtype=np.uint64)  # tiles are two columns wide
        limits = np.searchsorted(places, np.linspace(0, edges[-1], _threads() + 1).astype(np.int64) * kernels.WORD)
        rows = self._starts, self._indices, order, places, columns - 1
        _together([partial(kernels.pack, *rows, int(a), int(b), bits) for a, b in pairwise(limits) if a < b])
        return bits, edges

    def _label_sums(self, point: Vector, groups: kernels.Integers, alpha: Vector) -> tuple[Vector, float]:
        """(Σ α y |u|, Σ α y)."""

        def one_range(first: int, last: int) -> kernels.Integers:
            out = np.zeros((len(alpha), self.width + 1), dtype=np.int64)
            kernels.label_sums(self._starts, self._indices, self._labels, groups, first, last, out)
            return out

        sums = np.sum(self._split(one_range), axis=0)
        differing = np.where(point == 1, sums[:, -1:] - sums[:, :-1], sums[:, :-1])
        return alpha @ (differing * 2.0**-GRID), float(alpha @ (sums[:, -1] * 2.0**-GRID))

    def _around_any(self, point: Vector, weight: Weight) -> RawSums:
        """Sums around a point between the corners, which keeps rows at a distance: that bounds any weight of the family."""
        squared = np.empty(len(self._labels))
        self._split(lambda first, last: kernels.squared_distances_to(self._starts, self._indices, point, first, last, squared))
        nearest = sqrt(float(np.square(np.minimum(np.abs(point), np.abs(1 - point))).sum())) * (1 - 1e-9)
        bound = weight.c / (2 * nearest * (1 + nearest))
        return self._fixed(np.asarray(weight(np.sqrt(squared))), bound, point)

    def _fixed(self, weights: Vector, bound: float, centre: Vector) -> RawSums:
        """Sums around `centre` with weights rounded down to multiples of 2⁻³⁶ times the power of two above their public bound."""
        unit = 2.0 ** (frexp(bound)[1] - GRID)
        whole = np.floor(weights / unit).astype(np.int64)
        labelled = np.trunc(weights / unit * (self._labels * 2.0**-GRID)).astype(np.int64)

        def one_range(first: int, last: int) -> tuple[kernels.Integers, kernels.Integers]:
            second, sums = np.zeros((self.width, self.width), dtype=np.int64), np.zeros((2, self.width), dtype=np.int64)
            kernels.add_pairs(self._starts, self._indices, whole, labelled, first, last, second, sums)
            return second, sums

        parts = self._split(one_range)
        upper = np.sum([second for second, _ in parts], axis=0)
        ones, labels = np.sum([sums for _, sums in parts], axis=0)
        both = upper + np.triu(upper, 1).T
        return _centred(both, ones, int(whole.sum()), labels, int(labelled.sum()), centre, unit)

    def _squared_lengths(self, query: NormalisedMoments) -> Vector:
        layout, g = query.layout, query.scales
        attributes, number = np.array([*layout.starts, layout.width]), np.zeros(layout.width)
        number[layout.numbers] = 1.0
        scales = np.array([2 * g.zeroth, g.first + g.label, g.second, g.squares])
        out = np.empty(len(self._labels))
        self._split(
            lambda first, last: kernels.squared_lengths(
                self._starts, self._indices, query.centre, query.variance, attributes, number, scales, first, last, out
            )
        )
        return out

    def _slices(self) -> Iterator[Matrix]:
        """Dense pieces of the rows."""
        rows = self._matrix()
        for start in range(0, rows.shape[0], _SLICE):
            yield rows[start : start + _SLICE].toarray()

    def _matrix(self) -> sparse.csr_array:
        shape = len(self._labels), self.width
        return sparse.csr_array((np.ones(len(self._indices)), self._indices.astype(np.int64), self._starts), shape=shape)

    def _split(self, work: Callable[[int, int], T]) -> list[T]:
        """Run `work` on equal ranges of rows, one a thread."""
        edges = np.linspace(0, len(self._labels), _threads() + 1).astype(int)
        return _together([partial(work, int(a), int(b)) for a, b in pairwise(edges) if a < b])


def _centred(
    both: kernels.Integers, ones: kernels.Integers, total: int, labels: kernels.Integers, label: int, c: Vector, unit: float
) -> RawSums:
    """Sums of v = x - c from exact sums of ones: each entry by which of x_i, x_j are 1, so that all terms of a product have one sign."""
    a = 1 - c
    only = ones[:, None] - both  # x_i = 1, x_j = 0
    neither = total - ones[:, None] - only.T
    cross = np.outer(a, c) * only
    second = np.outer(a, a) * both + np.outer(c, c) * neither - (cross + cross.T)
    return RawSums(
        total * unit,
        (a * ones - c * (total - ones)) * unit,
        second * unit,
        label * unit,
        (a * labels - c * (label - labels)) * unit,
    )


def _joined(chunks: Iterable[Any], width: int) -> tuple[kernels.Integers, kernels.Indices]:
    """(starts, indices) of all chunks together; duplicates and explicit zeros removed, columns in order."""
    kind = np.uint16 if width <= 1 << 16 else np.uint32
    lengths, indices = [np.zeros(1, dtype=np.int64)], [np.empty(0, dtype=kind)]
    for chunk in chunks:
        tidy = sparse.csr_array(chunk)
        tidy.sum_duplicates()
        tidy.eliminate_zeros()
        lengths.append(np.diff(tidy.indptr).astype(np.int64))
        indices.append(tidy.indices.astype(kind))
    return np.cumsum(np.concatenate(lengths)), np.concatenate(indices)


def _together(work: Sequence[Callable[[], T]]) -> list[T]:
    """Results in order, one thread each."""
    if len(work) <= 1:
        return [one() for one in work]
    with ThreadPoolExecutor(len(work)) as pool:
        return [found.result() for found in [pool.submit(one) for one in work]]


def _threads() -> int:
    return min(cpu_count() or 1, 16)
