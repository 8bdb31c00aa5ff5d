"""A stranger's table, three times, from files and a model to a published page, with no list of categories written by hand.

What a user writes is in the functions `credit`, `onnx` and `sensors`; their lengths and times are what docs/domain.md states.
"""

import ast
import inspect
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

import dpexplain as dpx
from dpexplain.cli import app
from dpexplain.noise.seeded import SeededNoise

ROWS = 6000
CATEGORIES = {f"kind_{size}": size for size in (2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 45, 60)}


def user_lines(function):
    """Statements between the signature and the return."""
    return len(ast.parse(inspect.getsource(function)).body[0].body) - 1


@pytest.fixture(scope="module")
def bank():
    """Made-up credit data: 28 numbers, 12 categories of 2 to 60 values, every fifth income missing; and the pipeline that scores it."""
    rng = np.random.default_rng(17)
    table = pd.DataFrame({f"number_{i}": rng.gamma(2.0, 10.0 ** (i % 4), ROWS) for i in range(27)})
    table.insert(0, "income", np.where(rng.random(ROWS) < 0.2, np.nan, rng.gamma(2, 2000, ROWS)))
    for name, size in CATEGORIES.items():
        values = np.array([f"{name} {i}" for i in range(size)], dtype=object)
        table[name] = np.where(
            rng.random(ROWS) < 0.03, None, rng.choice(values, ROWS, p=np.arange(size, 0, -1) / (size * (size + 1) / 2))
        )
    default = (table["number_1"] > 25) ^ (table["kind_3"] == "kind_3 0") ^ (rng.random(ROWS) < 0.1)
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    words = make_pipeline(SimpleImputer(strategy="constant", fill_value="unknown"), OneHotEncoder(handle_unknown="ignore"))
    select = make_column_selector
    columns = ColumnTransformer([("n", numbers, select(dtype_include="number")), ("c", words, select(dtype_exclude="number"))])
    return table, make_pipeline(columns, LogisticRegression(max_iter=200)).fit(table, default)


def credit(table, pipeline, page):
    release = dpx.release_model(pipeline, table, dpx.Budget(2.0, 1e-6), suggested=True, target=True, noise=SeededNoise(1))
    answers = release.explain_many(table.head(500), clip=True, on_error="skip")
    release.publish(page)
    return release, answers


@pytest.mark.slow
def test_a_pipeline_with_missing_values_and_forty_columns(bank, tmp_path):
    table, pipeline = bank
    release, answers = credit(table, pipeline, tmp_path / "credit.html")
    assert len(release.domain.features) == 40
    assert release.domain.width > 200
    assert len(answers) == 500  # every person can be asked about
    assert not answers.skipped
    missing = [i for i in range(500) if pd.isna(table["income"][i])]
    assert len(missing) > 50
    assert all("income" in answers[i].notes for i in missing)
    assert (tmp_path / "credit.html").stat().st_size > 10_000
    assert user_lines(credit) == 3


def onnx(folder, run):
    run("domain", "draft", "--model", folder / "model.onnx", "-o", folder / "domain.toml")
    text = (folder / "domain.toml").read_text().replace("# declare: ", "")  # accept what the model suggests
    (folder / "domain.toml").write_text(text)
    run("check", "--domain", folder / "domain.toml", "--model", folder / "model.onnx", "--rows", ROWS, "--epsilon", 2)
    files = (
        folder / "rows.parquet",
        "--domain",
        folder / "domain.toml",
        "--model",
        folder / "model.onnx",
        "-o",
        folder / "credit.dpx",
    )
    run("release", *files, "--epsilon", 2, "--delta", 1e-6)
    run("publish", folder / "credit.dpx", "-o", folder / "credit.html")
    return run(
        "explain",
        folder / "credit.dpx",
        "--rows",
        folder / "people.csv",
        "-o",
        folder / "answers.parquet",
        "--skip-errors",
        "--json",
    )


@pytest.mark.slow
def test_an_onnx_model_from_the_command_line(bank, tmp_path):
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    table = (
        bank[0][["number_0", "number_1", "kind_3", "kind_14"]].dropna().astype({"number_0": np.float32, "number_1": np.float32})
    )
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["number_0", "number_1"]), ("c", OneHotEncoder(), ["kind_3", "kind_14"])]
    )
    model = make_pipeline(columns, LogisticRegression()).fit(table, table["number_1"] > 25)
    kinds = [(name, (FloatTensorType if name.startswith("n") else StringTensorType)([None, 1])) for name in table.columns]
    (tmp_path / "model.onnx").write_bytes(to_onnx(model, initial_types=kinds, options={"zipmap": False}).SerializeToString())
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), tmp_path / "rows.parquet")
    table.head(50).assign(id=range(50)).drop(columns="id").to_csv(tmp_path / "people.csv", index=False)

    def run(*arguments):
        done = CliRunner().invoke(app, list(map(str, arguments)))
        assert done.exit_code == 0, done.output
        return done.stdout

    told = json.loads(onnx(tmp_path, run))
    assert told["explanations"] + len(told["skipped"]) == 50
    assert told["explanations"] >= 45
    assert (tmp_path / "credit.html").exists()
    assert user_lines(onnx) == 7


FIELDS = [
    pa.field("temperature", pa.float64(), metadata={"low": "-20", "high": "60", "unit": "°C", "missing": "20"}),
    pa.field(
        "machine", pa.dictionary(pa.int8(), pa.string()), metadata={"values": '["drill", "lathe", "press"]', "other": "another"}
    ),
    pa.field("installed", pa.date32(), metadata={"low": "2005-01-01", "high": "2026-01-01"}),
    pa.field("running", pa.bool_()),
]


def sensors(table, model, page):
    domain = dpx.Domain.from_schema(table.schema)
    data = dpx.PrivateData(table, domain, model=model, output="probability")
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(2))
    release.publish(page)
    return release


def test_a_plain_function_with_an_arrow_schema(tmp_path):
    rng = np.random.default_rng(3)
    columns = {
        "temperature": rng.normal(25, 10, ROWS),
        "machine": pa.array(rng.choice(["drill", "lathe", "press"], ROWS)).dictionary_encode(),
        "installed": pa.array(rng.integers(14_000, 20_000, ROWS).astype("datetime64[D]")),
        "running": rng.random(ROWS) < 0.5,
    }
    table = pa.table({name: pa.array(column) if isinstance(column, np.ndarray) else column for name, column in columns.items()})
    table = table.cast(pa.schema(FIELDS))

    def fails(rows):
        """One probability a row, from whatever table it is given."""
        return 1 / (1 + np.exp(-(rows.column("temperature").to_numpy() - 30) / 5))

    release = sensors(table, fails, tmp_path / "sensors.html")
    answer = release.explain({"temperature": None, "machine": "robot", "installed": "2020-02-02", "running": True})
    assert answer.notes == {
        "temperature": "missing, read as 20.0",
        "machine": "'robot' is not a declared value, read as 'another'",
    }
    assert answer.top(1)[0][0] == "temperature"
    assert "temperature (°C)" in answer._repr_html_()
    assert user_lines(sensors) == 4
