"""Faithfulness and stability on models whose values are known by hand, in the direction that Quantus and OpenXAI give them."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.errors import ParameterError
from dpexplain.evaluation import Nearby

DOMAIN = dpx.Domain(
    [dpx.Numeric("a", 0, 1), dpx.Numeric("b", 0, 1), dpx.Categorical("c", values=["x", "y", "z"]), dpx.Binary("d")]
)
SLOPES = np.array([0.4, -0.1, 0.3, 0.0, -0.2, 0.05])
RECORD = {"a": 1.0, "b": 1.0, "c": "x", "d": True}
EMPTY = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])  # a = b = 0, c = y, d = no
POINT = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 1.0])


def linear(rows):
    return rows @ SLOPES


def test_deletion_and_insertion_of_a_linear_model():
    """Contributions against the baseline are a 0.4, b -0.1, c 0.3, d 0.05: deleted in the order a, c, d, b."""
    away = evaluation.deletion(SLOPES, linear, DOMAIN, RECORD, EMPTY)
    assert away.answers == pytest.approx([0.65, 0.25, -0.05, -0.1, 0.0])
    assert away.area == pytest.approx((0.65 / 2 + 0.25 - 0.05 - 0.1 + 0.0) / 4)
    back = evaluation.insertion(SLOPES, linear, DOMAIN, RECORD, EMPTY)
    assert back.answers == pytest.approx([0.0, 0.4, 0.7, 0.75, 0.65])
    backwards = evaluation.deletion(-SLOPES, linear, DOMAIN, RECORD, EMPTY)
    assert backwards.area > away.area  # lower is better
    assert evaluation.insertion(-SLOPES, linear, DOMAIN, RECORD, EMPTY).area < back.area  # higher is better


def test_an_answer_of_the_other_class_is_turned_round():
    away = evaluation.deletion(-SLOPES, lambda rows: -linear(rows), DOMAIN, RECORD, EMPTY)
    assert away.answers == pytest.approx([0.65, 0.25, -0.05, -0.1, 0.0])


def test_contributions_give_the_same_curves_as_slopes():
    contributions = np.array([0.4, -0.1, 0.3, 0.0, 0.0, 0.05])
    for curve in (evaluation.deletion, evaluation.insertion):
        ours = curve(contributions, linear, DOMAIN, RECORD, EMPTY, kind="contribution")
        assert ours.answers == pytest.approx(curve(SLOPES, linear, DOMAIN, RECORD, EMPTY).answers)
    several = evaluation.deletion(SLOPES, linear, DOMAIN, RECORD, np.stack([EMPTY, POINT]))
    assert several.answers[-1] == pytest.approx((0.0 + 0.65) / 2)
    with pytest.raises(ParameterError, match="kind"):
        evaluation.deletion(SLOPES, linear, DOMAIN, RECORD, EMPTY, kind="gradient")


def test_prediction_gaps_of_a_linear_model():
    near = Nearby(scale=0.2, flip=0.5, samples=4000)
    middle = np.array([0.5, 0.5, 1.0, 0.0, 0.0, 1.0])
    only_d = evaluation.pgi(np.array([0, 0, 0, 0, 0, 1.0]), linear, DOMAIN, middle, 1, near=near)
    assert only_d == pytest.approx(0.5 * 0.05, rel=0.1)  # half of the time it flips
    only_c = evaluation.pgi(np.array([0, 0, 1.0, 0, 0, 0]), linear, DOMAIN, middle, 1, near=near)
    assert only_c == pytest.approx(0.5 * (0.3 + 0.5) / 2, rel=0.1)  # another category, both alike
    only_a = evaluation.pgi(np.array([1.0, 0, 0, 0, 0, 0]), linear, DOMAIN, middle, 1, near=near)
    assert only_a == pytest.approx(0.4 * 0.2 * np.sqrt(2 / np.pi), rel=0.1)
    assert evaluation.pgu(SLOPES, linear, DOMAIN, middle, 4, near=near) == 0  # nothing is left to perturb
    right, wrong = SLOPES, SLOPES[[5, 1, 3, 3, 3, 0]]
    assert evaluation.pgi(right, linear, DOMAIN, middle, 2, near=near) > evaluation.pgi(
        wrong, linear, DOMAIN, middle, 2, near=near
    )
    assert evaluation.pgu(right, linear, DOMAIN, middle, 2, near=near) < evaluation.pgu(
        wrong, linear, DOMAIN, middle, 2, near=near
    )


def test_infidelity_is_zero_for_the_truth_and_known_for_nothing():
    near = Nearby(flip=0.5, samples=4000)
    model = lambda rows: 0.2 * rows[:, 5]  # noqa: E731
    truth = 0.2 * np.eye(6)[5]
    assert evaluation.infidelity(truth, model, DOMAIN, RECORD, near=near) == pytest.approx(0, abs=1e-20)
    assert evaluation.infidelity(np.zeros(6), model, DOMAIN, RECORD, near=near) == pytest.approx(0.5 * 0.04, rel=0.1)
    assert evaluation.infidelity(3 * truth, model, DOMAIN, RECORD, near=near) == pytest.approx(4 * 0.5 * 0.04, rel=0.1)
    assert evaluation.infidelity(3 * truth, model, DOMAIN, RECORD, near=near, rescaled=True) == pytest.approx(0, abs=1e-20)


def test_infidelity_of_contributions_is_about_absent_features():
    contributions = np.array([0.4, -0.1, 0.3, 0.0, 0.0, 0.05])
    found = evaluation.infidelity(contributions, linear, DOMAIN, RECORD, kind="contribution", baseline=EMPTY)
    assert found == pytest.approx(0, abs=1e-20)
    wrong = evaluation.infidelity(2 * contributions, linear, DOMAIN, RECORD, kind="contribution", baseline=EMPTY)
    expected = 0.5 * 0.5 * (0.16 + 0.01 + 0.09 + 0.0025) + (0.5 * 0.65) ** 2  # E(Σ absent)²: variance and mean
    assert wrong == pytest.approx(expected, rel=0.25)
    with pytest.raises(ParameterError, match="baseline="):
        evaluation.infidelity(contributions, linear, DOMAIN, RECORD, kind="contribution")


def test_stability_of_explanations_that_follow_the_query():
    near = Nearby(samples=50)
    assert evaluation.max_sensitivity(lambda _: SLOPES, DOMAIN, RECORD, near=near) == 0
    assert evaluation.lipschitz(lambda _: SLOPES, DOMAIN, RECORD, near=near) == 0
    assert evaluation.lipschitz(lambda point: 3 * point, DOMAIN, RECORD, near=near) == pytest.approx(3)
    moved = near.draw(POINT, DOMAIN)
    largest = np.linalg.norm(moved - POINT, axis=1).max() / np.linalg.norm(POINT)
    assert evaluation.max_sensitivity(lambda point: 3 * point, DOMAIN, RECORD, near=near) == pytest.approx(largest)


def test_private_explanations_are_measured_like_others():
    rng = np.random.default_rng(0)
    rows = {
        "a": rng.random(5000),
        "b": rng.random(5000),
        "c": rng.choice(["x", "y", "z"], 5000).astype(object),
        "d": rng.random(5000) < 0.5,
    }
    data = dpx.PrivateData(rows, DOMAIN, model=lambda given: linear(DOMAIN.encode(given)))
    explainer = dpx.Explainer(data, dpx.Budget(100, 1e-6), dpx.Basic(1.0, 1e-6))
    private = explainer.explain(RECORD)
    assert (
        evaluation.deletion(private, linear, DOMAIN, RECORD, EMPTY).area
        < evaluation.deletion(-private.values, linear, DOMAIN, RECORD, EMPTY).area
    )
    ask = evaluation.at_points(explainer, DOMAIN)
    assert 0 < evaluation.max_sensitivity(ask, DOMAIN, RECORD, near=Nearby(samples=5)) < 2
    assert len(explainer.history) == 1 + 1 + 5  # every question was paid for


def test_perturbed_records_are_records():
    moved = Nearby(scale=0.5, flip=0.5, samples=500).draw(POINT, DOMAIN)
    assert (moved >= 0).all()
    assert (moved <= 1).all()
    assert (moved[:, 2:5].sum(axis=1) == 1).all()
    assert set(np.unique(moved[:, 5])) == {0.0, 1.0}
    for column in (2, 3, 4):
        assert 0 < moved[:, column].mean() < 1
    fixed = Nearby(samples=20).draw(POINT, DOMAIN, movable=np.array([True, False, False, False]))
    assert (fixed[:, 1:] == POINT[1:]).all()
    assert (Nearby(samples=20).draw(POINT, DOMAIN)[:, 0] == fixed[:, 0]).all()
    steps = dpx.Domain([dpx.Ordinal("school", levels=["low", "middle", "high"])])
    assert set(Nearby(scale=0.4).draw(np.array([0.5]), steps)[:, 0]) == {0.0, 0.5, 1.0}  # between levels there is no record
