"""Influence from a release: free, for any weight, close to the exact sum."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain(
    [dpx.Numeric("a", 0, 1), dpx.Numeric("b", 0, 1), dpx.Categorical("c", values=["x", "y", "z"]), dpx.Binary("d")]
)
RECORD = {"a": 0.2, "b": 0.7, "c": "x", "d": True}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    a = rng.random(20_000)
    rows = {
        "a": a,
        "b": np.clip(a + 0.3 * rng.standard_normal(20_000), 0, 1),
        "c": rng.choice(list("xyz"), 20_000),
        "d": rng.random(20_000) < a,
    }
    return dpx.PrivateData(rows, DOMAIN, labels=np.sign(a - 0.3 + 0.2 * (rows["c"] == "x")))


@pytest.fixture(scope="module")
def release(data):
    return dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(2))


@pytest.mark.parametrize(
    "weight", [None, dpx.weights.Gaussian(1.5), dpx.weights.Window(10.0)], ids=["stable", "gaussian", "uniform"]
)
def test_it_is_close_to_the_exact_sum_and_costs_nothing(data, release, weight):
    found = release.influence(RECORD, weight)
    truth = evaluation.mim(data, RECORD, others="against", weight=weight)
    assert evaluation.agreement(found.values, truth).cosine > 0.995
    assert np.abs(found.values - truth).max() < 0.06 * np.abs(truth).max() + 4 * found.error.max()
    assert found.cost.epsilon == 0
    assert found.guarantee == release.guarantee
    assert found.details["quantity"] == "influence"


def test_rows_that_count_alike_need_no_reference(data, release):
    """Then the sum is t₁ + t₀(μ - z), and its error that of the moments."""
    solver, z = release.solver, DOMAIN.encode_query(RECORD)
    values, error = solver.influence(z, dpx.weights.Window(10.0))
    weighted = solver.t1 + solver.t0 * (solver.mean - z)
    assert values == pytest.approx(weighted, abs=0.05)  # rows of a release are normalised, which the reference undoes
    assert (error >= solver.noise.t1).all()
