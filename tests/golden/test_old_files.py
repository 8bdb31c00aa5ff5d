"""Files written by earlier versions still load and still mean the same: releases, with and without reference, and a ledger.

`files/` was written by version 0.1.0 from the rows below, with seeded noise. Answers of the paper's plane are compared with what 0.1.0 gave.
"""

import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.ledger import SqliteLedger, open_existing, verify

FILES = Path(__file__).parent / "files"
THEN = json.loads((FILES / "answers-0.1.0.json").read_text())
DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 17, 97),
        dpx.Numeric("hours", 1, 99),
        dpx.Categorical("work", values=["private", "public", "none"]),
        dpx.Binary("married"),
    ]
)
MECHANISMS = (
    dpx.Basic(0.05, 1e-6, plane="paper"),
    dpx.Adaptive(epsilon=0.05, delta=1e-6, steps=60, plane="paper"),
    dpx.Influence(0.05, 1e-6),
)


def rows():
    """The rows of 0.1.0: the ledger's account names their domain."""
    rng = np.random.default_rng(5)
    age, hours = rng.uniform(17, 97, 4000), rng.uniform(1, 99, 4000)
    return {
        "age": age,
        "hours": hours,
        "work": rng.choice(["private", "public", "none"], 4000),
        "married": rng.random(4000) < 0.5,
    }


@pytest.mark.parametrize("kind", ["moments", "reference"])
def test_an_old_release_loads_and_answers_within_its_errors(kind):
    release, then = dpx.load(FILES / f"{kind}-0.1.0.dpx"), THEN[kind]
    assert release.guarantee.mu == pytest.approx(then["mu"])
    assert release.domain == DOMAIN
    for record, values, error in zip(then["records"], then["values"], then["error"], strict=True):
        answer = release.explain(record, plane="paper")  # the only plane there was then
        assert (np.abs(answer.values - values) <= 0.5 * np.array(error)).all()
        added = release.explain(record).contributions()  # the same moments give the fitted plane
        assert added.details["plane"] == "fitted"
        assert np.isfinite(added.error).all()


def test_an_old_ledger_opens_counts_the_same_and_repeats_its_answers(tmp_path):
    shutil.copy(FILES / "ledger-0.1.0.sqlite", tmp_path / "then.ledger")
    ledger = f"sqlite:///{tmp_path / 'then.ledger'}"
    data = dpx.PrivateData(rows(), DOMAIN, labels=np.zeros(4000), name="golden")
    given = {one["id"]: one["values"] for one in THEN["ledger"]["answers"]}
    for mechanism in MECHANISMS:
        explainer = dpx.Explainer(data, dpx.Budget(1.0, 1e-6), mechanism, ledger=ledger)
        assert explainer.spent.mu == pytest.approx(THEN["ledger"]["mu"])
        for i, record in enumerate(THEN["moments"]["records"]):
            name = f"{type(mechanism).__name__}-{i}"
            assert explainer.explain(record, request_id=name).values.tolist() == given[name]
        assert explainer.spent.mu == pytest.approx(THEN["ledger"]["mu"])


def test_an_old_ledger_is_read_as_it_is_and_stays_whole_when_it_gets_new_tables(tmp_path):
    path = tmp_path / "then.ledger"
    shutil.copy(FILES / "ledger-0.1.0.sqlite", path)
    before = [verify(account) for account in open_existing(f"sqlite:///{path}")]
    assert versions_of(path) == [1]
    (account,) = open_existing(f"sqlite:///{path}")
    upgraded = SqliteLedger(path, account.account, may_create=False)
    assert versions_of(path) == [1, 2]
    assert verify(upgraded, before[0].head) == before[0]
    assert list(upgraded.settled()) == list(account.settled())
    assert list(upgraded.settled(after=1)) == list(account.settled(after=1))
    upgraded.close()
    assert [verify(account) for account in open_existing(f"sqlite:///{path}")] == before


def versions_of(path):
    connection = sqlite3.connect(path)
    try:
        return [version for (version,) in connection.execute("SELECT version FROM dpexplain_schema ORDER BY version")]
    finally:
        connection.close()
