"""Spends per second for each ledger, beside the bare database's own commit rate in the same run.

A spend is two durable commits (reserve, settle), so half the bare commit rate is the most a ledger could reach. Bare means: one
transaction with one row inserted, the same durability settings and the same driver. Runs as `python benchmarks/ledger.py`.
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from dpexplain.ledger import Account, Ledger, Request, Settled, open_ledger
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.events import GaussianEvent
from dpexplain.privacy.relation import Neighbours

SECONDS = 2.0
PROCESSES = 4
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


def crowd_rate(url: str) -> float:
    with multiprocessing.get_context("forkserver").Pool(PROCESSES) as pool:
        return sum(pool.starmap(spend_rate, [(url, f"p{number}") for number in range(PROCESSES)]))


def bare_sqlite(path: Path) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, text TEXT)")
    try:
        return rate(lambda number: bare_commit(connection, "BEGIN IMMEDIATE", "INSERT INTO bare VALUES (?, 'x')", number))
    finally:
        connection.close()


def bare_postgres(url: str) -> float:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE bare (number BIGINT PRIMARY KEY, text TEXT)")
        return rate(lambda number: bare_commit(connection, "BEGIN", "INSERT INTO bare VALUES (%s, 'x')", number))


def bare_commit(connection: Any, begin: str, insert: str, number: int) -> None:
    connection.execute(begin)
    connection.execute(insert, (number,))
    connection.execute("COMMIT")


def measure(name: str, url: str | None, bare: float | None) -> dict[str, Any]:
    crowd = crowd_rate(url) if url else None
    one = spend_rate(url)
    share = None if bare is None else 2 * one / bare
    return {"ledger": name, "spends_per_second": one, f"with_{PROCESSES}_processes": crowd, "bare_commits": bare, "share": share}


def run() -> list[dict[str, Any]]:
    """One row for each backend; PostgreSQL is left out, with the reason, where no server can be started."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        rows = [measure("memory", None, None), measure("sqlite", f"sqlite:///{path}/bench.ledger", bare_sqlite(path / "bare.db"))]
    return [*rows, run_postgres()]


def run_postgres() -> dict[str, Any]:
    try:
        server = start_server()
    except Exception as error:
        return {"ledger": f"postgres: not measured ({type(error).__name__}: {error})"}
    try:
        return measure("postgres", server.get_uri(), bare_postgres(server.get_uri()))
    finally:
        with suppress(Exception):
            server.cleanup()


def start_server() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs, about XDG_RUNTIME_DIR
        import pgserver

        return pgserver.get_server(tempfile.mkdtemp(prefix="dpxpg"), cleanup_mode="delete")


def table(rows: list[dict[str, Any]]) -> Table:
    shown = Table("ledger", "spends/s", f"spends/s, {PROCESSES} processes", "bare commits/s", "share of the possible")
    for row in rows:
        numbers = (row.get("spends_per_second"), row.get(f"with_{PROCESSES}_processes"), row.get("bare_commits"))
        share = row.get("share")
        shown.add_row(
            row["ledger"], *("" if n is None else f"{n:,.0f}" for n in numbers), "" if share is None else f"{share:.0%}"
        )
    return shown


if __name__ == "__main__":
    Console().print(table(run()))
