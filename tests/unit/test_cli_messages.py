"""Messages of the command line name its options, not Python's arguments."""

import json

import pyarrow as pa
import pyarrow.feather
import pytest
from typer.testing import CliRunner

import dpexplain as dpx
from dpexplain.cli import app
from dpexplain.cli.exits import with_options
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Binary("married")])
ROWS = [{"age": 20 + i % 50, "married": i % 2 == 0} for i in range(200)]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    data = dpx.PrivateData(ROWS, DOMAIN, labels=[1.0 if row["age"] > 40 else -1.0 for row in ROWS])
    path = tmp_path_factory.mktemp("cli") / "x.dpx"
    dpx.release(data, dpx.Budget(1.0, 1e-3), noise=SeededNoise(1)).save(path)
    return path


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.mark.parametrize(
    ("record", "option"),
    [({"age": 400, "married": True}, "pass --clip"), ({"age": 40, "married": True, "id": 1}, "pass --ignore-extra")],
)
def test_a_refused_record_names_the_option(release, record, option):
    done = run("explain", release, "--record", json.dumps(record))
    assert done.exit_code == 2
    assert option in done.output


def test_records_may_be_in_an_arrow_file(release, tmp_path):
    pyarrow.feather.write_feather(pa.Table.from_pylist(ROWS[:5]), str(tmp_path / "people.arrow"))
    done = run("explain", release, "--rows", tmp_path / "people.arrow", "-o", tmp_path / "answers.csv")
    assert done.exit_code == 0, done.output
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 6


def test_a_model_of_values_can_be_checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices_of_tests.py").write_text(
        "def price(rows):\n    return [100.0 * age for age in rows['age'].to_pylist()]\n"
    )
    DOMAIN.save(tmp_path / "domain.toml")
    check = ("check", "--domain", tmp_path / "domain.toml", "--model", "prices_of_tests:price")
    undeclared = run(*check)
    assert undeclared.exit_code == 2
    assert "--answer value with --bounds low,high" in undeclared.output
    declared = run(*check, "--answer", "value", "--bounds", "0,10000")
    assert declared.exit_code == 0, declared.output


def test_only_options_that_a_command_has_are_named():
    message = "Declare output='class' and target='yes', or trusted = true"
    assert with_options(message, ("answer", "target")) == "Declare --answer class and --target 'yes', or trusted = true"
    assert with_options(message, ()) == message
