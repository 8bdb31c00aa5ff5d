"""Compiled inner loops over binary rows: row r has ones in the columns `indices[starts[r] : starts[r+1]]`, in increasing order.

All sums are sums of integers, so they are exact in any order. Kernels release the GIL and work on a range; callers split it over threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.compiling import compile_kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[Any]  # the narrowest unsigned type that holds a column


@compile_kernel
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


@compile_kernel
def squared_lengths(
    starts: Integers, indices: Indices, centre: Array, variance: Array, attributes: Integers, number: Array, scales: Array,
    first: int, last: int, out: Array,
) -> None:  # fmt: skip # pragma: no cover
    """out[r] = ‖F(x, 1)‖² (core/release_moments.py), as a sum of non-negative terms over all columns; arguments as in `_kernels.py`."""
    for r in range(first, last):
        total = products = deviations = absent = 0.0
        p, stop = starts[r], starts[r + 1]
        for a in range(attributes.shape[0] - 1):
            norm, rest = 0.0, 1.0
            for j in range(attributes[a], attributes[a + 1]):
                v = -centre[j]
                if p < stop and indices[p] == j:
                    v = 1.0 - centre[j]
                    rest -= 1.0
                    p += 1
                norm += v * v
                deviations += number[j] * (v * v - variance[j]) ** 2
            products += total * norm
            total += norm
            if attributes[a + 1] - attributes[a] > 1:
                absent += rest * rest
        out[r] = scales[0] + (scales[1] * total + scales[2] * products + scales[3] * deviations + scales[4] * absent)


@compile_kernel
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
