"""`dpexplain ledger` as people run it: exit codes, JSON, one-line errors with the remedy."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpexplain.cli import app
from dpexplain.ledger import SqliteLedger
from dpexplain.privacy.budget import USED_PAPER_NOISE, USED_SEED, USED_UNPAID
from ledger_support import account, ask, event, refund_request, spend


@pytest.fixture
def filled_place(place):
    for who in (account(), account("second", epsilon=2.0)):
        ledger = place.open(who)
        spend(ledger, "a", event(0.02, "beta"), event(0.01))
        refund_request(ledger, "b")
        ledger.reserve(ask("[bold]c[/bold]"))
        ledger.close()
    return place


def run(*words):
    return CliRunner().invoke(app, ["ledger", *map(str, words)], env={"COLUMNS": "160"})


def test_show_says_when_what_cost_and_running_total(filled_place):
    result = run("show", filled_place.url)
    assert result.exit_code == 0
    assert "income: budget ε=1, δ=1e-06, for any one record added or removed" in result.stdout
    assert "second: budget ε=2" in result.stdout
    assert "beta, gradient" in result.stdout
    assert "given back" in result.stdout
    assert "[bold]c[/bold]" in result.stdout
    assert "Everything released or reserved so far satisfies (ε=" in result.stdout


def test_show_calls_only_answers_released(place):
    ledger = place.open(account())
    spend(ledger, "a", event(0.02))
    assert "Everything released so far satisfies (ε=" in run("show", place.url).stdout
    ledger.reserve(ask("b"))
    ledger.close()
    assert "Everything released or reserved so far satisfies (ε=" in run("show", place.url).stdout
    (shown,) = json.loads(run("show", place.url, "--json").stdout)
    assert shown["spent"]["statement"].startswith("Everything released or reserved so far")


def test_show_as_json_is_data(filled_place):
    (one,) = json.loads(run("show", filled_place.url, "--json", "--dataset", "second", "--last", "2").stdout)
    assert one["account"]["epsilon"] == 2.0
    assert [entry["kind"] for entry in one["entries"]] == ["refund", "reserve"]
    assert one["spent"]["epsilon"] == pytest.approx(one["entries"][-1]["running_epsilon"])
    assert len(json.loads(run("show", filled_place.url, "--json", "--last", "0").stdout)[0]["entries"]) == 6


def test_export_is_one_checkable_line_for_each_entry(filled_place, tmp_path):
    lines = run("export", filled_place.url, "--dataset", "income").stdout.splitlines()
    assert len(lines) == 6
    for text in lines:
        value = json.loads(text)
        document = json.dumps(value["entry"], sort_keys=True, separators=(",", ":"))
        assert sha256(document.encode()).hexdigest() == value["hash"]
    assert run("export", filled_place.url, "-o", tmp_path / "all.jsonl").exit_code == 0
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 12
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o777 == 0o600  # it holds what was asked


def test_verify_accepts_what_is_whole_and_says_what_it_could_not_see(filled_place):
    result = run("verify", filled_place.url)
    assert result.exit_code == 0
    assert "income: whole. 6 entries, 1 answer, 1 reservation open" in result.stdout
    assert "No --head was given" in result.stdout


def test_verify_finds_an_edit(filled_place):
    filled_place.execute(
        "UPDATE dpexplain_entries SET document = replace(document, 'beta', 'none') WHERE sequence = 3 AND dataset = 'second'"
    )
    result = run("verify", filled_place.url)
    assert result.exit_code == 4
    assert "income: whole" in result.stdout
    assert result.stderr.startswith("error: second: ledger entry 3 was edited")
    assert "docs/ledger.md" in result.stderr
    assert [one["ok"] for one in json.loads(run("verify", filled_place.url, "--json").stdout)] == [True, False]


def test_a_kept_head_exposes_a_roll_back(sqlite_place, tmp_path):
    head, ledger = tmp_path / "heads.json", sqlite_place.open()
    spend(ledger, "a")
    ledger.close()
    shutil.copy(sqlite_place.where, tmp_path / "backup")
    spend(ledger, "b")
    ledger.close()
    assert run("verify", sqlite_place.url, "--save-head", head).exit_code == 0
    assert "No --head" not in run("verify", sqlite_place.url, "--head", head, "--save-head", head).stdout
    shutil.copy(tmp_path / "backup", sqlite_place.where)
    assert run("verify", sqlite_place.url).exit_code == 0  # without the anchor an old copy is a whole ledger
    result = run("verify", sqlite_place.url, "--head", head, "--save-head", head)
    assert result.exit_code == 4
    assert "had 5 before: it was cut or rolled back to an older copy" in result.stderr
    assert json.loads(head.read_text())["heads"]["income"]["sequence"] == 5  # a failed check does not move the anchor


def test_a_kept_head_exposes_an_account_that_is_gone(filled_place, tmp_path):
    head = tmp_path / "heads.json"
    run("verify", filled_place.url, "--save-head", head)
    for table in ("dpexplain_entries", "dpexplain_accounts"):
        filled_place.execute(f"DELETE FROM {table} WHERE dataset = 'second'")
    result = run("verify", filled_place.url, "--head", head)
    assert result.exit_code == 4
    assert "the account 'second' is gone" in result.stderr


@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_bad_input_exits_with_2_and_makes_nothing(command, tmp_path):
    for url in ("nonsense", f"sqlite:///{tmp_path}/none.ledger"):
        result = run(command, url)
        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")
        assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_other_bad_input(filled_place, tmp_path):
    assert run("show", filled_place.url, "--dataset", "third").exit_code == 2
    assert "It has 'income', 'second'" in run("show", filled_place.url, "--dataset", "third").stderr
    (tmp_path / "bad.json").write_text("[]")
    for head in ("bad.json", "missing.json"):
        assert run("verify", filled_place.url, "--head", tmp_path / head).exit_code == 2
    assert run("verify", filled_place.url, "--save-head", tmp_path / "no" / "heads.json").exit_code == 2
    assert run("export", filled_place.url, "-o", tmp_path / "no" / "all.jsonl").exit_code == 2


def test_a_damaged_file_exits_with_4(sqlite_place):
    sqlite_place.open().close()
    with open(sqlite_place.where, "r+b") as file:
        file.write(b"not a database")
    result = run("verify", sqlite_place.url)
    assert result.exit_code == 4
    assert len(result.stderr.splitlines()) == 2  # what is wrong, and the remedy


def test_reading_changes_nothing(sqlite_place):
    spend(ledger := sqlite_place.open(), "a")
    ledger.close()
    before = Path(sqlite_place.where).read_bytes()
    for command in ("show", "verify", "export"):
        assert run(command, sqlite_place.url).exit_code == 0
    assert Path(sqlite_place.where).read_bytes() == before


@pytest.mark.parametrize(
    ("used", "says"),
    [(USED_PAPER_NOISE, "calibration='paper'"), (USED_SEED, "from a seed"), (USED_UNPAID, "NOT differentially private")],
)
def test_what_an_account_was_used_with_is_part_of_its_statement(used, says, tmp_path):
    plain, other = (f"sqlite:///{tmp_path}/{name}.ledger" for name in ("plain", "other"))
    for url, uses in ((plain, ()), (other, (used,))):
        ledger = SqliteLedger(url.removeprefix("sqlite:///"), account())
        ledger.reserve(replace(ask("a"), uses=uses))
        ledger.close()
    for command in ("show", "total"):
        assert says not in run(command, plain).stdout
        assert says in run(command, other).stdout
    assert says in run("total", plain, other).stdout
    ((shown,), together) = (json.loads(run(*words, "--json").stdout) for words in (("show", other), ("total", plain, other)))
    for spent in (shown["spent"], together["spent"]):
        assert says in spent["statement"]
        assert spent["private"] == (used != USED_UNPAID)
    assert used in run("verify", other).stdout


def test_one_statement_for_several_periods(tmp_path):
    from dpexplain.privacy import gdp

    urls = []
    for name in ("income-2026", "income-2027"):
        ledger = SqliteLedger(tmp_path / f"{name}.ledger", account(name))
        spend(ledger, "a", event(0.03 if name.endswith("6") else 0.04))
        ledger.close()
        urls.append(f"sqlite:///{tmp_path}/{name}.ledger")
    result = CliRunner().invoke(app, ["ledger", "total", *urls, "--json"])
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["accounts"] == ["income-2026", "income-2027"]
    assert found["spent"]["mu"] == pytest.approx(0.05)  # costs add as μ²
    assert found["spent"]["epsilon"] == pytest.approx(gdp.epsilon(0.05, 1e-6))
    assert "Everything released so far satisfies" in CliRunner().invoke(app, ["ledger", "total", *urls]).stdout
