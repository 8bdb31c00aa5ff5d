"""Missing values of a code are counted by themselves, so that a release tells a few of them from none."""

from dataclasses import replace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.backends.oracle import OracleRows
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import NormalisedMoments
from dpexplain.estimation.calibrate import slopes_of
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


@pytest.mark.parametrize("spread", [0.004, 0.2])
def test_a_doubtful_code_is_wrong_by_the_size_of_slopes_of_numbers_that_use_their_ranges(spread):
    x, (query, _) = rows(0.0), moments(0.0)
    x[:, 0] = 0.5 + (x[:, 0] - 0.5) * spread
    query = NormalisedMoments(LAYOUT, query.centre, np.append(spread**2 / 12, query.variance[1:]))
    labels = (x[:, 0] - 0.5) / spread + 0.1 * x[:, 1]
    found = estimate(query.sums(OracleRows(x, labels).normalised(query)), query, 1e-3)
    code = np.append(0.0, np.ones(12)) / np.sqrt(12)
    sure, doubtful = (slopes_of(replace(found, doubtful=np.array([False, one])), LAYOUT, None) for one in (False, True))
    assert (doubtful.values == sure.values).all()
    wider = np.square(code @ doubtful.root(found.vectors)).sum() - np.square(code @ sure.root(found.vectors)).sum()
    usual = np.square(sure.values if spread > 0.1 else sure.values[1:]).mean()
    assert wider == pytest.approx(12 * usual, rel=1e-6)
    assert sure.values[0] > 0.5 / spread


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


def release_of_people(missing, epsilon=1.0, seed=1):
    """(exact slopes, explanation) of 60,000 people of whom so many did not say how they live; the model answers otherwise about these."""
    rng = np.random.default_rng(4)
    home = rng.choice(["own", "rent", "family"], 60_000).astype(object)
    home[:missing] = None
    domain = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Categorical("home", values=["own", "rent", "family"])])

    def model(rows):
        known = np.array([one is not None and one == one for one in np.asarray(rows["home"], dtype=object)])
        return np.where(known, 0.2, -0.1) + 0.004 * np.asarray(rows["age"], dtype=float)

    data = dpx.PrivateData(
        {"age": rng.uniform(0, 100, 60_000), "home": home}, domain, model=model, output="value", bounds=(-1, 1)
    )
    query = {"age": 40.0, "home": "rent"}
    exact = evaluation.optimum(data, domain.encode_queries([query])[0], plane="fitted")
    return exact, dpx.release(data, dpx.Budget(epsilon, 1e-6), noise=SeededNoise(seed)).explain(query)


@pytest.mark.parametrize(("missing", "epsilon"), [(25, 1.0), (25, 0.4)])
def test_a_handful_of_missing_values_is_in_the_errors_of_slopes_and_not_of_contributions(missing, epsilon):
    """At the smaller ε noise nearly hides them."""
    exact, few = release_of_people(missing, epsilon)
    _, none = release_of_people(0, epsilon)
    assert exact[1:].min() > 0.2  # from 25 people
    assert (np.abs(few.values - exact) <= 2 * few.error).all()
    assert few.error[1:].min() > 5 * none.error[1:].max()
    assert few.contributions().error[1] < 4 * none.contributions().error[1]


def test_directions_of_complete_codes_are_sums_of_one_code_each():
    """The eigenvalue that all of them share leaves the basis open; a code's own direction is needed to make its slopes alone uncertain."""
    layout = Layout((0, 1, 4), (1, 4, 8), (True, False, False))
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.random(5000), np.eye(3)[rng.integers(0, 3, 5000)], np.eye(4)[rng.integers(0, 4, 5000)]])
    query = NormalisedMoments(layout, np.array([0.5, *[1 / 3] * 3, *[0.25] * 4]), np.full(8, 0.1))
    found = estimate(query.sums(OracleRows(x, x[:, 0]).normalised(query)), query, 0.0)
    sums = [one for one in found.vectors.T if np.isclose(np.abs(one[1:].sum()), np.sqrt([3, 4])).any()]
    assert len(sums) == 2
    assert all(np.count_nonzero(np.abs(one) > 1e-9) in (3, 4) for one in sums)
    assert found.vectors @ np.diag(found.values) @ found.vectors.T == pytest.approx(found.shrunk + found.idle, abs=1e-6)
