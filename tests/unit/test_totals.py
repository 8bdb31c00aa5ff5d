"""One data object has one total, and it shows where it grows: releases loaded from elsewhere, and releases beside each other."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import ParameterError
from dpexplain.privacy import gdp

BUDGET = dpx.Budget(1.0, 1e-6)
BOTH = gdp.epsilon(np.sqrt(2) * BUDGET.mu, 1e-6)  # 1.455


def private_data(**options):
    rng = np.random.default_rng(0)
    rows = rng.random((400, 3))
    return dpx.PrivateData(rows, dpx.Domain.encoded(3), labels=np.sign(rows[:, 0] - 0.5), **options)


def answer(data, release, **options):
    explainer = dpx.Explainer(data, BUDGET, dpx.Basic(1.0, 1e-6, steps=4), release=release, **options)
    return [explainer.explain([0.5, 0.4, 0.3]) for _ in range(2)]  # the budget pays for one; the other comes from the release


def test_a_loaded_release_is_composed_with_new_answers(tmp_path):
    dpx.release(private_data(), BUDGET).save(tmp_path / "x.dpx")
    data = private_data()
    paid, free = answer(data, dpx.load(tmp_path / "x.dpx"))
    assert paid.guarantee.epsilon == pytest.approx(BOTH, rel=1e-3)
    assert free.guarantee.epsilon == pytest.approx(BOTH, rel=1e-3)
    assert data.spent.epsilon == pytest.approx(BOTH, rel=1e-3)
    assert data.spent.mu >= np.sqrt(2) * paid.cost.mu * (1 - 1e-6)


def test_a_release_that_the_same_ledger_paid_for_is_counted_once(tmp_path):
    ledger, half = f"sqlite:///{tmp_path}/x.ledger", dpx.Budget(0.3, 1e-6)
    dpx.release(private_data(), BUDGET, spend=half, ledger=ledger).save(tmp_path / "x.dpx")
    data = private_data()
    explainer = dpx.Explainer(data, BUDGET, dpx.Basic(0.1, 1e-6, steps=4), ledger=ledger, release=dpx.load(tmp_path / "x.dpx"))
    explainer.explain([0.5, 0.4, 0.3])
    expected = np.hypot(half.mu, dpx.Budget(0.1, 1e-6).mu)
    assert data.spent.mu == pytest.approx(expected, rel=1e-5)
    assert explainer.spent.mu == pytest.approx(expected, rel=1e-5)


def test_two_explainers_with_one_release_count_it_once(tmp_path):
    dpx.release(private_data(), BUDGET).save(tmp_path / "x.dpx")
    data, release = private_data(), dpx.load(tmp_path / "x.dpx")
    for _ in range(2):
        dpx.Explainer(data, BUDGET, release=release)
    assert data.spent.mu == pytest.approx(release.guarantee.mu, rel=1e-9)


def test_a_release_made_from_the_same_object_is_counted_once():
    data = private_data()
    answer(data, dpx.release(data, BUDGET))
    assert data.spent.epsilon == pytest.approx(BOTH, rel=1e-3)


def test_a_second_release_of_the_same_data_states_the_total():
    data = private_data()
    first, second = dpx.release(data, BUDGET), dpx.release(data, BUDGET)
    assert "in total" not in str(first.guarantee)
    assert "it is (ε=1.46, δ=1e-06)-differential privacy in total" in str(second.guarantee)
    assert second.guarantee.epsilon == pytest.approx(1.0, rel=1e-3)  # its own price


def test_a_release_under_another_relation_is_refused(tmp_path):
    dpx.release(private_data(relation="replace-one"), BUDGET).save(tmp_path / "x.dpx")
    with pytest.raises(ParameterError, match="cannot be added"):
        answer(private_data(), dpx.load(tmp_path / "x.dpx"))
