"""Messages of the command line name its options, not Python's arguments."""

import json
import re
import subprocess
import sys

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
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


@pytest.fixture
def owner(tmp_path, monkeypatch):
    """A folder with a table, its domain, a folder in the place of a file, an empty file and one that is not text."""
    monkeypatch.chdir(tmp_path)
    labels = [1.0 if row["age"] > 40 else -1.0 for row in ROWS]
    pq.write_table(pa.Table.from_pylist([{**row, "y": y} for row, y in zip(ROWS, labels, strict=True)]), "rows.parquet")
    DOMAIN.save("domain.toml")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "one.csv").write_text("age,married\n40,yes\n")
    (tmp_path / "semicolons.csv").write_text("age;married\n40,5;yes\n")
    (tmp_path / "beyond.csv").write_text("age,married\n40,yes\n4000,yes\n")
    return tmp_path


RELEASE = ("release", "rows.parquet", "--domain", "domain.toml", "--label", "y", "--epsilon", 1, "--delta", "1e-3")
RECORD = json.dumps({"age": 40, "married": True})


@pytest.mark.parametrize("output", ["folder.csv", "folder.csv/../nowhere/x.dpx"])
def test_a_release_that_cannot_be_written_is_not_paid_for(owner, output):
    done = run(*RELEASE, "--ledger", "sqlite:///spent.ledger", "-o", output, "--force")
    assert done.exit_code == 2
    assert "folder" in done.stderr
    assert not (owner / "spent.ledger").exists()


def test_a_release_into_a_folder_that_may_not_be_written_is_not_paid_for(owner, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("dpexplain.cli.shared_options.TemporaryFile", refuse)
    done = run(*RELEASE, "--ledger", "sqlite:///spent.ledger", "-o", "x.dpx")
    assert (done.exit_code, "cannot write 'x.dpx': Permission denied" in done.stderr) == (2, True)
    assert not (owner / "spent.ledger").exists()


def test_a_release_says_how_undeclared_labels_are_read_before_it_is_paid_for(owner):
    done = run(*RELEASE, "-o", "x.dpx")
    assert (done.exit_code, "'y' is read as numbers from -1 to 1" in done.stdout) == (0, True)
    told = run(*RELEASE, "--answer", "value", "--bounds=-1,1", "-o", "y.dpx")
    assert (told.exit_code, "is read as" in told.stdout) == (0, False)


def test_a_budget_of_nothing_is_not_the_default(owner):
    done = run(*RELEASE, "--budget", 0, "-o", "x.dpx")
    assert (done.exit_code, "must be positive" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--record", RECORD, "-o", "x.csv"), "--output is for --rows only"),
        (("--record", RECORD, "--skip-errors"), "--skip-errors is for --rows only"),
        (("--record", RECORD, "--rows", "one.csv"), "come from one place"),
        ((), "no record was given\n       Pass either --record with JSON, or --rows with a file"),
        (("--record", RECORD, "--anchor", "half"), "--anchor 'half' is not a number"),
        (("--record", RECORD, "--method", "surrogate", "--plane", "paper"), "--plane is for --method plane only"),
        (("--record", "3"), "a query must be a JSON object"),
        (("--rows", "one.csv"), "need an output file"),
        (("--rows", "one.csv", "-o", "nowhere/x.csv"), "there is no folder nowhere"),
        (("--rows", "one.csv", "-o", "folder.csv"), "it is a folder"),
        (("--rows", "empty.csv", "--json"), "empty.csv is empty"),
        (
            ("--rows", "semicolons.csv", "--json"),
            "semicolons.csv separates its columns by semicolons\n       Write it with commas",
        ),
    ],
)
def test_options_that_cannot_be_followed_are_refused(owner, release, arguments, message):
    done = run("explain", release, *arguments)
    assert (done.exit_code, message in done.stderr) == (2, True), done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--features", 3, "--plot", "x.foo"), "cannot draw 'x.foo'"),
        (("--features", 3, "--plot", "nowhere/x.png"), "there is no folder"),
        (("--features", 3, "--domain", "domain.toml"), "comes from one place"),
        (("--domain", "odd.toml"), "it is not UTF-8 text"),
        (("--domain", "nowhere.toml"), "No such file or directory. Check the path"),
    ],
)
def test_a_plan_refuses_what_it_cannot_draw_or_read(owner, arguments, message):
    done = run("plan", "--rows", 100, *arguments)
    assert (done.exit_code, message in " ".join(done.stderr.replace("\n", ". ", 1).split())) == (2, True), done.output


def test_a_column_that_is_not_there_is_refused_with_those_that_are(owner):
    done = run(*RELEASE[:5], "label", *RELEASE[6:], "-o", "x.dpx")
    assert (done.exit_code, "It has 'age', 'married', 'y'" in done.stderr) == (2, True)


def test_a_model_that_fails_is_quoted_about_made_up_records_only(owner):
    (owner / "failing_of_tests.py").write_text("def f(rows):\n    raise ValueError(f'{rows.num_rows} rows')\n")
    done = run(*RELEASE[:4], "--model", "failing_of_tests:f", "--answer", "probability", *RELEASE[6:], "-o", "x.dpx")
    assert done.exit_code == 2
    assert "ValueError: 64 rows" in done.stderr
    assert "200 rows" not in done.stderr


def test_a_model_that_answers_within_the_bounds_only_passes_the_check(owner):
    """A probability that is linear in a number leaves [0, 1] beyond the declared bounds of the number."""
    (owner / "linear_of_tests.py").write_text("def f(rows):\n    return [age / 100 for age in rows['age'].to_pylist()]\n")
    done = run("check", "--domain", "domain.toml", "--model", "linear_of_tests:f", "--answer", "probability")
    assert done.exit_code == 0, done.output
    assert "outside 0 to 1" not in done.output


def test_a_demo_that_cannot_be_written_is_not_run(owner):
    done = run("demo", "-o", "empty.csv")
    assert (done.exit_code, done.stdout) == (2, "")


def test_reasons_for_skipped_rows_name_options_of_the_command(owner, release):
    done = run("explain", release, "--rows", "beyond.csv", "-o", "out.csv", "--skip-errors")
    assert (done.exit_code, "Skipped row 1: age: 4000.0 is not" in done.stdout) == (0, True)
    assert "pass --clip to ask" in done.stdout


def test_a_file_in_place_of_a_ledgers_url_is_refused_with_its_url(owner):
    done = run("ledger", "show", "one.csv")
    assert (done.exit_code, "Write sqlite:///one.csv" in done.stderr) == (2, True)


def test_a_ledger_has_no_negative_number_of_entries():
    assert run("ledger", "show", "sqlite:///none.ledger", "--last", -3).exit_code == 2


def test_the_package_runs_as_the_command_line():
    done = subprocess.run([sys.executable, "-m", "dpexplain", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == dpx.__version__


COMMANDS = [
    "plan",
    "check",
    "rehearse",
    "release",
    "explain",
    "publish",
    "card",
    "audit",
    "serve run",
    "serve keys add",
    "domain draft",
    "ledger show",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_narrow_terminal_shows_the_whole_name_of_every_option(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(*command.split(), "--help").output
    assert re.findall(r"--[\w-]+…", shown) == []
    assert "--help" in shown


def test_an_answer_by_a_plane_says_that_the_model_was_not_asked(release):
    record = json.dumps({"age": 40, "married": True})
    assert "The model was not asked" in run("explain", release, "--record", record).output
    anchored = run("explain", release, "--record", record, "--plane", "anchored", "--anchor", 0.5).output
    assert "The model was not asked" not in anchored
    assert json.loads(run("explain", release, "--record", record, "--json").output)["plane"] == "fitted"


def test_a_domain_alone_is_not_checked(tmp_path):
    DOMAIN.save(tmp_path / "domain.toml")
    assert "Pass --model too" in run("check", "--domain", tmp_path / "domain.toml").output
    assert "Pass --domain and --model" in run("check").output
