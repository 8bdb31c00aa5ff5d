"""Missing values of a code are counted by themselves, so that a release tells a few of them from none."""

from dataclasses import replace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.backends.oracle import OracleRows
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import NormalisedMoments
from dpexplain.estimation.denoise import estimate
from dpexplain.noise import SeededNoise

LAYOUT = Layout((0, 1), (1, 13), (True, False))
SIGMA = 12.0  # of a release from 20,000 rows at about ε = 0.3


def rows(missing, m=20_000):
    rng = np.random.default_rng(5)
    code = np.eye(12)[rng.integers(0, 12, m)] * (rng.random(m) >= missing)[:, None]
    return np.column_stack([rng.uniform(0, 1, m), code])


def moments(missing):
    """(query around a centre that sums to one, sums of rows with this share of missing values)."""
    x = rows(missing)
    query = NormalisedMoments(LAYOUT, np.append(0.5, np.full(12, 1 / 12)), np.append(1 / 12, np.full(12, 11 / 144)))
    return query, query.sums(OracleRows(x, np.zeros(len(x))).normalised(query))


@pytest.mark.parametrize("seed", range(5))
def test_one_and_a_half_per_cent_are_told_from_none(seed):
    found = []
    for missing in (0.0, 0.015):
        query, sums = moments(missing)
        noise = SIGMA * np.random.default_rng(seed).standard_normal(len(sums.vector(query.scales, LAYOUT)))
        released = type(sums).from_vector(sums.vector(query.scales, LAYOUT) + noise, query.scales, LAYOUT)
        found.append(estimate(released, query, SIGMA).missing[1])
    assert found[0] == 0
    assert found[1] == pytest.approx(0.015, abs=0.006)


def test_counting_them_changes_nothing_for_rows_without_any():
    query, _ = moments(0.0)
    x, other = rows(0.0, 50), NormalisedMoments(LAYOUT, query.centre, query.variance)
    object.__setattr__(other, "scales", replace(query.scales, absent=0.0))
    assert (query.weights(x) == other.weights(x)).all()
    x[0, 1:] = 0.0
    assert query.weights(x)[0] < other.weights(x)[0]


def test_slopes_of_a_code_with_missing_values_are_within_their_errors():
    rng = np.random.default_rng(2)
    work = np.where(rng.random(20_000) < 0.03, None, rng.choice([f"v{k}" for k in range(10)], 20_000))
    table = {"age": rng.uniform(0, 100, 20_000), "work": work}
    domain = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Categorical("work", values=[f"v{k}" for k in range(10)])])

    def model(rows):
        known = np.array([one is not None and one == one for one in np.asarray(rows["work"], dtype=object)])
        return np.where(known, 0.4, -0.4) + 0.004 * np.asarray(rows["age"], dtype=float)

    data = dpx.PrivateData(table, domain, model=model, output="value", bounds=(-1, 1))
    query = {"age": 40.0, "work": "v3"}
    exact = evaluation.optimum(data, domain.encode_queries([query])[0], plane="fitted")
    found = dpx.release(data, dpx.Budget(0.3, 1e-6), noise=SeededNoise(1)).explain(query)
    assert exact[1:].mean() > 0.5
    assert (np.abs(found.values - exact) <= 3 * found.error).all()
