"""Building private reference data: seconds and memory of each step, and one explanation from it."""

from __future__ import annotations

import tracemalloc
from time import perf_counter

import numpy as np

import dpexplain as dpx
from dpexplain.noise.seeded import SeededNoise

ROWS, RECORDS = 200_000, 1 << 16


def made_up(rows, seed=0):
    """Ten features, 40 encoded columns."""
    rng = np.random.default_rng(seed)
    common = rng.random(rows)
    table = {f"number {i}": np.clip(common + 0.3 * rng.standard_normal(rows), 0, 1) for i in range(4)}
    table |= {f"code {i}": np.clip((6 * (0.5 * common + 0.5 * rng.random(rows))).astype(int), 0, 5) for i in range(6)}
    features = [dpx.Numeric(f"number {i}", 0, 1) for i in range(4)]
    return table, dpx.Domain(features + [dpx.Categorical(f"code {i}", values=list(range(6))) for i in range(6)])


def black_box(table):
    return np.where(np.asarray(table["number 0"]) + 0.1 * np.asarray(table["code 0"]) > 0.8, 1.0, -1.0)


def timed(work):
    """(result, seconds, peak MB of Python and NumPy memory)."""
    tracemalloc.start()
    start = perf_counter()
    result = work()
    seconds, (_, peak) = perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return result, seconds, peak / 2**20


def run():
    table, domain = made_up(ROWS)
    data = dpx.PrivateData(table, domain, model=black_box)
    budget = dpx.Budget(1.0, 1e-6)
    _, plain, plain_memory = timed(lambda: dpx.release(data, budget, noise=SeededNoise(1)))
    again = dpx.PrivateData(table, domain, model=black_box)
    release, built, memory = timed(lambda: dpx.release(again, budget, reference=RECORDS, noise=SeededNoise(1)))
    point = {name: column[0] for name, column in release.reference.frame.iloc[:1].items()}
    release.explain(point)
    _, one, one_memory = timed(lambda: release.explain(point, dpx.weights.Gaussian(0.8)))
    named = f"{ROWS:,} rows, {domain.width} columns"
    return [
        {"what": f"release of moments, {named}", "seconds": plain, "peak MB": plain_memory, "of the first": 1.0},
        {
            "what": f"release with {RECORDS:,} reference records",
            "seconds": built,
            "peak MB": memory,
            "of the first": built / plain,
        },
        {"what": "one explanation from the reference", "seconds": one, "peak MB": one_memory, "of the first": one / plain},
    ]
