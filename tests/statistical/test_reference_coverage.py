"""Error bars of explanations from reference data cover what they say: the noise, and the distance from the exact local optimum."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise.seeded import SeededNoise
from noise_support import Scaled

DOMAIN = dpx.Domain(
    [dpx.Numeric("x", 0, 1), dpx.Numeric("w", 0, 1), dpx.Categorical("c", values=["a", "b", "d"]), dpx.Binary("b")]
)
BUDGET, RUNS = dpx.Budget(1.0, 1e-6), 5


def people(m=60_000):
    rng = np.random.default_rng(0)
    hidden = rng.random(m)
    return {
        "x": np.clip(hidden + 0.2 * rng.standard_normal(m), 0, 1),
        "w": rng.beta(2, 3, m),
        "c": rng.choice(["a", "b", "d"], m, p=[0.5, 0.3, 0.2]),
        "b": rng.random(m) < 0.2 + 0.6 * hidden,
    }


def model(table):
    score = np.asarray(table["x"]) - 0.6 * np.asarray(table["w"]) + 0.3 * (np.asarray(table["c"]) == "a") * np.asarray(table["b"])
    return np.tanh(3 * (score - 0.3))


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def releases():
    """(data, one release without noise and with many records, the same with noise and fewer)."""
    data, budget = dpx.PrivateData(people(), DOMAIN, model=model), dpx.Budget(100.0, 1e-6)
    quiet = dpx.release(data, budget, spend=BUDGET, reference=32_768, noise=Scaled(SeededNoise(1), 0.0))
    return data, quiet, [dpx.release(data, budget, spend=BUDGET, reference=4096, noise=SeededNoise(seed)) for seed in range(RUNS)]


@pytest.mark.parametrize("weight", [dpx.weights.Stable(), dpx.weights.Gaussian(0.7)], ids=["stable", "gaussian"])
def test_two_errors_cover_about_as_often_as_they_should(releases, weight):
    data, quiet, noisy = releases
    records = [{name: column[i] for name, column in people().items()} for i in range(8)]
    exact = np.array([evaluation.optimum(data, record, weight=weight) for record in records])
    answers = [release.explain_many(records, weight) for release in noisy]
    for truth, least in ((quiet.explain_many(records, weight).values, 0.85), (exact, 0.8)):
        z = np.abs([(answer.values - truth) / answer.error for answer in answers])
        assert (z <= 2).mean() >= least
        assert np.median(z) > 0.15  # nor are they so wide as to say nothing
