"""One cap for a data set: releases and explainers share it, whichever ledgers pay."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import BudgetExhausted, InputError, ParameterError, RequestIdInUse
from dpexplain.ledger.cap import Cap
from dpexplain.ledger.memory import MemoryLedger
from dpexplain.ledger.port import Account, Request, Reservation, Settlement
from dpexplain.privacy.events import GaussianEvent, price
from dpexplain.privacy.relation import Neighbours

CAP = dpx.Budget(1.0, 1e-6)
TENTH = dpx.Budget(0.1, 1e-6)
RECORD = [0.5, 0.4, 0.3]


def private_data(**options):
    rows = np.random.default_rng(0).random((400, 3))
    return dpx.PrivateData(rows, dpx.Domain.encoded(3), labels=np.sign(rows[:, 0] - 0.5), **({"cap": CAP} | options))


def cheap(data, **options):
    return dpx.Explainer(data, CAP, dpx.Basic(0.1, 1e-6, steps=4), **options)


def test_without_a_shared_ledger_a_release_leaves_nothing_for_an_explainer():
    data = private_data()
    dpx.release(data, CAP)
    with pytest.raises(BudgetExhausted, match=r"the data set's cap .* is left. Nothing was spent"):
        cheap(data).explain(RECORD)
    assert data.spent.mu <= CAP.mu * (1 + 1e-9)
    assert data.remaining is not None
    assert data.remaining.mu < 1e-6


def test_two_explainers_and_two_releases_together_stay_within_the_cap():
    data = private_data()
    dpx.release(data, CAP, spend=dpx.Budget(0.5, 1e-6))
    answers = [len(cheap(data).explain_many([RECORD] * 200)) for _ in range(2)]
    assert answers[0] > 0
    assert answers[1] == 0
    with pytest.raises(BudgetExhausted):
        dpx.release(data, TENTH)
    assert data.spent.mu <= CAP.mu * (1 + 1e-9)


def test_without_a_cap_totals_are_stated_and_nothing_is_refused():
    data = private_data(cap=None)
    dpx.release(data, CAP)
    cheap(data).explain(RECORD)
    assert data.remaining is None
    assert data.spent.mu > CAP.mu


def test_what_remains_is_the_smaller_of_budget_and_cap():
    data = private_data()
    explainer = cheap(data)
    dpx.release(data, CAP, spend=dpx.Budget(0.9, 1e-6))
    assert explainer.remaining.mu == pytest.approx(data.remaining.mu)
    assert explainer.remaining.mu < CAP.mu / 2
    small = dpx.Explainer(data, TENTH, dpx.Basic(0.01, 1e-6, steps=4))
    assert small.remaining.mu == pytest.approx(TENTH.mu)


def test_a_known_request_id_is_answered_again_when_the_cap_is_spent():
    data = private_data()
    explainer = cheap(data)
    first = explainer.explain(RECORD, request_id="mine")
    dpx.release(data, CAP, spend=dpx.Budget(0.99, 1e-6))
    with pytest.raises(BudgetExhausted):
        explainer.explain(RECORD, request_id="another")
    assert np.array_equal(explainer.explain(RECORD, request_id="mine").values, first.values)


def test_an_explainer_with_a_release_answers_from_it_when_the_cap_is_spent():
    data = private_data()
    free = cheap(data, release=dpx.release(data, CAP)).explain(RECORD)
    assert "exhausted" in free.details["budget"]


def test_a_release_made_elsewhere_counts_against_the_cap():
    elsewhere = dpx.release(private_data(), CAP)
    data = private_data()
    explainer = cheap(data, release=elsewhere)
    assert "exhausted" in explainer.explain(RECORD).details["budget"]


def test_each_shard_has_the_cap_of_its_own():
    left, right = private_data().split(2)
    dpx.release(left, CAP)
    with pytest.raises(BudgetExhausted):
        dpx.release(left, TENTH)
    dpx.release(right, CAP)


def test_a_durable_ledger_keeps_the_cap_over_processes(tmp_path):
    ledger = f"sqlite:///{tmp_path}/x.ledger"
    dpx.release(private_data(), CAP, ledger=ledger)
    again = private_data()
    dpx.Explainer(again, CAP, ledger=ledger)
    with pytest.raises(BudgetExhausted, match="cap"):
        dpx.release(again, TENTH)  # on a ledger in memory, which alone would pay


@pytest.mark.parametrize("cap", [1.0, "1.0", (1.0, 1e-6)])
def test_a_cap_is_a_budget(cap):
    with pytest.raises(ParameterError, match="cap"):
        private_data(cap=cap)


def test_discovery_refuses_a_cap(tmp_path):
    with pytest.raises(ParameterError, match="Leave cap= out"):
        dpx.discover([{"a": 1.0}], TENTH, ledger=f"sqlite:///{tmp_path}/x.ledger", columns={"a": "number"}, cap=CAP)


def event(mu):
    return (GaussianEvent("x", mu, 1.0),)


def two_ledgers(cap):
    neighbours = Neighbours.from_dict(private_data().setting.neighbours.to_dict())
    ledgers = [MemoryLedger(Account(f"data {i}", "", dpx.Budget(8.0, 1e-6), neighbours)) for i in range(2)]
    return ledgers, Cap(cap, neighbours, lambda: sum(one.state().spent_quanta for one in ledgers))


def test_threads_on_two_ledgers_never_exceed_the_cap():
    ledgers, cap = two_ledgers(CAP)
    one = event(CAP.mu / 5)

    def reserve(i):
        return cap.reserve_many(ledgers[i % 2], [Request(f"{i}-{j}", {}, one) for j in range(3)])

    with ThreadPoolExecutor(8) as pool:
        found = [answer for answers in pool.map(reserve, range(32)) for answer in answers]
    admitted = sum(isinstance(answer, Reservation) for answer in found)
    assert admitted == CAP.quanta // price(one)
    assert sum(ledger.state().spent_quanta for ledger in ledgers) <= CAP.quanta


def test_a_retry_whose_price_rises_pays_the_difference_only():
    ledgers, cap = two_ledgers(CAP)
    half, most = event(CAP.mu * 0.7), event(CAP.mu * 0.95)
    assert isinstance(cap.reserve_many(ledgers[0], [Request("a", {}, half)])[0], Reservation)
    assert isinstance(cap.reserve_many(ledgers[0], [Request("a", {}, most)])[0], Reservation)
    refused = cap.reserve_many(ledgers[0], [Request("a", {}, event(CAP.mu * 1.1))])[0]
    assert isinstance(refused, BudgetExhausted)
    assert cap.state.spent_quanta == price(most)


def test_free_answers_under_a_cap_leave_no_reservation_behind(monkeypatch):
    """One has an id that is in use, one cannot be stored, and a crash comes after the first commit: there is no second one."""
    (ledger, _), cap = two_ledgers(CAP)
    cap.reserve_many(ledger, [Request("used", {"question": "another"}, event(CAP.mu / 5))])
    spent = ledger.state().spent_quanta
    monkeypatch.setattr(ledger, "_step", crash_before_settling)
    answers = {"used": 1.0, "nothing": float("nan"), "free": 2.0}
    asked = [(Request(name, {}, ()), Settlement(name, (), {"value": value})) for name, value in answers.items()]
    in_use, unstorable, done = cap.record_many(ledger, asked)
    assert isinstance(in_use, RequestIdInUse)
    assert isinstance(unstorable, InputError)
    assert (done.request_id, done.answer, ledger.state().spent_quanta) == ("free", {"value": 2.0}, spent)
    assert [(one.kind, one.request) for one in ledger.entries(after=2)] == [("reserve", "free"), ("settle", "free")]


def crash_before_settling(step):
    assert step != "before settle", "the process ended between two commits"


def test_free_answers_are_refused_once_the_cap_is_passed():
    ledgers, cap = two_ledgers(TENTH)
    ledgers[1].reserve(Request("elsewhere", {}, event(TENTH.mu * 2)))  # a process that does not know of the cap
    (refused,) = cap.record_many(ledgers[0], [(Request("free", {}, ()), Settlement("free", (), {"value": 1.0}))])
    assert isinstance(refused, BudgetExhausted)
    assert [one.kind for one in ledgers[0].entries()] == ["open"]
