"""Algorithms 2 and 3, branch by branch, worked out by hand for both calibrations; and our own rule."""

from dataclasses import replace
from math import log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpexplain as dpx
from dpexplain.core.moments import Moments
from dpexplain.errors import NotPrivateError, ParameterError
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.history import History, ReleasedAnswer
from dpexplain.mechanisms.measured import NORM_SHARE, MeasuredDescent
from dpexplain.mechanisms.paper_algorithms import PaperDescent
from dpexplain.mechanisms.plane_choice import travel_of
from dpexplain.mechanisms.setting import Setting
from dpexplain.mechanisms.start import Copy
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy import gdp, paper
from dpexplain.privacy.events import GaussianEvent, PureEvent, mu_of, price
from dpexplain.privacy.relation import Neighbours
from hypothesis_support import examples
from noise_support import run

WIDTH, SIZE = 4, 500_000
SETTING = Setting(WIDTH, SIZE, Neighbours(), 1e-13)
ORIGIN = np.zeros(WIDTH)
SLOPE = np.array([0.3, 0.0, 0.0, 0.0])  # a past answer
KINDS = [dpx.Adaptive, dpx.Enhanced]
REUSE = log(300) / sqrt(300)  # 0.329


class Quadratic:
    """Rows whose mean gradient at φ is 2·curvature·(φ - optimum)."""

    width, summation_error = WIDTH, 1e-13

    def __init__(self, optimum, curvature=0.1):
        self.moments = Moments(
            SIZE * curvature * np.eye(WIDTH), SIZE * curvature * np.asarray(optimum, dtype=float), np.zeros(WIDTH)
        )

    def local(self, query):
        return self.moments


def history(*released):
    return History.of(ReleasedAnswer(*one) for one in released)


def far():
    """One computed answer that is too far away to be copied."""
    return history((np.ones(WIDTH), SLOPE))


def point_at(distance):
    return np.array([distance, 0.0, 0.0, 0.0])


# The formulas.


@pytest.mark.parametrize(
    ("level", "expected"),
    [(0.0, 2), (0.001, 2), (0.01, 7), (0.1, 72), (0.2, 143), (0.418, 299), (0.419, 300), (0.5, 300), (1.0, 300), (3.0, 300)],
)
def test_the_number_of_iterations_follows_the_theorem(level, expected):
    """T' = s^(1-1/2a) T = s √(ln 300) 300 = 716.5 s while a > 1/2, i.e. s < 1/√(ln 300) = 0.4187; T beyond, also at β ≥ 1."""
    assert paper.iterations(level, 300) == expected


def test_the_step_constant_by_hand():
    """n = 4, σ = 0.05, β = 0.1: nσ² = 0.01, q = 0.02, c² = 2/(0.02 + √(0.0004 + 0.12·ln 300)) = 2/(0.02 + 0.82756)."""
    assert paper.warm_rate(4, 0.05, 0.1, 300) == pytest.approx(sqrt(2 / (0.02 + sqrt(0.0004 + 0.12 * log(300)))))
    assert paper.warm_rate(4, 0.05, 0.1, 300) == pytest.approx(1.5361, rel=1e-4)


def test_erratum_8_with_the_printed_noise_the_adaptive_algorithm_saves_no_iterations():
    """ACS13 in the paper: m = 498,325 a shard, ε = 0.01, δ = 1e-7, T = 300."""
    printed = paper.adaptive_sigma(498_325, 0.01, 1e-7, 300)
    assert printed == pytest.approx(0.272, abs=5e-4)
    assert sqrt(11) * printed > 0.9 > 1 / sqrt(log(300))
    assert all(paper.iterations(sqrt(n) * printed, 300) == 300 for n in (11, 70, 112))
    exact = sqrt(299) / (498_325 * gdp.mu(0.01, 1e-7))
    assert [paper.iterations(sqrt(n) * exact, 300) for n in (11, 70, 112)] == [30, 75, 95]


# Reuse.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", [{"rule": "paper"}, {"calibration": "paper"}])
def test_an_answer_near_enough_is_copied_for_nothing(kind, mode):
    plan = kind(**mode).plan(point_at(REUSE * 0.999), SETTING, history((ORIGIN, SLOPE)))
    assert isinstance(plan, Copy)
    assert plan.events == ()
    outcome, events = run(plan, None, SimpleNamespace(secure=True, standard_normal=None))  # neither rows nor noise are needed
    assert outcome.copied
    assert events == ()
    assert (outcome.values == SLOPE).all()
    assert not isinstance(kind(**mode).plan(point_at(REUSE * 1.001), SETTING, history((ORIGIN, SLOPE))), Copy)


@pytest.mark.parametrize("mode", [{"rule": "paper"}, {"calibration": "paper"}])
def test_a_copied_answer_is_not_copied_again(mode):
    past = history((ORIGIN, SLOPE), (point_at(0.3), SLOPE, True))
    plan = dpx.Adaptive(**mode).plan(point_at(0.5), SETTING, past)  # 0.2 from the copy, 0.5 from the computed one
    assert not isinstance(plan, Copy)


def test_our_rule_copies_the_same_point_only():
    past = history((ORIGIN, SLOPE))
    assert isinstance(dpx.Adaptive().plan(ORIGIN, SETTING, past), Copy)
    assert not isinstance(dpx.Adaptive().plan(point_at(1e-9), SETTING, past), Copy)


# The first query.


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_history_means_a_full_answer(kind):
    plan = kind(rule="paper").plan(ORIGIN, SETTING, History())
    outcome, events = run(plan, Quadratic(SLOPE), SeededNoise(0))
    assert outcome.details["start"] == "cold"
    assert outcome.details["gradients"] == 299
    assert mu_of(price(events)) == pytest.approx(gdp.mu(0.01, 1e-7), rel=1e-6)
    ours = kind().plan(ORIGIN, SETTING, History())
    assert mu_of(price(ours.events)) == pytest.approx(gdp.mu(0.01, 1e-7), rel=1e-6)


def test_the_papers_first_query_uses_its_sigma_and_rate():
    plan = dpx.Adaptive(calibration="paper").plan(ORIGIN, SETTING, History()).plan
    sigma = paper.adaptive_sigma(SIZE, 0.01, 1e-7, 300)
    assert plan.gaussian.sigma / SIZE == pytest.approx(sigma, rel=1e-3)
    assert plan.schedule.gradients == 299
    assert plan.schedule.rate == pytest.approx(1 / sqrt(1 + WIDTH * sigma**2), rel=1e-6)


# The paper's rule made private.


def measured_plan(kind=dpx.Adaptive, **keywords):
    plan = kind(rule="paper", plane="paper", **keywords).plan(ORIGIN, SETTING, far())
    assert isinstance(plan, MeasuredDescent)
    return plan


def test_the_noise_floor_by_hand():
    """σ_min = √299/(m̄ μ √0.99) = 0.012582 at m̄ = 500,000, so √n σ_min = 0.025165."""
    assert measured_plan().floor == pytest.approx(2 * sqrt(299 / 0.99) / (SIZE * gdp.mu(0.01, 1e-7)), rel=1e-4)
    assert measured_plan().floor == pytest.approx(0.025165, rel=1e-3)


@pytest.mark.parametrize(
    ("beta", "adaptive", "enhanced", "sigma"),
    [
        (0.0, 18, 2, 0.025165 / 2),  # below the floor: σ_min; T' = 716.5·0.025165 = 18.03, or at least 2
        (0.01, 18, 7, 0.025165 / 2),
        (0.1, 72, 72, 0.05),  # above it: σ = β/√n
        (0.45, 300, 300, 0.225),  # a ≤ 1/2
        (1.5, 300, 300, 0.75),  # β ≥ 1
    ],
)
def test_iterations_and_noise_follow_from_the_released_norm(beta, adaptive, enhanced, sigma):
    for kind, expected in ((dpx.Adaptive, adaptive), (dpx.Enhanced, enhanced)):
        gaussian, rate, iterations = measured_plan(kind).settings(beta)
        assert iterations == expected
        assert gaussian.sigma / SIZE == pytest.approx(sigma, rel=1e-3)
        assert rate == pytest.approx(paper.warm_rate(WIDTH, gaussian.sigma / SIZE, beta, 300))


@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_case_is_reserved_and_what_ran_is_settled(kind):
    plan = measured_plan(kind)
    outcome, events = run(plan, Quadratic(point_at(0.8)), SeededNoise(1))  # ‖∇L‖ = 0.2·0.5 = 0.1 at the start
    norm, gradients = events
    assert outcome.details["beta"] == pytest.approx(0.1, abs=0.02)
    assert norm == plan.events[0]
    assert mu_of(norm.quanta) == pytest.approx(gdp.mu(0.01, 1e-7) * sqrt(NORM_SHARE), rel=1e-6)
    assert gradients.count == outcome.details["gradients"] == plan.settings(outcome.details["beta"])[2] - 1
    assert price(events) <= price(plan.events)
    assert mu_of(price(plan.events)) <= gdp.mu(0.01, 1e-7)


@given(beta=st.floats(0, 10), kind=st.sampled_from(KINDS), steps=st.integers(2, 400), epsilon=st.floats(0.001, 5))
@settings(deadline=None, max_examples=examples(60))
def test_no_released_norm_costs_more_than_was_reserved(beta, kind, steps, epsilon):
    plan = measured_plan(kind, steps=steps, epsilon=epsilon)
    near = plan.floor * (1 + 2e-9)
    for value in (beta, plan.floor * beta, near, plan.floor):
        gaussian, _, iterations = plan.settings(value)
        ran = GaussianEvent("gradient", gaussian.rounded_sensitivity, gaussian.sigma, iterations - 1)
        assert price((plan.events[0], ran)) <= price(plan.events)
    assert mu_of(price(plan.events)) <= gdp.mu(epsilon, 1e-7) * (1 + 1e-12)


def test_the_start_is_the_neighbour_until_there_is_enough_to_predict_from():
    assert measured_plan().start.kind == "neighbour"
    assert (measured_plan().start.values == SLOPE).all()
    rng = np.random.default_rng(0)
    many = history(*((rng.random(WIDTH), SLOPE + rng.normal(size=WIDTH) * 0.01) for _ in range(20)))
    plan = dpx.Adaptive(rule="paper").plan(point_at(3.0), SETTING, many)
    assert plan.start.kind == "prediction"


# Our rule.


def linear_past(noise, count=40, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((count, WIDTH))
    return history(*((z, 0.4 + 0.2 * z + rng.normal(size=WIDTH) * noise / 2) for z in points))


def test_a_good_prediction_makes_the_answer_cheap_and_the_way_short():
    """Answers of length 1 with error of length about r around a linear map: the share of the price is about r, or r² enhanced."""
    enhanced = dpx.Enhanced().plan(ORIGIN + 0.5, SETTING, linear_past(0.5))
    adaptive = dpx.Adaptive().plan(ORIGIN + 0.5, SETTING, linear_past(0.5))
    distance = adaptive.details["distance"]
    assert distance == pytest.approx(0.5, rel=0.2)
    full = gdp.mu(0.01, 1e-7)
    assert mu_of(price(adaptive.events)) == pytest.approx(full * sqrt(distance), rel=1e-6)
    assert mu_of(price(enhanced.events)) == pytest.approx(full * distance, rel=1e-6)
    cold = dpx.Adaptive().plan(ORIGIN + 0.5, SETTING, History())
    assert adaptive.plan.schedule.travel < sqrt(distance) * cold.plan.schedule.travel
    assert adaptive.plan.start[:WIDTH] == pytest.approx(np.full(WIDTH, 0.5), abs=0.15)


@pytest.mark.parametrize(("plane", "size", "power"), [("paper", 2000, 0.75), ("paper", SIZE, 0.5), ("fitted", 2000, 0.5)])
def test_the_paper_plane_walks_less_from_a_prediction_where_noise_dominates(plane, size, power):
    """√r of the way, and r^(3/4) where a longer walk would mostly add noise. The price is the share r either way."""
    plan = dpx.Adaptive(plane=plane).plan(ORIGIN + 0.5, replace(SETTING, size=size), linear_past(0.5))
    distance, mu = plan.details["distance"], mu_of(price(plan.events))
    root = travel_of(plan.plan.gradient, mu, sqrt(distance))
    assert plan.plan.schedule.travel == pytest.approx(distance ** (power - 0.5) * root, rel=1e-5)
    assert mu == pytest.approx(gdp.mu(0.01, 1e-7) * sqrt(distance), rel=1e-6)


def test_answers_that_noise_has_shortened_are_no_evidence():
    """Short answers that differ by as much as they are long: a tenth of the radius, and nevertheless a full price."""
    rng = np.random.default_rng(0)
    noise = history(*((z, 0.05 * rng.normal(size=WIDTH)) for z in rng.random((40, WIDTH))))
    plan = dpx.Adaptive().plan(ORIGIN + 0.5, SETTING, noise)
    assert plan.details["share"] > 0.95
    silent = history(*((z, np.zeros(WIDTH)) for z in rng.random((40, WIDTH))))
    assert dpx.Adaptive().plan(ORIGIN + 0.5, SETTING, silent).details["start"] == "cold"


def test_the_share_never_falls_below_the_floor():
    for kind in KINDS:
        plan = kind().plan(ORIGIN + 0.5, SETTING, linear_past(1e-6))
        assert plan.details["share"] == pytest.approx(0.1)
        assert mu_of(price(plan.events)) == pytest.approx(gdp.mu(0.01, 1e-7) * sqrt(0.1), rel=1e-6)


def test_a_useless_or_far_history_means_a_full_answer():
    assert dpx.Adaptive().plan(ORIGIN + 0.5, SETTING, linear_past(60.0)).details["start"] == "cold"
    near, away = (dpx.Adaptive().plan(np.full(WIDTH, z), SETTING, linear_past(0.3)) for z in (0.5, 30.0))
    assert away.details["distance"] > 2 * near.details["distance"]


# To the letter.


def literal(kind=dpx.Adaptive, past=None, **keywords):
    plan = kind(calibration="paper", **keywords).plan(ORIGIN, SETTING, past or far())
    assert isinstance(plan, PaperDescent)
    return plan


@pytest.mark.parametrize(
    ("beta", "adaptive", "enhanced"),
    [(0.01, 300, 7), (0.1, 300, 72), (0.6, 300, 300), (1.5, 300, 300)],
)
def test_the_letter_of_algorithm_3(beta, adaptive, enhanced):
    """At m = 500,000 the printed σ_min is 0.2713, so √n σ_min = 0.5426 > 0.4187: T' = T whatever β (erratum 8)."""
    floor = 2 * paper.adaptive_sigma(SIZE, 0.01, 1e-7, 300)
    assert floor == pytest.approx(0.5426, abs=1e-3)
    for kind, expected in ((dpx.Adaptive, adaptive), (dpx.Enhanced, enhanced)):
        sigma, rate, iterations = literal(kind).settings(beta)
        assert iterations == expected
        assert sigma == pytest.approx(max(beta / 2, floor / 2))
        assert rate == pytest.approx(paper.warm_rate(WIDTH, sigma, beta, 300))


def test_the_selection_has_the_exponential_mechanisms_law_and_price():
    """Two candidates whose m ε_ite ‖∇L‖/2 differ by ln 4: chosen in the ratio 4 : 1."""
    step = paper.step_epsilon(0.01, 1e-7, 300)
    apart = log(4) * 2 / (step * SIZE * 0.2)  # ‖∇L‖ = 0.2 ‖φ - optimum‖
    plan = literal(past=history((np.ones(WIDTH), point_at(0.0)), (2 * np.ones(WIDTH), point_at(apart))), radius=1e6)
    noise, rows = SeededNoise(3), Quadratic(ORIGIN)
    chosen = np.mean([Door(rows, noise, plan.events).select(plan.selection) == 0 for _ in range(4000)])
    assert chosen == pytest.approx(0.8, abs=0.03)
    selection = literal().events[0]
    assert isinstance(selection, PureEvent)
    assert selection.epsilon == pytest.approx(step, rel=1e-4)


def test_a_copied_answer_is_a_candidate_again_as_in_algorithm_3():
    """Algorithm 2 appends copies to the history that Algorithm 3 draws from, so an answer that was given twice is twice as likely."""
    past = History.of(
        [
            ReleasedAnswer(np.ones(WIDTH), point_at(0.1)),
            ReleasedAnswer(2 * np.ones(WIDTH), point_at(-0.1)),
            ReleasedAnswer(np.ones(WIDTH), point_at(0.1), copied=True),
        ]
    )
    plan, noise, rows = literal(past=past), SeededNoise(3), Quadratic(ORIGIN)
    assert np.array_equal(plan.selection.candidates, [point_at(0.1), point_at(-0.1), point_at(0.1)])
    chosen = np.array([Door(rows, noise, plan.events).select(plan.selection) for _ in range(3000)])
    assert np.mean(chosen != 1) == pytest.approx(2 / 3, abs=0.03)  # all have the same gradient norm


@pytest.mark.parametrize("kind", KINDS)
def test_the_papers_bookkeeping_is_shown_beside_the_exact_price(kind):
    mechanism = kind(calibration="paper")
    first, events = run(mechanism.plan(ORIGIN, SETTING, History()), Quadratic(SLOPE), SeededNoise(0), private=False)
    past = History.of([ReleasedAnswer(np.ones(WIDTH), first.values, details=first.details)])
    second, _ = run(mechanism.plan(ORIGIN, SETTING, past), Quadratic(SLOPE), SeededNoise(0), private=False)
    step = paper.step_epsilon(0.01, 1e-7, 300)
    taken = second.details["gradients"]
    each = paper.gradient_epsilon(
        SIZE, mechanism.plan(ORIGIN, SETTING, past).settings(second.details["exact_beta"])[0], 1e-7, 300
    )
    assert first.details["paper"]["epsilon"] == pytest.approx(paper.strong_composition([step] * 299, 5e-8))
    expected = paper.strong_composition([step] * 299 + [step] + [each] * taken, 5e-8)
    assert second.details["paper"]["total_epsilon"] == pytest.approx(expected)
    assert first.details["paper"]["epsilon"] < 0.01  # what the paper claims a query costs
    assert gdp.epsilon(mu_of(price(events)), 1e-7) < 0.0005  # what its noise really costs


def test_the_papers_calibration_says_that_it_is_not_private_and_refuses_a_ledger(tmp_path):
    data, mechanism = private_data(), dpx.Adaptive(calibration="paper", steps=20)
    assert not mechanism.private
    with pytest.raises(NotPrivateError, match="offline reproduction"):
        dpx.Explainer(data, dpx.Budget(1, 1e-6), mechanism, ledger=f"sqlite:///{tmp_path}/x.ledger")
    answer = dpx.Explainer(data, dpx.Budget(1, 1e-6), mechanism).explain([0.5, 0.5])
    assert "NOT differentially private" in str(answer.guarantee)
    assert "NOT differentially private" in str(data.spent)
    later = dpx.Explainer(data, dpx.Budget(1, 1e-6), dpx.Basic(0.1, 1e-6, steps=5)).explain([0.1, 0.5])
    assert not later.guarantee.private  # what was read once stays read


# With an explainer.


def private_data(rows=2000, width=2, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.random((rows, width))
    return dpx.PrivateData(table, dpx.Domain.encoded(width), labels=np.sign(table[:, 0] - 0.5))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", [{}, {"rule": "paper"}, {"calibration": "paper"}])
def test_a_budget_that_ends_in_mid_sequence_ends_it_before_a_row_is_read(kind, mode, monkeypatch):
    data, mechanism = private_data(width=9), kind(epsilon=0.2, delta=1e-6, steps=60, **mode)
    first = mu_of(price(mechanism.plan(np.zeros(9), data.setting, History()).events))
    budget = dpx.Budget(gdp.epsilon(first * sqrt(3.5), 1e-6), 1e-6)
    explainer, rng = dpx.Explainer(data, budget, mechanism, noise=SeededNoise(1)), np.random.default_rng(2)
    answers = explainer.explain_many(rng.random((3000, 9)))
    assert len(answers) < answers.asked == 3000
    assert answers[-1].guarantee.mu == explainer.spent.mu <= budget.mu
    assert answers.refusal.requested.mu > answers.refusal.remaining.mu
    assert explainer.history.computed_count >= 2
    monkeypatch.setattr(data, "_rows", None)
    known = explainer.history[0].point
    assert explainer.explain(known).cost.mu == 0  # a copy is free, also when nothing is left


@pytest.mark.parametrize(
    "wrong", [{"rule": "mine"}, {"calibration": "none"}, {"steps": 1}, {"epsilon": 0}, {"delta": 1}, {"radius": -1}, {"norm": 3}]
)
@pytest.mark.parametrize("kind", KINDS)
def test_meaningless_parameters_are_refused(kind, wrong):
    with pytest.raises(ParameterError):
        kind(**wrong)


def test_mechanisms_describe_themselves():
    assert dpx.Adaptive().to_dict()["rule"] == "history"
    paper_plane = dpx.Enhanced(plane="paper").to_dict()
    assert dpx.Enhanced(calibration="paper").to_dict() == {**paper_plane, "calibration": "paper", "rule": "paper"}
    assert dpx.Adaptive().plane == "fitted"
    assert replace(dpx.Adaptive(), epsilon=0.1).epsilon == 0.1


# Errata 3 and 6.


def test_erratum_3_prices_chosen_from_outputs_are_added_by_the_filter():
    """Each price follows from earlier answers, so strong composition for fixed parameters does not apply; μ² adds up as it runs."""
    data = private_data(width=5)
    explainer = dpx.Explainer(data, dpx.Budget(3, 1e-6), dpx.Adaptive(0.2, 1e-6, 40), noise=SeededNoise(0))
    answers = explainer.explain_many(np.random.default_rng(1).random((25, 5)))
    prices = [answer.cost.mu for answer in answers]
    assert len(set(prices)) > 5  # they do depend on what came before
    assert explainer.spent.mu == pytest.approx(np.linalg.norm(prices), rel=1e-9)
    running = [answer.guarantee.mu for answer in answers]
    assert running == sorted(running)


@pytest.mark.parametrize("mode", [{}, {"rule": "paper"}])
def test_erratum_6_the_starting_point_is_free(mode):
    """Choosing it from public history needs no exponential mechanism: only Gaussian releases are paid for."""
    plan = dpx.Adaptive(**mode).plan(np.full(WIDTH, 0.5), SETTING, linear_past(0.3))
    assert all(isinstance(event, GaussianEvent) for event in plan.events)
    assert {event.what for event in plan.events} <= {"gradient norm", "gradient"}


# Erratum 1: exact β shows.


def neighbours():
    """Two data sets that differ in one record, and a history of one answer."""
    rng = np.random.default_rng(5)
    rows = rng.random((400, 2))
    labels = np.sign(rows[:, 0] - 0.5)
    domain = dpx.Domain.encoded(2)
    full = dpx.PrivateData(rows, domain, labels=labels, size=400)
    less = dpx.PrivateData(rows[1:], domain, labels=labels[1:], size=400)
    return full, less, history((np.ones(2) * 5, np.array([0.9, 0.1])))


def prices(mechanism, data, past, runs, seed):
    plan = mechanism.plan(np.array([0.4, 0.5]), data.setting, past)
    noise, rows = SeededNoise(seed), Quadratic(ORIGIN)
    rows.moments = data._rows.local(plan.query)
    return np.array([mu_of(price(run(plan, rows, noise, private=mechanism.private)[1])) for _ in range(runs)])


@pytest.mark.parametrize("kind", KINDS)
def test_erratum_1_exact_beta_separates_neighbours_by_the_spent_budget_alone(kind):
    full, less, past = neighbours()
    exact = kind(epsilon=200, delta=1e-6, steps=300, calibration="paper")
    seen, unseen = prices(exact, full, past, 3, 1), prices(exact, less, past, 3, 2)
    assert len({*seen}) == len({*unseen}) == 1  # noise cannot hide it: the price is a function of the data …
    assert seen[0] != unseen[0]  # … and one look at the bill tells who is in them


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_erratum_1_a_released_norm_does_not_separate_them(kind):
    full, less, past = neighbours()
    private, runs = kind(epsilon=2, delta=1e-6, steps=20, rule="paper", plane="paper"), 500
    seen, unseen = prices(private, full, past, runs, 1), prices(private, less, past, runs, 2)
    thresholds = np.unique(np.concatenate([seen, unseen]))
    assert len(thresholds) > 50  # prices vary with the noise
    below = [np.searchsorted(np.sort(one), thresholds, side="right") / runs for one in (seen, unseen)]
    promised = gdp.delta(gdp.mu(2, 1e-6) * sqrt(NORM_SHARE), 0.0)  # the total variation of μ_β-GDP
    assert np.abs(below[0] - below[1]).max() <= promised + 2 * sqrt(log(2 / 1e-6) / (2 * runs))
