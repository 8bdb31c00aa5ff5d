"""Money-like arithmetic: a million tiny spends sum to exactly their sum, and never to less than the truth."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpexplain.errors import BudgetExhausted
from dpexplain.ledger import MemoryLedger, Reservation
from dpexplain.privacy.events import QUANTUM_BITS, GaussianEvent
from dpexplain.privacy.filter import Filter
from ledger_support import account, ask, event, spend

TINY = GaussianEvent("tiny", sensitivity=1e-7 / 3, sigma=1.0)  # μ² = 1.1e-15: lost beside 1.0 in floating point
TRUTH = (Fraction(TINY.sensitivity) / Fraction(TINY.sigma)) ** 2


@pytest.mark.slow
def test_a_million_tiny_spends_through_the_filter():
    spent = Filter(account().budget, account().neighbours)
    for _ in range(1_000_000):
        spent = spent.spend_quanta(TINY.quanta)
    assert spent.spent_quanta == 1_000_000 * TINY.quanta
    assert Fraction(spent.spent_quanta, 1 << QUANTUM_BITS) >= 1_000_000 * TRUTH


def test_thousands_of_tiny_spends_through_a_ledger():
    ledger = MemoryLedger(account())
    for number in range(3000):
        spend(ledger, f"{number}", TINY)
    assert ledger.state().spent_quanta == 3000 * TINY.quanta
    assert Fraction(ledger.state().spent_quanta, 1 << QUANTUM_BITS) >= 3000 * TRUTH


def test_quanta_beyond_64_bits_are_stored_exactly(place):
    big = account(epsilon=50.0)
    ledger = place.open(big)
    huge, tiny = event(5.0), TINY
    assert huge.quanta > 1 << 128
    assert ledger.reserve(ask("huge", huge)) == Reservation("huge", huge.quanta)
    spend(ledger, "tiny", tiny)
    ledger.close()
    again = place.open(big)
    assert again.state().spent_quanta == huge.quanta + tiny.quanta
    again.close()


def test_the_last_quantum_decides():
    """A budget holds an event that fits exactly, and refuses one quantum more."""
    who = account()
    full = Filter(who.budget, who.neighbours, who.budget.quanta - TINY.quanta)
    assert full.spend((TINY,)).spent_quanta == who.budget.quanta
    over = Filter(who.budget, who.neighbours, who.budget.quanta - TINY.quanta + 1)
    with pytest.raises(BudgetExhausted):
        over.spend((TINY,))
