"""Private rows in memory, dense. One pass over them gives every statistic; no (m, n) temporary is ever made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from os import cpu_count
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpexplain.backends import _kernels as kernels
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.marginals import Histograms, PairTables, one_hot
from dpexplain.core.moments import LocalMoments, Moments, RawMoments, RawSums
from dpexplain.core.sketch import SQUARES_CENTRE, CentreMoments, CentreSums, NormalisedMoments, NormalisedSums

T = TypeVar("T")
_UNIT_ROUNDOFF = 2.0**-53
_CHUNK = 1 << 16
_SLICE = 512  # blocks that are looked at row by row together


class DenseRows:
    """Block-columnar float32 rows with float64 labels; arithmetic in float64. Implements the `Rows` port.

    Rounding a row to float32 is part of the public encoding: it is done to each record by itself, so it cannot couple records,
    and entries stay in [0, 1]. `most` is a public bound on the number of rows, for `summation_error`; without it the number itself is.
    """

    def __init__(
        self, chunks: Iterable[Matrix | NDArray[np.float32]], labels: Vector, width: int, most: int | None = None
    ) -> None:
        self.width, self._most = width, max(most or 0, len(labels))
        self._labels = _padded(labels)
        self._blocks = _pack(chunks, len(self._labels), width)
        self._real = (np.arange(len(self._labels)) < len(labels)).astype(np.float64)

    @property
    def summation_error(self) -> float:
        return summation_error(self._most, self.width)

    def local(self, query: LocalMoments) -> Moments:
        weights = self._weights(query.point, query.weight)
        second, sums = self._moments(query.point, weights)
        return Moments(second, sums[1])

    def local_many(self, queries: Sequence[LocalMoments]) -> list[Moments]:
        return [self.local(query) for query in queries]

    def raw(self, query: RawMoments) -> RawSums:
        weights = self._weights(query.anchor, query.weight)
        second, sums = self._moments(query.anchor, weights)
        return RawSums(float(sums[2, 0]), sums[0], second, float(sums[3, 0]), sums[1])

    def centre(self, query: CentreMoments) -> CentreSums:
        def one_range(first: int, last: int) -> Matrix:
            sums = np.zeros((2, self.width))
            kernels.centre_sums(self._blocks, self._real, query.layout.centre, first, last, sums)
            return sums

        first, squares = np.sum(self._split(one_range), axis=0)
        return CentreSums(first, squares[query.layout.numbers] - SQUARES_CENTRE * self._real.sum())

    def normalised(self, query: NormalisedMoments) -> NormalisedSums:
        second, sums = self._moments(query.centre, self._normalising_weights(query))
        return NormalisedSums.from_moments(query, second, float(sums[2, 0]), float(sums[3, 0]), sums[0], sums[1])

    def histograms(self, query: Histograms) -> Vector:
        counts = [np.zeros(cell.count) for cell in query.cells]
        for rows in self._slices():
            for cell, count in zip(query.cells, counts, strict=True):
                count += np.bincount(cell.of(rows[:, cell.start : cell.stop]), minlength=cell.count)
        return np.concatenate(counts)

    def pair_tables(self, query: PairTables) -> Matrix:
        bins = query.bins
        counts = np.zeros((bins.total, bins.total))
        for rows in self._slices():
            inside = one_hot(bins.of(rows), bins.offsets)
            counts += inside.T @ inside
        owner = np.repeat(np.arange(len(bins.sizes)), bins.sizes)
        return np.where(owner[:, None] == owner, 0.0, counts)

    def _slices(self) -> Iterator[Matrix]:
        """Row-major pieces of the rows, padding left out."""
        left = int(self._real.sum())
        for start in range(0, len(self._blocks), _SLICE):
            piece = self._blocks[start : start + _SLICE].transpose(0, 2, 1).reshape(-1, self.width)[:left].astype(np.float64)
            left -= len(piece)
            yield piece

    def _normalising_weights(self, query: NormalisedMoments) -> Vector:
        """1/‖F(x, 1)‖ of each row; padding rows weigh nothing."""
        layout, g = query.layout, query.scales
        starts, number = np.array([*layout.starts, layout.width]), np.zeros(layout.width)
        number[layout.numbers] = 1.0
        scales = np.array([2 * g.zeroth, g.first + g.label, g.second, g.squares])
        squared = np.empty(len(self._labels))
        self._split(
            lambda first, last: kernels.squared_lengths(
                self._blocks, query.centre, query.variance, starts, number, scales, first, last, squared
            )
        )
        return self._real / np.sqrt(squared)

    def select(self, positions: NDArray[np.int64], most: int | None = None) -> DenseRows:
        """A copy of the rows at these positions, in this order; `most` as for the constructor."""
        chunks = (positions[start : start + _CHUNK] for start in range(0, len(positions), _CHUNK))
        rows = (self._blocks[chunk // kernels.ROWS, :, chunk % kernels.ROWS] for chunk in chunks)
        return DenseRows(rows, self._labels[positions], self.width, most)

    def _weights(self, point: Vector, weight: Callable[[Vector], Vector]) -> Vector:
        """α of each row's distance; padding rows weigh nothing."""
        distances = np.empty(len(self._labels))
        self._split(lambda first, last: kernels.squared_distances(self._blocks, point, first, last, distances))
        np.sqrt(distances, out=distances)
        return weight(distances) * self._real

    def _moments(self, point: Vector, weights: Vector) -> tuple[Matrix, Matrix]:
        padded = -(-self.width // kernels.TILE) * kernels.TILE

        def one_range(first: int, last: int) -> tuple[Matrix, Matrix]:
            second, sums = np.zeros((padded, padded)), np.zeros((4, self.width))
            kernels.weighted_moments(self._blocks, self._labels, weights, point, first, last, second, sums)
            return second, sums

        parts = self._split(one_range)
        upper = np.triu(np.sum([second for second, _ in parts], axis=0)[: self.width, : self.width])
        return upper + np.triu(upper, 1).T, np.asarray(np.sum([sums for _, sums in parts], axis=0))

    def _split(self, work: Callable[[int, int], T]) -> list[T]:
        """Run `work` on equal ranges of blocks, one a thread, and return results in order: repeatable to the last bit."""
        edges = np.linspace(0, len(self._blocks), _threads() + 1).astype(int)
        ranges = [(int(a), int(b)) for a, b in pairwise(edges) if a < b]
        if len(ranges) == 1:
            return [work(*ranges[0])]
        with ThreadPoolExecutor(len(ranges)) as pool:
            return list(pool.map(lambda r: work(*r), ranges))


def summation_error(rows: int, width: int) -> float:
    """Each sum adds at most ROWS terms in a block, then block by block, then thread by thread; ten roundings a term.

    The bound counts additions in the longest chain (Higham 2002, §4.2), for sums in any order within a block, of at most `rows` rows.
    """
    return (kernels.ROWS + -(-rows // kernels.ROWS) + _threads() + width + 10) * _UNIT_ROUNDOFF


def _threads() -> int:
    return min(cpu_count() or 1, 16)


def _padded(labels: Vector) -> Vector:
    rows = max(-(-len(labels) // kernels.ROWS), 1) * kernels.ROWS
    return np.concatenate([labels, np.zeros(rows - len(labels))])


def _pack(chunks: Iterable[Matrix | NDArray[np.float32]], rows: int, width: int) -> kernels.Blocks:
    """Copy row-major chunks into blocks; only one chunk exists in float64 at a time."""
    blocks = np.zeros((rows // kernels.ROWS, width, kernels.ROWS), dtype=np.float32)
    start = 0
    for chunk in chunks:
        _copy_in(blocks, chunk, start)
        start += len(chunk)
    return blocks


def _copy_in(blocks: kernels.Blocks, chunk: Matrix | NDArray[np.float32], start: int) -> None:
    while len(chunk):
        block, offset = divmod(start, kernels.ROWS)
        whole = len(chunk) // kernels.ROWS if offset == 0 else 0
        if whole:
            taken = whole * kernels.ROWS
            blocks[block : block + whole] = chunk[:taken].reshape(whole, kernels.ROWS, -1).transpose(0, 2, 1)
        else:
            taken = min(kernels.ROWS - offset, len(chunk))
            blocks[block, :, offset : offset + taken] = chunk[:taken].T
        chunk, start = chunk[taken:], start + taken
