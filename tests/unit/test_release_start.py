"""A release gives adaptive descents a free place to start from."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.evaluation import score
from dpexplain.noise.seeded import SeededNoise

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.random((40_000, 5))
    return dpx.PrivateData(X, dpx.Domain.encoded(5), labels=np.sign(X[:, 0] - X[:, 1] + 0.3 * X[:, 2] - 0.1))


@pytest.mark.parametrize("make", [dpx.Adaptive, dpx.Enhanced])
def test_the_first_answer_starts_from_the_release_and_costs_less(data, make):
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(0))
    mechanism, z = make(epsilon=0.1, delta=1e-6, by="descent"), np.full(5, 0.4)
    without = dpx.Explainer(data, dpx.Budget(1.0, 1e-6), mechanism, noise=SeededNoise(1)).explain(z)
    explainer = dpx.Explainer(data, dpx.Budget(1.0, 1e-6), mechanism, noise=SeededNoise(1), release=release)
    answer = explainer.explain(z)
    assert without.details["start"] == "cold"
    assert answer.details["start"] == "release"
    assert answer.cost.mu < 0.6 * without.cost.mu
    assert score(answer.values, data, z, plane="paper").relative_excess < 0.05


def test_basic_answers_stand_on_their_own(data):
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(0))
    basic, z = dpx.Basic(0.1, 1e-6, steps=20), np.full(5, 0.4)
    one = dpx.Explainer(data, dpx.Budget(1.0, 1e-6), basic, noise=SeededNoise(2), release=release).explain(z)
    two = dpx.Explainer(data, dpx.Budget(1.0, 1e-6), basic, noise=SeededNoise(2)).explain(z)
    assert (one.values == two.values).all()
