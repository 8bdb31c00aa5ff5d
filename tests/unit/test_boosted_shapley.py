"""Boosted trees of every library that is known: their Shapley values are those of all coalitions, asked of the model itself."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.estimation.boosted_shapley import MOST_PLAYERS
from dpexplain.noise.seeded import SeededNoise
from dpexplain.release.tree_model import find_trees

pytest.importorskip("sklearn")
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)


def lightgbm(kind, **options):
    library = pytest.importorskip("lightgbm", reason="LightGBM is NOT tested: pip install lightgbm")
    return getattr(library, f"LGBM{kind}")(verbosity=-1, min_child_samples=5, num_threads=1, **options)


def xgboost(kind, **options):
    library = pytest.importorskip("xgboost", reason="XGBoost is NOT tested: pip install xgboost-cpu")
    return getattr(library, f"XGB{kind}")(n_jobs=1, max_depth=3, **options)


CLASSIFIERS = {
    "gradient boosting": lambda: GradientBoostingClassifier(n_estimators=12, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=12, min_samples_leaf=5),
    "LightGBM": lambda: lightgbm("Classifier", n_estimators=12),
    "XGBoost": lambda: xgboost("Classifier", n_estimators=12),
    "forest": lambda: RandomForestClassifier(10, max_depth=4, random_state=0),
}
REGRESSORS = {
    "gradient boosting": lambda: GradientBoostingRegressor(n_estimators=12, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingRegressor(max_iter=12, min_samples_leaf=5),
    "LightGBM": lambda: lightgbm("Regressor", n_estimators=12),
    "XGBoost": lambda: xgboost("Regressor", n_estimators=12),
}


def rows_of(columns=6, count=400, seed=0):
    X = np.random.default_rng(seed).random((count, columns))
    X[:, -1] = np.round(X[:, -1] * 3)  # ties: some records agree with the query
    return X


def scores(X):
    return 2 * X[:, 0] - X[:, 1] * (X[:, 2] > 0.5) + 0.4 * X[:, -1] - 1


def as_columns(X):
    return {f"x{j}": column for j, column in enumerate(X.T)}


def table(columns):
    return np.column_stack(list(columns.values()))


def brute_force(labels, z, x):
    """The Shapley values of f(z on S, x elsewhere), by their definition."""
    d, out = len(z), np.zeros(len(z))
    coalitions = [frozenset(s) for k in range(d + 1) for s in combinations(range(d), k)]
    mixtures = np.array([[z[j] if j in s else x[j] for j in range(d)] for s in coalitions])
    worth = dict(zip(coalitions, labels(mixtures), strict=True))
    for s in coalitions:
        for j in set(range(d)) - s:
            out[j] += (worth[s | {j}] - worth[s]) / (d * comb(d - 1, len(s)))
    return out


def agrees(model, labels, X, target=None):
    found = find_trees(model, target, table, lambda columns: labels(table(columns)), as_columns(X[:64]))
    assert found is not None
    assert found.method == "trees, exact"
    assert found.applies_to(as_columns(X[:1]), as_columns(X), float(labels(X[:1])[0]))
    values = found.values(as_columns(X[:1]), as_columns(X[1:9]))
    np.testing.assert_allclose(values, [brute_force(labels, X[0], x) for x in X[1:9]], atol=3e-6)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("target", [0, 1])
def test_probabilities_of_two_classes_are_exact(kind, target):
    X = rows_of()
    model = CLASSIFIERS[kind]().fit(X, (scores(X) > 0).astype(int))
    agrees(model, lambda rows: 2 * model.predict_proba(rows)[:, target] - 1, X, target)


@pytest.mark.parametrize("kind", [kind for kind in CLASSIFIERS if kind != "forest"])
def test_probabilities_of_three_classes_are_exact(kind):
    X = rows_of()
    model = CLASSIFIERS[kind]().fit(X, np.digitize(scores(X), [-0.5, 0.5]))
    for target in (0, 2):
        agrees(model, lambda rows, target=target: 2 * model.predict_proba(rows)[:, target] - 1, X, target)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_numbers_are_exact(kind):
    X = rows_of()
    model = REGRESSORS[kind]().fit(X, scores(X))
    agrees(model, lambda rows: np.asarray(model.predict(rows), dtype=float) / 5, X)


def test_missing_numbers_go_where_the_model_sends_them():
    X = rows_of()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    known = np.nan_to_num(X)
    for kind in ("histogram boosting", "LightGBM", "XGBoost"):
        model = CLASSIFIERS[kind]().fit(X, (scores(known) > 0).astype(int))
        agrees(model, lambda rows, model=model: 2 * model.predict_proba(rows)[:, 1] - 1, X, 1)


def test_many_features_are_compared_by_paired_orders_of_the_trees():
    X = rows_of(columns=MOST_PLAYERS + 4)
    model = HistGradientBoostingClassifier(max_iter=30, min_samples_leaf=5).fit(
        X, (X.sum(axis=1) > X.sum(axis=1).mean()).astype(int)
    )
    ask = lambda columns: 2 * model.predict_proba(table(columns))[:, 1] - 1  # noqa: E731
    found = find_trees(model, 1, table, ask, as_columns(X[:64]))
    assert found.method == "trees, paired orders"
    values = found.values(as_columns(X[:1]), as_columns(X[1:50]))
    np.testing.assert_allclose(values.sum(axis=1), ask(as_columns(X[:1])) - ask(as_columns(X[1:50])), atol=1e-9)


def test_what_is_not_the_same_question_is_asked_instead():
    X = rows_of()
    model = HistGradientBoostingClassifier(max_iter=12).fit(X, (scores(X) > 0).astype(int))
    hard = lambda columns: 2.0 * model.predict(table(columns)) - 1  # noqa: E731
    assert find_trees(model, 1, table, hard, as_columns(X[:64])) is None
    coded = HistGradientBoostingClassifier(max_iter=12, categorical_features=[5]).fit(X, (scores(X) > 0).astype(int))
    soft = lambda columns: 2 * coded.predict_proba(table(columns))[:, 1] - 1  # noqa: E731
    assert find_trees(coded, 1, table, soft, as_columns(X[:64])) is None
    poisson = HistGradientBoostingRegressor(loss="poisson", max_iter=12).fit(X, np.exp(scores(X)))
    counts = lambda columns: poisson.predict(table(columns)) / 50  # noqa: E731
    assert find_trees(poisson, None, table, counts, as_columns(X[:64])) is None


DOMAIN = dpx.Domain([dpx.Numeric("age", 20, 80), dpx.Categorical("work", values=["a", "b", "c", "rare"]), dpx.Binary("married")])
RARE = {"age": 40, "work": "rare", "married": True}


@pytest.mark.slow
def test_a_value_that_no_record_has_still_counts_for_its_own_feature():
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.uniform(20, 80, 900), "work": rng.choice(["a", "b", "c"], 900), "married": rng.random(900) < 0.5}
    )
    trained = pd.concat([frame, frame.assign(work="rare")])
    coder = make_column_transformer((OneHotEncoder(), ["work"]), remainder="passthrough")
    boosted = GradientBoostingClassifier(n_estimators=20, random_state=0)
    pipeline = make_pipeline(coder, boosted).fit(trained, ((trained["work"] == "rare") & (trained["age"] > 30)).astype(int))
    data = dpx.PrivateData(frame, DOMAIN, model=pipeline)
    release = dpx.release(data, dpx.Budget(8.0, 1e-6), reference=1024, noise=SeededNoise(0))
    exact, asked = release.shapley(RARE), release.shapley(RARE, pipeline.predict_proba)
    assert exact.details["method"] == "trees, exact"
    assert asked.details["method"] == "all coalitions"
    assert exact.values[1] > 0.3
    np.testing.assert_allclose(exact.values, asked.values, atol=0.01)
