"""What people get wrong: each mistake is a typed error that says what was passed and what to do, before anything is spent."""

import warnings
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.answers.contributions import Contributions
from dpexplain.errors import DataError, DomainError, DpexplainError, InputError, ParameterError, QueryError
from dpexplain.privacy.budget import round_up

DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Categorical("work", ["a", "b"]), dpx.Binary("married")])
ROWS = [{"age": 30, "work": "a", "married": True}, {"age": 60, "work": "b", "married": False}] * 20
RECORD = {"age": 40, "work": "a", "married": True}
BUDGET = dpx.Budget(1.0, 1e-6)
DATED = dpx.Domain([dpx.Date("opened", "2000-01-01", "2026-12-31")])


def register(**options):
    return dpx.PrivateData(ROWS, DOMAIN, **({"labels": np.tile([1.0, -1.0], 20)} | options))


DATA = register()


@cache
def make_release():
    return dpx.release(register(), BUDGET)


def register_all_of(classes):
    """All classes of a model that has these."""
    model = SimpleNamespace(predict_proba=lambda rows: np.full((len(rows["age"]), len(classes)), 0.5), classes_=classes)
    return dpx.PrivateData(ROWS, DOMAIN, model=model, target="all")


# (what is done, the error, what its message must say)
MISTAKES = {
    # budgets
    "epsilon as text": (lambda: dpx.Budget("1.0", 1e-6), ParameterError, "Write Budget(epsilon=1.0"),
    "epsilon None": (lambda: dpx.Budget(None, 1e-6), ParameterError, "Write Budget"),
    "epsilon a list": (lambda: dpx.Budget([1.0], 1e-6), ParameterError, "Write Budget"),
    "epsilon zero": (lambda: dpx.Budget(0, 1e-6), ParameterError, "Try 0.1 to 1"),
    "epsilon negative": (lambda: dpx.Budget(-1, 1e-6), ParameterError, "Try 0.1 to 1"),
    "epsilon nan": (lambda: dpx.Budget(float("nan"), 1e-6), ParameterError, "Try 0.1 to 1"),
    "epsilon infinite": (lambda: dpx.Budget(float("inf"), 1e-6), ParameterError, "Try 0.1 to 1"),
    "epsilon a boolean": (lambda: dpx.Budget(True, 1e-6), ParameterError, "Write Budget"),
    "delta as text": (lambda: dpx.Budget(1.0, "1e-6"), ParameterError, "Write Budget"),
    "delta zero": (lambda: dpx.Budget(1.0, 0), ParameterError, "Try 1e-6"),
    "delta one": (lambda: dpx.Budget(1.0, 1), ParameterError, "Try 1e-6"),
    # rows
    "a file for rows": (lambda: dpx.PrivateData("rows.csv", DOMAIN, labels=[1.0]), DataError, "PrivateData.scan"),
    "one record for rows": (lambda: dpx.PrivateData(RECORD, DOMAIN, labels=[1.0]), DataError, "pass [record]"),
    "a shorter column": (
        lambda: dpx.PrivateData({"age": [31.0, 32.0], "work": ["a"]}, DOMAIN, model=lambda rows: [1.0], output="probability"),
        DataError,
        "different lengths [1, 2]",
    ),
    # releases
    "a number for a budget": (lambda: dpx.release(DATA, 1.0), ParameterError, "dpx.Budget(epsilon=1.0"),
    "rows for data": (lambda: dpx.release(ROWS, BUDGET), ParameterError, "Register the rows first"),
    "a number to spend": (lambda: dpx.release(DATA, BUDGET, spend=0.5), ParameterError, "dpx.Budget(epsilon=0.1"),
    "a weight by name": (lambda: dpx.release(DATA, BUDGET, weight="stable"), ParameterError, "dpx.weights.Gaussian(0.8)"),
    "radius as text": (lambda: dpx.release(DATA, BUDGET, radius="1"), ParameterError, "positive and finite"),
    "radius negative": (lambda: dpx.release(DATA, BUDGET, radius=-1), ParameterError, "positive and finite"),
    "two anchors": (lambda: dpx.release(DATA, BUDGET, anchors=2), ParameterError, "anchors must be 1"),
    "a ledger number": (lambda: dpx.release(DATA, BUDGET, ledger=5), ParameterError, "sqlite:///"),
    "a ledger path": (lambda: dpx.release(DATA, BUDGET, ledger="x.db"), ParameterError, "sqlite:///"),
    "noise a number": (lambda: dpx.release(DATA, BUDGET, noise=5), ParameterError, "Leave it out"),
    "a release that is not there": (lambda: dpx.load("not/there.dpx"), InputError, "Check the name"),
    "a release that is a number": (lambda: dpx.load(3), ParameterError, "Pass the path"),
    "saved to nothing": (lambda: make_release().save(None), ParameterError, "Pass the path"),
    "a release that is a folder": (lambda: dpx.load("."), InputError, "Name a file"),
    "saved to no folder": (lambda: make_release().save("not/there/x.dpx"), InputError, "Check the name"),
    "published to no folder": (lambda: make_release().publish("not/there/x.html"), InputError, "Check the name"),
    "published to nothing": (lambda: make_release().publish(None), ParameterError, "Pass the path"),
    "a page's title left empty": (lambda: make_release().publish("x.html", title=None), ParameterError, "Write it in quotes"),
    "a page's outcome as a number": (lambda: make_release().publish("x.html", outcome=5), ParameterError, "Write it in quotes"),
    "a page's outcome in half a character": (
        lambda: make_release().publish("x.html", outcome="\ud800"),
        ParameterError,
        "lone surrogates",
    ),
    "a fingerprint as a number": (lambda: dpx.release(DATA, BUDGET, fingerprint=5), ParameterError, "Write it in quotes"),
    "a fingerprint in half a character": (
        lambda: dpx.release(DATA, BUDGET, fingerprint="\ud800"),
        ParameterError,
        "lone surrogates",
    ),
    "a number for a refinement": (lambda: make_release().refine(DATA, len, spend=0.1), ParameterError, "spend=dpx.Budget"),
    "rows for a refinement": (lambda: make_release().refine(ROWS, len, spend=BUDGET), ParameterError, "Register the rows"),
    "a name in half a character": (lambda: register(name="\ud800"), ParameterError, "lone surrogates"),
    "a name that is missing": (lambda: register(name=None), ParameterError, "Write it in quotes"),
    "no classes": (lambda: register_all_of([]), DataError, "one or more different names"),
    "a class twice": (lambda: register_all_of(["1", 1]), DataError, "one or more different names"),
    "a class in half a character": (lambda: register_all_of(["\ud800", "b"]), ParameterError, "lone surrogates"),
    # explainers and mechanisms
    "a mechanism for a budget": (lambda: dpx.Explainer(DATA, dpx.Basic(0.1, 1e-6)), ParameterError, "Explainer(data, dpx.Budget"),
    "a mechanism by name": (lambda: dpx.Explainer(DATA, BUDGET, "basic"), ParameterError, "dpx.Basic(epsilon=0.1"),
    "a mechanism's class": (lambda: dpx.Explainer(DATA, BUDGET, dpx.Basic), ParameterError, "dpx.Basic(epsilon=0.1"),
    "an explainer of rows": (lambda: dpx.Explainer(ROWS, BUDGET), ParameterError, "Register the rows first"),
    "Basic, epsilon as text": (lambda: dpx.Basic("0.1", 1e-6), ParameterError, "got '0.1'"),
    "Adaptive, delta None": (lambda: dpx.Adaptive(0.1, None), ParameterError, "Try 1e-6"),
    "Basic, one step": (lambda: dpx.Basic(0.1, 1e-6, steps=1), ParameterError, "at least 2"),
    "Basic, steps as text": (lambda: dpx.Basic(0.1, 1e-6, steps="5"), ParameterError, "whole number"),
    "Basic, unknown calibration": (lambda: dpx.Basic(0.1, 1e-6, calibration="loose"), ParameterError, "'exact' or 'paper'"),
    "Basic, third norm": (lambda: dpx.Basic(0.1, 1e-6, norm=3), ParameterError, "norm must be 1 or 2"),
    "Influence, unknown others": (lambda: dpx.Influence(0.1, 1e-6, others="for"), ParameterError, "'ignored' or 'against'"),
    "Shapley, no rows": (lambda: dpx.Shapley(0.1, 1e-6, rows=0), ParameterError, "at least 1"),
    "ids for other questions": (
        lambda: dpx.Explainer(DATA, BUDGET).explain_many([RECORD], request_ids=["a", "b"]),
        ParameterError,
        "Pass one for each",
    ),
    # weights
    "a weight's constant as text": (lambda: dpx.weights.Stable("1"), ParameterError, "positive and finite"),
    "a weight's width negative": (lambda: dpx.weights.Gaussian(-1), ParameterError, "positive and finite"),
    # domains
    "a list of names": (lambda: dpx.Domain(["age", "work"]), DomainError, "Numeric"),
    "a dict for a domain": (lambda: dpx.PrivateData(ROWS, {"age": (0, 100)}, labels=[0.0] * 40), DomainError, "dpx.Domain(["),
    "a list for a domain": (lambda: dpx.PrivateData(ROWS, ["age"], labels=[0.0] * 40), DomainError, "dpx.Domain(["),
    "the domain's class": (lambda: dpx.PrivateData(ROWS, dpx.Domain, labels=[0.0] * 40), DomainError, "dpx.Domain(["),
    "no features": (lambda: dpx.Domain([]), DomainError, "at least one feature"),
    "a feature twice": (lambda: dpx.Domain([dpx.Binary("a"), dpx.Binary("a")]), DomainError, "its own name"),
    "bounds the wrong way round": (lambda: dpx.Numeric("age", 100, 0), DomainError, "must be below"),
    "a bound as text": (lambda: dpx.Numeric("age", "0", 100), DomainError, "public bound"),
    "a name that is a number": (lambda: dpx.Numeric(1, 0, 100), DomainError, "column's name"),
    "levels in one word": (lambda: dpx.Ordinal("school", levels="abc"), DomainError, "Pass a list"),
    "a domain that is not there": (lambda: dpx.Domain.load("not/there.toml"), DomainError, "Check"),
    # data
    "neither model nor labels": (lambda: dpx.PrivateData(ROWS, DOMAIN), DataError, "exactly one of model="),
    "too few labels": (lambda: register(labels=[1.0]), DataError, "one number for each"),
    "labels in words": (lambda: register(labels=["yes"] * 40), DataError, "labels must be numbers"),
    "labels by the name of their column": (lambda: register(labels="late"), DataError, "labels=frame['late']"),
    "a model that answers with one number": (
        lambda: dpx.PrivateData(ROWS, DOMAIN, model=lambda rows: 0.5, output="probability"),
        DataError,
        "got a single float",
    ),
    "a model that answers nothing": (
        lambda: dpx.PrivateData(ROWS, DOMAIN, model=lambda rows: None, output="probability"),
        DataError,
        "got a single NoneType",
    ),
    "a model that takes something else": (
        lambda: dpx.PrivateData(ROWS, DOMAIN, model=lambda rows: rows.columns, output="probability"),
        DataError,
        "made-up records of the domain it says: AttributeError: 'list' object",
    ),
    "a size as text": (lambda: register(size="5"), ParameterError, "whole number"),
    "a column too few": (lambda: dpx.PrivateData([{"age": 1}], DOMAIN, labels=[0.0]), DataError, "work"),
    # questions
    "a question about nothing": (lambda: make_release().explain(None), QueryError, "Pass a dict"),
    "a value left out": (lambda: make_release().explain({"age": 40, "work": "a"}), QueryError, "married"),
    "a category nobody declared": (lambda: make_release().explain({**RECORD, "work": "z"}), QueryError, "'a', 'b'"),
    "a number outside its bounds": (lambda: make_release().explain({**RECORD, "age": 400}), QueryError, "0 to 100"),
    "a number as text": (lambda: make_release().explain({**RECORD, "age": "forty"}), QueryError, "a number from"),
    "a field nobody declared": (lambda: make_release().explain({**RECORD, "ages": 4}), QueryError, "age"),
    "many questions about a number": (lambda: make_release().explain_many(5), QueryError, "data frame or a list of dicts"),
    "a weight by name, asked": (lambda: make_release().explain(RECORD, weight="x"), ParameterError, "dpx.weights.Gaussian(0.8)"),
    "a palette nobody has": (lambda: make_release().explain(RECORD).plot(palette="rainbow"), ParameterError, "'blue-orange'"),
    "a kind of plot nobody has": (lambda: make_release().explain(RECORD).plot(kind="pie"), ParameterError, "'slopes'"),
    "a missing value that nothing stands for": (
        lambda: make_release().explain({**RECORD, "age": None}),
        QueryError,
        "declare what stands for a missing",
    ),
    "a field too many": (lambda: make_release().explain({**RECORD, "person": 7}), QueryError, 'extra="ignore"'),
    "an unknown rule for extra fields": (
        lambda: make_release().explain(RECORD, extra="drop"),
        ParameterError,
        "'refuse' or 'ignore'",
    ),
    "an unknown rule for errors": (
        lambda: make_release().explain_many([RECORD], on_error="pass"),
        ParameterError,
        "'raise' or 'skip'",
    ),
    "clip in words": (lambda: make_release().explain(RECORD, clip="yes"), ParameterError, "True or False"),
    "out of bounds, with the offer": (lambda: make_release().explain({**RECORD, "age": 400}), QueryError, "clip=True"),
    # dates, labels, whole numbers
    "a date that is a number": (lambda: dpx.Date("opened", 2000, 2020), DomainError, "ISO text"),
    "dates the wrong way round": (lambda: dpx.Date("opened", "2020-01-01", "2000-01-01"), DomainError, "must be before"),
    "a title that is a number": (lambda: dpx.Numeric("age", 0, 1, title=3), DomainError, "non-empty text"),
    "a date in another spelling": (lambda: DATED.encode_query({"opened": "31/12/2010"}), QueryError, "Write it as 2026-12-31"),
    "a number in quotes": (lambda: make_release().explain({**RECORD, "age": "40"}), QueryError, "without quotes"),
    "whole numbers with broken bounds": (lambda: dpx.Numeric("age", 0, 1.5, integer=True), DomainError, "both bounds whole"),
    # domains from models and schemas
    "a domain from a function": (lambda: dpx.Domain.from_model(lambda rows: rows), DomainError, "fitted scikit-learn estimator"),
    "a domain from an unfitted model": (
        lambda: dpx.Domain.from_model(LogisticRegression()),
        DomainError,
        "Fit it on a data frame",
    ),
    "a domain from text": (lambda: dpx.Domain.from_model("model.txt"), DomainError, ".onnx"),
    "a domain from rows": (lambda: dpx.Domain.from_schema(ROWS), DomainError, "JSON Schema"),
    "a schema that is not there": (lambda: dpx.Domain.from_schema("not/there.parquet"), DomainError, "Check the path"),
    "text that is no schema": (lambda: dpx.Domain.from_schema("{properties}"), DomainError, "not a JSON Schema"),
    "a declaration of nothing": (
        lambda: dpx.Domain.from_schema({"properties": {"a": {"type": "number"}}}, {"b": (0, 1)}),
        DomainError,
        "is not a column",
    ),
    # what is paid for, and what is not
    "discovery without a ledger": (
        lambda: dpx.discover(ROWS, BUDGET, columns={"age": "number"}, ledger=None),
        ParameterError,
        "Pass ledger=",
    ),
    "discovery of unknown kinds": (lambda: dpx.discover(ROWS, BUDGET, ledger="sqlite:///x"), ParameterError, 'columns={"age"'),
    "discovery of a list of names": (
        lambda: dpx.discover(ROWS, BUDGET, columns=["age"], ledger="sqlite:///x"),
        ParameterError,
        'columns={"age": "number"',
    ),
    "discovery for a number": (lambda: dpx.discover(ROWS, 0.05, ledger="sqlite:///x"), ParameterError, "dpx.Budget"),
    "misfits of a dict": (lambda: dpx.count_misfits(ROWS, {}, BUDGET, ledger="sqlite:///x"), ParameterError, "dpx.Domain(["),
    "a check of nothing": (lambda: dpx.check(ROWS), ParameterError, "dpx.check(domain, model=model"),
    # contributions
    "contributions of an influence": (lambda: make_release().influence(RECORD).contributions(), InputError, "plane='fitted'"),
    "contributions that do not add up": (
        lambda: Contributions(("age",), np.array([0.1]), 0.2, 0.9),
        ParameterError,
        "not add up",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_remedy(mistake):
    attempt, kind, said = MISTAKES[mistake]
    with pytest.raises(kind) as told:
        attempt()
    assert isinstance(told.value, DpexplainError)
    assert said in str(told.value)


@pytest.mark.parametrize("rows", [ROWS, pd.DataFrame(ROWS), {"age": [31]}, np.array([31.0])])
def test_a_message_about_a_wrong_argument_quotes_no_row(rows):
    for attempt in (lambda: dpx.release(rows, BUDGET), lambda: dpx.Explainer(rows, BUDGET), lambda: dpx.load(rows)):
        with pytest.raises(ParameterError) as error:
            attempt()
        assert "3" not in str(error.value).split(":")[0]


def test_a_warning_of_the_model_is_named_without_its_text():
    def model(rows):
        warnings.warn("the person of 31.25", RuntimeWarning, stacklevel=2)
        return np.full(len(rows), 0.5)

    with pytest.warns(UserWarning, match="the model gave a RuntimeWarning on the private rows") as given:
        dpx.PrivateData(pd.DataFrame(ROWS), DOMAIN, model=model, output="probability")
    assert [str(one.message) for one in given if "31.25" in str(one.message)] == []


# Where a table, or a column of it, may be passed by mistake.
WRONG_PLACES = {
    "domain": lambda rows: dpx.PrivateData(DOMAIN, rows, labels=[1.0]),
    "features": lambda rows: dpx.Domain(rows),
    "unit": lambda rows: register(unit=rows),
    "size": lambda rows: register(size=rows),
    "output": lambda rows: register(output=rows),
    "relation": lambda rows: register(relation=rows),
    "reference": lambda rows: dpx.release(DATA, BUDGET, reference=rows),
    "plane": lambda rows: dpx.release(DATA, BUDGET, plane=rows),
    "radius": lambda rows: dpx.release(DATA, BUDGET, radius=rows),
    "budget": lambda rows: dpx.Budget(rows, 1e-6),
    "rows of Shapley": lambda rows: dpx.Shapley(0.1, 1e-6, rows=rows),
    "shards": lambda rows: register().split(rows),
    "bound": lambda rows: dpx.Numeric("age", rows, 100),
    "missing": lambda rows: dpx.Numeric("age", 0, 100, missing=rows),
    "declaration": lambda rows: dpx.Domain.from_schema({"properties": {"age": {"type": "number"}}}, declare={"age": pd.Series(rows)}),
    "scale": lambda rows: dpx.Domain(DOMAIN.features, scale=rows),
    "vocabulary": lambda rows: dpx.TextDomain([f"{row} as a text" for row in rows]),
}  # fmt: skip


@pytest.mark.parametrize("rows", [[{"age": 31.25, "work": "Xq7"}], ["Xq7", 31.25]], ids=["records", "column"])
@pytest.mark.parametrize("place", WRONG_PLACES)
def test_rows_in_the_wrong_place_are_not_quoted(place, rows):
    with pytest.raises(DpexplainError) as error:
        WRONG_PLACES[place](rows)
    assert "31.25" not in str(error.value)
    assert "Xq7" not in str(error.value)


# Every argument that is compared with words or numbers, given a table, an array or another thing that no comparison is made for.
ARGUMENTS = {
    "target": lambda value: register(target=value),
    "output": lambda value: register(output=value),
    "max_rows_per_unit": lambda value: register(unit="work", max_rows_per_unit=value),
    "plane of a release": lambda value: dpx.release(DATA, BUDGET, plane=value),
    "anchors": lambda value: dpx.release(DATA, BUDGET, anchors=value),
    "plane of an answer": lambda value: make_release().explain(RECORD, plane=value),
    "epsilon": lambda value: dpx.Basic(epsilon=value, delta=1e-6),
    "delta": lambda value: dpx.Basic(epsilon=1.0, delta=value),
    "plane of a mechanism": lambda value: dpx.Basic(plane=value),
    "weight": lambda value: dpx.Basic(weight=value),
    "norm": lambda value: dpx.Basic(norm=value),
    "calibration": lambda value: dpx.Basic(calibration=value),
    "by": lambda value: dpx.Basic(by=value),
    "rule": lambda value: dpx.Adaptive(rule=value),
    "others": lambda value: dpx.Influence(others=value),
    "label": lambda value: dpx.Influence(label=value),
    "weight of an influence": lambda value: dpx.Influence(weight=value),
    "k": lambda value: make_release().explain(RECORD).top(value),
    "k of contributions": lambda value: make_release().explain(RECORD).contributions().top(value),
    "mu": lambda value: dpx.privacy.gdp.epsilon(value, 1e-6),
}
WRONG_KINDS = {
    "a column": pd.Series([0.25, 0.5]),
    "a frame": pd.DataFrame({"age": [0.25, 0.5]}),
    "an array": np.ones(3),
    "a list": [0.25, 0.5],
    "a mapping": {"age": 0.25},
}


@pytest.mark.parametrize("kind", WRONG_KINDS)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_of_the_wrong_kind_is_a_typed_error(name, kind):
    with pytest.raises(ParameterError, match=r"(must be|cannot be|must lie|Pass|Name|Write)"):
        ARGUMENTS[name](WRONG_KINDS[kind])


def test_an_epsilon_of_twenty_is_written_as_people_write_it():
    assert round_up(20.0) == "20"
    assert round_up(1234.5) == "1240"
    assert round_up(1e9) == "1e+9"


def test_an_explainer_prints_what_is_left():
    assert repr(dpx.Explainer(DATA, BUDGET)).startswith("<Explainer: Adaptive on PrivateData('data', size=40")


def test_there_are_many_and_none_of_them_spent_anything():
    assert len(MISTAKES) >= 90
    assert DATA.spent.epsilon == 0


def test_a_release_of_texts_says_that_it_has_no_reference_records():
    texts = ["good film", "bad film", "good good", "bad plot"] * 50
    data = dpx.PrivateData(texts, dpx.TextDomain(["good", "bad", "film", "plot"]), labels=[1.0, -1.0] * 100)
    release = dpx.release(data, dpx.Budget(4.0, 1e-6))
    for ask in (lambda: release.summary(model=len), release.surrogate):
        with pytest.raises(ParameterError, match="texts and images"):
            ask()


def test_evaluation_and_checks_name_what_cannot_be_used():
    domain = dpx.Domain.encoded(2)
    data = dpx.PrivateData(np.random.default_rng(0).random((50, 2)), domain, labels=np.zeros(50))
    with pytest.raises(ParameterError, match="values must be 2 slopes, one for each encoded column, got shape"):
        evaluation.score(np.zeros(3), data, [0.5, 0.5])
    with pytest.raises(ParameterError, match=r"mechanism cannot be 'basic' \(str\). Pass one such as dpx.Basic"):
        evaluation.audit("basic")
    with pytest.raises(ParameterError, match="frame must be one of 'pandas', 'polars', 'pyarrow', got 'excel'"):
        dpx.check(domain, model=lambda rows: rows, frame="excel")
