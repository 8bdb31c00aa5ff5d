"""The statistics of one query, 1.5 million rows of 50 float32 columns: one pass of ours beside NumPy's, and beside T gradient passes."""

from __future__ import annotations

import numpy as np

from benchmarks._measure import best_of_each, count_label, made_up
from dpexplain import weights
from dpexplain.backends.dense import DenseRows
from dpexplain.core.moments import LocalMoments

ROWS, COLUMNS, PASSES, BATCH = 1_500_000, 50, 300, 16
WEIGHT = weights.Stable()


def naive_pass(X, y, z, phi):
    """One gradient the obvious way: distances, weights, residuals, a weighted sum."""
    u = X - z
    alpha = WEIGHT(np.sqrt((u * u).sum(axis=1)))
    return 2 / len(X) * ((alpha * (u @ phi - y)) @ u)


def thrifty_pass(X, y, z, alpha, phi):
    """One gradient by somebody who keeps the weights and never forms x - z: two products with the table."""
    residual = alpha * (X @ phi - (z @ phi + y))
    return 2 / len(X) * (residual @ X - residual.sum() * z)


def numpy_moments(X, y, z):
    """(A, b) in one go, with temporaries as large as the table."""
    u = X - z
    alpha = WEIGHT(np.sqrt((u * u).sum(axis=1)))
    return (u * alpha[:, None]).T @ u, (alpha * y) @ u


def run():
    X, y64 = made_up(ROWS, COLUMNS)
    y, z = y64.astype(np.float32), X[0]
    phi, alpha = np.full(COLUMNS, 0.1, dtype=np.float32), WEIGHT(np.linalg.norm(X[:1000] - z, axis=1))
    alpha = np.resize(alpha, ROWS).astype(np.float32)
    store = DenseRows([X], y64, COLUMNS)
    queries = [LocalMoments(row.astype(np.float64), WEIGHT) for row in X[:BATCH]]
    one, many, moments, thrifty, naive = best_of_each(
        [
            lambda: store.local(queries[0]),
            lambda: store.local_many(queries),
            lambda: numpy_moments(X, y, z),
            lambda: thrifty_pass(X, y, z, alpha, phi),
            lambda: naive_pass(X, y, z, phi),
        ],
        repeat=4,
    )
    found = {
        "ours: one query": one,
        f"ours: each of {BATCH} queries that share a pass": many / BATCH,
        "NumPy, float32, one pass": moments,
        f"{PASSES} NumPy passes, weights kept (one timed)": PASSES * thrifty,
        f"{PASSES} naive NumPy passes (one timed)": PASSES * naive,
    }
    table = f"{count_label(ROWS)} x {COLUMNS}"
    return [{table: what, "seconds": seconds, "ratio to ours": seconds / one} for what, seconds in found.items()]
