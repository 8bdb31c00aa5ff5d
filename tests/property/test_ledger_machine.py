"""Any interleaving of reserve, settle, an older version's refund, retry and reopening agrees with a ledger of one page."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dpexplain.errors import BudgetExhausted, LedgerUnavailable
from dpexplain.ledger import Reservation, Settled, verify
from hypothesis_support import examples
from ledger_support import Place, account, append_refund, ask, event

ids = st.sampled_from([f"r{number}" for number in range(8)])
handles = st.sampled_from([0, 1])
prices = st.sampled_from([0.01, 0.05, 0.1, 0.2])
LIMIT = account().budget.quanta
answers = st.integers(0, 10**9)


class LedgerMachine(RuleBasedStateMachine):
    """Two handles on one ledger, and a model made of two dictionaries."""

    kind = "memory"

    def __init__(self):
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.place = Place(self.kind, str(Path(self.directory.name) / "machine.ledger"))
        self.ledgers = self.open_both()
        self.held: dict[str, int] = {}
        self.done: dict[str, Settled] = {}

    def open_both(self):
        one = self.place.open()
        return [one, one if self.kind == "memory" else self.place.open()]

    @property
    def spent(self) -> int:
        return sum(self.held.values()) + sum(event_price(done) for done in self.done.values())

    @rule(handle=handles, request_id=ids, mu=prices)
    def reserve(self, handle, request_id, mu):
        quanta, limit = event(mu).quanta, LIMIT
        extra = quanta - self.held.get(request_id, 0)
        try:
            found = self.ledgers[handle].reserve(ask(request_id, event(mu)))
        except BudgetExhausted:
            assert request_id not in self.done
            assert self.spent + extra > limit
            return
        if request_id in self.done:
            assert found == self.done[request_id]
            return
        assert extra <= 0 or self.spent + extra <= limit
        self.held[request_id] = max(quanta, self.held.get(request_id, 0))
        assert found == Reservation(request_id, self.held[request_id])

    @precondition(lambda self: self.held)
    @rule(handle=handles, pick=st.integers(0, 7), share=st.sampled_from([1.0, 0.5, 0.0]), answer=answers)
    def settle(self, handle, pick, share, answer):
        request_id = sorted(self.held)[pick % len(self.held)]
        held = self.held[request_id]
        ran = tuple(e for e in (event(0.2), event(0.1), event(0.05), event(0.01)) if e.quanta <= held * share)[:1]
        done = self.ledgers[handle].settle(Reservation(request_id, held), ran, {"value": answer})
        assert (done.answer, done.events, done.position) == ({"value": answer}, ran, len(self.done) + 1)
        del self.held[request_id]
        self.done[request_id] = done
        assert done.spent_quanta == self.spent

    @precondition(lambda self: self.done)
    @rule(handle=handles, pick=st.integers(0, 7), answer=answers)
    def settle_again(self, handle, pick, answer):
        request_id = sorted(self.done)[pick % len(self.done)]
        again = self.ledgers[handle].settle(Reservation(request_id, 10**50), (), {"value": answer})
        assert again == self.done[request_id]

    @rule(handle=handles, request_id=ids)
    def settle_what_holds_nothing(self, handle, request_id):
        if request_id in self.held or request_id in self.done:
            return
        with pytest.raises(LedgerUnavailable):
            self.ledgers[handle].settle(Reservation(request_id, 10**50), (), {})

    @rule(handle=handles, request_id=ids)
    def refund(self, handle, request_id):
        append_refund(self.ledgers[handle], request_id)
        self.held.pop(request_id, None)

    @rule()
    def reopen(self):
        if self.kind == "memory":
            return
        for ledger in self.ledgers:
            ledger.close()
        self.ledgers = self.open_both()

    @invariant()
    def both_handles_agree_with_the_model(self):
        for ledger in self.ledgers:
            assert ledger.state().spent_quanta == self.spent <= LIMIT
        assert list(self.ledgers[0].settled()) == sorted(self.done.values(), key=lambda done: done.position)

    def teardown(self):
        found = verify(self.ledgers[0], self.ledgers[1].head())
        assert (found.answers, found.pending, found.head.total) == (len(self.done), len(self.held), self.spent)
        for ledger in self.ledgers:
            ledger.close()
        self.directory.cleanup()


def event_price(done: Settled) -> int:
    return sum(e.quanta for e in done.events)


class SqliteMachine(LedgerMachine):
    kind = "sqlite"


common = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}
TestMemoryLedger = LedgerMachine.TestCase
TestMemoryLedger.settings = settings(max_examples=examples(60), stateful_step_count=40, **common)
TestSqliteLedger = pytest.mark.slow(SqliteMachine.TestCase)
TestSqliteLedger.settings = settings(max_examples=examples(25), stateful_step_count=40, **common)
