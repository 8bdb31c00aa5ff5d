"""What the ledger tests share: places to keep a ledger, things to pay for, and children that can be killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpexplain.ledger import Account, MemoryLedger, PostgresLedger, Request, Settled, SqliteLedger
from dpexplain.ledger.account_page import Posting, required_last
from dpexplain.ledger.book import held_by
from dpexplain.ledger.port import Settlement
from dpexplain.ledger.sqlite import SqliteStore
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.events import GaussianEvent
from dpexplain.privacy.relation import Neighbours

children = multiprocessing.get_context("forkserver")
children.set_forkserver_preload(["dpexplain.ledger", "psycopg", "pytest"])


@cache
def account(dataset="income", *, epsilon=1.0, delta=1e-6, domain="d0", neighbours=None) -> Account:
    return Account(dataset, domain, Budget(epsilon, delta), neighbours or Neighbours())


def event(mu: float = 0.01, what: str = "gradient") -> GaussianEvent:
    return GaussianEvent(what, sensitivity=mu, sigma=1.0)


def affordable(who: Account, what: GaussianEvent) -> int:
    return who.budget.quanta // what.quanta


def ask(request_id: str, *events: GaussianEvent, question: Any = "why?") -> Request:
    return Request(request_id, {"question": question, "point": [0.25, 1.0]}, events or (event(),))


def spend(ledger, request_id: str, *events: GaussianEvent, answer: Any = None) -> Settled:
    request = ask(request_id, *events)
    reserved = ledger.reserve(request)
    return reserved if isinstance(reserved, Settled) else ledger.settle(reserved, request.events, answer or {"values": [0.5]})


def append_refund(ledger, request_id: str) -> None:
    """Append the entry with which older versions gave a reservation back. It is read, and no longer written by the library."""

    def append(page):
        held = held_by(page.newest(request_id))
        if held is not None:
            page.append(Posting("refund", request_id, held, required_last(page).total - held, ""))

    ledger._write(append)


def refund_request(ledger, request_id: str):
    """A reservation that was given back."""
    reserved = ledger.reserve(ask(request_id))
    append_refund(ledger, request_id)
    return reserved


@dataclass(frozen=True)
class Place:
    """Somewhere a ledger can be opened, again and again."""

    kind: str
    where: str

    @property
    def url(self) -> str:
        return f"sqlite:///{self.where}" if self.kind == "sqlite" else self.where

    def open(self, who: Account | None = None, **options: Any):
        return LEDGERS[self.kind](self.where, who or account(), **options)

    def execute(self, sql: str, *values: Any) -> list[Any]:
        """Behind the ledger's back."""
        return {"sqlite": sqlite_execute, "postgres": postgres_execute}[self.kind](self.where, sql, values)


def sqlite_execute(where: str, sql: str, values: tuple[Any, ...]) -> list[Any]:
    import sqlite3

    connection = sqlite3.connect(where, isolation_level=None)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def postgres_execute(where: str, sql: str, values: tuple[Any, ...]) -> list[Any]:
    import psycopg

    with psycopg.connect(where, autocommit=True) as connection:
        cursor = connection.execute(sql.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []


def in_schema(server_url: str, schema: str) -> str:
    """The same server, in a schema of one's own."""
    postgres_execute(server_url, f"CREATE SCHEMA {schema}", ())
    return f"{server_url}&options={quote(f'-csearch_path={schema}')}"


class Mortal:
    """Mixed into a ledger class: dies by SIGKILL at a named step."""

    dies_at = ""

    def _step(self, name: str) -> None:
        if name == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalSqlite(Mortal, SqliteLedger):
    pass


class MortalPostgres(Mortal, PostgresLedger):
    pass


END = "."  # of a published answer
LEDGERS = {"sqlite": SqliteLedger, "postgres": PostgresLedger, "memory": lambda where, who, **_: MemoryLedger(who)}
MORTALS = {"sqlite": MortalSqlite, "postgres": MortalPostgres}


def publish(log: str, *words: str) -> None:
    """An answer leaves the process: from here on it is known to the world."""
    with open(log, "a", buffering=1) as out:
        out.write("\n" + " ".join(words) + f" {END}\n")


def published_answers(log: str) -> list[list[str]]:
    """Those that left as a whole: a process may be killed between two parts of one write, where a page of the file ends."""
    with suppress(FileNotFoundError):
        lines = [line.split() for line in Path(log).read_text().splitlines()]
        return [words[:-1] for words in lines if words and words[-1] == END]
    return []


def run_once(kind: str, where: str, request_id: str, value: str, dies_at: str, log: str) -> None:
    """One explanation by a process that dies at the named step, as an explainer would run it."""
    ledger = MORTALS[kind](where, account())
    ledger.dies_at = dies_at
    request = ask(request_id)
    reserved = ledger.reserve(request)
    if not isinstance(reserved, Settled):
        ledger._step("noise drawn")
        reserved = ledger.settle(reserved, request.events, {"value": value})
    ledger._step("before return")
    publish(log, request_id, reserved.answer["value"])
    ledger._step("after return")
    ledger.close()


def record_once(kind: str, where: str, value: str, dies_at: str) -> None:
    """Two free answers by a process that dies at the named step."""
    ledger = MORTALS[kind](where, account())
    ledger.dies_at = dies_at
    ids = ("free-1", "free-2")
    ledger.record_many([(Request(one, {"question": "why?"}, ()), Settlement(one, (), {"value": value})) for one in ids])


def small_table():
    """Private rows that are quickly released, the same in every process."""
    import numpy as np

    import dpexplain as dpx

    rows = np.random.default_rng(0).random((300, 3))
    return dpx.PrivateData(rows, dpx.Domain.encoded(3), labels=np.where(rows[:, 0] > 0.5, 1.0, -1.0), name="income")


def release_once(kind: str, where: str, request_id: str, dies_at: str) -> None:
    """A release by a process that dies at the named step."""
    import dpexplain as dpx
    from dpexplain.estimation import calibrate

    calibrate.replicates = lambda _: 2  # how good error bars are is tested elsewhere

    data, budget = small_table(), Budget(1.0, 1e-6)
    ledger = MORTALS[kind](where, data.account(budget))
    ledger.dies_at = dies_at
    dpx.release(data, budget, ledger=ledger, request_id=request_id)


def run_forever(kind: str, where: str, name: str, log: str) -> None:
    """Spend until killed."""
    ledger = LEDGERS[kind](where, account(epsilon=8.0))
    for number in range(100_000):
        request = ask(f"{name}-{number}")
        reserved = ledger.reserve(request)
        done = ledger.settle(reserved, request.events, {"value": f"{name}-{number}"})
        publish(log, done.request_id, done.answer["value"])


def run_until_exhausted(kind: str, where: str, name: str, mu: float, log: str) -> None:
    """Spend until refused."""
    from dpexplain.errors import BudgetExhausted

    ledger = LEDGERS[kind](where, account(), timeout=60.0)
    try:
        for number in range(100_000):
            done = spend(ledger, f"{name}-{number}", event(mu), answer={"value": name})
            publish(log, done.request_id, name)
    except BudgetExhausted:
        publish(log, "refused", name)
    ledger.close()


def run_same_request(kind: str, where: str, name: str, log: str) -> None:
    """All children answer the same questions, each with noise of its own."""
    ledger = LEDGERS[kind](where, account(), timeout=60.0)
    for number in range(10):
        done = spend(ledger, f"shared-{number}", answer={"value": name})
        publish(log, done.request_id, done.answer["value"])
    ledger.close()


def run_open(kind: str, where: str, name: str, start: Any, log: str) -> None:
    """All children open a ledger that does not exist yet, at the same moment."""
    start.wait(60)
    ledger = LEDGERS[kind](where, account(), timeout=60.0)
    spend(ledger, name)
    publish(log, name)
    ledger.close()


class SmallStore(SqliteStore):
    """A disk that fills up after so many pages."""

    pages = 0

    def _connect(self):
        opened = super()._connect()
        if self.pages:
            opened.connection.execute(f"PRAGMA max_page_count = {self.pages}")
        return opened
