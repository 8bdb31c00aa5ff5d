"""Compiled inner loops over binary rows: row r has ones in the columns `indices[starts[r] : starts[r+1]]`, in increasing order.

All sums are sums of integers, so they are exact in any order. Kernels release the GIL and work on a range; callers split it over threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[Any]  # the narrowest unsigned type that holds a column
Bits = NDArray[np.uint64]

WORD = 64  # rows in a word of bits


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.ctpop(arguments[0])


def _typed(typing: Any, word: Any) -> Any:
    return types.int64(types.uint64), _generate


_ones: Any = intrinsic(_typed)  # how many bits of a word are set: one instruction


@njit(cache=True, nogil=True)
def squared_distances(
    starts: Integers, indices: Indices, point: Integers, first: int, last: int, out: Integers
) -> None:  # pragma: no cover
    """out[r] = ‖x_r - point‖² = |x| + |point| - 2 |x ∧ point|, a whole number, for a binary point."""
    length = point.sum()
    for r in range(first, last):
        shared = 0
        for p in range(starts[r], starts[r + 1]):
            shared += point[indices[p]]
        out[r] = starts[r + 1] - starts[r] + length - 2 * shared


@njit(cache=True, nogil=True)
def pack(
    starts: Integers, indices: Indices, order: Integers, places: Integers, everyone: int, first: int, last: int, bits: Bits
) -> None:  # pragma: no cover
    """Set bit `places[t]` of each column that row `order[t]` has, and of column `everyone`; `bits[column, word]`."""
    for t in range(first, last):
        word, r = places[t] // WORD, order[t]
        bit = np.uint64(1) << np.uint64(places[t] % WORD)
        bits[everyone, word] |= bit
        for p in range(starts[r], starts[r + 1]):
            bits[indices[p], word] |= bit


@njit(cache=True, nogil=True)
def weighted_pairs(bits: Bits, edges: Integers, weights: Array, first: int, stride: int, out: Array) -> None:  # pragma: no cover
    """out[i, j] = Σ_d weights[d] · |bits[i] ∧ bits[j] within words edges[d] … edges[d+1]-1|, i ≤ j, in tiles of two by two.

    Starts at row `first` and takes every `stride`-th one. Counts are exact; the sum over d is the only place that rounds.
    """
    columns = bits.shape[0]
    for i in range(first, columns, stride):
        for j in range(i, columns, 2):
            a = b = c = e = 0.0
            for d in range(weights.shape[0]):
                p = q = r = s = 0
                for w in range(edges[d], edges[d + 1]):
                    x, y, u, v = bits[i, w], bits[i + 1, w], bits[j, w], bits[j + 1, w]
                    p += _ones(x & u)
                    q += _ones(x & v)
                    r += _ones(y & u)
                    s += _ones(y & v)
                a += weights[d] * p
                b += weights[d] * q
                c += weights[d] * r
                e += weights[d] * s
            out[i, j], out[i, j + 1], out[i + 1, j], out[i + 1, j + 1] = a, b, c, e


@njit(cache=True, nogil=True)
def label_sums(
    starts: Integers, indices: Indices, labels: Integers, groups: Integers, first: int, last: int, out: Integers
) -> None:  # pragma: no cover
    """Add Σ y over the rows of each group that have a column to out[group, column]; the last column is all rows."""
    for r in range(first, last):
        sums = out[groups[r]]
        sums[-1] += labels[r]
        for p in range(starts[r], starts[r + 1]):
            sums[indices[p]] += labels[r]


@njit(cache=True, nogil=True)
def add_pairs(
    starts: Integers,
    indices: Indices,
    weights: Integers,
    labelled: Integers,
    first: int,
    last: int,
    second: Integers,
    sums: Integers,
) -> None:  # pragma: no cover
    """Add Σ w x xᵀ (upper half) to `second`, and (Σ w x, Σ wy x) to the rows of `sums`; `labelled` is wy."""
    for r in range(first, last):
        w, wy, stop = weights[r], labelled[r], starts[r + 1]
        for p in range(starts[r], stop):
            i = indices[p]
            sums[0, i] += w
            sums[1, i] += wy
            row = second[i]
            for q in range(p, stop):
                row[indices[q]] += w


@njit(cache=True, nogil=True)
def squared_lengths(
    starts: Integers, indices: Indices, centre: Array, variance: Array, attributes: Integers, number: Array, scales: Array,
    first: int, last: int, out: Array,
) -> None:  # fmt: skip # pragma: no cover
    """out[r] = ‖F(x, 1)‖² (core/sketch.py), as a sum of non-negative terms over all columns; arguments as in `_kernels.py`."""
    for r in range(first, last):
        total = products = deviations = 0.0
        p, stop = starts[r], starts[r + 1]
        for a in range(attributes.shape[0] - 1):
            norm = 0.0
            for j in range(attributes[a], attributes[a + 1]):
                v = -centre[j]
                if p < stop and indices[p] == j:
                    v = 1.0 - centre[j]
                    p += 1
                norm += v * v
                deviations += number[j] * (v * v - variance[j]) ** 2
            products += total * norm
            total += norm
        out[r] = scales[0] + (scales[1] * total + scales[2] * products + scales[3] * deviations)


@njit(cache=True, nogil=True)
def squared_distances_to(
    starts: Integers, indices: Indices, point: Array, first: int, last: int, out: Array
) -> None:  # pragma: no cover
    """out[r] = ‖x_r - point‖² for any point, as a sum of non-negative terms."""
    for r in range(first, last):
        total, p, stop = 0.0, starts[r], starts[r + 1]
        for j in range(point.shape[0]):
            v = point[j]
            if p < stop and indices[p] == j:
                v = 1.0 - v
                p += 1
            total += v * v
        out[r] = total
