"""Searching a long history for the nearest computed answer, beside a scan of all of it."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from dpexplain.mechanisms.history import History, ReleasedAnswer


def seconds(work, repeat=50):
    work()
    start = perf_counter()
    for _ in range(repeat):
        work()
    return (perf_counter() - start) / repeat


def run():
    rng, rows = np.random.default_rng(0), []
    for entries in (1_000, 10_000, 100_000):
        points = rng.random((entries, 10))
        history = History.of(ReleasedAnswer(point, point[:1]) for point in points)
        ours = seconds(lambda history=history: history.nearest(rng.random(10)))
        scan = seconds(lambda points=points: np.square(points - rng.random(10)).sum(axis=1).argmin())
        rows.append({"entries": entries, "nearest, ms": 1e3 * ours, "scan, ms": 1e3 * scan, "ratio": scan / ours})
    return rows
