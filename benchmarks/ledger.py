"""Spends per second for each ledger, beside the bare database's own commit rate in the same run.

A spend is two durable commits (reserve, settle), so half the bare commit rate is the most that one caller could reach; callers that
wait together share commits, so several can reach more. Bare means: one transaction with one row inserted, the same durability settings
and the same driver. Runs as `python benchmarks/ledger.py`.
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from dpexplain.ledger import Account, Ledger, Request, Settled, open_ledger
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.events import GaussianEvent
from dpexplain.privacy.relation import Neighbours

SECONDS = 1.0
ROUNDS = 3
PROCESSES, THREADS = 4, 8
ANSWER = {"values": [index / 7 for index in range(50)], "error": [0.01] * 50}
EVENT = GaussianEvent("gradient", sensitivity=1e-6, sigma=1.0, count=299)


def account() -> Account:
    return Account("bench", "domain", Budget(1.0, 1e-6), Neighbours())


def spend(ledger: Ledger, name: str) -> None:
    reserved = ledger.reserve(Request(name, {"point": [0.5] * 50}, (EVENT,)))
    if not isinstance(reserved, Settled):
        ledger.settle(reserved, (EVENT,), ANSWER)


def rate(work: Callable[[int], object], seconds: float = SECONDS) -> float:
    """How often `work` can be done in a second."""
    start, number = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        work(number)
        number += 1
    return number / (time.perf_counter() - start)


def spend_rate(url: str | None, name: str = "one") -> float:
    ledger = open_ledger(url, account(), **({"timeout": 60.0} if url else {}))
    try:
        return rate(lambda number: spend(ledger, f"{name}-{number}"))
    finally:
        ledger.close()


def crowd_rate(url: str, name: str) -> float:
    with multiprocessing.get_context("forkserver").Pool(PROCESSES) as pool:
        return sum(pool.starmap(spend_rate, [(url, f"{name}-{number}") for number in range(PROCESSES)]))


def together_rate(url: str, name: str) -> float:
    """Threads of one process on one ledger, as in a service."""
    ledger = open_ledger(url, account(), timeout=60.0)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            work = [pool.submit(rate, partial(spend_numbered, ledger, f"{name}-t{number}")) for number in range(THREADS)]
            return sum(one.result() for one in work)
    finally:
        ledger.close()


def spend_numbered(ledger: Ledger, name: str, number: int) -> None:
    spend(ledger, f"{name}-{number}")


def bare_sqlite(path: Path) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("DROP TABLE IF EXISTS bare")
    connection.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, text TEXT)")
    try:
        return rate(lambda number: bare_commit(connection, "BEGIN IMMEDIATE", "INSERT INTO bare VALUES (?, 'x')", number))
    finally:
        connection.close()


def bare_postgres(url: str) -> float:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bare")
        connection.execute("CREATE TABLE bare (number BIGINT PRIMARY KEY, text TEXT)")
        return rate(lambda number: bare_commit(connection, "BEGIN", "INSERT INTO bare VALUES (%s, 'x')", number))


def bare_commit(connection: Any, begin: str, insert: str, number: int) -> None:
    connection.execute(begin)
    connection.execute(insert, (number,))
    connection.execute("COMMIT")


def measure(name: str, url: str, bare: Callable[[], float]) -> dict[str, Any]:
    """Bare and ledger take turns, so that a busy machine slows both; medians over the rounds."""
    names = [f"round{number}" for number in range(ROUNDS)]
    rounds = [(bare(), spend_rate(url, one), together_rate(url, one), crowd_rate(url, one)) for one in names]
    commits, one, together, crowd = (median(column) for column in zip(*rounds, strict=True))
    return {
        "ledger": name,
        "spends_per_second": one,
        "together": together,
        "crowd": crowd,
        "bare_commits": commits,
        "share": 2 * one / commits,
        "share_together": 2 * together / commits,
    }


def run() -> list[dict[str, Any]]:
    """One row for each backend; PostgreSQL is left out, with the reason, where no server can be started."""
    memory = {"ledger": "memory", "spends_per_second": spend_rate(None)}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        sqlite = measure("sqlite", f"sqlite:///{path}/bench.ledger", lambda: bare_sqlite(path / "bare.db"))
    return [memory, sqlite, run_postgres()]


def run_postgres() -> dict[str, Any]:
    try:
        server = start_server()
    except Exception as error:
        return {"ledger": f"postgres: not measured ({type(error).__name__}: {error})"}
    try:
        return measure("postgres", server.get_uri(), lambda: bare_postgres(server.get_uri()))
    finally:
        with suppress(Exception):
            server.cleanup()


def start_server() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs, about XDG_RUNTIME_DIR
        import pgserver

        return pgserver.get_server(tempfile.mkdtemp(prefix="dpxpg"), cleanup_mode="delete")


def table(rows: list[dict[str, Any]]) -> Table:
    shown = Table(
        "ledger",
        "spends/s",
        f"{THREADS} threads",
        f"{PROCESSES} processes",
        "bare commits/s",
        "share, one caller",
        "share, threads",
    )
    for row in rows:
        numbers = [row.get(key) for key in ("spends_per_second", "together", "crowd", "bare_commits")]
        shares = [f"{row[key]:.0%}" if key in row else "" for key in ("share", "share_together")]
        shown.add_row(row["ledger"], *("" if number is None else f"{number:,.0f}" for number in numbers), *shares)
    return shown


if __name__ == "__main__":
    Console().print(table(run()))
