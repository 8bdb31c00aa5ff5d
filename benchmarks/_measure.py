"""What the benchmarks share: the clock, and made-up tables."""

from __future__ import annotations

from time import perf_counter, sleep

import numpy as np

PAUSE = 0.2  # seconds: BLAS threads go on spinning for a while after a product, which would slow down whatever comes next


def best_of(work, repeat=5, warm=True):
    """Seconds of the fastest of a few runs, after one to warm up."""
    if warm:
        work()
    times = []
    for _ in range(repeat):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def best_of_each(works, repeat=5):
    """The same for several things that take turns, so that a slower or faster minute meets all of them."""

    def run_once(work, warm):
        sleep(PAUSE)
        return best_of(work, 1, warm)

    rounds = [[run_once(work, warm=turn == 0) for work in works] for turn in range(repeat)]
    return [min(times) for times in zip(*rounds, strict=True)]


def made_up(rows, columns, seed=0):
    """float32 rows in [0, 1] and ±1 labels."""
    X = np.random.default_rng(seed).random((rows, columns), dtype=np.float32)
    return X, np.sign(X[:, 0] - X[:, 1] * X[:, 2] - 0.2).astype(np.float64)


def count_label(number):
    """A number of rows as a label: 1.5 M, or 150,000."""
    return f"{number / 1e6:g} M" if number >= 1_000_000 else f"{number:,}"
