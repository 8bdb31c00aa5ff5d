"""Many questions at once: in order, checked first, stopped cleanly, nothing lost."""

import numpy as np
import pandas as pd
import pytest

import dpexplain as dpx
from dpexplain.answers.paid import answer_in_batches, in_groups
from dpexplain.errors import QueryError

DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Categorical("work", values=["a", "b", "c"])])
FRAME = pd.DataFrame({"age": [20, 30, 40, 50, 60, 70], "work": ["a", "b", "c", "a", "b", "c"]})


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    rows = {"age": rng.uniform(0, 100, 2000), "work": rng.choice(["a", "b", "c"], 2000)}
    return dpx.PrivateData(rows, DOMAIN, labels=np.sign(rows["age"] - 50))


def make(data, answers=3, **keywords):
    """An explainer whose budget pays for so many answers."""
    mu = dpx.Budget(0.2, 1e-6).mu * np.sqrt(answers + 0.5)
    from dpexplain.privacy import gdp

    return dpx.Explainer(data, dpx.Budget(gdp.epsilon(mu, 1e-6), 1e-6), dpx.Basic(0.2, 1e-6, 5), **keywords)


@pytest.mark.parametrize("records", [FRAME, FRAME.to_dict("records"), FRAME.to_dict("list")], ids=["frame", "dicts", "columns"])
def test_answers_come_in_order_and_stop_cleanly(data, records):
    explainer = make(data)
    answers = explainer.explain_many(records)
    assert len(answers) == 3
    assert answers.asked == 6
    assert not answers.complete
    assert isinstance(answers.refusal, dpx.BudgetExhausted)
    assert [answer.point[0] for answer in answers] == pytest.approx([0.2, 0.3, 0.4])
    assert len(explainer.history) == 3  # paid for and kept
    assert "3 of 6 questions, then refused: the budget" in repr(answers)
    assert answers[-1].guarantee.mu == explainer.spent.mu
    assert list(answers[:2]) == [answers[0], answers[1]]


def test_a_whole_batch(data):
    answers = make(data, answers=10).explain_many(FRAME)
    assert answers.complete
    assert answers.refusal is None
    assert repr(answers) == "PaidExplanations(6 of 6 questions)"


def test_one_bad_record_is_found_before_anything_is_spent(data):
    explainer = make(data)
    with pytest.raises(QueryError, match="row 5"):
        explainer.explain_many(FRAME.assign(work=["a", "b", "c", "a", "b", "z"]))
    assert explainer.spent.mu == 0


def test_nothing_asked_is_nothing_answered(data):
    assert len(make(data).explain_many([])) == 0


def test_a_release_goes_on_where_the_budget_ends(data):
    release = dpx.release(data, dpx.Budget(1.0, 1e-6))
    answers = make(data, release=release).explain_many(FRAME)
    assert len(answers) == 6
    assert answers.complete
    assert [answer.cost.mu > 0 for answer in answers] == [True] * 3 + [answers[3].cost.mu > 0] * 3


def test_a_progress_bar_is_for_people_only(capsys):
    assert [len(group) for group in in_groups(range(50), 20, "Explaining")] == [20, 20, 10]
    assert len(answer_in_batches([], lambda _: pytest.fail("nothing was asked"))) == 0
    assert capsys.readouterr().err == ""
