"""Shapley values of single games: by all coalitions, by paired orders, and of trees without asking."""

from itertools import permutations

import numpy as np
import pytest

from dpexplain.estimation.coalitions import questions_per_record, record_values
from dpexplain.estimation.tree_shapley import Trees, tree_values


def game(f, z, X):
    """(worth, at_records, at_query) of a model of plain arrays."""
    return (lambda records, joined: f(np.where(joined, z, X[records]))), f(X), float(f(z[None])[0])


def by_definition(f, z, x):
    """The mean over all orders of what each feature adds."""
    d, found = len(z), np.zeros(len(z))
    orders = list(permutations(range(d)))
    for order in orders:
        at, before = x.copy(), f(x[None])[0]
        for j in order:
            at[j] = z[j]
            after = f(at[None])[0]
            found[j] += (after - before) / len(orders)
            before = after
    return found


def wild(rows):
    return np.sin(3 * rows[:, 0] * rows[:, 1]) + rows[:, 2] * (rows[:, 3] > 0.5) * rows[:, 0] - rows[:, 1] ** 2


def pairs(rows):
    return rows[:, 0] * rows[:, 1] - 2 * rows[:, 5] * rows[:, 3] + np.exp(rows[:, 2])


@pytest.mark.parametrize("players", [1, 2, 4, 5])
def test_few_features_are_exact(players):
    rng = np.random.default_rng(players)
    f = wild if players >= 4 else lambda rows: rows.prod(axis=1)
    z, X = rng.random(players), rng.random((6, players))
    found = record_values(*game(f, z, X), players)
    np.testing.assert_allclose(found, [by_definition(f, z, x) for x in X], atol=1e-12)


@pytest.mark.slow
def test_paired_orders_are_exact_for_pairs_of_features_and_always_add_up():
    rng = np.random.default_rng(0)
    z, X = rng.random(6), rng.random((40, 6))
    np.testing.assert_allclose(record_values(*game(pairs, z, X), 6), [by_definition(pairs, z, x) for x in X], atol=1e-12)
    found = record_values(*game(wild, z, X), 6)
    np.testing.assert_allclose(found.sum(axis=1), wild(z[None])[0] - wild(X), atol=1e-12)


def test_a_feature_that_the_model_ignores_gets_zero():
    rng = np.random.default_rng(1)
    for players in (5, 8):
        z, X = rng.random(players), rng.random((30, players))
        np.testing.assert_allclose(record_values(*game(wild, z, X), players)[:, 4:], 0, atol=1e-15)


def test_features_that_play_the_same_part_get_the_same():
    rng = np.random.default_rng(2)
    z, X = rng.random(5), rng.random((30, 5))
    z[1], X[:, 1] = z[0], X[:, 0]
    found = record_values(*game(lambda rows: np.tanh(rows[:, 0] + rows[:, 1] + rows[:, 2] * rows[:, 3]), z, X), 5)
    np.testing.assert_allclose(found[:, 0], found[:, 1], atol=1e-12)


def test_the_number_of_questions_is_as_stated():
    for players in (4, 9):
        rng, asked = np.random.default_rng(3), []
        worth, at_records, at_query = game(lambda rows: rows.sum(axis=1), rng.random(players), rng.random((50, players)))

        def counted_worth(records, joined, worth=worth, asked=asked):
            asked.append(len(records))
            return worth(records, joined)

        record_values(counted_worth, at_records, at_query, players)
        assert sum(asked) == 50 * questions_per_record(players)


def test_more_records_than_fit_one_batch_are_no_different():
    rng = np.random.default_rng(4)
    z, X = rng.random(7), rng.random((2000, 7))
    whole = record_values(*game(wild, z, X), 7)
    np.testing.assert_array_equal(record_values(*game(wild, z, X[:300]), 7), whole[:300])


def forest(columns, seed=0):
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(seed)
    X = rng.random((300, columns)).astype(np.float32)
    return ensemble.RandomForestRegressor(7, max_depth=6, random_state=seed).fit(X, wild(X)), X


def as_trees(model):
    from dpexplain.release.tree_readers import trees_of

    return trees_of(model, None)


def test_trees_are_exact():
    model, X = forest(5)
    z, trees = X[0], as_trees(model)
    assert isinstance(trees, Trees)
    np.testing.assert_allclose(trees.predict(X), model.predict(X), atol=1e-12)
    found = tree_values(trees, np.arange(5), z, X[1:40])
    np.testing.assert_allclose(found, record_values(*game(model.predict, z, X[1:40]), 5), atol=1e-6)


def test_columns_of_one_feature_move_together():
    model, X = forest(6, seed=1)
    owner = np.array([0, 1, 1, 1, 2, 2])
    found = tree_values(as_trees(model), owner, X[0], X[1:30])
    grouped = game(model.predict, X[0], X[1:30])
    expected = record_values(lambda records, joined: grouped[0](records, joined[:, owner]), grouped[1], grouped[2], 3)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_trees_agree_with_shap():
    shap = pytest.importorskip("shap")
    model, X = forest(6, seed=2)
    explainer = shap.TreeExplainer(model, X[1:60], feature_perturbation="interventional")
    expected = explainer.shap_values(X[:1], check_additivity=False)[0]
    np.testing.assert_allclose(tree_values(as_trees(model), np.arange(6), X[0], X[1:60]).mean(axis=0), expected, atol=1e-5)
