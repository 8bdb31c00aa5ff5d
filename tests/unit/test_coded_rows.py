"""Products with records held as category numbers are those of their one-hot columns."""

import numpy as np
import pytest

from dpexplain.core.layout import Layout
from dpexplain.domain import Binary, Categorical, Domain, Numeric
from dpexplain.estimation.coded_rows import CodedRows


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
