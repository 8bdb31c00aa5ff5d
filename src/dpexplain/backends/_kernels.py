"""Compiled inner loops over block-columnar rows: `blocks[k, j, i]` is feature j of row `k·ROWS + i`.

A block's columns are contiguous, so distances, scaling and the tiled products all run along rows in vector registers. Storage is
float32, arithmetic float64 (`proofs/summation.md` says why). Kernels release the GIL and work on blocks first … last-1; per-row
inputs and outputs that are made on the way (distances, weights) start at row `first·ROWS`.

A loop that sums stores nothing: beside a store the compiler would make two versions of the loop, which add in different orders, and
choose between them by where the arrays happen to lie. Then the same question would not always be answered with the same bits.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpexplain.backends import _compiling
from dpexplain.backends._compiling import widest_registers

ROWS = 256  # rows in a block: long enough to hide a tile's last additions, short enough that 500 columns of scratch fit a cache
_HIGH, _WIDE = 6, 2  # a tile of products: twelve sums and eight operands fit sixteen registers, and the last two columns move
_LINE = 8  # float64 in a cache line; scratch starts on one, or each load would touch two

Blocks = NDArray[np.float32]
Array = NDArray[np.float64]
Index = NDArray[np.int64]

_FAST = {"reassoc", "contract", "nsz"}  # any summation order is covered by `summation_error`; NaN and inf keep their meaning
compiled = partial(_compiling.compiled, fastmath=_FAST)


@compiled
def distances(blocks: Blocks, point: Array, first: int, last: int, out: Array) -> None:  # pragma: no cover
    """out[row] = ‖x_row - point‖."""
    widest_registers()
    for k in range(first, last):
        total = np.zeros(ROWS)
        for j in range(point.shape[0]):
            z = point[j]
            for i in range(ROWS):
                u = blocks[k, j, i] - z
                total[i] += u * u
        start = (k - first) * ROWS
        for i in range(ROWS):
            out[start + i] = np.sqrt(total[i])


@compiled
def squared_lengths(
    blocks: Blocks, centre: Array, variance: Array, starts: Index, number: Array, scales: Array, first: int, last: int, out: Array
) -> None:  # pragma: no cover
    """out[row] = ‖F(x, 1)‖² (core/sketch.py). `starts` has one entry more than there are attributes; `number` is 1 for numbers.

    `scales` = (constant, of ‖v‖², of products across attributes, of squares).
    """
    widest_registers()
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
        start = (k - first) * ROWS
        for i in range(ROWS):
            rest = scales[1] * total[i] + scales[2] * products[i] + scales[3] * deviations[i]
            out[start + i] = scales[0] + rest


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
    """Rows of the matrix that `add_gram` adds to: (u, 1, y), filled up to whole tiles."""
    return -(-(width + 2) // _HIGH) * _HIGH


@compiled
def add_gram(
    blocks: Blocks, labels: Array, weights: Array, point: Array, first: int, last: int, gram: Array
) -> None:  # pragma: no cover
    """Add Σ α r rᵀ with r = (x - point, 1, y) to the upper triangle of `gram`: all weighted moments are entries of it.

    Each block's √α·r goes to a scratch that stays in cache, from there through registers a tile of products at a time.
    """
    widest_registers()
    n, size = point.shape[0], gram.shape[0]
    memory = np.zeros(size * ROWS + _LINE)
    aligned = -(memory.ctypes.data // 8) % _LINE
    scaled = memory[aligned : aligned + size * ROWS].reshape(size, ROWS)
    root = np.empty(ROWS)
    for k in range(first, last):
        start = (k - first) * ROWS
        for i in range(ROWS):
            root[i] = np.sqrt(weights[start + i])
            scaled[n, i] = root[i]
            scaled[n + 1, i] = root[i] * labels[k * ROWS + i]
        for j in range(n):
            z = point[j]
            for i in range(ROWS):
                scaled[j, i] = root[i] * (blocks[k, j, i] - z)
        for p in range(0, n + 2, _HIGH):
            for q in range(p, n + 2, _WIDE):
                _add_tile(scaled, p, q, gram)


@njit(inline="always")
def _add_tile(scaled: Array, p: int, q: int, gram: Array) -> None:  # pragma: no cover
    """Rows p … p+5 times rows q, q+1 of `scaled`: twelve sums held in registers."""
    a0 = a1 = a2 = a3 = a4 = a5 = 0.0
    b0 = b1 = b2 = b3 = b4 = b5 = 0.0
    for i in range(ROWS):
        a, b = scaled[q, i], scaled[q + 1, i]
        x0, x1, x2 = scaled[p, i], scaled[p + 1, i], scaled[p + 2, i]
        x3, x4, x5 = scaled[p + 3, i], scaled[p + 4, i], scaled[p + 5, i]
        a0 += x0 * a
        a1 += x1 * a
        a2 += x2 * a
        a3 += x3 * a
        a4 += x4 * a
        a5 += x5 * a
        b0 += x0 * b
        b1 += x1 * b
        b2 += x2 * b
        b3 += x3 * b
        b4 += x4 * b
        b5 += x5 * b
    gram[p, q] += a0
    gram[p + 1, q] += a1
    gram[p + 2, q] += a2
    gram[p + 3, q] += a3
    gram[p + 4, q] += a4
    gram[p + 5, q] += a5
    gram[p, q + 1] += b0
    gram[p + 1, q + 1] += b1
    gram[p + 2, q + 1] += b2
    gram[p + 3, q + 1] += b3
    gram[p + 4, q + 1] += b4
    gram[p + 5, q + 1] += b5
