"""Compiled loops from queries to public points: distances, and the paper's weight of each. Points are stored as `_plane_kernels.py` reads them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.compiling import compile_kernel, widest_registers

_STRETCH = 256
_ANY_ORDER = {"reassoc", "contract", "nsz"}  # sums may be taken in any order


def measure(
    queries: Matrix, points: NDArray[np.float32], metric: Vector, lengths: Vector, out: Matrix
) -> None:  # pragma: no cover
    """The distance of each point from each query; `lengths` are the squared lengths of the points."""
    widest_registers()
    columns, count = queries.shape[1], points.shape[1]
    for i in range(len(queries)):
        own = 0.0
        for j in range(columns):
            own += metric[j] * queries[i, j] * queries[i, j]
        for first in range(0, count, _STRETCH):
            last = min(first + _STRETCH, count)
            found, length = out[i, first:last], lengths[first:last]
            for r in range(last - first):
                found[r] = length[r] + own
            for j in range(columns):
                row, slope = points[j, first:last], -2 * metric[j] * queries[i, j]
                if slope != 0.0:
                    for r in range(last - first):
                        found[r] += slope * row[r]
            for r in range(last - first):
                found[r] = np.sqrt(max(found[r], 0.0))


measure = compile_kernel(measure, _ANY_ORDER)


@compile_kernel
def cap_distances(distance: Matrix, height: float, cap: float) -> None:  # pragma: no cover
    """Replace each distance d by min(height, cap/(2d(1 + d))), rounded as `core/weights.py` rounds it."""
    widest_registers()
    for i in range(len(distance)):
        row = distance[i]
        for r in range(len(row)):
            row[r] = min(height, cap / ((1.0 + row[r]) * row[r] * 2.0))
