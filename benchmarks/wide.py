"""Releases of many columns: CPU time of the estimate with the shared, reused and blocked arithmetic, and without it, in one run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from unittest.mock import patch

import numpy as np

import dpexplain as dpx
from dpexplain.noise.seeded import SeededNoise

COLUMNS = (200, 400)
ROWS = 20_000


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


def seconds(data: dpx.PrivateData) -> float:
    start = process_time()
    dpx.release(data, dpx.Budget(1, 1e-6), noise=SeededNoise(1))
    return process_time() - start


def run() -> list[dict[str, object]]:
    found = []
    for columns in COLUMNS:
        data = table(columns)
        now = min(seconds(data) for _ in range(2))
        with plainly():
            before = seconds(data)
        found.append({"columns": columns, "plain arithmetic, CPU s": before, "now, CPU s": now, "times less": before / now})
    return found
