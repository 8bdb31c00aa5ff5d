"""Private binary rows in memory, sparse: the words of a text. Every sum is exact before its last few roundings. `proofs/sparse.md`.

Around a binary point z, u = x - z is ±1 where x and z differ and 0 elsewhere, and ‖u‖² is a whole number. So rows are sorted by distance,
the differences x ⊕ z stored as bits, and

    |Σ α u_i u_j| = Σ_d α(√d) · #{rows at distance d that differ from z in both i and j}

is a popcount for each pair and distance. It does not depend on how many words a row has. Around any other centre, weights are rounded down
to a public grid, by each row for itself, and pairs of ones are added up as integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import frexp, sqrt
from os import cpu_count
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpexplain.backends import _bit_kernels as bit_kernels
from dpexplain.backends import _sparse_kernels as kernels
from dpexplain.backends._workers import in_threads
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.expected_labels import LabelDistances
from dpexplain.core.marginals import Histograms, LabelTables, PairTables
from dpexplain.core.moments import LocalMoments, Moments, RawMoments, RawSums
from dpexplain.core.release_moments import SQUARES_CENTRE, SQUARES_SCALE, CentreMoments, NormalisedMoments
from dpexplain.core.weights import Weight
from dpexplain.errors import DataError

T = TypeVar("T")
GRID = 36  # bits after the point of a label, and of a weight as a share of its bound
MOST_ROWS = 1 << 25  # as a public size, so at most twice as many: sums stay below 2⁶²
_UNIT_ROUNDOFF = 2.0**-53
_SHARES = 16  # pieces that sums around a corner are made of, and the most threads
_SHARE = 1 << 14  # rows of a piece at least
_SLICE = 4096  # rows that are converted to dense ones together


class SparseRows:
    """Binary rows as lists of their ones, with labels in fixed point. Implements the `Rows` port.

    Rounding a label towards zero to 36 bits is part of the public encoding, like float32 in `DenseRows`. `most` is a public bound on the
    number of rows.
    """

    def __init__(self, chunks: Iterable[Any], labels: Vector, width: int, most: int | None = None) -> None:
        if max(most or 0, len(labels)) > 2 * MOST_ROWS:
            raise DataError(
                f"there are too many sparse rows: sums are exact up to {MOST_ROWS:,} rows. Split the data and register each part"
            )
        self.width = width
        self._starts, self._indices = _join_chunks(chunks, width)
        self._labels = np.trunc(np.asarray(labels, dtype=np.float64) * 2.0**GRID).astype(np.int64)

    def __len__(self) -> int:
        return len(self._labels)

    @property
    def summation_error(self) -> float:
        """At most width + 1 distances are added, each term with ten roundings; a matrix-vector product takes as many again."""
        return (2 * self.width + 20) * _UNIT_ROUNDOFF

    def local(self, query: LocalMoments) -> Moments:
        sums = self.raw(RawMoments(query.point, query.weight, query.scale))
        return Moments(sums.S2, sums.t1, sums.S1, sums.S0, sums.t0)

    def local_many(self, queries: Sequence[LocalMoments]) -> list[Moments]:
        """`local` of each query. A shared read would save little: counting pairs takes the time, not reading rows."""
        return [self.local(query) for query in queries]

    def raw(self, query: RawMoments) -> RawSums:
        scale = _uniform(query.scale)
        if np.isin(query.anchor, (0.0, 1.0)).all():
            return self._around_corner(query.anchor, query.weight, scale)
        return self._around_any(query.anchor, query.weight, scale)

    def centre(self, query: CentreMoments) -> Vector:
        layout, ones = query.layout, np.bincount(self._indices, minlength=self.width).astype(np.float64)
        zeros, present = len(self._labels) - ones, 1 - layout.centre
        squares = np.square(present) * ones + np.square(layout.centre) * zeros
        deviations = squares[layout.numbers] - SQUARES_CENTRE * len(self._labels)
        return np.concatenate([present * ones - layout.centre * zeros, SQUARES_SCALE * deviations])

    def normalised(self, query: NormalisedMoments) -> RawSums:
        """1/‖F(x, 1)‖ ≤ 1/√(2g₀) bounds the weights."""
        weights, bound = 1 / np.sqrt(self._squared_lengths(query)), 1 / sqrt(2 * query.scales.zeroth)
        labels = self._float_labels
        if query.expected is not None:
            labels = query.expected.differences(labels, self._matrix() @ query.expected.slopes)
        return self._sum_fixed_point(weights, bound, query.centre, labels)

    def label_distances(self, query: LabelDistances) -> Vector:
        return query.count(self._float_labels, self._matrix() @ query.plane.slopes)

    @property
    def _float_labels(self) -> Vector:
        return np.asarray(self._labels * 2.0**-GRID)

    def histograms(self, query: Histograms) -> Vector:
        return query.count(self.row_major())

    def pair_tables(self, query: PairTables) -> Matrix:
        return query.count(self.row_major())

    def label_tables(self, query: LabelTables) -> Matrix:
        return query.add_up(self.labelled_pieces())

    def labelled_pieces(self) -> Iterator[Matrix]:
        """Dense pieces of the rows, each row followed by its label."""
        start, labels = 0, self._float_labels
        for rows in self.row_major():
            yield np.column_stack([rows, labels[start : start + len(rows)]])
            start += len(rows)

    def select(self, positions: NDArray[np.int64], most: int | None = None) -> SparseRows:
        """A copy of the rows at these positions, in this order; `most` as for the constructor."""
        return SparseRows([self._matrix()[positions]], self._labels[positions] / 2.0**GRID, self.width, most)

    def _around_corner(self, point: Vector, weight: Weight, scale: float) -> RawSums:
        """Sums around a binary point, a corner of the unit cube: the signs of u are public, so only |u_i u_j| is added up."""
        n, sign = self.width, 1 - 2 * point
        sums = self._absolute(_bits_of(point), weight, scale)
        upper, labels = np.triu(sums[:n, :n]), sums[:, -1] * 2.0**-GRID
        second = (upper + np.triu(upper, 1).T) * np.outer(sign, sign)
        return RawSums(float(sums[n, n]), sign * np.diag(upper), second, float(labels[n]), sign * labels[:n])

    def _absolute(self, point: bit_kernels.Bits, weight: Weight, scale: float) -> Matrix:
        """Σ α |u_i u_j|, i ≤ j, where u_n = 1 is one column more; in the column after it Σ α y |u_i|, in units of the labels' grid."""
        squared = self._squared_distances(point)
        sizes = np.bincount(squared)
        distances = np.flatnonzero(sizes)
        edges = np.concatenate([[0], np.cumsum(sizes[distances])])
        alpha = np.asarray(weight(scale * np.sqrt(distances.astype(np.float64))))
        rows = self._bits, self._labels.view(np.uint64)[:, None], point, np.argsort(squared, kind="stable"), edges, alpha

        def share(ends: tuple[int, int]) -> Matrix:
            bit_kernels.add_distances(*rows, *ends, out := np.zeros((self.width + 1, self.width + 2)))
            return out

        return sum(in_threads(share, _shares(edges)), np.zeros((self.width + 1, self.width + 2)))

    @cached_property
    def _bits(self) -> bit_kernels.Bits:
        """The rows as bits, for the whole width. Made at the first use."""
        bits = np.zeros((len(self._labels), self.width // bit_kernels.WORD + 1), dtype=np.uint64)
        self._split(lambda first, last: bit_kernels.set_bits(self._starts, self._indices, self.width, first, last, bits))
        return bits

    def _squared_distances(self, point: bit_kernels.Bits) -> NDArray[Any]:
        rows = self._bits  # not in a thread: it is made by threads
        kind = np.uint16 if self.width < 1 << 16 else np.int64  # NumPy sorts short numbers in linear time
        squared = np.empty(len(rows), dtype=kind)
        self._split(lambda first, last: bit_kernels.squared_distances(rows, point, first, last, squared))
        return squared

    def _around_any(self, point: Vector, weight: Weight, scale: float) -> RawSums:
        """Sums around a point that is not binary. Every row has a positive distance from it, which bounds any weight of the family."""
        squared = np.empty(len(self._labels))
        self._split(lambda first, last: kernels.squared_distances_to(self._starts, self._indices, point, first, last, squared))
        nearest = sqrt(float(np.square(np.minimum(np.abs(point), np.abs(1 - point))).sum())) * (1 - 1e-9) * scale
        bound = weight.c / (2 * nearest * (1 + nearest))
        return self._sum_fixed_point(np.asarray(weight(scale * np.sqrt(squared))), bound, point, self._float_labels)

    def _sum_fixed_point(self, weights: Vector, bound: float, centre: Vector, labels: Vector) -> RawSums:
        """Sums around `centre` with weights rounded down to multiples of 2⁻³⁶ times the power of two above their public bound."""
        unit = 2.0 ** (frexp(bound)[1] - GRID)
        whole = np.floor(weights / unit).astype(np.int64)
        labelled = np.trunc(weights / unit * labels).astype(np.int64)

        def one_range(first: int, last: int) -> tuple[kernels.Integers, kernels.Integers]:
            second, sums = np.zeros((self.width, self.width), dtype=np.int64), np.zeros((2, self.width), dtype=np.int64)
            kernels.add_pairs(self._starts, self._indices, whole, labelled, first, last, second, sums)
            return second, sums

        parts = self._split(one_range)
        upper = np.sum([second for second, _ in parts], axis=0)
        ones, with_labels = np.sum([sums for _, sums in parts], axis=0)
        both = upper + np.triu(upper, 1).T
        return _centre_sums(both, ones, int(whole.sum()), with_labels, int(labelled.sum()), centre, unit)

    def _squared_lengths(self, query: NormalisedMoments) -> Vector:
        layout = query.layout
        attributes, number = np.array([*layout.starts, layout.width]), np.zeros(layout.width)
        number[layout.numbers] = 1.0
        scales = query.scales.of_lengths
        out = np.empty(len(self._labels))
        self._split(
            lambda first, last: kernels.squared_lengths(
                self._starts, self._indices, query.centre, query.variance, attributes, number, scales, first, last, out
            )
        )
        return out

    def row_major(self) -> Iterator[Matrix]:
        """Dense pieces of the rows."""
        rows = self._matrix()
        for start in range(0, rows.shape[0], _SLICE):
            yield rows[start : start + _SLICE].toarray()

    def _matrix(self) -> sparse.csr_array:
        shape = len(self._labels), self.width
        return sparse.csr_array((np.ones(len(self._indices)), self._indices.astype(np.int64), self._starts), shape=shape)

    def _split(self, work: Callable[[int, int], T]) -> list[T]:
        """Run `work` on equal ranges of rows, one a thread."""
        edges = np.linspace(0, len(self._labels), min(cpu_count() or 1, _SHARES) + 1).astype(int)
        return list(in_threads(lambda ends: work(*ends), [(int(a), int(b)) for a, b in pairwise(edges) if a < b]))


def _centre_sums(
    both: kernels.Integers, ones: kernels.Integers, total: int, labels: kernels.Integers, label: int, c: Vector, unit: float
) -> RawSums:
    """Sums of v = x - c from exact sums of ones. An entry is split by which of x_i and x_j are 1, so that all its terms have one sign."""
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


def _join_chunks(chunks: Iterable[Any], width: int) -> tuple[kernels.Integers, kernels.Indices]:
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


def _uniform(scale: Vector | None) -> float:
    """The scale that all columns share. Columns that differ are counted, so one column cannot weigh more than another."""
    if scale is None:
        return 1.0
    if (scale != scale[0]).any():
        raise DataError("sparse rows need one scale for all columns. Declare scale= for the whole domain")
    return float(scale[0])


def _bits_of(point: Vector) -> bit_kernels.Bits:
    """A binary point as `SparseRows._bits` has rows, but with 0 in the column after the last."""
    bits = np.zeros((len(point) // bit_kernels.WORD + 1, bit_kernels.WORD), dtype=np.uint64)
    bits.flat[: len(point)] = point.astype(np.uint64)
    return np.asarray((bits << np.arange(bit_kernels.WORD, dtype=np.uint64)).sum(axis=1, dtype=np.uint64))


def _shares(edges: kernels.Integers) -> list[tuple[int, int]]:
    """Ranges of distances with about as many rows. Their number does not depend on the number of threads, and so the rounding of sums does not either."""
    middles = (edges[1:] + edges[:-1]) / 2
    cuts = np.searchsorted(middles, np.linspace(0, edges[-1], min(int(edges[-1]) // _SHARE + 1, _SHARES) + 1))
    return [(int(a), int(b)) for a, b in pairwise(cuts) if a < b]
