"""Compiled inner loops over block-columnar rows: `blocks[k, j, i]` is feature j of row `k·ROWS + i`.

A block's columns are contiguous, so distances, scaling and the tiled products all run along rows in vector registers. Storage is
float32, arithmetic float64 (`proofs/summation.md` says why). Kernels release the GIL and work on blocks first … last-1; per-row
inputs and outputs that are made on the way (distances, weights) start at row `first·ROWS`.

All weighted moments are entries of Σ α r rᵀ with r = (x - point, 1, y). Each block's √α·r goes to a scratch that stays in cache, from there
through registers a tile of products at a time (`_tiles.py`), while the next block is prefetched from memory.

A loop that sums stores nothing: beside a store the compiler would make two versions of the loop, which add in different orders, and
choose between them by where the arrays happen to lie. Then the same question would not always be answered with the same bits.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpexplain.backends._tiles import LANES, SIDE, SUMS, add_half_tile, add_tile
from dpexplain.core import compiling
from dpexplain.core.compiling import widest_registers

ROWS = 256  # rows in a block: long enough to hide a tile's last additions, short enough that 500 columns of scratch fit a cache
LINE = 64  # bytes in a cache line; rows and scratch start on one, or each load would touch two

Blocks = NDArray[np.float32]
Array = NDArray[np.float64]
Index = NDArray[np.int64]

_FAST = {"reassoc", "contract", "nsz"}  # any summation order is covered by `summation_error`; NaN and inf keep their meaning
compiled = partial(compiling.compile_kernel, fastmath=_FAST)


@compiled
def distances(blocks: Blocks, point: Array, scale: Array, first: int, last: int, out: Array) -> None:  # pragma: no cover
    """out[row] = ‖scale·(x_row - point)‖."""
    for k in range(first, last):
        _distances_in(blocks[k], point, scale, out[(k - first) * ROWS :])


@compiled
def _distances_in(block: Blocks, point: Array, scale: Array, out: Array) -> None:  # pragma: no cover
    widest_registers()
    for i in range(ROWS):
        out[i] = 0.0
    for j in range(point.shape[0]):
        z, s = point[j], scale[j]
        for i in range(ROWS):
            u = (block[j, i] - z) * s
            out[i] += u * u
    for i in range(ROWS):
        out[i] = np.sqrt(out[i])


@compiled
def products(blocks: Blocks, slopes: Array, first: int, last: int, out: Array) -> None:  # pragma: no cover
    """out[row] = slopes·x_row."""
    for k in range(first, last):
        _products_in(blocks[k], slopes, out[(k - first) * ROWS :])


@compiled
def _products_in(block: Blocks, slopes: Array, out: Array) -> None:  # pragma: no cover
    widest_registers()
    for i in range(ROWS):
        out[i] = 0.0
    for j in range(slopes.shape[0]):
        for i in range(ROWS):
            out[i] += slopes[j] * block[j, i]


@compiled
def _inverse_lengths_in(
    block: Blocks, centre: Array, variance: Array, starts: Index, number: Array, scales: Array, scratch: Array, out: Array
) -> None:  # pragma: no cover
    """out[row] = 1/‖F(x, 1)‖ (core/release_moments.py). `starts` has one entry more than there are attributes; `number` is 1 for numbers.

    `scales` = (constant, of ‖v‖², of products across attributes, of squares, of codes without a value). `scratch` has five rows.
    """
    widest_registers()
    total, products, deviations, norm, absent = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    for i in range(ROWS):
        total[i], products[i], deviations[i], absent[i] = 0.0, 0.0, 0.0, 0.0
    for a in range(starts.shape[0] - 1):
        for i in range(ROWS):
            norm[i] = 0.0
        for j in range(starts[a], starts[a + 1]):
            z, middle, counts = centre[j], variance[j], number[j] > 0
            for i in range(ROWS):
                v = block[j, i] - z
                norm[i] += v * v
            if counts:
                for i in range(ROWS):
                    v = block[j, i] - z
                    deviations[i] += (v * v - middle) ** 2
        if starts[a + 1] - starts[a] > 1:  # a code: one column is 1, or none
            for i in range(ROWS):
                absent[i] += 1.0
            for j in range(starts[a], starts[a + 1]):
                for i in range(ROWS):
                    absent[i] -= block[j, i]
        for i in range(ROWS):
            products[i] += total[i] * norm[i]
            total[i] += norm[i]
    for i in range(ROWS):
        rest = scales[1] * total[i] + scales[2] * products[i] + scales[3] * deviations[i] + scales[4] * absent[i]
        out[i] = 1 / np.sqrt(scales[0] + rest)


@compiled
def add_centre(blocks: Blocks, rows: int, centre: Array, first: int, last: int, sums: Array) -> None:  # pragma: no cover
    """Add (Σ v, Σ v²) with v = x - centre to the two rows of `sums`. Rows from number `rows` on are padding."""
    widest_registers()
    for k in range(first, last):
        here = min(max(rows - k * ROWS, 0), ROWS)
        for j in range(centre.shape[0]):
            one, two = 0.0, 0.0
            for i in range(here):
                v = blocks[k, j, i] - centre[j]
                one += v
                two += v * v
            sums[0, j] += one
            sums[1, j] += two


def gram_size(width: int) -> int:
    """Numbers in the tiles of the upper triangle for (u, 1, y)."""
    side = -(-(width + 2) // SIDE)
    return side * (side + 1) // 2 * SUMS


@compiled
def add_local(
    blocks: Blocks, rows: int, labels: Array, points: Array, scales: Array, profiles: Array, first: int, last: int, step: int,
    totals: Array,
) -> None:  # fmt: skip # pragma: no cover
    """Add Σ α r rᵀ with α = α(‖scale·(x - point)‖) to totals[query], in tiles, for each point, its scales and its weight's profile.

    Blocks are added up `step` at a time, for all points in turn, then to the totals. Rows from number `rows` on are padding.
    """
    n = points.shape[1]
    alpha, scaled, part = _aligned_zeros(ROWS), _aligned_zeros(_scaled_size(n)), np.zeros(totals.shape[1])
    for start in range(first, last, step):
        for query in range(points.shape[0]):
            for k in range(start, min(start + step, last)):
                _distances_in(blocks[k], points[query], scales[query], alpha)
                _weigh(alpha, profiles[query])
                for i in range(max(rows - k * ROWS, 0), ROWS):
                    alpha[i] = 0.0
                _add_block(blocks, k, labels, alpha, points[query], scaled, part)
            for t in range(part.shape[0]):
                totals[query, t] += part[t]
                part[t] = 0.0


@compiled
def add_normalised(
    blocks: Blocks, rows: int, labels: Array, centre: Array, variance: Array, attributes: tuple[Index, Array], scales: Array,
    first: int, last: int, step: int, total: Array,
) -> None:  # fmt: skip # pragma: no cover
    """Add Σ α r rᵀ with α = 1/‖F(x, 1)‖ and r = (x - centre, 1, y) to `total`, in tiles; blocks are added up `step` at a time."""
    alpha, scaled, part = _aligned_zeros(ROWS), _aligned_zeros(_scaled_size(centre.shape[0])), np.zeros(total.shape[0])
    starts, number, scratch = attributes[0], attributes[1], np.zeros((5, ROWS))
    for start in range(first, last, step):
        for k in range(start, min(start + step, last)):
            _inverse_lengths_in(blocks[k], centre, variance, starts, number, scales, scratch, alpha)
            for i in range(max(rows - k * ROWS, 0), ROWS):
                alpha[i] = 0.0
            _add_block(blocks, k, labels, alpha, centre, scaled, part)
        for t in range(part.shape[0]):
            total[t] += part[t]
            part[t] = 0.0


@compiled
def add_weighted(
    blocks: Blocks, labels: Array, weights: Array, point: Array, first: int, last: int, total: Array
) -> None:  # pragma: no cover
    """Add Σ α r rᵀ to `total`, in tiles, for given weights."""
    alpha, scaled = _aligned_zeros(ROWS), _aligned_zeros(_scaled_size(point.shape[0]))
    for k in range(first, last):
        for i in range(ROWS):
            alpha[i] = weights[(k - first) * ROWS + i]
        _add_block(blocks, k, labels, alpha, point, scaled, total)


@compiled
def _weigh(distance: Array, profile: Array) -> None:  # pragma: no cover
    """Replace each distance by its weight α = min(height, cap/(2d(1+d)))·exp(-(d/width)²) up to `reach`."""
    widest_registers()
    height, cap, width, reach = profile[0], profile[1], profile[2], profile[3]
    if width < np.inf:
        for i in range(ROWS):
            distance[i] = height * np.exp(-((distance[i] / width) ** 2))
    else:
        for i in range(ROWS):
            d = distance[i]
            tail = cap / (2 * d * (1 + d))
            alpha = tail if tail < height else height
            distance[i] = alpha if d <= reach else 0.0


@compiled
def _scaled_size(width: int) -> int:  # pragma: no cover
    """Numbers in a block's √α·(u, 1, y), filled up to whole tiles."""
    return -(-(width + 2) // SIDE) * SIDE * ROWS


@compiled
def _aligned_zeros(size: int) -> Array:  # pragma: no cover
    """Zeros that start on a cache line."""
    memory = np.zeros(size + LINE // 8)
    start = (-memory.ctypes.data % LINE) // 8
    return memory[start : start + size]


@compiled
def _add_block(
    blocks: Blocks, k: int, labels: Array, alpha: Array, point: Array, scaled: Array, total: Array
) -> None:  # pragma: no cover
    """Add block k's Σ α r rᵀ; leaves √α in `alpha`."""
    widest_registers()
    n = point.shape[0]
    for i in range(ROWS):
        alpha[i] = np.sqrt(alpha[i])
    for j in range(n):
        z = point[j]
        for i in range(ROWS):
            scaled[j * ROWS + i] = alpha[i] * (blocks[k, j, i] - z)
    for i in range(ROWS):
        scaled[n * ROWS + i] = alpha[i]
        scaled[(n + 1) * ROWS + i] = alpha[i] * labels[k * ROWS + i]
    _add_tiles(scaled, total, blocks.ctypes.data + (k + 1) * n * ROWS * 4, n * ROWS * 4)


@compiled
def _add_tiles(scaled: Array, total: Array, soon: int, size: int) -> None:  # pragma: no cover
    """All tiles of the scaled rows; the `size` bytes at address `soon` are prefetched evenly in between."""
    widest_registers()
    steps = ROWS // LANES
    stride, place = -(-size // (total.shape[0] // SUMS * steps)), 0
    for p in range(0, scaled.shape[0] // ROWS, SIDE):
        add_half_tile(scaled, ROWS, p, p, total, place, soon, stride)
        place, soon = place + SUMS, soon + steps * stride
        for q in range(p + SIDE, scaled.shape[0] // ROWS, SIDE):
            add_tile(scaled, ROWS, p, q, total, place, soon, stride)
            place, soon = place + SUMS, soon + steps * stride


def matrix(total: Array, width: int) -> Array:
    """The symmetric matrix whose upper triangle `total` holds in tiles."""
    side = -(-(width + 2) // SIDE)
    squares = np.zeros((side, side, SIDE, SIDE))
    squares[np.triu_indices(side)] = total.reshape(-1, SUMS)[:, : SIDE * SIDE].reshape(-1, SIDE, SIDE)
    upper = np.triu(squares.transpose(0, 2, 1, 3).reshape(side * SIDE, side * SIDE)[: width + 2, : width + 2])
    return np.asarray(upper + np.triu(upper, 1).T)
