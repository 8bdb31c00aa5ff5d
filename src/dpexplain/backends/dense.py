"""Private rows in memory, dense. One pass over them gives every statistic, without an (m, n) temporary; labels that are compared with a plane take two.

Rows are read a *stretch* at a time: some blocks that fit the second-level cache together. Distances, weights (any Python callable)
and products of a stretch follow each other before the next is touched, for every query of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import pairwise
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from dpexplain.backends import _kernels as kernels
from dpexplain.backends._workers import in_threads
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.baseline_shapley import ShapleySum
from dpexplain.core.expected_labels import ExpectedLabels, LabelDistances
from dpexplain.core.label_moments import LabelSums
from dpexplain.core.layout import Layout
from dpexplain.core.marginals import Histograms, LabelTables, PairTables
from dpexplain.core.moments import LocalMoments, Moments, RawMoments, RawSums
from dpexplain.core.release_moments import SQUARES_CENTRE, SQUARES_SCALE, CentreMoments, NormalisedMoments
from dpexplain.core.weights import Weight

Weighting = Callable[[int, int], Vector]  # blocks first, last → α of their rows
_UNIT_ROUNDOFF = 2.0**-53
_CHUNK = 1 << 16
_SLICE = 256  # blocks that are read row by row together
_STRETCH = 1 << 20  # bytes of rows in a stretch
_BATCH = 1 << 24  # bytes of sums that one thread fills during one pass


class DenseRows:
    """Block-columnar float32 rows with float64 labels; arithmetic in float64. Implements the `Rows` port.

    Rounding a row to float32 is part of the public encoding: it is done to each record by itself, so it cannot couple records,
    and entries stay in [0, 1]. `most` is a public bound on the number of rows, for `summation_error`; without it the number itself is.
    """

    def __init__(
        self, chunks: Iterable[Matrix | NDArray[np.float32]], labels: Vector, width: int, most: int | None = None
    ) -> None:
        self.width, self._most = width, max(most or 0, len(labels))
        self._count = len(labels)
        self._labels = _pad(labels)
        self._blocks = _pack(chunks, len(self._labels), width)
        self._centre: tuple[Layout, Vector] | None = None
        self._normalised: tuple[NormalisedMoments, RawSums] | None = None

    def __len__(self) -> int:
        return self._count

    @property
    def summation_error(self) -> float:
        return summation_error(self._most, self.width)

    def local(self, query: LocalMoments) -> Moments:
        return self.local_many([query])[0]

    def local_many(self, queries: Sequence[LocalMoments]) -> list[Moments]:
        n = self.width
        grams = self._sums_around([(query.point, query.weight, self._scale(query.scale)) for query in queries])
        return [Moments(gram[:n, :n], gram[:n, n + 1], gram[:n, n], float(gram[n, n]), float(gram[n, n + 1])) for gram in grams]

    def raw(self, query: RawMoments) -> RawSums:
        (gram,) = self._sums_around([(query.anchor, query.weight, self._scale(query.scale))])
        return self._raw_sums(gram)

    def centre(self, query: CentreMoments) -> Vector:
        """Kept from the first time on, because it depends on nothing but the rows, and rows do not change."""
        if self._centre is None or self._centre[0] != query.layout:
            self._centre = query.layout, self._sum_centre(query.layout)
        return self._centre[1].copy()

    def _sum_centre(self, layout: Layout) -> Vector:
        def of_piece(piece: tuple[int, int]) -> Matrix:
            total = np.zeros((2, self.width))
            for first, last in self._stretches(*piece):
                part = np.zeros((2, self.width))
                kernels.add_centre(self._blocks, self._count, layout.centre, first, last, part)
                total += part
            return total

        first, squares = self._sum_pieces(of_piece)
        return np.concatenate([first, SQUARES_SCALE * (squares[layout.numbers] - SQUARES_CENTRE * self._count)])

    def normalised(self, query: NormalisedMoments) -> RawSums:
        """Kept for the last query, because answers that add noise of their own ask it many times over."""
        known = self._normalised
        if known is None or known[0] is not query:
            known = self._normalised = query, self._sum_normalised(query)
        return known[1]

    def _sum_normalised(self, query: NormalisedMoments) -> RawSums:
        layout, scales = query.layout, query.scales.of_lengths
        number = np.zeros(layout.width)
        number[layout.numbers] = 1.0
        attributes = np.array([*layout.starts, layout.width]), number
        labels = self._labels if query.expected is None else self._compare(query.expected)

        def of_piece(piece: tuple[int, int]) -> Vector:
            total = np.zeros(kernels.gram_size(self.width))
            rows = self._blocks, self._count, labels
            kernels.add_normalised(*rows, query.centre, query.variance, attributes, scales, *piece, _stretch(self.width), total)
            return total

        return self._raw_sums(kernels.matrix(self._sum_pieces(of_piece), self.width))

    def label_distances(self, query: LabelDistances) -> Vector:
        return query.count(self._labels[: self._count], self._products(query.plane.slopes)[: self._count])

    def _compare(self, expected: ExpectedLabels) -> Vector:
        """y' of each row, padding included."""
        return expected.differences(self._labels, self._products(expected.slopes))

    def _products(self, slopes: Vector) -> Vector:
        """slopes·x of each row, padding included."""
        out = np.empty(len(self._labels))

        def of_piece(piece: tuple[int, int]) -> None:
            kernels.products(self._blocks, slopes, *piece, out[piece[0] * kernels.ROWS :])

        list(in_threads(of_piece, self._pieces()))
        return out

    def _raw_sums(self, gram: Matrix) -> RawSums:
        n = self.width
        gram.setflags(write=False)  # sums that are kept have several users
        return RawSums(float(gram[n, n]), gram[:n, n], gram[:n, :n], float(gram[n, n + 1]), gram[:n, n + 1])

    def shapley(self, query: ShapleySum) -> Vector:
        total = np.zeros(query.players, dtype=np.int64)
        for rows in self.row_major():
            total += query.units(rows)
        return query.from_units(total)

    def histograms(self, query: Histograms) -> Vector:
        return query.count(self._column_major())

    def pair_tables(self, query: PairTables) -> Matrix:
        return query.count(self._column_major())

    def label_tables(self, query: LabelTables) -> Matrix:
        return query.add_up(self.labelled_pieces())

    def row_major(self) -> Iterator[Matrix]:
        """Row-major pieces of the rows, padding left out."""
        left = self._count
        for start in range(0, len(self._blocks), _SLICE):
            piece = self._blocks[start : start + _SLICE].transpose(0, 2, 1).reshape(-1, self.width)[:left].astype(np.float64)
            left -= len(piece)
            yield piece

    def _column_major(self) -> Iterator[NDArray[np.float32]]:
        """The same pieces, column after column, as counts of single columns read them."""
        left = self._count
        for start in range(0, len(self._blocks), _SLICE):
            piece = self._blocks[start : start + _SLICE].transpose(1, 0, 2).reshape(self.width, -1).T[:left]
            left -= len(piece)
            yield piece

    def labelled_pieces(self) -> Iterator[Matrix]:
        """Row-major pieces of the rows, each row followed by its label."""
        start = 0
        for rows in self.row_major():
            yield np.column_stack([rows, self._labels[start : start + len(rows)]])
            start += len(rows)

    def relabel(self, ask: Callable[[Matrix], Matrix]) -> list[DenseRows]:
        """The same rows, which are not copied, with each of the labels, (rows, K), that `ask` gives them."""
        labels = np.concatenate([ask(piece) for piece in self.row_major()] or [ask(np.zeros((0, self.width)))])
        return [self._with_labels(column) for column in labels.T]

    def label_sums(self, query: LabelSums) -> list[RawSums]:
        return [one.normalised(query.moments) for one in self.relabel(query.ask)]

    def _with_labels(self, labels: Vector) -> DenseRows:
        other = copy(self)
        other._labels, other._normalised = _pad(labels), None
        return other

    def select(self, positions: NDArray[np.int64], most: int | None = None) -> DenseRows:
        """A copy of the rows at these positions, in this order; `most` as for the constructor."""
        chunks = (positions[start : start + _CHUNK] for start in range(0, len(positions), _CHUNK))
        rows = (self._blocks[chunk // kernels.ROWS, :, chunk % kernels.ROWS] for chunk in chunks)
        return DenseRows(rows, self._labels[positions], self.width, most)

    def _scale(self, scale: Vector | None) -> Vector:
        return np.ones(self.width) if scale is None else scale

    def _by_distance(self, point: Vector, weight: Weight, scale: Vector) -> Weighting:
        """α of each row's distance from `point`, in columns multiplied by `scale`."""

        def weights(first: int, last: int) -> Vector:
            distance = np.empty((last - first) * kernels.ROWS)
            kernels.distances(self._blocks, point, scale, first, last, distance)
            return weight(distance)

        return weights

    def _sums_around(self, tasks: Sequence[tuple[Vector, Weight, Vector]]) -> list[Matrix]:
        """Σ α r rᵀ with r = (x - point, 1, y) and α = weight(‖scale·(x - point)‖) for each task, as many to a pass as `_BATCH` holds."""
        profiles = [weight.profile for _, weight, _ in tasks]
        known = [i for i, profile in enumerate(profiles) if profile is not None]
        size = max(_BATCH // (8 * kernels.gram_size(self.width)), 1)
        found: dict[int, Matrix] = {}
        for some in (known[start : start + size] for start in range(0, len(known), size)):
            points, scales = np.array([tasks[i][0] for i in some]), np.array([tasks[i][2] for i in some])
            numbers = np.array([profiles[i] for i in some])
            found.update(zip(some, self._local(points, scales, numbers), strict=True))
        return [
            found[i] if i in found else self._sum_weighted(point, self._by_distance(point, weight, scale))
            for i, (point, weight, scale) in enumerate(tasks)
        ]

    def _local(self, points: Matrix, scales: Matrix, profiles: Matrix) -> list[Matrix]:
        """One pass for several points. Each piece is one compiled call: threads that often return to Python wait for its lock."""

        def of_piece(piece: tuple[int, int]) -> Matrix:
            totals = np.zeros((len(points), kernels.gram_size(self.width)))
            rows = self._blocks, self._count, self._labels
            kernels.add_local(*rows, points, scales, profiles, *piece, _stretch(self.width), totals)
            return totals

        return [kernels.matrix(total, self.width) for total in self._sum_pieces(of_piece)]

    def _sum_weighted(self, point: Vector, weighting: Weighting) -> Matrix:
        """The same for weights that Python evaluates, a stretch at a time."""

        def of_piece(piece: tuple[int, int]) -> Vector:
            total, part = np.zeros(kernels.gram_size(self.width)), np.empty(kernels.gram_size(self.width))
            for first, last in self._stretches(*piece):
                weights = weighting(first, last)
                weights[max(self._count - first * kernels.ROWS, 0) :] = 0.0  # padding
                part[:] = 0.0
                kernels.add_weighted(self._blocks, self._labels, weights, point, first, last, part)
                total += part
            return total

        return kernels.matrix(self._sum_pieces(of_piece), self.width)

    def _sum_pieces(self, of_piece: Callable[[tuple[int, int]], NDArray[np.float64]]) -> NDArray[np.float64]:
        first, *rest = in_threads(of_piece, self._pieces())
        for part in rest:
            first += part
        return first

    def _pieces(self) -> list[tuple[int, int]]:
        """Ranges of blocks, each added up by itself and then in order: to the last bit the same with any number of threads."""
        blocks = len(self._blocks)
        stretches = -(-blocks // _stretch(self.width))
        edges = np.linspace(0, blocks, _power_above(sqrt(stretches)) + 1).astype(int).tolist()
        return [(a, b) for a, b in pairwise(edges) if a < b]

    def _stretches(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        step = _stretch(self.width)
        return ((start, min(start + step, last)) for start in range(first, last, step))


def summation_error(rows: int, width: int) -> float:
    """Roundings in the longest chain of additions, times the unit roundoff, for at most `rows` rows (`proofs/summation.md`).

    A block adds ROWS terms, a stretch its blocks, a piece its stretches, then the pieces are added: with N stretches there are fewer
    than 2√N pieces of at most √N + 2 stretches each. A term has ten roundings of its own, a product with φ adds `width`.
    """
    step = _stretch(width)
    stretches = -(-rows // (kernels.ROWS * step))
    return (kernels.ROWS + step + 3 * ceil(sqrt(stretches)) + 2 + width + 10) * _UNIT_ROUNDOFF


def _stretch(width: int) -> int:
    """The number of blocks in a stretch, which depends on the width alone.

    For wide rows a stretch exceeds the cache: with a shorter one, adding its n² sums to the total would take too long.
    """
    return min(max(_STRETCH // (4 * kernels.ROWS * width), 32), 64)


def _power_above(number: float) -> int:
    """The smallest power of two that is at least `number` ≥ 1."""
    return 1 << (ceil(number) - 1).bit_length()


def _pad(labels: Vector) -> Vector:
    rows = max(-(-len(labels) // kernels.ROWS), 1) * kernels.ROWS
    return np.concatenate([labels, np.zeros(rows - len(labels))])


def _pack(chunks: Iterable[Matrix | NDArray[np.float32]], rows: int, width: int) -> kernels.Blocks:
    """Copy row-major chunks into blocks; only one chunk exists in float64 at a time."""
    memory, start = np.zeros(rows * width + kernels.LINE // 4, dtype=np.float32), 0
    aligned = memory[(-memory.ctypes.data % kernels.LINE) // 4 :]
    blocks = aligned[: rows * width].reshape(rows // kernels.ROWS, width, kernels.ROWS)
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
