"""How a query's time grows with rows and columns, and that an explanation from a release does not grow with rows at all."""

from __future__ import annotations

import numpy as np

import dpexplain as dpx
from benchmarks._measure import best_of, made_up
from dpexplain.backends.dense import DenseRows
from dpexplain.core.moments import LocalMoments

ROWS = ((100_000, 50), (400_000, 50), (1_600_000, 50))
COLUMNS = ((200_000, 50), (200_000, 100), (200_000, 200), (200_000, 400))
RELEASED = (50_000, 800_000)


def query_seconds(rows, columns):
    X, y = made_up(rows, columns)
    store, query = DenseRows([X], y, columns), LocalMoments(np.full(columns, 0.4), dpx.weights.Stable())
    return best_of(lambda: store.local(query))


def release_seconds(rows, columns):
    X, y = made_up(rows, columns)
    data = dpx.PrivateData(X, dpx.Domain.encoded(columns), labels=y)
    release = dpx.release(data, dpx.Budget(1.0, 1e-6))
    return best_of(lambda: release.explain(X[0]), 3)


def exponent(sizes, times):
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def run():
    by_rows = [query_seconds(*shape) for shape in ROWS]
    by_columns = [query_seconds(*shape) for shape in COLUMNS]
    few, many = (release_seconds(rows, 20) for rows in RELEASED)
    rows = [
        {"what": f"query, {m:,} x {n}", "ms": 1e3 * seconds}
        for (m, n), seconds in zip(ROWS + COLUMNS, by_rows + by_columns, strict=True)
    ]
    rows += [
        {"what": "query grows like rows to the power", "exponent": exponent([m for m, _ in ROWS], by_rows)},
        {"what": "query grows like columns to the power", "exponent": exponent([n for _, n in COLUMNS], by_columns)},
        {"what": f"explanation from a release of {RELEASED[0]:,} x 20", "ms": 1e3 * few},
        {"what": f"explanation from a release of {RELEASED[1]:,} x 20", "ms": 1e3 * many},
        {"what": "it grows like rows to the power", "exponent": exponent(RELEASED, [few, many])},
    ]
    return rows
