"""Each caller waits for other writers as long as its own time lasts, from when it asked, and results are stored with patience."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from math import inf
from types import SimpleNamespace

import pytest
from anyio import CapacityLimiter

from dpexplain.errors import LedgerBusy
from dpexplain.ledger import SqliteLedger
from dpexplain.ledger.patience import LEAST, deadline_after, waiting_until
from dpexplain.service.app import Service
from dpexplain.service.batching import PATIENCE, Batcher
from dpexplain.service.config import Settings
from ledger_support import account, ask, event, spend

LONG = 60.0


@pytest.fixture
def clock(monkeypatch):
    """A clock that only sleeping moves, in what waits for SQLite's lock."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


@pytest.fixture
def locked_ledger(tmp_path):
    """A ledger with a reservation whose write lock somebody else holds."""
    ledger = SqliteLedger(tmp_path / "income.ledger", account(), timeout=LONG)
    spend(ledger, "first")
    reserved = ledger.reserve(ask("reserved"))
    other = sqlite3.connect(tmp_path / "income.ledger", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield ledger, reserved
    other.close()
    ledger.close()


def test_a_transaction_waits_for_its_timeout_or_its_callers_time(clock):
    assert deadline_after(LONG) == clock[0] + LONG
    with waiting_until(clock[0] + 2):
        assert deadline_after(LONG) == clock[0] + 2
        assert deadline_after(1) == clock[0] + 1
        with waiting_until(inf):
            assert deadline_after(LONG) == clock[0] + LONG
    with waiting_until(clock[0] - 1):
        assert deadline_after(LONG) == clock[0] + LEAST  # a commit of somebody else refuses nobody
    assert deadline_after(LONG) == clock[0] + LONG


def test_who_has_waited_before_waits_for_the_rest_of_their_time(locked_ledger, clock):
    ledger, _ = locked_ledger
    with waiting_until(clock[0] + 3):
        clock[0] += 2
        asked = clock[0]
        with pytest.raises(LedgerBusy):
            ledger.reserve(ask("late"))
    assert 1 <= clock[0] - asked < 1.1


def test_what_was_drawn_is_stored_with_all_patience(locked_ledger, clock):
    """Asking again would cost its caller another wait, so time that has passed before does not count."""
    ledger, reserved = locked_ledger
    asked = clock[0]
    with waiting_until(clock[0] + 1), pytest.raises(LedgerBusy):
        ledger.settle(reserved, (event(),), {"value": 1})
    assert LONG <= clock[0] - asked < LONG + 0.1


def test_a_batch_waits_until_the_first_of_its_callers_has_no_time_left():
    deadlines = []

    def answer(questions):
        deadlines.append(deadline_after(inf))
        return questions

    async def ask_one():
        batcher = Batcher(answer, most=8, patience=LONG)
        before = time.monotonic()
        assert await batcher.ask("one") == "one"
        after = time.monotonic()
        await asyncio.to_thread(batcher.close)
        return before, after

    before, after = asyncio.run(ask_one())
    assert before + LONG <= deadlines[0] <= after + LONG


def test_many_records_at_once_wait_from_their_arrival_and_not_from_when_a_thread_is_free():
    deadlines = []

    def answer(*_):
        deadlines.append(deadline_after(inf))
        raise LedgerBusy("held")

    async def ask_all():
        service = Service(SimpleNamespace(explain_many=answer), Settings(name="income", open=True))
        service.batch_threads = CapacityLimiter(1)
        request = SimpleNamespace(state=SimpleNamespace(log={}))
        await service.batch_threads.acquire()
        before = time.monotonic()
        asked = asyncio.ensure_future(service.explain_many(request, [{}], "id"))
        await asyncio.sleep(0.2)
        later = time.monotonic()
        service.batch_threads.release()
        with pytest.raises(LedgerBusy):
            await asked
        return before, later

    before, later = asyncio.run(ask_all())
    assert before + PATIENCE <= deadlines[0] < later + PATIENCE


def test_a_ledger_that_is_busy_at_once_is_not_asked_without_pause():
    batches = []

    def answer(questions):
        batches.append(questions)
        raise LedgerBusy("held")

    async def ask_one():
        batcher = Batcher(answer, most=8, patience=LONG)
        with pytest.raises(LedgerBusy):
            await batcher.ask("one")
        await asyncio.to_thread(batcher.close)

    asyncio.run(ask_one())
    assert batches == [["one"]]


def test_callers_with_time_left_are_asked_about_again_when_a_batch_was_kept_waiting():
    begun, go, batches = threading.Event(), threading.Event(), []

    def answer(questions):
        batches.append(list(questions))
        begun.set()
        if len(batches) == 1:
            go.wait(LONG)
            return questions
        if len(batches) == 2:
            raise LedgerBusy("held")
        return questions

    async def crowd():
        batcher = Batcher(answer, most=8, patience=LONG)
        asked = [asyncio.ensure_future(batcher.ask("first"))]
        await asyncio.to_thread(begun.wait, LONG)
        asked += [asyncio.ensure_future(batcher.ask(name)) for name in ("expired", "patient", "also patient")]
        await asyncio.sleep(0)
        batcher._waiting[0].deadline = time.monotonic() - 1
        go.set()
        found = await asyncio.gather(*asked, return_exceptions=True)
        await asyncio.to_thread(batcher.close)
        return found

    first, expired, *patient = asyncio.run(crowd())
    assert first == "first"
    assert isinstance(expired, LedgerBusy)
    assert patient == ["patient", "also patient"]
    assert batches[1:] == [["expired", "patient", "also patient"], ["patient", "also patient"]]
