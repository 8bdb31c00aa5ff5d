"""Building private reference data: seconds and peak memory, and those of one explanation from it."""

from __future__ import annotations

import tracemalloc
from time import perf_counter

import numpy as np

import dpexplain as dpx
from dpexplain.noise import SeededNoise

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


def measure(what, work):
    """(result, row): seconds of a first run; peak MB of Python and NumPy memory of a second, because tracing slows it down."""
    start = perf_counter()
    work()
    seconds = perf_counter() - start
    tracemalloc.start()
    result, (_, peak) = work(), tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return result, {"what": what, "seconds": seconds, "peak MB": peak / 2**20}


def make_release(table, domain, reference):
    """A release of its own data each time; on a terminal `dpx.release` shows the bar of what takes long."""
    data = dpx.PrivateData(table, domain, model=black_box)
    return dpx.release(data, dpx.Budget(1.0, 1e-6), reference=reference, noise=SeededNoise(1))


def run():
    table, domain = made_up(ROWS)
    make_release(*made_up(1000), reference=False)  # compiled before the clock starts
    named = f"{ROWS:,} rows, {domain.width} columns"
    _, plain = measure(f"registering and releasing moments, {named}", lambda: make_release(table, domain, False))
    release, full = measure(f"the same with {RECORDS:,} reference records", lambda: make_release(table, domain, RECORDS))
    point = {name: column[0] for name, column in release.reference.frame.iloc[:1].items()}
    release.explain(point)
    _, one = measure("one explanation from the reference", lambda: release.explain(point, dpx.weights.Gaussian(0.8)))
    return [row | {"of the first": row["seconds"] / plain["seconds"]} for row in (plain, full, one)]
