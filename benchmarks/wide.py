"""Releases of many columns, and a mixed table with reference: CPU time with the arithmetic of today and with a plain one, in one run.

Linear algebra has one thread here: several wait for each other by spinning, which counts as CPU time.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np

import dpexplain as dpx
from dpexplain.noise.seeded import SeededNoise

COLUMNS = (200, 400, 1_028)
ROWS = 20_000
MIXED_ROWS = 100_000
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SIZES = (3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 8, 9, 9, 10, 11, 12, 13)  # of the mixed table's codes


def table(columns: int) -> dpx.PrivateData:
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((ROWS, 5))
    rows = (hidden @ rng.standard_normal((5, columns)) + 2 * rng.standard_normal((ROWS, columns)) > 0.5).astype(np.int64)
    labels = np.tanh(rows[:, :20] @ (0.4 * rng.standard_normal(20)))
    names = [f"f{i}" for i in range(columns)]
    return dpx.PrivateData(dict(zip(names, rows.T, strict=True)), dpx.Domain([dpx.Binary(name) for name in names]), labels=labels)


@contextmanager
def plainly() -> Iterator[None]:
    """Every step with its own Hessian, each code by a product of its own, every plane with covariances of its own."""
    from dpexplain.estimation import calibrate, label_newton, plane_building, reference

    def own(calibrated, *rest):
        return factors(calibrate.Calibrated(calibrated.solver, calibrated.found, ()), *rest)

    factors = calibrate.plane_factors
    with (
        patch.object(reference, "PANEL", 1),
        patch.object(reference, "ReusedLabelNewton", label_newton.LabelNewton),
        patch.object(calibrate, "solver_replicates", calibrate.replicates),
        patch.object(plane_building, "plane_factors", own),
    ):
        yield


def mixed_table() -> dpx.PrivateData:
    """10 numbers, 10 binaries and 17 codes that depend on four hidden numbers: 37 features in 151 columns, with a model."""
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((MIXED_ROWS, 4))
    columns: dict[str, np.ndarray] = {}
    features: list[Any] = []

    def score() -> np.ndarray:
        return hidden @ rng.standard_normal(4) + 1.5 * rng.standard_normal(MIXED_ROWS)

    for i in range(10):
        columns[f"n{i}"] = np.clip(50 + 12 * score(), 0, 100).round(1)
        columns[f"b{i}"] = (score() > rng.uniform(-1, 2)).astype(np.int64)
        features += [dpx.Numeric(f"n{i}", 0, 100), dpx.Binary(f"b{i}")]
    for i, size in enumerate(SIZES):
        cuts = np.sort(rng.uniform(-3, 3, size - 1))
        columns[f"c{i}"] = np.searchsorted(cuts, score())
        features.append(dpx.Categorical(f"c{i}", list(range(size))))
    slopes = {name: rng.standard_normal() / values.std() for name, values in columns.items()}

    def model(rows: Any) -> np.ndarray:
        return 1 / (1 + np.exp(-sum(slope * (rows[name] - columns[name].mean()) for name, slope in slopes.items()) / 3))

    return dpx.PrivateData(columns, dpx.Domain(features), model=model, output="probability")


def refresh_plainly(codes: Any, offsets: Any, pair: Any, single: Any, uniforms: Any) -> None:
    """Gibbs sampling of all records at once, by NumPy."""
    attributes = len(codes)
    energy = single + sum(pair[offsets[a] + codes[a]] for a in range(attributes))
    for turn, uniform in enumerate(uniforms.T):
        a = turn % attributes
        own = energy[:, offsets[a] : offsets[a + 1]]
        steps = np.cumsum(np.exp(own - own.max(axis=1, keepdims=True)), axis=1)
        chosen = (steps[:, :-1] < (uniform * steps[:, -1])[:, None]).sum(axis=1)
        energy += pair[offsets[a] + chosen] - pair[offsets[a] + codes[a]]
        codes[a] = chosen


@contextmanager
def reference_plainly() -> Iterator[None]:
    """Gibbs sampling by NumPy, and every rehearsal raked."""
    from dpexplain.estimation import gibbs, response

    with patch.object(gibbs, "refresh", refresh_plainly), patch.object(response, "LINEAR_FROM", 1 << 30):
        yield


def seconds(data: dpx.PrivateData, *, reference: bool = False) -> float:
    start = process_time()
    dpx.release(data, dpx.Budget(1, 1e-6), reference=reference, noise=SeededNoise(1))
    return process_time() - start


def run() -> list[dict[str, object]]:
    """In a process of its own, because linear algebra reads its number of threads when it is loaded."""
    sizes = {"COLUMNS": COLUMNS, "ROWS": ROWS, "MIXED_ROWS": MIXED_ROWS}
    with patch.dict(os.environ, ONE_THREAD), multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (sizes,))


def measure(sizes: dict[str, Any]) -> list[dict[str, object]]:
    globals().update(sizes)
    found = []
    for columns in COLUMNS:
        data = table(columns)
        ours = min(seconds(data) for _ in range(2))
        with plainly():
            found.append(compare(f"{columns:,} binaries", seconds(data), ours))
    data = mixed_table()
    ours = min(seconds(data, reference=True) for _ in range(2))
    with reference_plainly():
        found.append(compare("37 features in 151 columns, with reference", seconds(data, reference=True), ours))
    return found


def compare(what: str, plain: float, ours: float) -> dict[str, object]:
    return {"release": what, "plain arithmetic, CPU s": plain, "ours, CPU s": ours, "times less": plain / ours}
