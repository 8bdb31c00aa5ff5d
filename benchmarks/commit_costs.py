"""What one durable commit on SQLite takes: time, processor time, and bytes that are handed to the disk, for a ledger and for less.

    one short row   a transaction that inserts one row of a few bytes into a table without an index;
    the same rows   a transaction with a ledger's own INSERT and UPDATE, by the driver alone (`benchmarks/ledger.py`);
    a ledger        reserve and settle, one commit each.

Logs are grown before anything is measured, because a commit takes longer while its log grows. The three take turns; medians over the rounds. On a file in
memory a commit waits for nothing: what is left there is processor time alone.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.ledger import account, bare_commit, commit_numbered_rows, spend
from dpexplain.ledger import open_ledger
from dpexplain.ledger.sqlite import PRAGMAS

COMMITS, ROUNDS, GROWN = 400, 7, 1200
MEMORY = Path("/dev/shm")
Costs = dict[str, float]


@contextmanager
def commits_of(folder: Path) -> Iterator[dict[str, Callable[[int], object]]]:
    """What makes one commit, or for a ledger two, by name."""
    short = sqlite3.connect(folder / "short.db", isolation_level=None)
    for pragma in ("journal_mode = WAL", *PRAGMAS):
        short.execute(f"PRAGMA {pragma}")
    short.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, text TEXT)")
    open_ledger(f"sqlite:///{folder}/rows.ledger", account()).close()
    rows = sqlite3.connect(folder / "rows.ledger", isolation_level=None)
    for pragma in PRAGMAS:
        rows.execute(f"PRAGMA {pragma}")
    ledger = open_ledger(f"sqlite:///{folder}/spends.ledger", account())
    try:
        yield {
            "one short row": lambda number: bare_commit(short, "BEGIN IMMEDIATE", "INSERT INTO bare VALUES (?, 'x')", number),
            "the same rows": commit_numbered_rows(rows, "other"),
            "a ledger": lambda number: spend(ledger, f"spend-{number}"),
        }
    finally:
        short.close()
        rows.close()
        ledger.close()


def written() -> tuple[int, int]:
    """(bytes, calls) of this process so far, where the system counts them."""
    try:
        counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    except OSError:
        return 0, 0
    return int(counts["wchar"]), int(counts["syscw"])


def cost_of(work: Callable[[int], object], first: int, each: int) -> Costs:
    """Means over some commits; `each` is how many of them one call makes."""
    before, wall, cpu = written(), time.perf_counter(), time.process_time()
    for number in range(first, first + COMMITS // each):
        work(number)
    wall, cpu, after = time.perf_counter() - wall, time.process_time() - cpu, written()
    return {
        "µs": wall / COMMITS * 1e6,
        "CPU µs": cpu / COMMITS * 1e6,
        "KB written": (after[0] - before[0]) / COMMITS / 1024,
        "write calls": (after[1] - before[1]) / COMMITS,
    }


def measure(folder: Path) -> dict[str, Costs]:
    with commits_of(folder) as works:
        each = {name: 2 if name == "a ledger" else 1 for name in works}
        for name, work in works.items():
            for number in range(GROWN // each[name]):
                work(number)
        rounds = [
            {name: cost_of(work, (GROWN + i * COMMITS) // each[name], each[name]) for name, work in works.items()}
            for i in range(ROUNDS)
        ]
    return {name: {what: median(one[name][what] for one in rounds) for what in rounds[0][name]} for name in rounds[0]}


def run() -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory() as on_disk:
        found = measure(Path(on_disk))
    in_memory: dict[str, Costs] = {}
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            in_memory = measure(Path(folder))
    return [
        {"a commit of": name, **costs, "in memory, CPU µs": in_memory.get(name, {}).get("CPU µs")}
        for name, costs in found.items()
    ]


if __name__ == "__main__":
    for line in run():
        print(line)
