"""Spends per second for each ledger, beside the bare database's own commit rate in the same run.

A spend is two durable commits (reserve, settle), so half the bare commit rate is the most that one caller could reach; callers that
wait together share commits, so several can reach more. Two bare rates are measured with the same durability settings and the same driver:

    one short row   a transaction that inserts one row of a few bytes into a table without an index;
    the same rows   a transaction with the ledger's own INSERT and UPDATE: the same texts into the same tables and indexes. This is
                    what the database allows a ledger, which reads, decides, encodes and hashes besides.

Runs as `python benchmarks/ledger.py`.
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from dpexplain.ledger import Account, Ledger, Request, Settled, open_ledger
from dpexplain.ledger.chain import seal
from dpexplain.ledger.numbered import BITS
from dpexplain.ledger.numbered import insertion as numbered_insertion
from dpexplain.ledger.sql import MOVE, OPEN, insertion
from dpexplain.ledger.sqlite import PRAGMAS as SQLITE_PRAGMAS
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


def same_rows_sqlite(path: Path, name: str) -> float:
    """The commit rate of a ledger's own rows, written to its tables by the driver alone."""
    open_ledger(f"sqlite:///{path}", account()).close()
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in SQLITE_PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    try:
        return rate(commit_numbered_rows(connection, name))
    finally:
        connection.close()


def same_rows_postgres(url: str, name: str) -> float:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        spelt = [sql.replace("?", "%s") for sql in (OPEN, insertion(1), MOVE)]
        connection.execute(spelt[0], (0, "0" * 64, name))
        return rate(commit_same_rows(connection, ("BEGIN", *spelt[1:]), name, ()))


def commit_numbered_rows(connection: sqlite3.Connection, name: str) -> Callable[[int], None]:
    """What writes row after row to SQLite's own tables, for a data set of this name that has no account yet."""
    connection.execute(OPEN, (0, "0" * 64, name))
    (first,) = connection.execute("SELECT number << ? FROM dpexplain_accounts WHERE dataset = ?", (BITS, name)).fetchone()
    return commit_same_rows(connection, ("BEGIN IMMEDIATE", numbered_insertion(1), MOVE), name, (first,))


def commit_same_rows(connection: Any, statements: Sequence[str], name: str, start: tuple[int, ...]) -> Callable[[int], None]:
    """What writes row after row, numbered from 0: reservation and answer in turn. Where keys are numbers they begin after `start`."""
    texts, (begin, insert, move) = entry_texts(), statements

    def commit(number: int) -> None:
        asked, is_answer = divmod(number, 2)
        kind, text = texts[is_answer]
        digest = f"{number:064d}"
        connection.execute(begin)
        key = tuple(first + number + 1 for first in start)
        values = (*key, name, number + 1, kind, f"one-{asked}", asked + 1 if is_answer else None, text, digest)
        connection.execute(insert, values)
        connection.execute(move, (number + 1, digest, name))
        connection.execute("COMMIT")

    return commit


def entry_texts() -> list[tuple[str, str]]:
    """Kind and text of a reservation and of its answer."""
    ledger = open_ledger(None, account())
    spend(ledger, "one")
    return [(entry.kind, seal(entry).document) for entry in ledger.entries(after=1)]


def measure(name: str, url: str, bare: Callable[[], float], same_rows: Callable[[str], float]) -> dict[str, Any]:
    """Bare and ledger take turns, so that a busy machine slows both; medians over the rounds."""
    names = [f"round{number}" for number in range(ROUNDS)]
    spend_rate(url, "first")  # the ledger's tables exist from here on
    rounds = [(bare(), same_rows(one), spend_rate(url, one), together_rate(url, one), crowd_rate(url, one)) for one in names]
    commits, rows, one, together, crowd = (median(column) for column in zip(*rounds, strict=True))
    return {
        "ledger": name,
        "spends/s": one,
        f"{THREADS} threads": together,
        f"{PROCESSES} processes": crowd,
        "short rows, commits/s": commits,
        "the same rows, commits/s": rows,
        "of the same rows": median(2 * found[2] / found[1] for found in rounds),
        "of the same rows, threads": median(2 * found[3] / found[1] for found in rounds),
        "of short rows": median(2 * found[2] / found[0] for found in rounds),
        "of short rows, threads": median(2 * found[3] / found[0] for found in rounds),
    }


def run() -> list[dict[str, Any]]:
    """One row for each backend; PostgreSQL is left out, with the reason, where no server can be started."""
    memory = {"ledger": "memory", "spends/s": spend_rate(None)}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        sqlite = measure(
            "sqlite",
            f"sqlite:///{path}/bench.ledger",
            lambda: bare_sqlite(path / "bare.db"),
            lambda name: same_rows_sqlite(path / "same-rows.ledger", name),
        )
    return [memory, sqlite, run_postgres()]


def run_postgres() -> dict[str, Any]:
    try:
        server = start_server()
    except Exception as error:
        return {"ledger": f"postgres: not measured ({type(error).__name__}: {error})"}
    try:
        url = server.get_uri()
        return measure("postgres", url, lambda: bare_postgres(url), lambda name: same_rows_postgres(url, name))
    finally:
        with suppress(Exception):
            server.cleanup()


def start_server() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs, about XDG_RUNTIME_DIR
        import pgserver

        return pgserver.get_server(tempfile.mkdtemp(prefix="dpxpg"), cleanup_mode="delete")


if __name__ == "__main__":
    for line in run():
        print(line)
