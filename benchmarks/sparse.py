"""One query's sums over a million binary rows of 500 columns: packed bits beside the designs they were chosen from, and the alternatives.

CPU seconds of all threads together, so that other work on the machine does not change the numbers. Slow alternatives are measured on fewer
rows or fewer passes and scaled, which the last column says: all are linear in both.
"""

from __future__ import annotations

from time import process_time

import numpy as np
from numba import njit
from scipy import sparse

from dpexplain.backends.dense import DenseRows
from dpexplain.backends.sparse import SparseRows
from dpexplain.core.moments import LocalMoments
from dpexplain.core.weights import Stable

ROWS, COLUMNS, DISTINCT = 1_000_000, 500, 20_000
FEWER = 50_000
PASSES = 300


def best_of(work, repeat):
    """CPU seconds of the fastest of a few runs, after one to warm up."""
    times = []
    for _ in range(repeat + 1):
        start = process_time()
        work()
        times.append(process_time() - start)
    return min(times[1:])


def made_up(words, rows=ROWS, seed=0):
    """Rows with `words` ones on average, frequent columns first as in a vocabulary; a few thousand different ones, repeated."""
    rng = np.random.default_rng(seed)
    frequency = np.minimum(words * (share := np.arange(1, COLUMNS + 1) ** -0.6) / share.sum(), 0.95)
    some = sparse.csr_matrix(rng.random((DISTINCT, COLUMNS)) < frequency).astype(np.float64)
    labels = np.where(some @ rng.standard_normal(COLUMNS) > 0, 1.0, -1.0)
    times = rows // DISTINCT
    return sparse.vstack([some] * times, format="csr"), np.tile(labels, times)


@njit(nogil=True)
def scatter(starts, indices, weights, out):
    """Design studied: add each row's weight to every pair of its ones, in float64."""
    for r in range(starts.shape[0] - 1):
        for p in range(starts[r], starts[r + 1]):
            row = out[indices[p]]
            for q in range(p, starts[r + 1]):
                row[indices[q]] += weights[r]


@njit(nogil=True)
def counted(starts, indices, order, edges, weights, counts, out):
    """Design studied: the same in whole numbers, one distance after another; exact."""
    for d in range(weights.shape[0]):
        counts[:] = 0
        for t in range(edges[d], edges[d + 1]):
            r = order[t]
            for p in range(starts[r], starts[r + 1]):
                row = counts[indices[p]]
                for q in range(p, starts[r + 1]):
                    row[indices[q]] += np.int32(1)
        out += weights[d] * counts


def distances_of(X, z):
    return np.rint(np.diff(X.indptr) + z.sum() - 2 * (X @ z)).astype(np.int64)


def scattered(X, z):
    squared, out = distances_of(X, z), np.zeros((COLUMNS, COLUMNS))
    scatter(X.indptr.astype(np.int64), X.indices.astype(np.uint16), Stable()(np.sqrt(squared)), out)
    return out


def bucketed(X, z):
    squared = distances_of(X, z)
    present, groups = np.unique(squared, return_inverse=True)
    order = np.argsort(groups.astype(np.uint16), kind="stable")
    edges = np.searchsorted(groups[order], np.arange(len(present) + 1))
    counts, out = np.zeros((COLUMNS, COLUMNS), dtype=np.int32), np.zeros((COLUMNS, COLUMNS))
    counted(X.indptr.astype(np.int64), X.indices.astype(np.uint16), order, edges, Stable()(np.sqrt(present)), counts, out)
    return out


def product(X, z):
    """Σ α x xᵀ by SciPy's sparse product."""
    weighted = sparse.diags_array(Stable()(np.sqrt(distances_of(X, z)))) @ X
    return X.T @ weighted


def matrix_free(X, y, z, phi):
    """One gradient without moments: X φ, residuals, Xᵀ r."""
    alpha = Stable()(np.sqrt(distances_of(X, z)))
    residual = alpha * (X @ phi - z @ phi - y)
    return 2 / len(y) * (X.T @ residual - residual.sum() * z)


def measured(words):
    X, y = made_up(words)
    z, few = X[3].toarray().ravel(), X[:FEWER]
    ours, query = SparseRows([X], y, COLUMNS), LocalMoments(z, Stable())
    dense = DenseRows([few.toarray()], y[:FEWER], COLUMNS)
    phi, scale = np.full(COLUMNS, 0.01), ROWS / FEWER
    return {
        "packed bits by distance (shipped)": (best_of(lambda: ours.local(query), 2), ""),
        "scatter into pairs, float64": (best_of(lambda: scattered(few, z), 2) * scale, f"{FEWER:,} rows"),
        "scatter by distance, int32": (best_of(lambda: bucketed(few, z), 2) * scale, f"{FEWER:,} rows"),
        "dense backend": (best_of(lambda: dense.local(query), 2) * scale, f"{FEWER:,} rows"),
        "SciPy sparse product": (best_of(lambda: product(few, z), 1) * scale, f"{FEWER:,} rows"),
        f"{PASSES} matrix-free passes": (
            best_of(lambda: matrix_free(few, y[:FEWER], z, phi), 1) * PASSES * scale,
            f"one pass, {FEWER:,} rows",
        ),
    }


def run() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for words in (40, 77):
        found = measured(words)
        ours = next(iter(found.values()))[0]
        rows += [
            {"ones a row": words, "design": name, "CPU seconds": seconds, "times ours": seconds / ours, "scaled from": scaled}
            for name, (seconds, scaled) in found.items()
        ]
    return rows
