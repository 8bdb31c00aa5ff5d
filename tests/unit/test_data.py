"""Registering private rows: labels, units, sizes, and errors that go to the owner without quoting a row."""

import copy
import inspect
import pickle
import pydoc
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dpexplain as dpx
from dpexplain.core.moments import LocalMoments
from dpexplain.errors import DataError, ParameterError
from dpexplain.registration.options import OptionKeywords, RegistrationOptions
from dpexplain.registration.owners import keep_first, owner_names

DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Categorical("work", values=["a", "b"]), dpx.Binary("married")])
ROWS = {"age": [20.0, 40.0, 60.0, 80.0], "work": ["a", "b", "a", "b"], "married": [True, False, True, False]}
LABELS = np.array([1.0, -1.0, 0.5, 0.0])


def labels_of(data):
    """What registration stored; tests may look."""
    return data._rows._labels[: data.size]


def test_every_kind_of_table_gives_the_same_sums():
    records = [dict(zip(ROWS, values, strict=True)) for values in zip(*ROWS.values(), strict=True)]
    tables = [ROWS, records, pd.DataFrame(ROWS), pl.DataFrame(ROWS), pa.table(ROWS)]
    query = LocalMoments(np.full(4, 0.4), dpx.weights.Stable())
    sums = [dpx.PrivateData(table, DOMAIN, labels=LABELS)._rows.local(query) for table in tables]
    for other in sums[1:]:
        assert (other.A == sums[0].A).all()
        assert (other.b == sums[0].b).all()


@pytest.mark.parametrize("door", [dpx.PrivateData, dpx.PrivateData.scan, dpx.PrivateData.cluster])
def test_every_way_to_register_rows_tells_and_takes_the_same_options(door):
    options = {field.name: field.default for field in fields(RegistrationOptions)}
    told = inspect.signature(door).parameters
    assert {name: told[name].default for name in options} == options
    assert OptionKeywords.__annotations__.keys() == options.keys()
    assert all(f"`{name}`" in pydoc.render_doc(door, renderer=pydoc.plaintext) for name in options)
    with pytest.raises(ParameterError, match="output must be"):
        door(ROWS, DOMAIN, output="logit")
    with pytest.raises(TypeError, match="lable"):
        door(ROWS, DOMAIN, lable="y")


def test_estimators_pipelines_and_callables_label_the_rows_as_given():
    X = np.random.default_rng(0).random((50, 3))
    y = (X[:, 0] > 0.5).astype(int)
    domain = dpx.Domain.encoded(3)
    classifier = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    soft = labels_of(dpx.PrivateData(X, domain, model=classifier))
    assert soft == pytest.approx(2 * classifier.predict_proba(X)[:, 1] - 1)
    other = labels_of(dpx.PrivateData(X, domain, model=classifier, target=0))
    assert other == pytest.approx(-soft)
    hard = labels_of(dpx.PrivateData(X, domain, model=classifier, output="class"))
    assert set(hard) == {-1.0, 1.0}
    assert (np.sign(soft) == hard).all()
    regressor = LinearRegression().fit(X, 5 * X[:, 0])
    with pytest.warns(UserWarning, match="clipped"):
        clipped = dpx.PrivateData(X, domain, model=regressor, output="value", bounds=(0, 4))
    assert labels_of(clipped) == pytest.approx(np.clip(5 * X[:, 0], 0, 4) / 2 - 1)
    assert clipped.answer_scale.answers(1.0) == 4
    first = {"model": lambda rows: rows[:, 0]}
    assert labels_of(dpx.PrivateData(X, domain, **first, output="probability")) == pytest.approx(2 * X[:, 0] - 1)
    assert labels_of(dpx.PrivateData(X, domain, **first, output="value", bounds=(-1, 1))) == pytest.approx(X[:, 0])
    assert labels_of(dpx.PrivateData(X, domain, model=lambda rows: 2 * rows[:, 0] - 1)) == pytest.approx(2 * X[:, 0] - 1)
    assert labels_of(dpx.PrivateData(X, domain, model=lambda rows: rows[:, 0] > 0.5, output="class")) == pytest.approx(
        np.where(X[:, 0] > 0.5, 1, -1)
    )
    named = labels_of(dpx.PrivateData(X, domain, model=lambda rows: np.where(rows[:, 0] > 0.5, "yes", "no"), target="yes"))
    assert named == pytest.approx(np.where(X[:, 0] > 0.5, 1, -1))
    both = labels_of(dpx.PrivateData(X, domain, model=lambda rows: np.column_stack([1 - rows[:, 0], rows[:, 0]])))
    assert both == pytest.approx(2 * X[:, 0] - 1)


def test_the_model_sees_the_columns_with_their_names():
    seen = []

    def model(frame):
        seen.append(list(frame.columns))
        return np.zeros(len(frame))

    dpx.PrivateData(pd.DataFrame(ROWS), DOMAIN, model=model)
    assert seen == [["age", "work", "married"]] * 2  # made-up records first


def test_labels_are_clipped_and_booleans_become_signs():
    assert labels_of(dpx.PrivateData(ROWS, DOMAIN, labels=[3, -7, 0.5, 0])) == pytest.approx([1, -1, 0.5, 0])
    assert labels_of(dpx.PrivateData(ROWS, DOMAIN, labels=[True, False, True, False])) == pytest.approx([1, -1, 1, -1])


def raise_with_row(rows):
    raise ValueError(f"secret row {rows}")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({}, "exactly one of model="),
        ({"model": len, "labels": LABELS}, "exactly one of model="),
        ({"labels": LABELS[:3]}, "one number for each of the 4 rows"),
        ({"labels": [None, np.nan, "a", b"b"]}, "none of them can be read"),
        ({"labels": ["a", "b", "c", "d"]}, "labels must be numbers"),
        ({"model": raise_with_row}, "the model raised ValueError"),
        ({"model": lambda rows: np.full(len(rows["age"]), np.nan)}, "which is not a number"),
        ({"model": lambda rows: np.full(len(rows["age"]), np.nan), "output": "class"}, "none of the model's answers can be read"),
        ({"model": lambda rows: np.zeros(3)}, "one answer for each of the 64 made-up records"),
        ({"model": lambda rows: np.zeros(3), "output": "class"}, "one answer for each of the 4 rows"),
        ({"model": lambda rows: np.zeros((len(rows["age"]), 2, 2))}, "one answer for each"),
        (
            {"model": lambda rows: np.zeros((len(rows["age"]), 2)), "target": "rich"},
            "target='rich' is not one of the model's classes",
        ),
        ({"model": 3}, "must have predict_proba or predict"),
        (
            {"model": SimpleNamespace(predict_proba=len), "output": "class"},
            "asks its predict. Register it with output='probability'",
        ),
        ({"labels": LABELS, "unit": "person"}, "unit='person' is not a column"),
        ({"labels": LABELS, "size": 1}, "size is less than half"),
    ],
)
def test_what_cannot_be_registered_says_why_and_quotes_no_row(keywords, message):
    with pytest.raises(DataError, match=message) as error:
        dpx.PrivateData(ROWS, DOMAIN, **keywords)
    assert "secret" not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__ or error.value.__context__ is None


@pytest.mark.parametrize(
    "keywords", [{"size": 0}, {"size": 2.5}, {"relation": "bounded"}, {"max_rows_per_unit": 2}, {"output": "x"}]
)
def test_meaningless_options_are_refused(keywords):
    with pytest.raises(ParameterError):
        dpx.PrivateData(ROWS, DOMAIN, model=lambda rows: np.zeros(4), **keywords)


@pytest.mark.parametrize("rows", [{"age": [], "work": [], "married": []}, [], pd.DataFrame({"age": []})])
def test_no_rows_are_refused(rows):
    with pytest.raises(DataError, match="no rows"):
        dpx.PrivateData(rows, DOMAIN, labels=[])
    with pytest.raises(DataError, match="cannot read rows"):
        dpx.PrivateData(object(), DOMAIN, labels=[])


def kept_rows(owners, most):
    return np.flatnonzero(keep_first(owner_names(owners), most, {})).tolist()


def test_at_most_so_many_rows_of_each_owner_are_kept_by_order_alone_and_none_without_an_owner():
    owners = ["x", "y", "x", "z", "x", "y", None, None]
    assert kept_rows(owners, 1) == [0, 1, 3]
    assert kept_rows(owners, 2) == [0, 1, 2, 3, 5]
    frame = pd.DataFrame({**ROWS, "person": [1, 1, 2, 1]})
    data = dpx.PrivateData(frame, DOMAIN, labels=LABELS, unit="person", max_rows_per_unit=2)
    assert data.size == 3
    assert data.setting.neighbours.multiplier == 2
    assert labels_of(data) == pytest.approx([1, -1, 0.5])
    doubled = dpx.PrivateData(frame, DOMAIN, labels=LABELS, unit="person", max_rows_per_unit=2, relation="replace-one")
    assert doubled.setting.neighbours.multiplier == 4


def test_removing_one_owner_does_not_change_what_is_kept_of_others():
    rng = np.random.default_rng(1)
    owners = rng.integers(0, 20, 200).astype(object)
    kept = set(kept_rows(owners, 3))
    for gone in range(20):
        rest = np.nonzero(owners != gone)[0]
        again = set(rest[kept_rows(owners[rest], 3)].tolist())
        assert again == {i for i in kept if owners[i] != gone}


def test_one_row_and_constant_columns_are_fine():
    data = dpx.PrivateData({"age": [30], "work": ["a"], "married": [True]}, DOMAIN, labels=[1.0])
    explainer = dpx.Explainer(data, dpx.Budget(1, 1e-6), dpx.Basic(0.5, 1e-6, steps=5))
    explanation = explainer.explain({"age": 30, "work": "a", "married": True})
    assert np.isfinite(explanation.values).all()


def test_the_repr_shows_public_facts_only_and_nothing_is_pickled():
    data = dpx.PrivateData(ROWS, DOMAIN, labels=LABELS, size=5, name="clinic")
    assert repr(data) == "PrivateData('clinic', size=5, 4 encoded columns; protects any one record added or removed)"
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not pickled"):
            leak(data)


def test_no_private_value_changes_whether_an_error_is_raised():
    """The rows may hold anything: encoding follows public rules, and the labels were given."""
    wild = {"age": [None, float("nan"), float("inf"), "forty"], "work": ["?", None, 3, "a"], "married": [None, "yes", 7, []]}
    data = dpx.PrivateData(wild, DOMAIN, labels=LABELS)
    assert data.size == 4


def test_sizes_and_relations_scale_the_sensitivity():
    plain = dpx.PrivateData(ROWS, DOMAIN, labels=LABELS).setting
    replaced = dpx.PrivateData(ROWS, DOMAIN, labels=LABELS, relation="replace-one").setting
    assert plain.sensitivity_of_sum(1.0) == pytest.approx(1.0)
    assert plain.sensitivity_of_sum(1.0) > 1.0  # the summation error is paid for
    assert replaced.sensitivity_of_sum(1.0) == pytest.approx(2.0)


def test_with_a_declared_size_the_true_row_count_shows_in_nothing_public():
    few, many = (dpx.PrivateData(np.full((m, 2), 0.5), dpx.Domain.encoded(2), labels=np.zeros(m), size=1000) for m in (500, 1900))
    assert few.setting == many.setting
    assert repr(few) == repr(many)
    for one, other in zip(few.split(2), many.split(2), strict=True):
        assert one.setting == other.setting


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_matrices_of_numbers_are_read_as_the_arrays_they_mean(form):
    dense = np.random.default_rng(0).random((50, 6)) * (np.random.default_rng(1).random((50, 6)) < 0.3)
    query, labels = LocalMoments(np.full(6, 0.2), dpx.weights.Stable()), np.linspace(-1, 1, 50)
    domain = dpx.Domain.encoded(6)
    stored = [
        dpx.PrivateData(rows, domain, labels=labels)._rows.local(query)
        for rows in (dense, sparse.csr_array(dense).asformat(form))
    ]
    assert (stored[0].A == stored[1].A).all()
    asked = dpx.PrivateData(sparse.csr_array(dense), domain, model=lambda rows: rows[:, [0]].sum(axis=1) - 0.5)
    assert asked.labeller({f"x{i}": np.array([0.25]) for i in range(6)}).tolist() == [-0.25]


def test_columns_of_a_dict_keep_their_index():
    """pandas aligns series by it: a new one would pair entries of different rows."""
    frame = pd.DataFrame({"a": [0, 2, 4, 6], "b": [0.1, 0.2, 0.3, 0.4], "w": ["x", "y", "x", "x"]}, index=[3, 2, 1, 0])
    frame["w"] = frame["w"].astype(object)
    domain = dpx.Domain([dpx.Numeric("a", 0, 10), dpx.Numeric("b", 0, 1), dpx.Categorical("w", ["x", "y"])])

    def labels(rows):
        data = dpx.PrivateData(rows, domain, model=lambda t: t["a"] / 10 * t["b"] * (t["w"] == "x"), output="probability")
        return [row[-1] for piece in data._rows.labelled_pieces() for row in piece]

    assert labels({name: frame[name] for name in frame}) == labels(frame)
