"""Compiled inner loops over block-columnar rows: `blocks[k, j, i]` is feature j of row `k·ROWS + i`.

A block's columns are contiguous, so distances, scaling and the tiled products all run along rows in registers. Storage is
float32, arithmetic float64. Kernels release the GIL and work on a range of blocks; callers split the range over threads.

A loop that sums stores nothing: beside a store the compiler would make two versions of the loop, which add in different orders, and
choose between them by where the arrays happen to lie. Then the same question would not always be answered with the same bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

ROWS = 128  # rows in a block: 70 features of scratch fit the second-level cache
TILE = 4

Blocks = NDArray[np.float32]
Array = NDArray[np.float64]
Index = NDArray[np.int64]

_FAST = {"reassoc", "contract", "nsz"}  # any summation order is covered by `summation_error`; NaN and inf keep their meaning


@njit(cache=True, nogil=True, fastmath=_FAST)
def squared_distances(blocks: Blocks, point: Array, first: int, last: int, out: Array) -> None:  # pragma: no cover
    """out[row] = ‖x_row - point‖² for the rows of blocks first … last-1."""
    for k in range(first, last):
        total = np.zeros(ROWS)
        for j in range(point.shape[0]):
            for i in range(ROWS):
                u = blocks[k, j, i] - point[j]
                total[i] += u * u
        for i in range(ROWS):
            out[k * ROWS + i] = total[i]


@njit(cache=True, nogil=True, fastmath=_FAST)
def centre_sums(blocks: Blocks, real: Array, centre: Array, first: int, last: int, sums: Array) -> None:  # pragma: no cover
    """Add (Σ v, Σ v²) with v = x - centre to the rows of `sums`; `real` is 0 for padding rows."""
    for k in range(first, last):
        base = k * ROWS
        for j in range(centre.shape[0]):
            one, two = 0.0, 0.0
            for i in range(ROWS):
                v = (blocks[k, j, i] - centre[j]) * real[base + i]
                one += v
                two += v * v
            sums[0, j] += one
            sums[1, j] += two


@njit(cache=True, nogil=True, fastmath=_FAST)
def squared_lengths(
    blocks: Blocks, centre: Array, variance: Array, starts: Index, number: Array, scales: Array, first: int, last: int, out: Array
) -> None:  # pragma: no cover
    """out[row] = ‖F(x, 1)‖² (core/sketch.py). `starts` has one entry more than there are attributes; `number` is 1 for numbers.

    `scales` = (constant, of ‖v‖², of products across attributes, of squares).
    """
    for k in range(first, last):
        total, products, deviations = np.zeros(ROWS), np.zeros(ROWS), np.zeros(ROWS)
        for a in range(starts.shape[0] - 1):
            norm = np.zeros(ROWS)
            for j in range(starts[a], starts[a + 1]):
                for i in range(ROWS):
                    v = blocks[k, j, i] - centre[j]
                    norm[i] += v * v
                    deviations[i] += number[j] * (v * v - variance[j]) ** 2
            for i in range(ROWS):
                products[i] += total[i] * norm[i]
                total[i] += norm[i]
        for i in range(ROWS):
            rest = scales[1] * total[i] + scales[2] * products[i] + scales[3] * deviations[i]
            out[k * ROWS + i] = scales[0] + rest


@njit(cache=True, nogil=True, fastmath=_FAST)
def weighted_moments(
    blocks: Blocks, labels: Array, weights: Array, point: Array, first: int, last: int, second: Array, sums: Array
) -> None:  # pragma: no cover
    """Add Σ α u uᵀ (upper tiles) to `second` and (Σ α u, Σ α y u, Σ α, Σ α y) to the rows of `sums`, with u = x - point."""
    n = point.shape[0]
    padded = second.shape[0]
    scaled = np.zeros((padded, ROWS))
    for k in range(first, last):
        base = k * ROWS
        for j in range(n):
            for i in range(ROWS):
                scaled[j, i] = np.sqrt(weights[base + i]) * (blocks[k, j, i] - point[j])
            one, two = 0.0, 0.0
            for i in range(ROWS):
                u = blocks[k, j, i] - point[j]
                w = weights[base + i]
                one += w * u
                two += w * labels[base + i] * u
            sums[0, j] += one
            sums[1, j] += two
        zero, label = 0.0, 0.0
        for i in range(ROWS):
            zero += weights[base + i]
            label += weights[base + i] * labels[base + i]
        sums[2, 0] += zero
        sums[3, 0] += label
        for p in range(0, padded, TILE):
            for q in range(p, padded, TILE):
                _add_tile(scaled, p, q, second)


@njit(cache=True, nogil=True, fastmath=_FAST, inline="always")
def _add_tile(scaled: Array, p: int, q: int, second: Array) -> None:  # pragma: no cover
    """A 4 x 4 tile of scaled·scaledᵀ: sixteen sums held in registers."""
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
    c0 = c1 = c2 = c3 = d0 = d1 = d2 = d3 = 0.0
    for i in range(ROWS):
        x0, x1, x2, x3 = scaled[p, i], scaled[p + 1, i], scaled[p + 2, i], scaled[p + 3, i]
        y0, y1, y2, y3 = scaled[q, i], scaled[q + 1, i], scaled[q + 2, i], scaled[q + 3, i]
        a0 += x0 * y0
        a1 += x0 * y1
        a2 += x0 * y2
        a3 += x0 * y3
        b0 += x1 * y0
        b1 += x1 * y1
        b2 += x1 * y2
        b3 += x1 * y3
        c0 += x2 * y0
        c1 += x2 * y1
        c2 += x2 * y2
        c3 += x2 * y3
        d0 += x3 * y0
        d1 += x3 * y1
        d2 += x3 * y2
        d3 += x3 * y3
    second[p, q] += a0
    second[p, q + 1] += a1
    second[p, q + 2] += a2
    second[p, q + 3] += a3
    second[p + 1, q] += b0
    second[p + 1, q + 1] += b1
    second[p + 1, q + 2] += b2
    second[p + 1, q + 3] += b3
    second[p + 2, q] += c0
    second[p + 2, q + 1] += c1
    second[p + 2, q + 2] += c2
    second[p + 2, q + 3] += c3
    second[p + 3, q] += d0
    second[p + 3, q + 1] += d1
    second[p + 3, q + 2] += d2
    second[p + 3, q + 3] += d3
