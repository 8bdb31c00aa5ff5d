"""Products with records held as category numbers are those of their one-hot columns."""

import numpy as np
import pytest

from dpexplain.core.layout import Layout
from dpexplain.domain import Binary, Categorical, Domain, Numeric
from dpexplain.estimation.coded_rows import CodedRows, thin


def records(domain, count, rng):
    points = rng.uniform(size=(count, domain.width))
    for block in domain.blocks:
        if block.kind != "numeric":
            size = block.stop - block.start
            held = rng.integers(0, size + 1, count)  # size: none of them
            points[:, block.start : block.stop] = np.eye(size + 1)[held][:, :-1]
    return points


@pytest.mark.parametrize(
    "features",
    [
        [Numeric("a", 0, 1), Categorical("b", values=list(range(7))), Binary("c"), Categorical("d", values=list(range(5)))],
        [Numeric("a", 0, 1), Numeric("b", 0, 1)],
        [Categorical("a", values=list(range(6))), Categorical("b", values=["x", "y"])],
    ],
)
def test_products_are_those_of_the_columns(features):
    domain, rng = Domain(features), np.random.default_rng(0)
    X = records(domain, 300, rng)
    coded = CodedRows.of(X, Layout.of(domain.blocks))
    assert len(coded.blocks) == sum(isinstance(one, Categorical) and len(one.values) >= 5 for one in features)
    vector, weights = rng.normal(size=domain.width), rng.normal(size=(3, 300))
    np.testing.assert_allclose(coded.times(vector), X @ vector, atol=1e-12)
    np.testing.assert_allclose(coded.sums(weights[0]), X.T @ weights[0], atol=1e-12)
    np.testing.assert_allclose(coded.sums_of_each(weights), weights @ X, atol=1e-12)
    np.testing.assert_allclose(coded.products(weights[0]), (X * weights[0][:, None]).T @ X, atol=1e-12)


def test_a_code_that_is_not_one_hot_stays_as_it_is():
    domain = Domain([Categorical("a", values=list(range(6)))])
    X = np.random.default_rng(1).uniform(size=(40, 6))
    coded = CodedRows.of(X, Layout.of(domain.blocks))
    assert not coded.blocks
    np.testing.assert_allclose(coded.products(np.ones(40)), X.T @ X, atol=1e-12)


@pytest.mark.parametrize("narrow", [0.0, 2.0, 8.0])
def test_few_rows_stand_for_all_in_every_direction(narrow):
    rng = np.random.default_rng(2)
    domain = Domain(
        [Numeric("a", 0, 1), Categorical("b", values=list(range(12))), Binary("c"), Categorical("d", values=list(range(6)))]
    )
    X = records(domain, 40_000, rng)
    rare = rng.random(len(X)) < 0.9995  # one category belongs to twenty rows
    X[:, 1] = np.where(rare, 0.0, X[:, 1])
    coded = CodedRows.of(X, Layout.of(domain.blocks))
    share = np.exp(-narrow * np.abs(X - X[0]).sum(axis=1))
    share /= share.sum()
    positions, times = thin(share * coded.leverage(coded.sums(share)), 3_000)
    assert 2_900 < len(positions) <= 3_000
    np.testing.assert_allclose(times @ share[positions], 1, atol=0.05)
    few = coded.take(positions)
    exact, found = coded.products(share), few.products(times * share[positions])
    values, vectors = np.linalg.eigh(exact)
    known = values > 1e-12 * values[-1]
    root = vectors[:, known] / np.sqrt(values[known])
    assert np.abs(np.linalg.eigvalsh(root.T @ found @ root) - 1).max() < 0.35


def test_where_all_rows_are_wanted_each_stands_for_itself():
    positions, times = thin(np.array([0.5, 0.0, 0.5]), 3)
    assert positions.tolist() == [0, 1, 2]
    assert times.tolist() == [1, 1, 1]
