"""PostgreSQL: a transaction that is tried without a lock writes only where nobody has written since it read."""

from __future__ import annotations

import pytest

from dpexplain.errors import LedgerCorrupt
from dpexplain.ledger import Settled, verify
from dpexplain.ledger.postgres import MustLock, PostgresStore, UnlockedSession
from ledger_support import account, affordable, ask, event, spend

pytestmark = pytest.mark.slow


@pytest.fixture
def two(postgres_place):
    ledgers = postgres_place.open(), postgres_place.open()
    spend(ledgers[0], "first")
    yield ledgers
    for ledger in ledgers:
        ledger.close()


def test_one_caller_needs_no_lock(two, monkeypatch):
    def refuse(*_):
        raise AssertionError("the account was locked")

    monkeypatch.setattr("dpexplain.ledger.postgres.transaction", refuse)
    assert isinstance(spend(two[0], "a"), Settled)
    assert isinstance(two[0].reserve(ask("a")), Settled)
    monkeypatch.undo()
    assert verify(two[0]).answers == 2


@pytest.mark.parametrize("step", ["reserve", "settle"])
def test_who_has_read_before_another_wrote_reads_again(two, monkeypatch, step):
    """The other writes between the two statements; both entries must stand in one chain, and the last quantum be spent once."""
    mine, other = two
    request = ask("mine")
    held = mine.reserve(request) if step == "settle" else None
    flush, tries = UnlockedSession.flush, []

    def write_in_between(session):
        tries.append(session.size)
        if len(tries) == 1:
            spend(other, "other")
        flush(session)

    monkeypatch.setattr(UnlockedSession, "flush", write_in_between)
    if held is None:
        mine.reserve(request)
    else:
        mine.settle(held, request.events, {"value": 1})
    monkeypatch.undo()
    assert len(tries) == 3  # mine, and the two of the other; mine was then repeated under the lock
    found = verify(mine)
    assert (found.answers, found.pending) == ((2, 1) if step == "reserve" else (3, 0))


def test_the_last_of_the_budget_is_spent_once(postgres_place, monkeypatch):
    price = event(0.2)
    mine, other = postgres_place.open(), postgres_place.open()
    for number in range(affordable(account(), price) - 1):
        spend(mine, f"r{number}", price)
    flush = UnlockedSession.flush

    def write_in_between(session):
        monkeypatch.undo()
        other.reserve(ask("last", price))
        flush(session)

    monkeypatch.setattr(UnlockedSession, "flush", write_in_between)
    (refused,) = mine.reserve_many([ask("one too many", price)])
    assert type(refused).__name__ == "BudgetExhausted"
    assert verify(mine).pending == 1
    mine.close()
    other.close()


def test_the_same_request_in_between_is_paid_once(two, monkeypatch):
    mine, other = two
    flush = UnlockedSession.flush

    def write_in_between(session):
        monkeypatch.undo()
        spend(other, "same", answer={"value": "other"})
        flush(session)

    monkeypatch.setattr(UnlockedSession, "flush", write_in_between)
    assert mine.reserve(ask("same")).answer == {"value": "other"}
    assert mine.state().spent_quanta == 2 * event().quanta


def test_damage_is_noticed_without_a_lock_too(two, postgres_place):
    postgres_place.execute("UPDATE dpexplain_accounts SET hash = ?", "0" * 64)
    with pytest.raises(LedgerCorrupt):
        two[0].reserve(ask("a"))


def test_more_than_one_statement_writes_needs_the_lock(two):
    store: PostgresStore = two[0]._store
    with store._writer.use(store._connect) as connection:
        session = UnlockedSession(connection, [("income", f"r{n}") for n in range(40)])
        with pytest.raises(MustLock):
            session.mark("income")
    many = two[0].reserve_many([ask(f"r{n}", event(0.001)) for n in range(40)])
    assert len({one.request_id for one in many}) == 40
    assert verify(two[0]).pending == 40
