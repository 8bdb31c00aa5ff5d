"""Anchored answers: a plane through the model's answer at the query, at the price of the larger labels it fits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.backends.oracle import OracleRows
from dpexplain.core import sensitivity, weights
from dpexplain.core.ball import Ball
from dpexplain.core.moments import LocalMoments
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy import gdp
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours
from dpexplain.service.config import mechanism_of
from hypothesis_support import examples

SLOPES = np.array([0.4, -0.3, 0.2, 0.0])
Z = np.array([0.9, 0.1, 0.8, 0.5])
WEIGHTS = [weights.Stable(1.0), weights.Gaussian(0.6), weights.Window(0.8), weights.Inverse(1.0)]
vectors = st.lists(st.floats(-2, 2), min_size=3, max_size=3).map(np.array)


def model(X):
    return X @ SLOPES


@pytest.fixture(scope="module")
def data():
    return dpx.PrivateData(np.random.default_rng(0).random((60_000, 4)), dpx.Domain.encoded(4), model=model)


@settings(max_examples=examples(200))
@given(st.sampled_from(WEIGHTS), vectors, vectors, st.floats(-1, 1), st.floats(-1, 1), vectors, st.floats(0.1, 3))
def test_no_record_moves_the_anchored_gradient_further(weight, x, z, y, anchor, direction, radius):
    moments = OracleRows(x[None], np.array([y])).local(LocalMoments(z, weight)).relabelled_from(anchor)
    bound = sensitivity.gradient(weight, radius, 1 + abs(anchor))
    assert np.linalg.norm(moments.gradient(Ball(radius).project(direction))) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("weight", WEIGHTS, ids=lambda w: w.kind)
def test_a_record_attains_the_bound(weight):
    distances = np.concatenate([np.geomspace(1e-9, 1e-2, 500), np.linspace(1e-2, 60, 200_001)])
    worst = distances[np.argmax(weight(distances) * distances * (distances + 1.7))]
    rows = OracleRows(np.array([[worst, 0.0]]), np.array([-1.0]))
    gradient = rows.local(LocalMoments(np.zeros(2), weight)).relabelled_from(0.7).gradient(np.array([1.0, 0.0]))
    assert np.linalg.norm(gradient) >= 0.98 * sensitivity.gradient(weight, 1.0, 1.7)


@pytest.mark.parametrize("answer", [-1.0, 0.0, 0.5, 7.0])
def test_a_query_costs_its_epsilon_whatever_the_model_answers(answer):
    mechanism = dpx.Basic(0.1, 1e-6, steps=101, plane="anchored", radius=1.0).with_model(lambda rows: np.full(len(rows), answer))
    planned = mechanism.plan(Z, Setting(4, 100_000, Neighbours(), 1e-13), History())
    assert mu_of(price(planned.events)) == pytest.approx(gdp.mu(0.1, 1e-6), rel=1e-6)
    assert mu_of(price(planned.events)) <= gdp.mu(0.1, 1e-6) * (1 + 1e-12)
    label = 1 + min(abs(answer), 1.0)
    expected = sensitivity.gradient(weights.Stable(), 1.0, label) * 10 / gdp.mu(0.1, 1e-6)
    assert planned.gaussian.sigma == pytest.approx(expected, rel=1e-4)


def test_answers_are_the_slopes_of_a_linear_model_and_plain_ones_are_not(data):
    budget, noise = dpx.Budget(50, 1e-6), SeededNoise(2)
    anchored = dpx.Explainer(data, budget, dpx.Basic(2.0, 1e-6, plane="anchored"), noise=noise).explain(Z)
    assert anchored.values == pytest.approx(SLOPES, abs=0.03)
    best = evaluation.optimum(data, Z, anchor=float(model(Z[None])[0]), radius=1.0)
    assert best == pytest.approx(SLOPES, abs=1e-4)  # float32 rows
    plain = dpx.Explainer(data, budget, dpx.Basic(2.0, 1e-6, plane="paper"), noise=noise).explain(Z)
    assert evaluation.agreement(plain.values, SLOPES).cosine < 0.95
    assert anchored.plane == "anchored"
    assert anchored.intercept == anchored.details["anchor"]
    assert anchored.details["anchor"] == pytest.approx(float(model(Z[None])[0]))
    assert "last_step" not in anchored.details  # `privacy.training` makes no statement about anchored answers


def test_what_is_missing_is_said_before_anything_is_spent():
    labelled = dpx.PrivateData(np.random.default_rng(0).random((50, 4)), dpx.Domain.encoded(4), labels=np.ones(50))
    explainer = dpx.Explainer(labelled, dpx.Budget(1, 1e-6), dpx.Basic(0.1, 1e-6, plane="anchored"))
    with pytest.raises(ParameterError, match="model="):
        explainer.explain(Z)
    assert explainer.spent.epsilon == 0
    with pytest.raises(ParameterError, match="paper"):
        dpx.Basic(0.1, 1e-6, calibration="paper", plane="anchored")
    assert mechanism_of({"kind": "basic", "plane": "anchored"}).plane == "anchored"
    assert "quantity" not in dpx.Basic().to_dict()
