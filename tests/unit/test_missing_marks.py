"""How a missing entry is shown in pandas where no declaration decides it: as the model accepts it in made-up records."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import dpexplain as dpx
from dpexplain.registration.entry_kinds import EntryKind
from dpexplain.registration.missing_marks import MARKS, find_mark, find_undeclared

DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Binary("owner")])
ROWS = pd.DataFrame({"age": [20.0, 40.0, 60.0, 80.0], "owner": [True, False, None, True]})


def refuse_objects(frame):
    """As LightGBM does."""
    if any(dtype.kind == "O" for dtype in frame.dtypes):
        raise ValueError("object")
    return np.where(frame["owner"].isna(), 0.9, 0.1)


def require_none(frame):
    """As an encoder that was fitted with None does, and refuses what it does not know."""
    if any(entry is not None and not isinstance(entry, (bool, np.bool_)) for entry in frame["owner"]):
        raise ValueError("unknown")
    return [0.9 if entry is None else 0.1 for entry in frame["owner"]]


def require_nan_among_objects(frame):
    if (
        any(not isinstance(entry, (bool, np.bool_)) and entry == entry for entry in frame["owner"])
        or frame["owner"].dtype == float
    ):
        raise ValueError("unknown")
    return np.where(frame["owner"].isna(), 0.9, 0.1)


@pytest.mark.parametrize(
    ("model", "mark"), [(require_nan_among_objects, MARKS[0]), (require_none, MARKS[1]), (refuse_objects, MARKS[2])]
)
def test_a_missing_yes_or_no_is_shown_as_the_model_accepts_it(model, mark):
    assert find_mark(model, ROWS, DOMAIN) == mark
    data = dpx.PrivateData(ROWS, DOMAIN, model=model, output="probability")
    labels = np.concatenate([piece[:, -1] for piece in data._rows.labelled_pieces()])
    assert sorted(labels) == pytest.approx([-0.8, -0.8, -0.8, 0.8], abs=1e-6)


def test_a_model_that_refuses_every_missing_entry_gets_the_first_mark():
    def refuse_all(frame):
        if frame["owner"].isna().any():
            raise ValueError("missing")
        return np.full(len(frame), 0.25)

    assert find_mark(refuse_all, ROWS, DOMAIN) == MARKS[0]
    data = dpx.PrivateData(ROWS, DOMAIN, model=refuse_all, output="probability")
    labels = np.concatenate([piece[:, -1] for piece in data._rows.labelled_pieces()])
    assert sorted(labels) == [-0.5, -0.5, -0.5, 0.0]


# --- Columns that the domain does not declare.

TOLD = pd.DataFrame(
    {
        "age": [20.0, 40.0, 60.0, 80.0],
        "owner": [True, False, False, True],
        "branch": ["north", None, "south", "north"],
        "opened": pd.to_datetime(["2020-05-01", "2021-05-01", None, "2021-05-01"]),
        "limit": [100.0, 200.0, 300.0, np.nan],
    }
)


def labels_of(rows, model):
    data = dpx.PrivateData(rows, DOMAIN, model=model, output="probability")
    return np.concatenate([piece[:, -1] for piece in data._rows.labelled_pieces()]).tolist()


def use_all(frame):
    """Refuses numbers among dates, and among texts."""
    year = frame["opened"].dt.year.fillna(2000)
    text = frame["branch"].str.upper().fillna("?")
    return 0.25 + 0.25 * (year == 2021) + 0.25 * (text == "NORTH") + 0.125 * (frame["limit"] > 150)


def test_a_missing_undeclared_entry_is_shown_as_the_model_accepts_it():
    found = find_undeclared(use_all, TOLD, DOMAIN)
    assert found == {"branch": EntryKind.MISSING, "opened": EntryKind.INSTANT, "limit": EntryKind.NUMBER}
    assert labels_of(TOLD, use_all) == pytest.approx((2 * use_all(TOLD) - 1).tolist())


@pytest.mark.parametrize("name", ["branch", "opened", "limit"])
def test_it_is_shown_so_beside_any_entry_of_another_row(name):
    more = pd.concat([TOLD, TOLD.iloc[:1].astype({name: object}).assign(**{name: [("odd",)]})], ignore_index=True)
    assert more[name].dtype == object
    assert labels_of(more, use_all)[:4] == labels_of(TOLD, use_all)


def test_encoders_of_undeclared_texts_answer_rows_without_one():
    answers = TOLD["branch"].fillna("none") == "none"
    encode = ColumnTransformer([("text", OneHotEncoder(), ["branch"])], remainder="passthrough")
    pipeline = make_pipeline(encode, HistGradientBoostingClassifier(min_samples_leaf=1)).fit(TOLD.drop(columns="opened"), answers)
    assert labels_of(TOLD, pipeline) == pytest.approx(
        (2 * pipeline.predict_proba(TOLD.drop(columns="opened"))[:, 1] - 1).tolist()
    )


def test_nothing_is_asked_where_nothing_undeclared_is_missing_or_types_are_declared():
    def fail(frame):
        raise AssertionError("asked")

    assert find_undeclared(fail, TOLD.iloc[:1], DOMAIN) == {}
    assert find_undeclared(fail, TOLD.astype({"branch": "string", "limit": "Float64"}).drop(columns="opened"), DOMAIN) == {}
    assert find_undeclared(fail, TOLD.to_dict("list"), DOMAIN) == {}


def test_a_model_that_refuses_every_missing_undeclared_entry_gets_numbers():
    calls = []

    def refuse_all(frame):
        calls.append(len(frame))
        if frame[["branch", "opened", "limit"]].isna().any(axis=None):
            raise ValueError("missing")
        return np.full(len(frame), 0.25)

    assert find_undeclared(refuse_all, TOLD, DOMAIN) == {}
    assert len(calls) < 40
    assert labels_of(TOLD, refuse_all) == [-0.5, 0.0, 0.0, 0.0]
