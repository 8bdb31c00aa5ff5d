"""Another target, or another declaration of answers, is another question: it gets no answer, and no sums, that were bought for the first."""

from __future__ import annotations

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import RequestIdInUse

ROWS = np.random.default_rng(0).random((3000, 3))
LABELS = np.where(ROWS[:, 0] > 0.5, "yes", "no")
RECORD = {"x0": 0.2, "x1": 0.5, "x2": 0.5}
BUDGET = dpx.Budget(4.0, 1e-6)


def explainer(path, mechanism, **declared):
    data = dpx.PrivateData(ROWS, dpx.Domain.encoded(3), labels=LABELS, name="income", **declared)
    return dpx.Explainer(data, BUDGET, mechanism, ledger=f"sqlite:///{path}")


@pytest.mark.parametrize("mechanism", [dpx.Adaptive(0.5, 1e-6), dpx.Basic(0.5, 1e-6)], ids=["adaptive", "basic"])
def test_a_replay_under_another_target_is_refused(tmp_path, mechanism):
    path = tmp_path / "x.ledger"
    first = explainer(path, mechanism, target="yes").explain(RECORD, request_id="q")
    other = explainer(path, mechanism, target="no")
    before = other.spent
    with pytest.raises(RequestIdInUse):
        other.explain(RECORD, request_id="q")
    assert other.spent == before
    again = explainer(path, mechanism, target="yes").explain(RECORD, request_id="q")
    assert (again.values == first.values).all()


def test_sums_that_were_bought_for_one_target_answer_for_no_other(tmp_path):
    path, mechanism = tmp_path / "x.ledger", dpx.Adaptive(0.5, 1e-6)
    yes = explainer(path, mechanism, target="yes").explain(RECORD)
    no = explainer(path, mechanism, target="no").explain(RECORD)
    assert yes.cost.epsilon > 0
    assert no.cost.epsilon > 0
    assert yes.values[0] > 0 > no.values[0]
    assert explainer(path, mechanism, target="yes").explain(RECORD).cost.epsilon == 0
    assert explainer(path, mechanism, target="no").explain(RECORD).cost.epsilon == 0
    histories = [explainer(path, mechanism, target=target).history for target in ("yes", "no")]
    assert [len(history) for history in histories] == [2, 2]


def test_a_release_is_of_the_target_that_it_was_asked_for(tmp_path):
    def release(target):
        data = dpx.PrivateData(ROWS, dpx.Domain.encoded(3), labels=LABELS, name="income", target=target)
        return dpx.release(data, BUDGET, spend=dpx.Budget(0.5, 1e-6), ledger=f"sqlite:///{tmp_path}/x.ledger", request_id="r")

    first = release("yes")
    with pytest.raises(RequestIdInUse):
        release("no")
    assert release("yes").digest == first.digest


def test_what_is_declared_beyond_the_defaults_is_what_counts():
    told = [
        dpx.PrivateData(ROWS, dpx.Domain.encoded(3), labels=ROWS[:, 0] > 0.5, **more).facts.declared
        for more in ({}, {"target": 1})
    ]
    assert told == [{}, {}]
    value = dpx.PrivateData(ROWS, dpx.Domain.encoded(3), labels=ROWS[:, 0], output="value", bounds=(0, 1))
    assert value.facts.declared == {"output": "value", "bounds": [0.0, 1.0]}
    named = dpx.PrivateData(ROWS, dpx.Domain.encoded(3), labels=LABELS, target=np.str_("yes"))
    assert named.facts.declared == {"target": "yes"}
