"""Algorithm 2's own stopping rule (`stop_at=`): it ends a stream where the printed inequality first holds, and the exact budget stays the guard."""

from functools import cache
from math import inf, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dpexplain as dpx
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.paper_algorithms import Ended
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy import gdp, paper
from dpexplain.privacy.events import mu_of, price
from hypothesis_support import examples

ROWS, EPSILON, DELTA, STEPS = 2000, 0.2, 1e-6, 20
RICH = dpx.Budget(1000.0, 1e-6)
GENEROUS = dpx.Budget(1e6, 0.5)
KINDS = [dpx.Adaptive, dpx.Enhanced]
WIDTH = 8


def table(seed=0):
    return np.random.default_rng(seed).random((ROWS, WIDTH))


def private_data():
    rows = table()
    return dpx.PrivateData(rows, dpx.Domain.encoded(WIDTH), labels=np.sign(rows[:, 0] + rows[:, 1] - 1))


DATA = private_data()
QUERIES = np.random.default_rng(7).random((25, WIDTH)) * np.linspace(0.5, 1, 25)[:, None]
ORIGIN = np.full(WIDTH, -3.0)  # far from everything that was asked, so that nothing is copied


def explainer(kind, stop_at=None, budget=RICH, seed=1, data=None):
    mechanism = kind(EPSILON, DELTA, STEPS, calibration="paper", stop_at=stop_at)
    return dpx.Explainer(data or DATA, budget, mechanism, noise=SeededNoise(seed))


def by_hand(answers):
    """(ε_spent, δ_spent) after each answer: strong composition of every single release, written out from what the answers say of themselves."""
    m, step = DATA.size, EPSILON / sqrt(8 * STEPS * log(2 / DELTA))
    floor = sqrt(2 * log(2.5 * STEPS / DELTA)) / (m * step)
    epsilons, deltas, found = [], 0.0, []
    for one in answers:
        if not one.copied:
            sigma = max(floor, one.details.get("exact_beta", 0.0) / sqrt(WIDTH))
            count = one.details["gradients"]
            epsilons += [step] * ("exact_beta" in one.details)
            epsilons += [sqrt(2 * log(2.5 * STEPS / DELTA)) / (m * sigma)] * count
            deltas += count * DELTA / (2 * STEPS)
        found.append((paper.strong_composition(epsilons, DELTA / 2), deltas + DELTA / 2))
    return found


@cache
def whole_stream(kind):
    """The whole stream, with the same noise and without a stopping rule."""
    return explainer(kind).explain_many(QUERIES)


@cache
def totals(kind):
    return by_hand(whole_stream(kind))


def test_the_streams_here_copy_and_compute():
    for kind in KINDS:
        copied = [one.copied for one in whole_stream(kind)]
        assert any(copied[:10])
        assert sum(copied) < 20


# Where it stops.


def test_the_printed_test_is_strict_in_epsilon_and_not_in_delta():
    assert not paper.is_exhausted(1.0, 0.0, 1.0, 1e-6)
    assert paper.is_exhausted(1.0 + 1e-12, 0.0, 1.0, 1e-6)
    assert not paper.is_exhausted(0.0, 1e-6 * (1 - 1e-12), 1.0, 1e-6)
    assert paper.is_exhausted(0.0, 1e-6, 1.0, 1e-6)


@given(kind=st.sampled_from(KINDS), epsilon=st.floats(0.01, 1.0), delta=st.floats(1e-7, 5e-5))
@settings(deadline=None, max_examples=examples(40))
def test_the_stream_ends_exactly_where_the_papers_inequality_first_holds(kind, epsilon, delta):
    # rounding decides nothing here
    assume(all(abs(e / epsilon - 1) > 1e-9 and abs(d / delta - 1) > 1e-9 for e, d in totals(kind)))
    first = next((i for i, (e, d) in enumerate(totals(kind)) if e > epsilon or d >= delta), len(QUERIES))
    answers = explainer(kind, dpx.Budget(epsilon, delta)).explain_many(QUERIES)
    assert len(answers) == first
    assert answers.complete == (first == len(QUERIES))
    assert all(np.array_equal(one.values, other.values) for one, other in zip(answers, whole_stream(kind), strict=False))
    if not answers.complete:
        assert isinstance(answers.refusal, dpx.errors.PaperBudgetExhausted)
        assert not whole_stream(kind)[first].copied
        assert answers.refusal.spent["epsilon"] == pytest.approx(totals(kind)[first][0])
        assert answers.refusal.spent["delta"] == pytest.approx(totals(kind)[first][1])


@pytest.mark.parametrize("kind", KINDS)
def test_limits_that_are_just_met_are_the_printed_ones(kind):
    """ε_spent = ε goes on, δ_spent = δ does not: at the very totals of the third computed answer."""
    third = [i for i, one in enumerate(whole_stream(kind)) if not one.copied][2]
    books = whole_stream(kind)[third].details["paper"]
    met = explainer(kind, dpx.Budget(books["total_epsilon"], 0.5)).explain_many(QUERIES)
    assert len(met) > third
    assert len(explainer(kind, dpx.Budget(np.nextafter(books["total_epsilon"], 0), 0.5)).explain_many(QUERIES)) == third
    assert len(explainer(kind, dpx.Budget(1e6, books["total_delta"])).explain_many(QUERIES)) == third
    assert len(explainer(kind, dpx.Budget(1e6, np.nextafter(books["total_delta"], 1))).explain_many(QUERIES)) > third


def test_a_first_answer_that_is_too_much_is_refused_before_a_row_is_read():
    """Its noise and steps do not depend on β."""
    data = private_data()
    data.wrap_rows(lambda rows: None)
    one = explainer(dpx.Adaptive, dpx.Budget(0.01, 0.5), data=data)
    with pytest.raises(dpx.errors.PaperBudgetExhausted, match=r"ε is 0\.\d+ of 0\.01 and δ is 9\.75e-07 of 0\.5"):
        one.explain(QUERIES[0])
    assert one.spent.mu == 0


# After it stopped.


def stopped_stream(kind=dpx.Adaptive, **keywords):
    found = explainer(kind, limit_after(12, kind), **keywords)
    answers = found.explain_many(QUERIES)
    assert 12 < len(answers) < len(QUERIES)
    return found, answers


def limit_after(answers, kind=dpx.Adaptive):
    """A total that so many answers just meet."""
    return dpx.Budget(totals(kind)[answers][0] * (1 + 1e-9), 0.5)


def test_nothing_is_answered_any_more_for_nothing_and_without_rows():
    """Algorithm 2 leaves its loop: copies end too, and a cheaper answer that would fit is not computed."""
    data = private_data()
    one, answers = stopped_stream(dpx.Enhanced, data=data)
    spent = one.spent.mu
    data.wrap_rows(lambda rows: None)
    for query in (answers[0].point, QUERIES[-1]):
        with pytest.raises(dpx.errors.PaperBudgetExhausted) as refused:
            one.explain(query)
        assert refused.value.requested.mu == 0
    assert one.spent.mu == spent
    assert len(one.history) == len(answers)


def test_the_answer_that_is_withheld_is_counted_by_both_books():
    one, answers = stopped_stream(data=private_data())
    refusal, selection = answers.refusal, _plan_after(one, ORIGIN).events[0]
    assert refusal.spent["epsilon"] > totals(dpx.Adaptive)[len(answers) - 1][0]
    assert refusal.requested.mu == mu_of(price((selection,)))  # its start was drawn, its gradients were not
    assert one.spent.mu == pytest.approx(sqrt(answers[-1].guarantee.mu ** 2 + refusal.requested.mu**2), rel=1e-9)
    assert "NOT differentially private" in str(refusal.requested)
    assert refusal.remaining.mu == one.remaining.mu


def _plan_after(one, query):
    """The plan that the same history would have without a stopping rule."""
    return dpx.Adaptive(EPSILON, DELTA, STEPS, calibration="paper").plan(query, DATA.setting, one.history)


def test_a_repeated_request_is_refused_in_the_same_words():
    one, _ = stopped_stream()
    messages = []
    for _ in range(2):
        with pytest.raises(dpx.BudgetExhausted) as refused:
            one.explain(QUERIES[-1], request_id="again")
        messages.append(str(refused.value))
    assert messages[0] == messages[1]
    assert "dpx.NonInteractive(explainer.history)" in messages[0]


def test_the_non_interactive_phase_goes_on_from_what_was_reported():
    one, answers = stopped_stream()
    free = dpx.NonInteractive(one.history, "labels").explain(QUERIES[-1])
    assert free.cost.mu == 0
    assert len(one.history) == len(answers)


def test_a_release_answers_instead():
    data = private_data()
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(3))
    mechanism = dpx.Adaptive(EPSILON, DELTA, STEPS, calibration="paper", stop_at=dpx.Budget(0.15, 0.5))
    answers = dpx.Explainer(data, RICH, mechanism, noise=SeededNoise(1), release=release).explain_many(QUERIES)
    assert answers.complete
    assert len(answers) == len(QUERIES)
    assert "budget" not in answers[0].details
    assert "exhausted" in answers[-1].details["budget"]


def test_questions_of_several_callers_are_refused_one_by_one():
    one = explainer(dpx.Adaptive, limit_after(12))
    found = one.explain_each([(query, str(i)) for i, query in enumerate(QUERIES)])
    kinds = [isinstance(each, dpx.Explanation) for each in found]
    assert kinds == sorted(kinds, reverse=True)
    assert {type(each) for each in found if not isinstance(each, dpx.Explanation)} == {dpx.errors.PaperBudgetExhausted}


# Histories that are stored.


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_history_has_stopped_too_and_a_larger_total_goes_on_from_all_that_was_spent(kind):
    one, answers = stopped_stream(kind)
    again = History.from_json(one.history.to_json())
    same = kind(EPSILON, DELTA, STEPS, calibration="paper", stop_at=limit_after(12, kind))
    assert isinstance(same.plan(ORIGIN, DATA.setting, again), Ended)
    plan = kind(EPSILON, DELTA, STEPS, calibration="paper", stop_at=GENEROUS).plan(ORIGIN, DATA.setting, again)
    assert plan.before.epsilon(DELTA / 2) == pytest.approx(answers.refusal.spent["epsilon"])  # the withheld answer included
    assert plan.before.deltas + DELTA / 2 == pytest.approx(answers.refusal.spent["delta"])


@given(kind=st.sampled_from(KINDS), cut=st.integers(1, 24))
@settings(deadline=None, max_examples=examples(20))
def test_totals_go_on_from_a_stored_history(kind, cut):
    """They are in the answers: what is read back is tested against the same totals."""
    reported = [one for one in whole_stream(kind)[:cut] if not one.copied]
    running = explainer(kind)
    running.explain_many(QUERIES[:cut])
    again = History.from_json(running.history.to_json())
    plan = kind(EPSILON, DELTA, STEPS, calibration="paper", stop_at=GENEROUS).plan(ORIGIN, DATA.setting, again)
    assert plan.before.to_dict() == reported[-1].details["paper"]["sums"]
    assert again.stopped is None


def test_a_history_without_a_stop_is_stored_as_before():
    assert "stopped" not in explainer(dpx.Adaptive).history.to_dict()


# The exact budget.


@given(kind=st.sampled_from(KINDS), answers=st.floats(0.5, 12), epsilon=st.floats(0.01, 1.0))
@settings(deadline=None, max_examples=examples(30))
def test_the_exact_budget_is_the_guard_whatever_the_papers_rule_would_allow(kind, answers, epsilon):
    full = mu_of(price(kind(EPSILON, DELTA, STEPS, calibration="paper").plan(ORIGIN, DATA.setting, History()).events))
    budget = dpx.Budget(gdp.epsilon(full * sqrt(answers), 1e-6), 1e-6)
    alone = explainer(kind, budget=budget).explain_many(QUERIES)
    both = explainer(kind, dpx.Budget(epsilon, 0.5), budget)
    found = both.explain_many(QUERIES)
    assert len(found) <= len(alone)
    assert both.spent.mu <= budget.mu
    by_paper = next((i for i, (e, _) in enumerate(totals(kind)) if e > epsilon), inf)
    assert len(found) == min(len(alone), by_paper)


# Where it does not apply.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", [{}, {"rule": "paper"}])
def test_exact_calibrations_have_a_budget_instead(kind, mode):
    with pytest.raises(ParameterError, match="budget stops exactly"):
        kind(stop_at=GENEROUS, **mode)


@pytest.mark.parametrize("wrong", [1.0, (1.0, 1e-6), {"epsilon": 1.0}])
def test_a_total_is_a_budget(wrong):
    with pytest.raises(ParameterError, match=r"dpx\.Budget\(epsilon=1\.0, delta=1e-6\)"):
        dpx.Adaptive(calibration="paper", stop_at=wrong)


def test_mechanisms_describe_their_total():
    described = dpx.Enhanced(calibration="paper", stop_at=dpx.Budget(1.0, 1e-6)).to_dict()
    assert described["stop_at"] == {"epsilon": 1.0, "delta": 1e-6}
    assert "stop_at" not in dpx.Enhanced(calibration="paper").to_dict()


# Erratum 15.


def full_answers(delta, slack=1e-7 / 2, count=2000):
    """How many answers of all T iterations the printed test of δ reports, whatever ε: δ_min = 1e-7, T = 300."""
    spent = (answers * 299 * 1e-7 / 600 + slack for answers in range(1, count))
    return next((i for i, each in enumerate(spent) if paper.is_exhausted(0.0, each, 1.0, delta)), count)


def test_erratum_15_the_stopping_rule_ends_on_delta_long_before_epsilon():
    assert full_answers(1e-7) == 1  # the only δ that the paper states
    assert full_answers(1e-6) == 19
    assert (full_answers(1e-7, slack=0), full_answers(1e-6, slack=0)) == (2, 20)
    each = paper.step_epsilon(0.01, 1e-7, 300)
    assert paper.Bookkeeping().add(each, count=19 * 300).epsilon(5e-8) < 0.022  # ε would allow 400 answers at 0.1
    assert paper.Bookkeeping().add(each, count=400 * 300).epsilon(5e-8) == pytest.approx(0.1, rel=0.01)
    needed = [count * 299 * 1e-7 / 600 + 5e-8 for count in (981, 1500)]  # of 1,500 queries so many are computed on ACS and Text
    assert [round(one * rows / 3) for one, rows in zip(needed, (1_494_974, 8_815_568), strict=True)] == [24, 220]


def test_erratum_15_the_stop_itself_separates_neighbours():
    """Two tables that differ in one row, the same queries and noise: the exact β of the withheld answer decides which stream ends."""
    rows, labels = np.full((40, 1), 0.5), np.ones(40)
    less = [dpx.PrivateData(rows[keep:], dpx.Domain.encoded(1), labels=labels[keep:], size=40) for keep in (0, 1)]
    spent = [_second_total(one) for one in less]
    assert spent[0] != spent[1]
    limit = dpx.Budget(sum(spent) / 2, 0.9)
    complete = [_ask_twice(one, limit).complete for one in less]
    assert sorted(complete) == [False, True]


def _ask_twice(data, limit):
    mechanism = dpx.Enhanced(500.0, 1e-6, 200, calibration="paper", stop_at=limit)
    return dpx.Explainer(data, dpx.Budget(1e6, 1e-6), mechanism, noise=SeededNoise(0)).explain_many([[0.0], [1.0]])


def _second_total(data):
    return _ask_twice(data, GENEROUS)[1].details["paper"]["total_epsilon"]
