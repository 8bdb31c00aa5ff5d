"""Answers without error bars say what error to expect: a guess from public numbers, of the right size."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain.encoded(12)


def data(count=12_000):
    rng = np.random.default_rng(0)
    X = rng.random((count, 12))
    return X, dpx.PrivateData(X, DOMAIN, labels=np.tanh(2 * X[:, 0] - 2 * X[:, 1] + X[:, 2] - 0.5))


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_guess_has_the_size_of_the_error(epsilon):
    X, private = data()
    basic = dpx.Basic(epsilon=epsilon, delta=1e-6, by="descent")
    explainer = dpx.Explainer(private, dpx.Budget(50.0, 1e-5), basic, noise=SeededNoise(1))
    ratios = []
    for point in X[:6]:
        answer = explainer.explain(point)
        off = answer.values - evaluation.optimum(private, point)
        ratios.append(np.sqrt(np.square(off).mean()) / answer.details["expected"]["error"])
    assert 1 / 20 < np.median(ratios) < 5  # twelve uniform numbers are easier than most tables


def test_every_surface_says_that_it_is_a_forecast_and_bars_need_none():
    X, private = data(2_000)
    explainer = dpx.Explainer(
        private, dpx.Budget(2.0, 1e-6), dpx.Basic(epsilon=0.5, delta=1e-6, by="descent"), noise=SeededNoise(1)
    )
    answer = explainer.explain(X[0], request_id="a")
    assert answer.expectation.startswith("This mechanism gives no error bars")
    assert "not measured on these data" in answer.expectation
    assert answer.expectation in answer._repr_html_()
    assert answer.to_dict()["details"]["expected"]["text"] == answer.expectation
    assert explainer.explain(X[0], request_id="a").expectation == answer.expectation  # from the ledger
    release = dpx.release(private, dpx.Budget(1.0, 1e-6), noise=SeededNoise(1))
    assert release.explain(X[0]).expectation == ""
    influence = dpx.Explainer(private, dpx.Budget(2.0, 1e-6), dpx.Influence(0.5, 1e-6), noise=SeededNoise(1)).explain(X[0])
    assert influence.expectation == ""
