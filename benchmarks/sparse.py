"""One query's sums over a million binary rows of 500 columns: counted bits beside the designs they were chosen from, and the alternatives.

All find the same moments of the same rows, and take turns, so that a slower minute meets each of them. Designs written here are compiled,
work in two threads like ours, and are given rows as they like them. CPU seconds are those of all threads together. Slow alternatives are
measured on fewer rows or passes and scaled, which the last column says: all are linear in both.
"""

from __future__ import annotations

from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy import sparse

from dpexplain.backends._workers import in_threads
from dpexplain.backends.dense import DenseRows
from dpexplain.backends.sparse import SparseRows
from dpexplain.core.moments import LocalMoments
from dpexplain.core.weights import Stable

ROWS, FEWER, COLUMNS = 1_000_000, 50_000, 500
PASSES, ROUNDS = 300, 3


class Lists(NamedTuple):
    """Rows as lists of their ones, labels, and a binary query."""

    starts: np.ndarray
    indices: np.ndarray
    y: np.ndarray
    z: np.ndarray


def made_up(words, rows, seed=0):
    """Rows with `words` ones on average, frequent columns first as in a vocabulary; ±1 labels."""
    rng = np.random.default_rng(seed)
    frequency = np.minimum(words * (share := np.arange(1, COLUMNS + 1) ** -0.6) / share.sum(), 0.95)
    pieces = [sparse.csr_array(rng.random((10_000, COLUMNS), dtype=np.float32) < frequency) for _ in range(rows // 10_000)]
    X = sparse.csr_array(sparse.vstack(pieces), dtype=np.float64)
    return X, np.where(X @ rng.standard_normal(COLUMNS) > 0, 1.0, -1.0)


def in_halves(kernel, size, *arguments):
    """Sums of the kernel's results for two halves, a thread each."""
    return sum(in_threads(lambda ends: kernel(*arguments, *ends), [(0, size // 2), (size // 2, size)]))


@njit(nogil=True)
def squared_distances(starts, indices, z, out, first, last):
    length = z.sum()
    for r in range(first, last):
        shared = 0
        for p in range(starts[r], starts[r + 1]):
            shared += z[indices[p]]
        out[r] = starts[r + 1] - starts[r] + length - 2 * shared
    return 0


@njit(nogil=True)
def scatter(starts, indices, y, weights, first, last):
    """Add each row's weight to every pair of its ones, in float64; a row for labels and a column for all rows follow."""
    out = np.zeros((COLUMNS + 1, COLUMNS + 1))
    for r in range(first, last):
        w, wy = weights[r], weights[r] * y[r]
        out[COLUMNS, COLUMNS] += wy
        for p in range(starts[r], starts[r + 1]):
            row = out[indices[p]]
            for q in range(p, starts[r + 1]):
                row[indices[q]] += w
            out[COLUMNS, indices[p]] += wy
    return out


@njit(nogil=True)
def count_by_distance(starts, indices, y, order, edges, weights, first, last):
    """The same in whole numbers, distance by distance; exact."""
    out = np.zeros((COLUMNS + 1, COLUMNS + 1))
    for d in range(first, last):
        counts, labels = np.zeros((COLUMNS, COLUMNS), dtype=np.int32), np.zeros(COLUMNS + 1)
        for r in order[edges[d] : edges[d + 1]]:
            labels[COLUMNS] += y[r]
            for p in range(starts[r], starts[r + 1]):
                row = counts[indices[p]]
                for q in range(p, starts[r + 1]):
                    row[indices[q]] += np.int32(1)
                labels[indices[p]] += y[r]
        out[:COLUMNS, :COLUMNS] += weights[d] * counts
        out[COLUMNS] += weights[d] * labels
    return out


@njit(nogil=True)
def gradient(starts, indices, y, weights, z, phi, first, last):
    """Σ 2α(φ·u - y) u of one pass, without moments; its last entry is what z is to be multiplied with."""
    out, at_z = np.zeros(COLUMNS + 1), (phi * z).sum()
    for r in range(first, last):
        product = -at_z - y[r]
        for p in range(starts[r], starts[r + 1]):
            product += phi[indices[p]]
        residual = 2 * weights[r] * product
        out[COLUMNS] -= residual
        for p in range(starts[r], starts[r + 1]):
            out[indices[p]] += residual
    return out


def distances_of(rows):
    out = np.empty(len(rows.y), dtype=np.uint16)
    in_halves(squared_distances, len(rows.y), rows.starts, rows.indices, rows.z.astype(np.int64), out)
    return out


def weights_of(rows):
    return Stable()(np.sqrt(np.arange(COLUMNS + 1)))[distances_of(rows)]


def shift_moments(upper, total, z):
    """Σα(x-z)(x-z)ᵀ from Σα and the upper half of Σαxxᵀ, whose diagonal is Σαx because x is binary."""
    first, second = np.diag(upper), upper + np.triu(upper, 1).T
    return second - np.outer(first, z) - np.outer(z, first) + total * np.outer(z, z)


def scattered_moments(rows):
    weights = weights_of(rows)
    out = in_halves(scatter, len(rows.y), rows.starts, rows.indices, rows.y, weights)
    return shift_moments(out[:COLUMNS, :COLUMNS], weights.sum(), rows.z)


def bucketed_moments(rows):
    squared = distances_of(rows)
    distances, sizes = np.unique(squared, return_counts=True)
    alpha, edges = Stable()(np.sqrt(distances.astype(np.float64))), np.concatenate([[0], np.cumsum(sizes)])
    order = np.argsort(squared, kind="stable")
    out = in_halves(count_by_distance, len(sizes), rows.starts, rows.indices, rows.y, order, edges, alpha)
    return shift_moments(out[:COLUMNS, :COLUMNS], alpha @ sizes, rows.z)


def product(X, rows):
    """SciPy's sparse product, in one thread: it knows no more."""
    weights = weights_of(rows)
    return shift_moments(np.triu((X.T @ (sparse.diags_array(weights) @ X)).toarray()), weights.sum(), rows.z)


def passes(rows):
    """A function that makes one matrix-free pass; weights are the same in all of them."""
    weights, phi = weights_of(rows), np.full(COLUMNS, 0.01)
    return lambda: in_halves(gradient, len(rows.y), rows.starts, rows.indices, rows.y, weights, rows.z, phi)


def designs(words):
    """{name: (work, how often it would have to be done, what it was scaled from)}, ours first, after a check that they agree."""
    X, y = made_up(words, ROWS)
    z, few, scale = X[[3]].toarray().ravel(), X[:FEWER], ROWS // FEWER
    rows, fewer = (Lists(A.indptr.astype(np.int64), A.indices.astype(np.uint16), y[: A.shape[0]], z) for A in (X, few))
    ours, query = SparseRows([X], y, COLUMNS), LocalMoments(z, Stable())
    dense = DenseRows([few.toarray()], y[:FEWER], COLUMNS)
    for other in (scattered_moments(rows), bucketed_moments(rows)):
        np.testing.assert_allclose(other, ours.local(query).A, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(product(few, fewer), dense.local(query).A, rtol=1e-6, atol=1e-3)
    return {
        "counted bits by distance (shipped)": (lambda: ours.local(query), 1, ""),
        "scatter into pairs, float64": (lambda: scattered_moments(rows), 1, ""),
        "scatter by distance, int32": (lambda: bucketed_moments(rows), 1, ""),
        "dense backend": (lambda: dense.local(query), scale, f"{FEWER:,} rows"),
        "SciPy sparse product": (lambda: product(few, fewer), scale, f"{FEWER:,} rows"),
        f"{PASSES} matrix-free passes": (passes(rows), PASSES, "one pass"),
    }


def time_work(work):
    """(CPU seconds, seconds)."""
    cpu, wall = process_time(), perf_counter()
    work()
    return process_time() - cpu, perf_counter() - wall


def run() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for words in (40, 77):
        chosen = designs(words)
        times = [[time_work(work) for work, _, _ in chosen.values()] for _ in range(ROUNDS + 1)][1:]  # the first is to warm up
        best = np.min(times, axis=0) * [[scale] for _, scale, _ in chosen.values()]
        rows += [
            {
                "ones a row": words,
                "design": name,
                "CPU seconds": cpu,
                "seconds": wall,
                "times ours, CPU": float(cpu / best[0, 0]),
                "scaled from": scaled,
            }
            for (name, (_, _, scaled)), (cpu, wall) in zip(chosen.items(), best.tolist(), strict=True)
        ]
    return rows
