"""Products with records held as category numbers are those of their one-hot columns."""

import numpy as np
import pytest

from dpexplain.core.layout import Layout
from dpexplain.domain import Binary, Categorical, Domain, Numeric
from dpexplain.estimation.coded_rows import CodedRows, PackedRows, thin


def records(domain, count, rng):
    points = rng.integers(0, 4097, (count, domain.width)) / 4096  # as reference records are: exact in single precision
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
    X = records(domain, 2_301, rng)  # not a multiple of the stretch that loops take
    coded = CodedRows.of(X, Layout.of(domain.blocks))
    assert len(coded.columns.blocks) == sum(isinstance(one, Categorical) and len(one.values) >= 5 for one in features)
    vector, weights = rng.normal(size=domain.width), rng.normal(size=(3, len(X)))
    np.testing.assert_allclose(coded.times(vector), X @ vector, atol=1e-10)
    np.testing.assert_allclose(coded.sums(weights[0]), X.T @ weights[0], atol=1e-10)
    np.testing.assert_allclose(coded.sums_of_each(weights.T), weights @ X, atol=1e-10)
    np.testing.assert_allclose(coded.products(weights[0]), (X * weights[0][:, None]).T @ X, atol=1e-10)
    packed = PackedRows.of(coded)
    np.testing.assert_allclose(
        packed.measure(weights[1], vector, 2.0), np.sqrt(np.maximum(2 + weights[1] + X @ vector, 0)), rtol=1e-6
    )
    np.testing.assert_allclose(
        packed.sums(weights[0], weights[1]), [X.T @ weights[0], X.T @ (weights[0] * weights[1])], atol=1e-12
    )
    np.testing.assert_allclose(packed.bend(weights[0], vector), X.T @ (weights[0] * (X @ vector)), atol=1e-10)


def test_shares_near_a_query_leave_out_what_is_negligible():
    base, near = np.array([1.0, 2.0, 1.0, 4.0]), np.array([1.0, 0.5, 1e-12, 0.0])
    np.testing.assert_allclose(PackedRows.localise(near.copy(), base, 1e-9), [0.5, 0.5, 0, 0])
    np.testing.assert_allclose(PackedRows.localise(np.zeros(4), base, 1e-9), base / 8)  # nothing is near: everybody counts


def test_a_code_that_is_not_one_hot_stays_as_it_is():
    domain = Domain([Categorical("a", values=list(range(6)))])
    X = np.random.default_rng(1).uniform(size=(40, 6))
    coded = CodedRows.of(X, Layout.of(domain.blocks))
    assert not coded.columns.blocks
    np.testing.assert_allclose(coded.products(np.ones(40)), X.T @ X, atol=1e-10)


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
    positions, times = PackedRows.of(coded).thin(share, coded.sums(share), 3_000)
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
