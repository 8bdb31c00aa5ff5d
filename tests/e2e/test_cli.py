"""The command line as people run it: exit codes, JSON, one-line errors with the remedy, and a release from file to answers."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.main import get_command

import dpexplain as dpx
from dpexplain.cli import app
from service_support import JSON, OTHER, RECORD, run, write_config, write_owner_files


def commands_of(group, *words):
    """The words of every command, `serve run` among them."""
    for name, command in group.commands.items():
        yield from commands_of(command, *words, name) if hasattr(command, "commands") else [[*words, name]]


COMMANDS = list(commands_of(get_command(app)))


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    return write_owner_files(tmp_path_factory.mktemp("owner"))


@pytest.fixture(scope="module")
def release(owner):
    made = owner / "people.dpx"
    result = run(*release_command(owner, made))
    assert result.exit_code == 0, result.stderr
    return made


def release_command(owner, output, *more):
    words = [
        "release",
        owner / "people.parquet",
        "--domain",
        owner / "domain.toml",
        "--epsilon",
        2,
        "--delta",
        1e-6,
        "-o",
        output,
    ]
    return [*words, *(more or ("--label", "y"))]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_helps_with_an_example(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert f"Example: dpexplain {' '.join(command).removesuffix(' run')}" in " ".join(result.stdout.split())


def test_completion_can_be_installed():
    assert "_DPEXPLAIN_COMPLETE" in run(
        "--show-completion", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1", SHELL="bash"
    ).stdout or ("--install-completion" in run("--help").stdout)


def test_the_installed_entry_point_runs():
    script = Path(sys.executable).parent / "dpexplain"
    if not script.exists():
        pytest.skip("dpexplain is not installed in this environment: its entry point is NOT tested")
    words = [script, "plan", "--rows", "1000", "--features", "5", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=180, check=True)
    assert json.loads(done.stdout)["rows"] == 1000


def test_plan_is_a_table_data_and_a_picture(tmp_path):
    words = ("plan", "--rows", 2_000_000, "--features", 70, "--epsilon", 1, "--delta", 1e-6)
    assert "rule of thumb" in run(*words).stdout
    told = json.loads(run(*words, "--json", "--plot", tmp_path / "plan.png").stdout)
    assert [one["queries"] for one in told["interactive"]] == sorted(
        (one["queries"] for one in told["interactive"]), reverse=True
    )
    assert told["release"]["cosine"] > 0.98
    least, most = told["release"]["excess_interval"]
    assert least < told["release"]["relative_excess"] < most
    assert "2,000,000 rows" in told["not_known"][0]
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_plan_takes_what_is_public_and_says_what_it_does_not_know(tmp_path):
    words = ("plan", "--rows", 20_000, "--features", 20)
    vague = json.loads(run(*words, "--json").stdout)
    facts = ("--answers", "soft", "--model", "--positives", 0.4, "--curved", "--untied")
    told = json.loads(run(*words, "--json", *facts).stdout)
    assert vague["not_known"]
    assert not told["not_known"]
    assert (told["model"], told["rare"], told["hard"], vague["hard"]) == (True, False, False, None)
    assert (told["linear"], told["tied"], vague["tied"]) == (False, False, None)
    low, high = told["release"]["excess_interval"]
    assert high / low < vague["release"]["excess_interval"][1] / vague["release"]["excess_interval"][0]
    assert "Not known" in run(*words).stdout
    assert json.loads(run(*words, "--plane", "paper", "--json").stdout)["release"]["excess_interval"] is None
    assert "no interval" in run(*words, "--plane", "paper").stdout.replace("\n", " ")
    dpx.Domain.encoded(7).save(tmp_path / "domain.toml")
    assert json.loads(run("plan", "--rows", 500, "--domain", tmp_path / "domain.toml", "--json").stdout)["features"] == 7


@pytest.mark.parametrize(
    "words",
    [
        ("--rows", 0, "--features", 5),
        ("--rows", 10, "--features", 5, "--epsilon", -1),
        ("--rows", 10),
        ("--rows", 10, "--features", 5, "--domain", "domain.toml"),
        ("--rows", 10, "--features", 5, "--positives", 2),
        ("--rows", 10, "--features", 5, "--plane", "anchored"),
    ],
)
def test_plan_refuses_nonsense(words):
    assert run("plan", *words).exit_code == 2


def test_from_a_file_to_answers(release, tmp_path):
    told = json.loads(run("explain", release, "--record", JSON, "--json").stdout)
    assert dpx.Explanation.from_dict(told).values == pytest.approx(dpx.load(release).explain(RECORD).values)
    assert "education" in run("explain", release, "--record", JSON).stdout
    header = ",".join(RECORD)
    lines = [",".join(str(value) for value in record.values()) for record in (RECORD, OTHER)]
    (tmp_path / "new.csv").write_text("\n".join([header, *lines]))
    assert run("explain", release, "--rows", tmp_path / "new.csv", "-o", tmp_path / "out.parquet").exit_code == 0
    table = pq.read_table(tmp_path / "out.parquet")
    expected = dpx.load(release).explain_many([RECORD, OTHER])
    added = expected.contributions()
    assert table.column("hours").to_pylist() == pytest.approx([one.values[1] for one in added])
    assert table.column("hours error").to_pylist() == pytest.approx([one.error[1] for one in added])
    assert table.column("answer").to_pylist() == pytest.approx(added.answer.tolist())
    assert table.column("average").to_pylist() == pytest.approx(added.base.tolist())
    assert table.column("hours slope").to_pylist() == pytest.approx([one.values[1] for one in expected])
    assert table.column("hours slope error").to_pylist() == pytest.approx([one.error[1] for one in expected])
    assert b"differential privacy" in table.schema.metadata[b"dpexplain.guarantee"]


def test_an_answer_begins_with_what_makes_it(release):
    text = run("explain", release, "--record", JSON).stdout
    assert "The model's answer here is about" in text
    assert "age = " in text
    assert "What would change the answer" in text


def test_the_plane_is_one_word_on_the_command_line_too(release):
    told = {
        plane: json.loads(run("explain", release, "--record", JSON, "--plane", plane, "--json").stdout)
        for plane in ("fitted", "paper")
    }
    assert {plane: one["plane"] for plane, one in told.items()} == {"fitted": "fitted", "paper": "paper"}
    assert told["paper"]["intercept"] == 0
    assert told["fitted"]["values"] != told["paper"]["values"]
    refused = run("explain", release, "--record", JSON, "--plane", "flat")
    assert (refused.exit_code, "'fitted', 'anchored' or 'paper'" in refused.stderr) == (2, True)
    assert run("explain", release, "--record", JSON, "--plane", "anchored").exit_code == 2  # through what?


def test_explanations_through_the_models_answer(release, tmp_path):
    # answers are classes, 0 or 1
    told = json.loads(run("explain", release, "--record", JSON, "--anchor", "0.3", "--json").stdout)
    made = dpx.load(release)
    assert dpx.Explanation.from_dict(told).values == pytest.approx(made.explain(RECORD, anchor=0.3).values)
    assert told["details"]["anchor"] == pytest.approx(-0.4)  # as a label, as the slopes are
    (tmp_path / "new.jsonl").write_text("\n".join(json.dumps(one | {"said": said}) for one, said in ((RECORD, 0.3), (OTHER, 1))))
    rows = ("explain", release, "--rows", tmp_path / "new.jsonl", "--json")
    many = json.loads(run(*rows, "--anchor", "said").stdout)
    expected = made.explain_many([RECORD, OTHER], anchor=[0.3, 1.0])
    assert [dpx.Explanation.from_dict(one).values for one in many] == [pytest.approx(one.values) for one in expected]
    assert "Name the column" in run(*rows, "--anchor", "heard").stderr


@pytest.mark.parametrize("suffix", ["json", "jsonl", "parquet"])
@pytest.mark.parametrize("output", ["out.csv", "out.json", None])
def test_records_in_and_explanations_out(release, tmp_path, suffix, output):
    path = tmp_path / f"new.{suffix}"
    if suffix == "parquet":
        import pyarrow as pa

        pq.write_table(pa.Table.from_pylist([RECORD, OTHER]), path)
    else:
        path.write_text(json.dumps([RECORD, OTHER]) if suffix == "json" else f"{JSON}\n\n{json.dumps(OTHER)}\n")
    result = run("explain", release, "--rows", path, *(["-o", tmp_path / output] if output else ["--json"]))
    assert result.exit_code == 0, result.stderr
    if output is None:
        assert len(json.loads(result.stdout)) == 2
    else:
        assert (tmp_path / output).stat().st_size > 100


@pytest.mark.slow
def test_reference_records_come_from_the_model(owner, tmp_path, monkeypatch):
    monkeypatch.setattr(import_module("dpexplain.release.reference_data"), "_USUAL", 1024)
    monkeypatch.syspath_prepend(tmp_path)
    code = "import numpy as np\n\ndef answer(table):\n    return np.where(np.arange(len(table)) % 2, 1.0, -1.0)\n"
    (tmp_path / "alternating_box.py").write_text(code)
    made = tmp_path / "r.dpx"
    result = run(*release_command(owner, made, "--model", "alternating_box:answer", "--reference"))
    assert result.exit_code == 0, result.stderr
    reference = dpx.load(made).reference
    assert (reference.labels == np.tile([-1.0, 1.0], 512)).all()
    refused = run(*release_command(owner, tmp_path / "x.dpx", "--label", "y", "--reference"))
    assert refused.exit_code == 2
    assert "--model" in refused.stderr


def test_a_release_pays_from_a_ledger_until_it_is_refused(owner, tmp_path):
    ledger = f"sqlite:///{tmp_path}/people.ledger"
    first = run(*release_command(owner, tmp_path / "a.dpx", "--label", "score", "--ledger", ledger, "--budget", 2.5, "--json"))
    assert first.exit_code == 0, first.stderr
    told = json.loads(first.stdout)
    assert told["spent"]["epsilon"] == pytest.approx(2, rel=1e-6)
    second = run(*release_command(owner, tmp_path / "b.dpx", "--label", "score", "--ledger", ledger, "--budget", 2.5))
    assert second.exit_code == 3
    assert second.stderr.startswith("error: ")
    assert not (tmp_path / "b.dpx").exists()


@pytest.mark.slow
def test_labels_by_declared_type_are_the_same_labels(owner, tmp_path):
    answers = []
    for number, label in enumerate((("y",), ("score",), ("text", "--target", "rich"))):
        made = tmp_path / f"{number}.dpx"
        result = run(*release_command(owner, made, "--label", *label, "--epsilon", 50))
        assert result.exit_code == 0, result.stderr
        answers.append(dpx.load(made).explain(RECORD))
    first = answers[0]
    assert (np.abs(first.values) / first.error).max() > 10  # other labels would be noticed
    for other in answers[1:]:
        assert (np.abs(first.values - other.values) <= 6 * np.hypot(first.error, other.error)).all()


@pytest.mark.parametrize("how", ["--stream", "--in-memory"])
def test_several_files_make_one_release(owner, tmp_path, how):
    rows = pq.read_table(owner / "people.parquet")
    for part in range(2):
        pq.write_table(rows.slice(1500 * part, 1500), tmp_path / f"{part}.parquet")
    words = ["--domain", owner / "domain.toml", "--epsilon", 2, "--delta", 1e-6, "--label", "y", "-o", tmp_path / "x.dpx", how]
    result = run("release", tmp_path / "0.parquet", tmp_path / "1.parquet", *words)
    assert result.exit_code == 0, result.stderr
    assert dpx.load(tmp_path / "x.dpx").size == 3000
    assert run("release", f"{tmp_path}/[01].parquet", *words, "--force").exit_code == 0
    assert run("release", f"{tmp_path}/*.nothing", *words, "--force").exit_code == 2


def test_a_unit_is_protected_as_a_whole(owner, tmp_path):
    assert (
        run(*release_command(owner, tmp_path / "u.dpx", "--label", "y", "--unit", "owner", "--max-rows-per-unit", 2)).exit_code
        == 0
    )
    assert "all records of any one owner (at most 2)" in str(dpx.load(tmp_path / "u.dpx").guarantee)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--label", "none"), "no column 'none'"),
        ((), ""),
        (("--label", "text"), "Say which class"),
        (("--label", "y", "--model", "a:b"), "either a column with the model's answers"),
        (("--label", "y", "--relation", "swap"), "relation must be"),
        (("--label", "y", "--epsilon", "0"), "epsilon"),
        (("--label", "y", "--unit", "nobody"), "no column 'nobody'"),
        (("--label", "y", "--ledger", "nonsense"), "cannot open a ledger"),
        (("--model", "nothing.onnx"), "no model file"),
        (("--model", "nothing.pkl"), "runs whatever code it contains"),
    ],
)
def test_bad_input_exits_with_2_spends_nothing_and_writes_nothing(owner, tmp_path, more, says):
    if not more:
        more = ("--label", "y", "--domain", tmp_path / "none.toml")
    result = run(*release_command(owner, tmp_path / "x.dpx", *more))
    assert result.exit_code == 2, (result.stdout, result.stderr)
    assert result.stderr.startswith("error: ")
    assert says in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_not_overwritten_by_accident(owner, release):
    before = release.read_bytes()
    assert run(*release_command(owner, release)).exit_code == 2
    assert run(*release_command(owner, release.parent / "no" / "x.dpx")).exit_code == 2
    assert release.read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [
        ("--record", "{"),
        ("--record", "[" * 100_000),
        ("--record", '{"age": 1}'),
        ("--record", "3"),
        (),
        ("--record", JSON, "--rows", "x.csv"),
        ("--rows", "none.csv", "--json"),
        ("--rows", "none.xyz", "--json"),
        ("--record", JSON, "--anchor", "yes"),
        ("--record", JSON, "--anchor", "1.2"),
    ],
    ids=range(10),
)
def test_a_bad_question_exits_with_2(release, words):
    result = run("explain", release, *words)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) <= 2


def test_a_bad_row_is_named(release, tmp_path):
    (tmp_path / "new.jsonl").write_text(f"{JSON}\n{json.dumps(RECORD | {'age': 400})}")
    result = run("explain", release, "--rows", tmp_path / "new.jsonl", "--json")
    assert (result.exit_code, "row 1: age: 400 is not" in result.stderr) == (2, True)
    assert run("explain", release, "--rows", tmp_path / "new.jsonl").exit_code == 2


def test_a_damaged_release_exits_with_4(release, tmp_path):
    damaged = bytearray(release.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "bad.dpx").write_bytes(damaged)
    result = run("explain", tmp_path / "bad.dpx", "--record", JSON)
    assert (result.exit_code, result.stdout) == (4, "")
    assert run("explain", tmp_path / "none.dpx", "--record", JSON).exit_code == 2


def test_publish_writes_a_page(release, tmp_path):
    assert run("publish", release, "-o", tmp_path / "p.html", "--outcome", "an income above the line").exit_code == 0
    assert "an income above the line" in (tmp_path / "p.html").read_text(encoding="utf-8")
    assert run("publish", release, "-o", tmp_path / "p.html").exit_code == 2


def test_bench_needs_a_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("bench").exit_code == 2
    monkeypatch.chdir(Path(__file__).parents[2])
    assert "There are " in run("bench", "nonsense").stderr


def test_keys_are_made_listed_and_revoked(owner, tmp_path, monkeypatch):
    config = write_config(owner)
    monkeypatch.chdir(owner)
    key = run("serve", "keys", "add", "--role", "owner", "--name", "[bold]me").stdout.strip()
    assert key.startswith("dpx_")
    assert json.loads(run("serve", "keys", "add", "-c", config, "--json").stdout)["role"] == "analyst"
    listed = json.loads(run("serve", "keys", "list", "--json").stdout)
    assert [one["role"] for one in listed] == ["owner", "analyst"]
    assert key not in run("serve", "keys", "list").stdout
    assert run("serve", "keys", "revoke", listed[0]["id"]).exit_code == 0
    assert run("serve", "keys", "revoke", listed[0]["id"]).exit_code == 2
    assert run("serve", "keys", "add", "--role", "root", "--keys", tmp_path / "k.json").exit_code == 2


def test_serve_checks_before_it_serves(owner):
    config = write_config(owner, ledger={"url": "sqlite:///check.ledger"})
    result = run("serve", config, "--check")
    assert result.exit_code == 0, result.stderr
    assert '"rows": 3000' in result.stdout
    own = {"keys": "checked.json"}  # other tests have keys.json
    assert run("serve", "keys", "add", "-c", write_config(owner, service=own)).exit_code == 0
    for sections, says in (
        ({"service": own, "mechanism": {"calibration": "paper"}}, "never served"),
        ({"service": own, "budget": {"epsilon": 2.0}, "ledger": {"url": "sqlite:///check.ledger"}}, "other parameters"),
        ({"service": {"keys": "none.json"}, "ledger": {"url": "sqlite:///other.ledger"}}, "there are no keys"),
    ):
        result = run("serve", write_config(owner, **sections))
        assert (result.exit_code, says in " ".join(result.stderr.split())) == (2, True), result.stderr


def test_it_knows_its_version():
    told = run("--version")
    assert (told.exit_code, told.stdout.strip()) == (0, dpx.__version__)


def test_audits_are_sentences_data_and_exit_codes(monkeypatch):
    words = ("audit", "influence", "--runs", 100, "--seed", 1)
    told = run(*words)
    assert told.exit_code == 0, told.stderr
    assert told.stdout.startswith("influence (transcript): the claim of ε = 1 at δ = 1e-06 (μ = 0.237) stands.")
    (found,) = json.loads(run(*words, "--json", "--view", "answer").stdout)
    assert found["passed"] is True
    assert found["view"] == "answer"
    monkeypatch.setattr("dpexplain.mechanisms.influence.sensitivity.linear", lambda weight: 0.05)  # seven times too little noise
    refuted = run(*words)
    assert refuted.exit_code == 5
    assert "REFUTED" in refuted.stdout


@pytest.mark.parametrize("words", [("nobody",), ("basic", "--runs", 5), ("basic", "--view", "loss"), ("basic", "--epsilon", -1)])
def test_audit_refuses_nonsense(words):
    refused = run("audit", *words)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: ")
