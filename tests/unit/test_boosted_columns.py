"""LightGBM and XGBoost as people fit them: on a pandas frame with categories, of a table that has other columns besides."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import dpexplain as dpx
from dpexplain.errors import Undeclared
from dpexplain.noise.seeded import SeededNoise
from dpexplain.registration.model_columns import column_selection

ROWS = 2000
WORK = ["baker", "clerk", "miner"]
BUDGET = dpx.Budget(1.0, 1e-6)


def table(rows=ROWS):
    """Two numbers, one of them with missing values, a category of three values, and columns that no model knows."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "person": np.arange(rows),
            "income": np.where(rng.random(rows) < 0.2, np.nan, rng.gamma(2, 1000, rows)),
            "work": pd.Categorical(np.where(rng.random(rows) < 0.05, None, rng.choice(WORK, rows)), WORK),
            "debt": rng.random(rows),
            "note": "text",
        }
    )


TABLE = table()
COLUMNS = ["debt", "work", "income"]  # in another order than the table's
LATE = (TABLE["debt"] > 0.7) | (TABLE["work"] == "miner")
DECLARED = {"debt": (0, 1), "income": (0, 10_000, 2000)}


def fit_model(kind):
    if kind == "LightGBM":
        library = pytest.importorskip("lightgbm", reason="LightGBM is NOT tested: pip install lightgbm")
        return library.LGBMClassifier(n_estimators=8, verbose=-1, n_jobs=1).fit(TABLE[COLUMNS], LATE)
    library = pytest.importorskip("xgboost", reason="XGBoost is NOT tested: pip install xgboost-cpu")
    if not hasattr(library.Booster, "get_categories"):
        pytest.skip("XGBoost before 3.1 does not store categories")
    return library.XGBClassifier(n_estimators=8, n_jobs=1, enable_categorical=True).fit(TABLE[COLUMNS], LATE)


@pytest.mark.parametrize("kind", ["LightGBM", "XGBoost"])
def test_categories_come_from_the_model_and_are_shown_as_it_knows_them(kind):
    model = fit_model(kind)
    release = dpx.release_model(model, TABLE, BUDGET, declare=DECLARED, target=True, reference=2000, noise=SeededNoise(1))
    assert release.domain.columns == tuple(COLUMNS)
    assert release.domain.features[1].values == tuple(WORK)
    record = {"debt": 0.9, "work": "clerk", "income": None}
    assert release.explain(record).top(1)[0][0] in ("debt", "work=miner")
    asked = model.predict_proba(pd.DataFrame({"debt": [0.9], "work": pd.Categorical(["clerk"], WORK), "income": [2000.0]}))
    assert release.shapley(record).answer == pytest.approx(asked[0, 1], abs=1e-6)  # reference records are shown as categories too


@pytest.mark.parametrize("kind", ["LightGBM", "XGBoost"])
def test_without_declarations_only_numbers_are_open(kind):
    with pytest.raises(Undeclared, match=r"income \(numeric\): low, high") as error:
        dpx.Domain.from_model(fit_model(kind))
    assert "work" not in str(error.value)
    assert ("suggested=True" in str(error.value)) == (kind == "LightGBM")  # which stores the range of each number


def test_a_booster_says_what_its_estimator_says():
    model = fit_model("LightGBM")
    assert dpx.Domain.from_model(model.booster_, DECLARED) == dpx.Domain.from_model(model, DECLARED)


def test_ordered_categories_of_lightgbm_are_left_open():
    library = pytest.importorskip("lightgbm")
    both = TABLE[COLUMNS].assign(grade=pd.Categorical(np.where(TABLE["debt"] > 0.5, "A", "B"), ["B", "A"], ordered=True))
    model = library.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1).fit(both, LATE)
    with pytest.raises(Undeclared, match="work"):
        dpx.Domain.from_model(model, DECLARED)


def test_other_columns_of_a_table_are_not_shown_to_an_estimator():
    numbers = TABLE[["debt"]].assign(age=np.arange(ROWS) % 50)
    model = LogisticRegression().fit(numbers[["age", "debt"]], LATE)
    domain = dpx.Domain.from_model(model, {"age": (0, 50), "debt": (0, 1)})
    data = dpx.PrivateData(numbers.assign(person=1, note="text")[["note", "debt", "person", "age"]], domain, model=model)
    assert dpx.check(data).ok


@pytest.mark.parametrize("left_out", [0, 7, ROWS - 1])
def test_no_row_decides_how_another_is_shown(left_out):
    """The categories of a private column, which depend on its rows, are replaced by the model's."""
    show = column_selection(fit_model("LightGBM"))
    others = TABLE.drop(index=left_out)
    others["work"] = others["work"].cat.remove_unused_categories()
    pd.testing.assert_frame_equal(show(others), show(TABLE).drop(index=left_out))


def test_a_table_that_lacks_a_column_is_shown_as_it_is():
    show = column_selection(fit_model("LightGBM"))
    lacking = TABLE.drop(columns="debt")
    assert show(lacking) is lacking
    assert show({"debt": [1.0]}) == {"debt": [1.0]}
