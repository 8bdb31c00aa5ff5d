"""Domains without typing: what a model or a schema says of itself, what it leaves open, and that no row is read for it."""

import json
from datetime import date
from typing import Literal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel, Field
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from typer.testing import CliRunner

import dpexplain as dpx
from dpexplain.cli import app
from dpexplain.domain.drafts import draft_of_model, draft_of_schema
from dpexplain.domain.drafts.draft import round_out
from dpexplain.errors import DomainError, Undeclared


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 200).astype(np.float32),
            "income": rng.gamma(2, 2, 200).astype(np.float32),
            "work": rng.choice(["private", "public", None], 200),
            "home": rng.choice(["own", "rent", "other"], 200),
        }
    )
    table.loc[::7, "income"] = np.nan
    return table


@pytest.fixture(scope="module")
def pipeline(frame):
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    words = make_pipeline(SimpleImputer(strategy="constant", fill_value="missing"), OneHotEncoder())
    columns = make_column_transformer((numbers, ["age", "income"]), (words, ["work"]), (OrdinalEncoder(), ["home"]))
    return make_pipeline(columns, LogisticRegression()).fit(frame, frame["age"] > 40)


def test_a_pipeline_declares_its_categories_and_lists_what_is_open(pipeline):
    with pytest.raises(
        Undeclared, match=r"Still to be declared:\n  age \(numeric\): low, high \(suggested by the model's StandardScaler: low="
    ) as caught:
        dpx.Domain.from_model(pipeline)
    assert [one.name for one in caught.value.draft.open] == ["age", "income"]
    domain = dpx.Domain.from_model(pipeline, {"age": (17, 97), "income": dpx.Numeric("income", 0, 50, missing=3)})
    assert domain.columns == ("age", "income", "work", "home")
    assert domain.features[2].values == ("missing", "private", "public")
    assert domain.features[2].missing == "missing"
    assert domain.features[3].values == ("other", "own", "rent")


def test_suggestions_are_taken_only_when_asked_for(pipeline):
    domain = dpx.Domain.from_model(pipeline, {"age": (17, 97)}, suggested=True)
    age, income, *_ = domain.features
    assert (age.low, age.high) == (17, 97)
    assert income.low < 0 < income.missing < income.high


def test_columns_that_a_model_drops_are_no_features(frame):
    model = make_pipeline(make_column_transformer((StandardScaler(), ["age"])), LogisticRegression()).fit(
        frame, frame["age"] > 40
    )
    assert [one.name for one in draft_of_model(model).features] == ["age"]
    assert dpx.check(dpx.Domain.from_model(model, suggested=True), model=model, target=True).ok


def test_an_encoder_that_accepts_missing_values_makes_them_askable(frame):
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["work"]), (OneHotEncoder(), ["home"]))
    model = make_pipeline(encoder, LogisticRegression()).fit(frame, frame["age"] > 40)
    work, home = dpx.Domain.from_model(model).features
    assert work == dpx.Categorical("work", ["private", "public"], optional=True)
    assert home == dpx.Categorical("home", ["other", "own", "rent"])


def test_searches_are_looked_into_and_columns_can_be_chosen(pipeline, frame):
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2).fit(frame[["age"]], frame["age"] > 40)
    assert [one.name for one in draft_of_model(search).features] == ["age"]
    assert dpx.Domain.from_model(pipeline, columns=["work", "home"]).columns == ("work", "home")
    with pytest.raises(DomainError, match=r"column 'hme' \(did you mean 'home'\?\) is not in the model"):
        dpx.Domain.from_model(pipeline, columns=["hme"])
    with pytest.raises(DomainError, match=r"declared 'agee' \(did you mean 'age'\?\)"):
        dpx.Domain.from_model(pipeline, {"agee": (0, 1)})


@pytest.mark.parametrize("make", [lambda: HistGradientBoostingClassifier(max_iter=5), lambda: RandomForestClassifier(5)])
def test_trees_suggest_where_their_answer_stops_changing(make, frame):
    model = make().fit(frame[["age"]], frame["age"] > 40)
    (age,) = dpx.Domain.from_model(model, suggested=True).features
    assert 0 < age.low < 41
    assert 39 < age.high < 80


def test_gradient_boosting_that_encodes_categories_itself_tells_them(frame):
    table = frame[["income", "home", "age"]].assign(home=frame["home"].astype("category"))
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype").fit(
        table, table["age"] + 3 * frame["income"].fillna(0) > 50
    )
    income, home, age = draft_of_model(model).features
    assert home.kind == "categorical"
    assert home.known["values"] == ["other", "own", "rent"]
    assert 0 < age.suggested["low"] < 45 < age.suggested["high"] < 80
    assert income.kind == "numeric"


def test_a_column_that_a_model_only_names_can_be_declared_as_anything(frame):
    model = LogisticRegression().fit(frame[["age"]], frame["age"] > 40)
    assert dpx.Domain.from_model(model, {"age": ["young", "old"]}).features[0] == dpx.Categorical("age", ["young", "old"])
    assert dpx.Domain.from_model(model, {"age": (17, 97, 40)}).features[0] == dpx.Numeric("age", 17, 97, 40)
    assert dpx.Domain.from_model(model, {"age": dpx.Binary("age")}).features[0] == dpx.Binary("age")
    assert dpx.Domain.from_model(model, {"age": {"low": 0, "high": 9, "unit": "years"}}).features[0].unit == "years"


def test_a_scaler_between_bounds_suggests_them(frame):
    model = make_pipeline(MinMaxScaler(), LogisticRegression()).fit(frame[["age"]], frame["age"] > 40)
    (age,) = dpx.Domain.from_model(model, suggested=True).features
    assert age.low <= frame["age"].min()
    assert age.high >= frame["age"].max()


def test_an_onnx_graph_declares_what_its_nodes_know(pipeline, frame, tmp_path):
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]), (OneHotEncoder(), ["home"])
    )
    model = make_pipeline(columns, LogisticRegression()).fit(frame, frame["age"] > 40)
    types = [("age", FloatTensorType([None, 1])), ("income", FloatTensorType([None, 1])), ("home", StringTensorType([None, 1]))]
    path = tmp_path / "model.onnx"
    path.write_bytes(to_onnx(model, initial_types=types).SerializeToString())
    domain = dpx.Domain.from_model(path, suggested=True)
    assert domain.columns == ("age", "income", "home")
    assert domain.features[1].missing is not None
    assert domain.features[2].values == ("other", "own", "rent")
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    with pytest.raises(DomainError, match=r"cannot read .* as an ONNX model"):
        dpx.Domain.from_model(tmp_path / "broken.onnx")


def test_kserve_metadata_names_inputs_and_types(monkeypatch):
    answer = {
        "inputs": [{"name": "age", "datatype": "INT64", "shape": [-1, 1]}, {"name": "work", "datatype": "BYTES", "shape": [-1]}]
    }
    monkeypatch.setattr("dpexplain.json_http.exchange", lambda *_: answer)
    draft = draft_of_model("https://models.example/v2/models/credit/infer")
    assert [(one.name, one.kind, dict(one.known)) for one in draft.features] == [
        ("age", "numeric", {"integer": True}),
        ("work", "categorical", {}),
    ]
    monkeypatch.setattr("dpexplain.json_http.exchange", lambda *_: {})
    with pytest.raises(DomainError, match="does not describe its inputs as KServe V2 does"):
        draft_of_model("https://models.example/v1/models/credit")


@pytest.mark.parametrize("model", [3, lambda rows: rows, "model.txt", None])
def test_what_does_not_describe_itself_is_refused_with_a_remedy(model):
    with pytest.raises(DomainError, match=r"pass a fitted|fitted scikit-learn estimator"):
        dpx.Domain.from_model(model)


ARROW = pa.schema(
    [
        pa.field("age", pa.int32(), metadata={"low": "17", "high": "97", "title": "Age", "unit": "years"}),
        pa.field(
            "debt",
            pa.float64(),
            metadata={"dpexplain": json.dumps({"low": 0, "high": 2, "missing": 0.3, "help": "Debt over income."})},
        ),
        pa.field("work", pa.dictionary(pa.int8(), pa.string()), metadata={"values": '["private", "public"]', "other": "else"}),
        pa.field("school", pa.dictionary(pa.int8(), pa.string(), ordered=True), metadata={"values": '["none", "degree"]'}),
        pa.field("opened", pa.date32(), metadata={"low": "2000-01-01", "high": "2026-01-01"}),
        pa.field("married", pa.bool_()),
    ]
)


def test_an_arrow_schema_declares_by_types_and_metadata(tmp_path):
    domain = dpx.Domain.from_schema(ARROW)
    age, debt, work, school, opened, married = domain.features
    assert age == dpx.Numeric("age", 17, 97, integer=True, title="Age", unit="years")
    assert debt == dpx.Numeric("debt", 0, 2, 0.3, help="Debt over income.")
    assert work == dpx.Categorical("work", ["private", "public"], other="else")
    assert school == dpx.Ordinal("school", ["none", "degree"])
    assert opened == dpx.Date("opened", "2000-01-01", "2026-01-01")
    assert married == dpx.Binary("married")
    pq.write_table(ARROW.empty_table(), tmp_path / "rows.parquet")
    assert dpx.Domain.from_schema(tmp_path / "rows.parquet") == domain


def test_the_same_schema_declares_the_same_whatever_the_rows_hold(tmp_path):
    """Statistics and dictionaries of a file hold private values: two files of one schema give one draft."""
    schema = pa.schema([pa.field("age", pa.int64()), pa.field("work", pa.string())])
    for name, rows in (("a", {"age": [1], "work": ["x"]}), ("b", {"age": [99, 3], "work": ["secret", None]})):
        pq.write_table(pa.table(rows, schema=schema), tmp_path / f"{name}.parquet", use_dictionary=True)
    drafts = [draft_of_schema(tmp_path / f"{name}.parquet") for name in "ab"]
    assert drafts[0].features == drafts[1].features
    assert [one.open for one in drafts[0].features] == [("low", "high"), ("values",)]


class Person(BaseModel):
    age: int = Field(ge=17, le=97)
    debt_ratio: float | None = Field(default=0.3, ge=0, le=2, title="Debt ratio", description="Debt over income.")
    work: Literal["private", "public"]
    married: bool
    opened: date


def test_pydantic_and_json_schema_declare_bounds_and_values(tmp_path):
    domain = dpx.Domain.from_schema(Person, {"opened": ("2000-01-01", "2026-01-01")})
    assert domain.features[:4] == (
        dpx.Numeric("age", 17, 97, integer=True),
        dpx.Numeric("debt_ratio", 0, 2, 0.3, title="Debt ratio", help="Debt over income."),
        dpx.Categorical("work", ["private", "public"]),
        dpx.Binary("married"),
    )
    (tmp_path / "person.json").write_text(json.dumps(Person.model_json_schema()))
    with pytest.raises(Undeclared, match=r"opened \(date\): low, high"):
        dpx.Domain.from_schema(tmp_path / "person.json")
    with pytest.raises(DomainError, match="has its columns under 'properties'"):
        dpx.Domain.from_schema({"$schema": "x", "type": "object"})


def test_polars_enums_are_declared_and_categoricals_are_not():
    schema = pl.Schema(
        {
            "work": pl.Enum(["a", "b"]),
            "home": pl.Categorical(),
            "age": pl.Int64(),
            "share": pl.Float64(),
            "tags": pl.List(pl.String),
        }
    )
    draft = draft_of_schema(schema)
    assert [(one.kind, one.open) for one in draft.features] == [
        ("categorical", ()), ("categorical", ("values",)), ("numeric", ("low", "high")), ("numeric", ("low", "high")), (None, ("kind",)),
    ]  # fmt: skip


def test_a_table_with_a_declared_schema_stands_for_it():
    draft = draft_of_schema(pa.table({"age": [1]}))
    assert draft.features[0].known == draft_of_schema(pl.DataFrame({"age": [99]})).features[0].known
    assert draft.features[0].open == ("low", "high")


def test_pandera_checks_are_read():
    pandera = pytest.importorskip("pandera.pandas")
    schema = pandera.DataFrameSchema(
        {
            "age": pandera.Column(int, pandera.Check.in_range(17, 97), title="Age"),
            "work": pandera.Column(str, pandera.Check.isin(["private", "public"])),
            "debt": pandera.Column(float, [pandera.Check.ge(0), pandera.Check.le(2)], nullable=True),
            "married": pandera.Column(bool),
        }
    )
    domain = dpx.Domain.from_schema(schema)
    assert domain.features == (
        dpx.Numeric("age", 17, 97, integer=True, title="Age"),
        dpx.Categorical("work", ["private", "public"]),
        dpx.Numeric("debt", 0, 2),
        dpx.Binary("married"),
    )


@pytest.mark.parametrize("schema", [pd.DataFrame({"a": [1]}), 3, [("a", int)], "rows.csv"])
def test_what_is_no_schema_is_refused(schema):
    with pytest.raises(DomainError, match="cannot read a"):
        dpx.Domain.from_schema(schema)


@pytest.mark.parametrize(("given", "message"), [(3, "Declare"), ((1, 2, 3, 4), r"\(low, high, missing\)"), ((), "Declare")])
def test_a_declaration_that_fits_no_feature_is_refused(given, message):
    with pytest.raises(DomainError, match=message):
        dpx.Domain.from_schema(pa.schema([("age", pa.int64())]), {"age": given})


def test_bounds_are_rounded_outwards():
    assert round_out(1.234, 97.3) == {"low": 1.0, "high": 98.0}
    assert round_out(-0.00123, 0.0456) == {"low": -0.002, "high": 0.046}
    assert round_out(3, 3) == {}


def test_the_command_writes_a_commented_draft_that_loads_once_it_is_completed(pipeline, tmp_path):
    import joblib

    joblib.dump(pipeline, tmp_path / "model.joblib")
    target = tmp_path / "domain.toml"
    run = CliRunner().invoke(app, ["domain", "draft", "--model", str(tmp_path / "model.joblib"), "--trusted", "-o", str(target)])
    assert run.exit_code == 0, run.output
    assert "still to be declared" in run.output
    text = target.read_text()
    assert "# declare: low = " in text
    with pytest.raises(DomainError, match=r"lacks 'low'\. Declare it"):
        dpx.Domain.load(target)
    target.write_text(text.replace("# declare: ", ""))
    assert dpx.Domain.load(target).columns == ("age", "income", "work", "home")
    refused = CliRunner().invoke(app, ["domain", "draft"])
    assert refused.exit_code == 2


def test_constants_with_titles_and_exclusive_bounds_of_json_schema():
    schema = {
        "properties": {
            "home": {"oneOf": [{"const": "own", "title": "Owner"}, {"const": "rent"}]},
            "cards": {"type": "integer", "exclusiveMinimum": -1, "exclusiveMaximum": 12},
            "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        }
    }
    home, cards, share = dpx.Domain.from_schema(json.dumps(schema)).features
    assert home.values == ("own", "rent")
    assert (cards.low, cards.high) == (0, 11)
    assert (share.low, share.high) == (0, 1)


def test_categories_that_a_pandera_dtype_declares():
    pandera = pytest.importorskip("pandera.pandas", reason="pandera is NOT tested: pip install pandera")
    grade, home = pd.CategoricalDtype(["C", "B", "A"], ordered=True), pd.CategoricalDtype(["own", "rent"])
    schema = pandera.DataFrameSchema({"grade": pandera.Column(grade), "home": pandera.Column(home)})
    assert dpx.Domain.from_schema(schema).features == (
        dpx.Ordinal("grade", ["C", "B", "A"]),
        dpx.Categorical("home", ["own", "rent"]),
    )


def test_a_record_of_a_pydantic_model_stands_for_its_class():
    pydantic = pytest.importorskip("pydantic")
    kind = pydantic.create_model("Person", age=(int, pydantic.Field(ge=0, le=120)))
    assert dpx.Domain.from_schema(kind(age=5)) == dpx.Domain.from_schema(kind)


def test_remedies_that_would_not_help_are_not_offered():
    with pytest.raises(Undeclared) as error:
        dpx.Domain.from_schema({"properties": {"age": {"type": "number"}}})
    assert "suggested=True" not in str(error.value)
    assert "columns=[…]" in str(error.value)
