"""Algorithm 1: what it plans from public numbers, what it pays, and how its answers behave."""

from functools import partial
from math import log, sqrt

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import ParameterError
from dpexplain.evaluation import optimum, score
from dpexplain.mechanisms.descent import free_travel_length, schedule, travel_length
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy import gdp, paper
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours, Relation


def setting(size=100_000, width=10, relation=Relation.ADD_REMOVE):
    return Setting(width, size, Neighbours(relation), 1e-13)


def plan(mechanism, **public):
    where = setting(**public)
    return mechanism.plan(np.zeros(where.width), where, History())


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 2.0])
@pytest.mark.parametrize("steps", [None, 2, 300])
@pytest.mark.parametrize("relation", Relation)
def test_a_query_costs_exactly_its_epsilon_and_delta(epsilon, steps, relation):
    planned = plan(dpx.Basic(epsilon, 1e-7, steps), relation=relation)
    mu = mu_of(price(planned.events))
    assert mu <= gdp.mu(epsilon, 1e-7) * (1 + 1e-12)
    assert mu == pytest.approx(gdp.mu(epsilon, 1e-7), rel=1e-6)
    if steps:
        assert planned.schedule.gradients == steps - 1  # T iterations, T-1 noisy gradients


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [dpx.Basic, dpx.Adaptive, partial(dpx.Adaptive, rule="paper")])
def test_a_budget_pays_for_one_query_of_the_same_price(mechanism):
    for steps in range(2, 400):
        epsilon = 0.01 * steps
        assert price(plan(mechanism(epsilon, 1e-6, steps)).events) <= dpx.Budget(epsilon, 1e-6).quanta


def test_the_noise_is_what_the_sensitivity_asks_for_and_little_more():
    planned = plan(dpx.Basic(0.1, 1e-6, steps=101, plane="paper"))
    assert planned.gaussian.sigma == pytest.approx(1.0 * sqrt(100) / gdp.mu(0.1, 1e-6), rel=1e-4)
    doubled = plan(dpx.Basic(0.1, 1e-6, steps=101, plane="paper"), relation=Relation.REPLACE_ONE)
    assert doubled.gaussian.sigma == pytest.approx(2 * planned.gaussian.sigma, rel=1e-4)
    wide = plan(dpx.Basic(0.1, 1e-6, steps=101, plane="paper", weight=dpx.weights.Gaussian(1.0)))
    assert wide.gaussian.sigma == pytest.approx(1.52707 * planned.gaussian.sigma, rel=1e-4)


def test_the_papers_calibration_uses_its_noise_and_steps_and_is_charged_what_it_really_costs():
    planned = plan(dpx.Basic(0.1, 1e-6, steps=200, calibration="paper"))
    printed = paper.basic_sigma(100_000, 0.1, 1e-6, 200)
    assert planned.gaussian.sigma / 100_000 == pytest.approx(printed, rel=1e-4)
    assert planned.schedule.steps[:2] == pytest.approx(np.array([1, 1 / sqrt(2)]) / sqrt(1 + 10 * printed**2))
    assert gdp.epsilon(mu_of(price(planned.events)), 1e-6) < 0.0045


def test_the_papers_calibration_is_named_in_every_guarantee_and_paid_exactly(tmp_path):
    """It is private, so a ledger takes it; but whoever reads the statement has to see that the noise is not the usual one."""
    table = np.random.default_rng(0).random((2000, 2))
    data = dpx.PrivateData(table, dpx.Domain.encoded(2), labels=np.sign(table[:, 0] - 0.5))
    mechanism, ledger = dpx.Basic(0.1, 1e-6, steps=20, calibration="paper"), f"sqlite:///{tmp_path}/x.ledger"
    answer = dpx.Explainer(data, dpx.Budget(1, 1e-6), mechanism, ledger=ledger).explain([0.5, 0.5])
    for stated in (answer.cost, answer.guarantee):
        assert stated.private
        assert "calibration='paper'" in stated.note
        assert "calibration='paper'" in str(stated)
    assert answer.cost.epsilon < 0.01  # what the noise costs, not the 0.1 that it was made for
    seeded = dpx.Explainer(data, dpx.Budget(1, 1e-6), mechanism, noise=SeededNoise(1)).explain([0.5, 0.5])
    assert "calibration='paper'" in seeded.cost.note
    assert "seed" in seeded.cost.note


def test_a_ledger_stores_that_the_papers_noise_was_used(tmp_path):
    """The total contains it for as long as the account exists, whoever answers later."""
    table = np.random.default_rng(0).random((2000, 2))
    labels, ledger = np.sign(table[:, 0] - 0.5), f"sqlite:///{tmp_path}/x.ledger"

    def ask(calibration, ledger):
        data = dpx.PrivateData(table, dpx.Domain.encoded(2), labels=labels)
        mechanism = dpx.Basic(0.1, 1e-6, steps=20, calibration=calibration, plane="paper")
        return dpx.Explainer(data, dpx.Budget(1, 1e-6), mechanism, ledger=ledger).explain(table[0]).guarantee

    assert "calibration" not in ask("exact", None).note
    assert "calibration" not in ask("exact", ledger).note
    assert "calibration='paper'" in ask("paper", ledger).note
    assert "calibration='paper'" in ask("exact", ledger).note


def test_the_schedule_depends_on_public_numbers_and_makes_sense():
    travels = travel_length(3.0, 70, 0.5), travel_length(3e4, 70, 0.5)
    noisy, clear = (schedule(travel, 0.5) for travel in travels)
    assert noisy.gradients == 50
    assert clear.gradients == 1000
    for steps in (noisy.steps, clear.steps):
        assert (np.diff(steps) <= 0).all()
        assert steps.max() <= 2.0  # 1/ℓ
        assert steps.min() > 0
    assert noisy.steps.sum() == pytest.approx(travels[0])
    for hopeless in (travel_length(1e-6, 70, 0.5), free_travel_length(1e-6, 0.5)):
        assert hopeless < 1e-11  # stay at zero
    assert free_travel_length(1e6, 0.5) == pytest.approx(1e6, rel=1e-4)
    assert schedule(travels[0], 0.5, gradients=7).gradients == 7


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.random((60_000, 6))
    y = np.sign(X[:, 0] - X[:, 1] ** 2 + 0.2 * X[:, 2] - 0.2)
    return dpx.PrivateData(X, dpx.Domain.encoded(6), labels=y)


@pytest.mark.parametrize("norm", [1, 2])
def test_answers_come_close_to_the_optimum_and_stay_in_the_ball(data, norm):
    explainer = dpx.Explainer(data, dpx.Budget(5, 1e-6), dpx.Basic(0.5, 1e-6, norm=norm, plane="paper"), noise=SeededNoise(1))
    z = np.full(6, 0.4)
    explanation = explainer.explain(z)
    assert np.linalg.norm(explanation.values, norm) <= 1
    result = score(explanation.values, data, z, norm=norm, plane="paper")
    assert result.relative_excess < 0.02
    assert result.cosine > 0.99
    best = optimum(data, z, norm=norm, plane="paper")
    assert score(best, data, z, norm=norm, plane="paper").relative_excess == pytest.approx(0, abs=1e-9)
    assert score(np.zeros(6), data, z, norm=norm, plane="paper").relative_excess == pytest.approx(1)


def test_hopeless_noise_stays_near_no_explanation(data):
    small = dpx.PrivateData(np.random.default_rng(0).random((100, 6)), data.domain, labels=np.ones(100))
    explainer = dpx.Explainer(small, dpx.Budget(1, 1e-6), dpx.Basic(0.001, 1e-6), noise=SeededNoise(1))
    assert np.linalg.norm(explainer.explain(np.full(6, 0.5)).values) < 0.15


@pytest.mark.parametrize(
    "keywords",
    [
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"delta": 0},
        {"delta": 1},
        {"steps": 1},
        {"steps": 0},
        {"steps": -3},
        {"steps": 2.5},
        {"calibration": "loose"},
        {"radius": 0},
        {"radius": float("inf")},
        {"norm": 3},
    ],
)
def test_meaningless_parameters_are_refused_when_the_mechanism_is_made(keywords):
    with pytest.raises(ParameterError):
        dpx.Basic(**{"epsilon": 0.1, "delta": 1e-6, **keywords})


def test_reuse_distance_of_the_paper():
    assert paper.reuse_distance(300) == pytest.approx(log(300) / sqrt(300))
