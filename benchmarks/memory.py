"""Peak memory of a query and of a release, as the operating system counts it, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import threading
from time import perf_counter, sleep

import dpexplain as dpx
from benchmarks._measure import count_label, made_up

ROWS, COLUMNS = 1_500_000, 50


def resident():
    """MiB of this process that are in memory now; the peak where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 2**20
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def highest(work):
    """(seconds, MiB above the start at the highest moment), looked at every millisecond."""
    before, seen, done = resident(), [], threading.Event()

    def look():
        while not done.is_set():
            seen.append(resident())
            sleep(0.001)

    watcher = threading.Thread(target=look)
    watcher.start()
    start = perf_counter()
    work()
    seconds = perf_counter() - start
    done.set()
    watcher.join()
    return seconds, max([*seen, resident()]) - before


def data_of(rows):
    X, y = made_up(rows, COLUMNS)
    return dpx.PrivateData(X, dpx.Domain.encoded(COLUMNS), labels=y)


def query(data):
    dpx.Explainer(data, dpx.Budget(10.0, 1e-6), dpx.Basic(0.1, 1e-6)).explain([0.5] * COLUMNS)


def release(data):
    dpx.release(data, dpx.Budget(1.0, 1e-6))


def measure(work):
    """(seconds, MiB) of `work` on the whole table, after a small one: compiling is not what is measured."""
    work(data_of(2_000))
    data = data_of(ROWS)
    return highest(lambda: work(data))


def run():
    table, size = f"{count_label(ROWS)} x {COLUMNS}", ROWS * COLUMNS * 4 / 2**20
    rows = [{table: "the rows themselves, float32", "MiB": size}]
    for what, work in (("a query", query), ("a release", release)):
        with multiprocessing.get_context("spawn").Pool(1) as process:
            seconds, most = process.apply(measure, (work,))
        rows.append({table: f"{what}, above the rows", "seconds": seconds, "MiB": most})
    return rows
