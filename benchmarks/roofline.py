"""How much of the machine a query uses: time against the least that bandwidth and arithmetic allow, all measured in the same run.

The limit is the larger of bytes/bandwidth and operations/peak. Bytes are the table's, read once. Operations are what the fused algorithm
needs for each row: x - z (n), its length (2n), the scaling (n), A's upper triangle (n(n + 1)) and b (2n); together n(n + 7). The peak is
NumPy's float64 matrix product, because sums are made in float64; the float32 product is shown beside it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from benchmarks._measure import best_of, best_of_each, made_up
from dpexplain import weights
from dpexplain.backends._workers import in_threads
from dpexplain.backends.dense import DenseRows
from dpexplain.core.moments import LocalMoments

SHAPES = ((1_500_000, 14), (1_500_000, 50), (1_500_000, 100), (200_000, 500))
SIDE = 2_000
PARTS = 16


@njit(nogil=True, fastmath=True)
def total(numbers):
    """Reads in four places at once: a single stream does not keep the memory busy."""
    quarter = len(numbers) // 4
    a = b = c = d = np.float32(0)
    for i in range(quarter):
        a += numbers[i]
        b += numbers[quarter + i]
        c += numbers[2 * quarter + i]
        d += numbers[3 * quarter + i]
    return a + b + c + d


def peak(kind):
    """A large matrix product, whose operations a second are the limit."""
    matrix = np.random.default_rng(0).random((SIDE, SIDE)).astype(kind)
    return lambda: matrix @ matrix


def measure(rows, columns):
    X, y = made_up(rows, columns)
    store, query = DenseRows([X], y, columns), LocalMoments(np.full(columns, 0.4), weights.Stable())
    del X
    parts = np.array_split(np.ones(rows * columns, dtype=np.float32), PARTS)  # as many bytes as the rows have
    query_time, read, product = best_of_each(
        [lambda: store.local(query), lambda: list(in_threads(total, parts)), peak(np.float64)], 8
    )
    bytes_limit, operations = read, rows * columns * (columns + 7)
    flop_limit = operations * product / (2 * SIDE**3)
    return {
        "table": f"{rows:,} x {columns}",
        "query, ms": 1e3 * query_time,
        "bandwidth limit, ms": 1e3 * bytes_limit,
        "float64 limit, ms": 1e3 * flop_limit,
        "share of the limit": max(bytes_limit, flop_limit) / query_time,
        "read, GB/s": 4 * rows * columns / read / 1e9,
        "float64 product, GFLOP/s": 2 * SIDE**3 / product / 1e9,
        "ours, GFLOP/s": operations / query_time / 1e9,
    }


def run():
    rows = [measure(*shape) for shape in SHAPES]
    single = 2 * SIDE**3 / best_of(peak(np.float32)) / 1e9
    return [*rows, {"table": f"float32 product, for comparison: {single:.0f} GFLOP/s"}]
