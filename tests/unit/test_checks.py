"""Checks before paying: problems are found on made-up records, nothing is read or spent."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpexplain as dpx
from dpexplain.cli import app
from dpexplain.errors import ParameterError
from dpexplain.onboarding.checks import made_up_records

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 0, 100, missing=40),
        dpx.Numeric("wide", 0, 10_000),
        dpx.Numeric("unused", 0, 1, integer=True),
        dpx.Ordinal("school", ["none", "some", "degree"]),
        dpx.Categorical("work", ["a", "b", "c"]),
        dpx.Binary("married"),
        dpx.Date("opened", "2000-01-01", "2020-01-01"),
    ]
)


def model(frame):
    """Follows age, the first 5 % of `wide`, and work."""
    score = frame["age"] / 100 + np.clip(frame["wide"] / 500, 0, 1) + (frame["work"] == "a")
    return (score / 1.5 - 1).clip(-1, 1).to_numpy()


def texts(report, level):
    return " ".join(str(one) for one in report.of(level))


def test_a_sound_model_passes_and_odd_bounds_are_found():
    report = dpx.check(DOMAIN, dpx.Budget(1.0, 1e-6), model=model, rows=50_000)
    assert report.ok
    assert "accepts made-up records" in texts(report, "good")
    assert "wide: the answer changes in only" in texts(report, "warning")
    assert not re.search(r"\de[+-]\d", texts(report, "warning"))  # 20,000 and not 2e+04
    assert "does not change with 'unused', 'opened'" in texts(report, "note")
    assert "a missing 'wide'" in texts(report, "note")
    assert "cosine about" in str(report)
    assert "goes on changing beyond" in texts(report, "note")
    assert json.loads(json.dumps(report.to_dict()))["ok"]


@pytest.mark.parametrize(
    ("rows", "epsilon", "level", "verdict"),
    [
        (10**9, 1.0, "good", ": good to near exact (cosine about 1.00, usually 0.97 to 1.00)"),
        (1_000_000, 1.0, "good", ": fair to near exact (cosine about 1.00, usually 0.78 to 1.00)"),
        (5_000, 0.5, "note", ": mostly noise to near exact (cosine about 0.93, usually 0.18 to 1.00)"),
        (1_000, 0.1, "warning", ": mostly noise to near exact (cosine about 0.68, usually 0.06 to 1.00)"),
    ],
)
def test_the_expected_quality_is_called_good_only_where_its_lower_end_is(rows, epsilon, level, verdict):
    report = dpx.check(DOMAIN, dpx.Budget(epsilon, 1e-7), model=model, rows=rows)
    assert verdict in texts(report, level)


def test_a_constant_model_and_one_that_refuses_are_problems():
    constant = dpx.check(DOMAIN, model=lambda frame: np.full(len(frame), 0.3))
    assert not constant.ok
    assert "nothing to explain" in texts(constant, "problem")
    broken = dpx.check(DOMAIN, model=lambda frame: frame["no such column"], output="probability")
    assert not broken.ok
    assert "does not accept made-up records of the domain: KeyError: 'no such column'" in texts(broken, "problem")
    assert "private" not in texts(broken, "problem")


@pytest.mark.parametrize(
    ("odd", "level", "said"),
    [
        (lambda frame, found: found - found.mean(), "problem", "differently beside other records"),
        (lambda frame, found: pd.Series(found).rank(pct=True).to_numpy() * 2 - 1, "problem", "no guarantee holds"),
        (lambda frame, found: found * (1 - 1e-9 * (len(frame) % 7)), "note", "last digits"),
        (lambda frame, found: found if len(frame) > 1 else frame["no such column"], "warning", "alone in a call"),
        (
            lambda frame, found: found[:, None] if len(frame) > 1 else None,
            "good",
            "accepts made-up records",
        ),  # it is asked twice over
        (lambda frame, found: np.squeeze(found), "good", "accepts made-up records"),
    ],
)
def test_answers_that_depend_on_other_records_are_found(odd, level, said):
    """No private row is needed for it: made-up records are put to the model in other company."""
    report = dpx.check(DOMAIN, model=lambda frame: odd(frame, model(frame)), output="value", bounds=(-1, 1))
    assert said in texts(report, level)
    assert report.ok == (level != "problem")
    other = {"differently beside", "last digits", "alone in a call"} - {said}
    assert [text for text in other if text in str(report) and level != "problem"] == []


def test_a_weak_budget_and_too_few_rows_are_warned_of():
    report = dpx.check(DOMAIN, dpx.Budget(20.0, 1e-2), model=model, rows=500)
    assert "ε=20" in texts(report, "warning")
    assert "δ=0.01" in texts(report, "warning")
    tiny = dpx.check(DOMAIN, dpx.Budget(0.01, 1e-6), model=model, rows=500)
    assert "mostly noise" in texts(tiny, "warning")


def test_bounds_in_another_unit_are_found():
    domain = dpx.Domain([dpx.Numeric("age", 0, 1), dpx.Binary("married")])
    report = dpx.check(
        domain, model=lambda frame: np.where(frame["age"] > 1.05, 1.0, -1.0) * 0.5 + 0.1 * frame["married"].to_numpy()
    )
    assert "changes only beyond the declared bounds" in texts(report, "warning")


def test_registered_data_are_checked_without_reading_or_spending():
    rows = pd.DataFrame(DOMAIN.decode(made_up_records(DOMAIN, 64)))
    data = dpx.PrivateData(rows, DOMAIN, model=model)
    report = dpx.check(data, dpx.Budget(1.0, 1e-6))
    assert "accepts made-up records" in str(report)
    assert data.spent.epsilon == 0
    labelled = dpx.check(dpx.PrivateData(rows, DOMAIN, labels=np.zeros(64)))
    assert "labels are read as numbers from -1 to 1: 0 is halfway" in texts(labelled, "warning")
    declared = dpx.check(dpx.PrivateData(rows, DOMAIN, labels=np.zeros(64), output="class", target=1))
    assert "labels are read" not in texts(declared, "warning")
    assert "there is no model to ask" in str(labelled)
    text = dpx.check(dpx.PrivateData(["a b", "b"], dpx.TextDomain(["a", "b"]), labels=[1.0, -1.0]))
    assert text.ok


def test_wide_domains_are_named():
    domain = dpx.Domain([dpx.Categorical("code", list(range(3000))), dpx.Numeric("x", 0, 1)])
    report = dpx.check(domain, model=lambda frame: np.asarray(frame["x"]))
    assert "more than a release takes" in texts(report, "problem")
    assert "more than 100 values in 'code'" in texts(report, "warning")


@pytest.mark.parametrize("data", [3, DOMAIN, None])
def test_what_cannot_be_checked_is_refused(data):
    with pytest.raises(ParameterError, match=r"dpx\.check"):
        dpx.check(data)


def test_the_command_checks_files_and_exits_with_2_on_problems(tmp_path, monkeypatch):
    DOMAIN.save(tmp_path / "domain.toml")
    (tmp_path / "own_model.py").write_text(
        "import numpy as np\n\ndef good(table):\n    return np.clip(table['age'].to_numpy() / 50 - 1, -1, 1)\n\n"
        "def bad(table):\n    return np.zeros(table.num_rows)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    start = ["check", "--domain", str(tmp_path / "domain.toml"), "--rows", "50000", "--epsilon", "1", "--model"]
    good = CliRunner().invoke(app, [*start, "own_model:good", "--json"])
    assert good.exit_code == 0, good.output
    assert json.loads(good.output)["ok"]
    bad = CliRunner().invoke(app, [*start, "own_model:bad"])
    assert bad.exit_code == 2
    assert "nothing to explain" in bad.output
    assert CliRunner().invoke(app, ["check"]).exit_code == 2
