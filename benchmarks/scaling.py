"""One query over the same Parquet rows held by 1, 2 and 4 Ray workers: time, CPU time of all workers, bytes that travel, and what limits it."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import dpexplain as dpx
from benchmarks._measure import best_of
from benchmarks.cluster import COLUMNS, ROWS, write
from dpexplain.core.moments import LocalMoments

WORKERS = (1, 2, 4)
REPEAT = 5


def measure(folder: str, workers: int) -> dict[str, float]:
    data = dpx.PrivateData.cluster(folder, dpx.Domain.encoded(COLUMNS), label="y", workers=workers)
    rows, point = data.private_rows, np.random.default_rng(1).random(COLUMNS)

    def ask() -> None:
        rows.local(LocalMoments(point, dpx.weights.Stable()))

    try:
        ask()
        before = worker_seconds(rows)
        seconds = best_of(ask, REPEAT, warm=False)
        return {"workers": workers, "query ms": 1e3 * seconds, "CPU ms": 1e3 * (worker_seconds(rows) - before) / REPEAT}
    finally:
        data.close()


def worker_seconds(rows: Any) -> float:
    """CPU seconds that the workers have used."""
    import ray

    return float(sum(ray.get([worker.__ray_call__.remote(lambda _: time.process_time()) for worker in rows.workers])))


def run() -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory(prefix="dpx") as folder:
        write(Path(folder))
        found = [measure(folder, workers) for workers in WORKERS]
    cores = len(os.sched_getaffinity(0))
    return [
        {
            **one,
            "million rows/s": ROWS / one["query ms"] / 1e3,
            "times faster than one worker": found[0]["query ms"] / one["query ms"],
            "at most, with these cores": min(one["workers"], cores),
            "CPU time, of one worker": one["CPU ms"] / found[0]["CPU ms"],
            "KB to the driver": one["workers"] * 8 * (COLUMNS * COLUMNS + 2 * COLUMNS + 3) / 1e3,
        }
        for one in found
    ]
