"""Whatever is asked, the filter never admits more than the budget, and never counts less than the truth."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpexplain.errors import BudgetExhausted
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.events import QUANTUM_BITS, GaussianEvent
from dpexplain.privacy.filter import Filter
from dpexplain.privacy.relation import Neighbours

events = st.builds(GaussianEvent, st.just("x"), st.floats(1e-6, 1.0), st.floats(1.0, 1e6), st.integers(1, 1000))


@given(st.floats(0.01, 5), st.lists(events, max_size=40))
def test_admitted_spending_stays_within_the_budget(epsilon, asked):
    budget = Budget(epsilon, 1e-6)
    state, truth = Filter(budget, Neighbours()), Fraction(0)
    for event in asked:
        if state.spent_quanta + event.quanta > budget.quanta:
            with pytest.raises(BudgetExhausted):
                state.spend((event,))
            continue
        state = state.spend((event,))
        truth += event.count * (Fraction(event.sensitivity) / Fraction(event.sigma)) ** 2
    assert truth <= Fraction(state.spent_quanta, 1 << QUANTUM_BITS) <= Fraction(budget.mu) ** 2
