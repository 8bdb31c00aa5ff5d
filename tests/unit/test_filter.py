"""Budgets, events and the filter: what is refused, what is counted, how it reads."""

import json
import warnings
from fractions import Fraction

import pytest

from dpexplain.errors import BudgetExhausted, IntegrityError, ParameterError, WeakBudget
from dpexplain.privacy.budget import Budget, Guarantee, round_down, round_up, warn_if_weak
from dpexplain.privacy.events import QUANTUM_BITS, GaussianEvent, PureEvent, event_from_dict, mu_of, price
from dpexplain.privacy.filter import Filter
from dpexplain.privacy.relation import Neighbours, Relation

NEIGHBOURS = Neighbours()


def gaussian(mu, count=1):
    return GaussianEvent("gradient", mu, 1.0, count)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-6), (-1, 1e-6), (float("nan"), 1e-6), (float("inf"), 1e-6)])
def test_a_meaningless_epsilon_is_refused(epsilon, delta):
    with pytest.raises(ParameterError, match="epsilon must be positive"):
        Budget(epsilon, delta)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, float("nan")])
def test_a_meaningless_delta_is_refused(delta):
    with pytest.raises(ParameterError, match="delta must lie strictly between 0 and 1"):
        Budget(1.0, delta)


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf")])
def test_an_event_without_honest_noise_cannot_be_made(sigma):
    with pytest.raises(ParameterError, match="sigma must be positive"):
        GaussianEvent("gradient", 1.0, sigma)


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, float("nan"), float("inf")])
def test_an_event_without_sensitivity_cannot_be_made(sensitivity):
    with pytest.raises(ParameterError, match="sensitivity must be positive"):
        GaussianEvent("gradient", sensitivity, 1.0)


def test_unknown_events_are_refused_not_ignored():
    class Forged:
        kind = "gaussian"
        quanta = 0

    with pytest.raises(ParameterError, match="price of a Forged"):
        Filter(Budget(1, 1e-6), NEIGHBOURS).spend((Forged(),))
    with pytest.raises(IntegrityError, match="kind of privacy event"):
        event_from_dict({"kind": "laplace", "epsilon": 1})


def test_a_refusal_spends_nothing_and_leaves_the_filter_usable():
    full = Filter(Budget(1, 1e-6), NEIGHBOURS)
    half = full.spend((gaussian(0.15),))
    with pytest.raises(BudgetExhausted, match="Nothing was spent") as refusal:
        half.spend((gaussian(0.2),))
    assert refusal.value.requested.mu == pytest.approx(0.2)
    assert refusal.value.remaining.mu == pytest.approx((full.budget.mu**2 - 0.15**2) ** 0.5)
    assert half.spend((gaussian(0.1),)).spent.mu == pytest.approx((0.15**2 + 0.1**2) ** 0.5)


def test_the_whole_budget_can_be_spent_and_not_a_quantum_more():
    budget = Budget(1, 1e-6)
    spent = Filter(budget, NEIGHBOURS).spend_quanta(budget.quanta)
    assert spent.remaining.mu == 0
    assert spent.spent.epsilon <= 1 + 1e-10
    with pytest.raises(BudgetExhausted):
        spent.spend_quanta(1)
    with pytest.raises(BudgetExhausted):
        spent.spend_quanta(-1)


def test_a_million_tiny_spends_never_sum_to_less_than_the_truth():
    event = gaussian(1e-9 / 3)
    exact = 10**6 * (Fraction(event.sensitivity) / Fraction(event.sigma)) ** 2
    assert Fraction(10**6 * event.quanta, 1 << QUANTUM_BITS) >= exact
    assert mu_of(10**6 * event.quanta) == pytest.approx(1e-6 / 3, rel=1e-12)


def test_composition_is_exact():
    events = (gaussian(3.0), gaussian(4.0), PureEvent("start", 0.1))
    assert mu_of(price(events[:2])) == pytest.approx(5.0, rel=1e-15)
    assert price(events) == price(events[:2]) + price(events[2:])
    assert price((gaussian(0.5, 7),)) >= 7 * 0.25 * 2**QUANTUM_BITS


@pytest.mark.parametrize("event", [gaussian(0.5, 3), PureEvent("start", 0.25)])
def test_events_survive_json(event):
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event


def test_the_guarantee_reads_as_one_plain_sentence():
    guarantee = Guarantee(0.1, 1e-6, NEIGHBOURS)
    assert str(guarantee) == (
        "Everything released so far satisfies (ε=0.397, δ=1e-06)-differential privacy for any one record added or removed."
    )
    people = Neighbours(Relation.REPLACE_ONE, "person_id", 3)
    assert "all records of any one person_id (at most 3) replaced by any other" in str(Guarantee(0.1, 1e-6, people))
    assert "NOT differentially private: β" in str(Guarantee(0.1, 1e-6, NEIGHBOURS, private=False, note="β is exact"))


def test_shown_numbers_are_never_below_the_truth():
    assert round_up(0.39685) == "0.397"
    assert round_up(0.1) == "0.101"  # the float 0.1 is a little above one tenth
    assert float(round_up(0.76842)) >= 0.76842
    assert round_up(0.0) == "0"


def test_relations_and_units_multiply():
    assert Neighbours().multiplier == 1
    assert Neighbours(Relation.REPLACE_ONE).multiplier == 2
    assert Neighbours(Relation.REPLACE_ONE, "person", 3).multiplier == 6
    with pytest.raises(ParameterError, match="relation must be"):
        Relation.parse("bounded")
    with pytest.raises(ParameterError, match="Pass unit="):
        Neighbours(rows_per_unit=2)
    assert Neighbours.from_dict(Neighbours(Relation.REPLACE_ONE, "p", 2).to_dict()) == Neighbours(Relation.REPLACE_ONE, "p", 2)


def test_a_refusal_is_told_in_epsilon_and_says_why_what_is_left_is_no_difference():
    spent = Filter(Budget(1.0, 1e-6), NEIGHBOURS).spend((gaussian(0.2),))
    with pytest.raises(BudgetExhausted) as refused:
        spent.spend((gaussian(0.15),))
    said = str(refused.value)
    assert f"by itself it costs ε={round_up(refused.value.requested.epsilon)}" in said
    assert f"ε={round_down(refused.value.remaining.epsilon)} is left" in said
    assert "not the difference" in said
    assert "Nothing was spent" in said


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 3.0])
def test_a_refusal_of_an_untouched_budget_says_that_all_of_it_is_left(epsilon):
    with pytest.raises(BudgetExhausted, match=f"and ε={epsilon:g} is left"):
        Filter(Budget(epsilon, 1e-6), NEIGHBOURS).spend((gaussian(100.0),))


@pytest.mark.parametrize(("value", "up", "down"), [(0.12345, "0.124", "0.123"), (2.0, "2", "2"), (0.0, "0", "0")])
def test_numbers_are_rounded_to_the_safe_side(value, up, down):
    assert (round_up(value), round_down(value)) == (up, down)


@pytest.mark.parametrize(("budget", "said"), [(Budget(11, 1e-6), "little is promised"), (Budget(1, 0.02), "one in 100")])
def test_a_budget_that_promises_little_is_warned_about(budget, said):
    with pytest.warns(WeakBudget, match=said):
        warn_if_weak(budget, 100)


def test_ordinary_budgets_raise_no_warning():
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        warn_if_weak(Budget(10, 1e-6), 10_000)
    assert raised == []
