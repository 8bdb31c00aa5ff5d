"""SQLite: a caller that is alone writes each entry by one statement, and only where the ledger is as it was when it decided."""

from __future__ import annotations

import sqlite3

import pytest

from dpexplain.errors import BudgetExhausted, LedgerBusy, LedgerCorrupt, RequestIdInUse
from dpexplain.ledger import Settled, SqliteLedger, verify
from dpexplain.ledger.account_page import write_entry
from dpexplain.ledger.sqlite import SqliteStore
from dpexplain.ledger.write_queue import WriteQueue
from ledger_support import account, affordable, ask, event, spend


@pytest.fixture
def path(tmp_path):
    return tmp_path / "income.ledger"


@pytest.fixture
def two(path):
    ledgers = SqliteLedger(path, account()), SqliteLedger(path, account())
    for number, ledger in enumerate(ledgers):
        spend(ledger, f"first of {number}")
    yield ledgers
    for ledger in ledgers:
        ledger.close()


@pytest.fixture
def attempts(monkeypatch):
    """Whether each attempt to write by one statement succeeded."""
    append, found = SqliteStore.append_after, []

    def count(store, *values):
        found.append(append(store, *values))
        return found[-1]

    monkeypatch.setattr(SqliteStore, "append_after", count)
    return found


def write_before(monkeypatch, work):
    """Let another process do `work` just before the next statement of this one."""
    append = SqliteStore.append_after

    def interfere(store, *values):
        monkeypatch.setattr(SqliteStore, "append_after", append)
        work()
        return append(store, *values)

    monkeypatch.setattr(SqliteStore, "append_after", interfere)


def test_one_caller_writes_by_single_statements(two, monkeypatch):
    mine, _ = two
    spend(mine, "reads what the other wrote")

    def refuse(*_):
        raise AssertionError("a transaction was begun")

    monkeypatch.setattr("dpexplain.ledger.sqlite.take_turns", refuse)
    for number in range(5):
        assert spend(mine, f"r{number}").new
    monkeypatch.undo()
    found = verify(mine)
    assert (found.answers, found.pending) == (8, 0)
    assert mine.state().spent_quanta == 8 * event().quanta


@pytest.mark.parametrize("step", ["reserve", "settle"])
def test_who_decided_before_another_wrote_decides_again(two, monkeypatch, attempts, step):
    mine, other = two
    spend(mine, "reads what the other wrote")
    request = ask("mine")
    held = mine.reserve(request) if step == "settle" else None
    attempts.clear()
    write_before(monkeypatch, lambda: spend(other, "other"))
    if held is None:
        mine.reserve(request)
    else:
        assert mine.settle(held, request.events, {"value": 1}).new
    assert attempts[-1] is False
    found = verify(mine)
    assert (found.answers, found.pending) == ((4, 1) if step == "reserve" else (5, 0))


def test_the_last_of_the_budget_is_spent_once(path, monkeypatch):
    price = event(0.2)
    mine, other = SqliteLedger(path, account()), SqliteLedger(path, account())
    for number in range(affordable(account(), price) - 1):
        spend(mine, f"r{number}", price)
    write_before(monkeypatch, lambda: other.reserve(ask("last", price)))
    with pytest.raises(BudgetExhausted):
        mine.reserve(ask("one too many", price))
    assert verify(mine).pending == 1
    mine.close()
    other.close()


def test_the_same_request_is_paid_once_and_has_one_answer(two, monkeypatch):
    mine, other = two
    spend(mine, "reads what the other wrote")
    write_before(monkeypatch, lambda: spend(other, "same", answer={"value": "other"}))
    found = mine.reserve(ask("same"))
    assert isinstance(found, Settled)
    assert found.answer == {"value": "other"}
    assert mine.state().spent_quanta == 4 * event().quanta


def test_an_answer_that_another_process_settled_first_stands(two, monkeypatch):
    mine, other = two
    spend(mine, "reads what the other wrote")
    request = ask("same")
    held = mine.reserve(request)
    theirs = other.reserve(request)
    write_before(monkeypatch, lambda: other.settle(theirs, request.events, {"value": "other"}))
    found = mine.settle(held, request.events, {"value": "mine"})
    assert (found.answer, found.new) == ({"value": "other"}, False)
    again = mine.settle(held, request.events, {"value": "mine"})
    assert (again.answer, again.new) == ({"value": "other"}, False)
    assert verify(mine).answers == 4


def test_an_id_is_not_used_for_two_questions(two):
    mine, _ = two
    mine.reserve(ask("same", question="why?"))
    assert mine.reserve(ask("same", question="why?")).quanta == event().quanta
    with pytest.raises(RequestIdInUse):
        mine.reserve(ask("same", question="why not?"))


def test_an_answer_that_costs_less_gives_the_rest_back(two, attempts):
    mine, _ = two
    spend(mine, "reads what the other wrote")
    attempts.clear()
    before = mine.state().spent_quanta
    held = mine.reserve(ask("cheap", event(0.02)))
    mine.settle(held, (event(0.01),), {"value": 1})
    assert attempts == [True, True]
    assert mine.state().spent_quanta - before == event(0.01).quanta


def test_accounts_of_one_file_do_not_meet(path):
    ledgers = [SqliteLedger(path, account(name)) for name in ("income", "loans")]
    for number in range(3):
        for ledger in ledgers:
            assert spend(ledger, f"same {number}").new
    assert [verify(ledger).answers for ledger in ledgers] == [3, 3]
    for ledger in ledgers:
        ledger.close()


def test_a_mark_that_was_changed_is_noticed(two, path):
    mine, _ = two
    spend(mine, "reads what the other wrote")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE dpexplain_accounts SET hash = ?", ("0" * 64,))
    connection.close()
    with pytest.raises(LedgerCorrupt):
        mine.reserve(ask("a"))


def test_a_held_write_lock_is_waited_for_and_reported(path):
    mine = SqliteLedger(path, account(), timeout=0.2)
    spend(mine, "first")
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerBusy):
        mine.reserve(ask("late"))
    blocker.execute("ROLLBACK")
    blocker.close()
    assert spend(mine, "late").new
    assert verify(mine).answers == 2
    mine.close()


@pytest.mark.parametrize("busy", [False, True])
def test_an_entry_is_prepared_once(two, monkeypatch, busy):
    """Who sees that others write prepares nothing for the statement that would not be tried."""
    mine, _ = two
    spend(mine, "reads what the other wrote")
    monkeypatch.setattr(WriteQueue, "is_idle", not busy)
    prepared = []
    monkeypatch.setattr("dpexplain.ledger.book.write_entry", lambda *values: (prepared.append(1), write_entry(*values))[1])
    assert spend(mine, "one").new
    assert len(prepared) == (0 if busy else 2)
    assert verify(mine).answers == 4
