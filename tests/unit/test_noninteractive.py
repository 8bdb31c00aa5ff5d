"""Answers from the history alone: free, in the domain's own terms, and better than the paper's labels."""

import re
from pathlib import Path

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import InputError, ParameterError, QueryError
from dpexplain.estimation.regression import LevelledRegression, Ridge
from dpexplain.mechanisms.history import History, ReleasedAnswer


@pytest.fixture
def explainer():
    rng = np.random.default_rng(0)
    rows = rng.random((20_000, 4))
    data = dpx.PrivateData(rows, dpx.Domain.encoded(4), labels=np.tanh(4 * (rows[:, 0] - rows[:, 1] * rows[:, 2])))
    made = dpx.Explainer(data, dpx.Budget(5, 1e-6), dpx.Basic(0.3, 1e-6, plane="paper"))
    made.explain_many(rng.random((40, 4)))
    return made


@pytest.mark.parametrize("method", ["regression", "labels", "neighbour"])
def test_answers_are_free_and_say_what_the_history_cost(explainer, method, monkeypatch):
    monkeypatch.setattr(explainer._data, "_rows", None)  # no row can be read
    before = explainer.spent
    answer = dpx.NonInteractive(explainer.history, method).explain([0.2, 0.4, 0.6, 0.8])
    assert answer.cost.mu == answer.cost.epsilon == 0
    assert answer.guarantee.mu == before.mu == explainer.spent.mu
    assert answer.names == ("x0", "x1", "x2", "x3")
    assert np.linalg.norm(answer.values) <= 1 + 1e-12
    assert (answer.error is not None) == (method == "regression")


def test_regression_beats_the_papers_labels(explainer):
    from dpexplain import evaluation

    rng, excess = np.random.default_rng(9), {}
    asked = rng.random((20, 4))
    for method in ("regression", "labels"):
        answers = dpx.NonInteractive(explainer.history, method).explain_many(asked)
        scores = [
            evaluation.score(a.values, explainer._data, point, plane="paper") for a, point in zip(answers, asked, strict=True)
        ]
        excess[method] = np.mean([s.relative_excess for s in scores])
    assert excess["regression"] < excess["labels"] / 3


def test_the_papers_labels_by_hand():
    """One dimension, two past answers: z = 1 and 2 with φ = 0.5, so labels 0.5 and 1; at z = 0, the stable weight is 1/4 and 1/12."""
    history = History.of([ReleasedAnswer([1.0], [0.5]), ReleasedAnswer([2.0], [0.5])])
    answer = dpx.NonInteractive(history, "labels").explain([0.0])
    a, b = 1 / 4 * 1 + 1 / 12 * 4, 1 / 4 * 1 * 0.5 + 1 / 12 * 2 * 1.0
    assert answer.values == pytest.approx([b / a])


def test_a_history_without_a_guarantee_promises_nothing():
    answer = dpx.NonInteractive(History.of([ReleasedAnswer([1.0], [0.5])])).explain([0.0])
    assert "NOT differentially private: this history does not say" in str(answer.guarantee)


def test_an_empty_history_and_bad_queries_are_refused(explainer):
    with pytest.raises(InputError, match="nothing has been released yet"):
        dpx.NonInteractive(History(dpx.Domain.encoded(2))).explain([0.1, 0.2])
    with pytest.raises(InputError, match="nothing has been released yet"):
        dpx.NonInteractive(History()).explain([0.1, 0.2])
    with pytest.raises(QueryError):
        dpx.NonInteractive(explainer.history).explain([0.1])
    with pytest.raises(QueryError, match="knows no domain"):
        dpx.NonInteractive(History.of([ReleasedAnswer([1.0], [0.5])])).explain([0.1, 0.2])
    with pytest.raises(ParameterError, match="method must be one of"):
        dpx.NonInteractive(explainer.history, "magic")


@pytest.mark.slow
def test_the_documented_examples_run_as_written(capsys):
    text = (Path(__file__).parents[2] / "docs/interactive.md").read_text(encoding="utf-8")
    names = {}
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(example, "docs/interactive.md", "exec"), names)
    said = capsys.readouterr().out
    assert "Everything released so far satisfies" in said
    assert "they take nothing from it" in said
    assert names["free"].cost.epsilon == 0


def test_planes_with_an_answer_of_their_own_are_not_levelled():
    """Fitted planes are predicted by ridge regression alone; the paper's, which say no answer at their own point, are levelled."""
    rng = np.random.default_rng(4)
    truth, points = np.array([0.5, -0.3, 0.0, 0.2, 0.0, 0.1]), rng.random((60, 6))
    noisy, answers = truth + 0.15 * rng.normal(size=(60, 6)), points @ truth - 0.2 + 0.15 * rng.normal(size=60)
    fitted = History.of(ReleasedAnswer(p, v, plane="fitted", intercept=a) for p, v, a in zip(points, noisy, answers, strict=True))
    plain, point = History.of(ReleasedAnswer(p, v) for p, v in zip(points, noisy, strict=True)), rng.random(6)
    found = dpx.NonInteractive(fitted, radius=5.0).explain(point)
    expected = Ridge.fit(points, np.column_stack([noisy, answers])).predict(point)
    assert [*found.values, found.intercept] == pytest.approx(expected)
    assert (found.error > 0).all()
    levelled = LevelledRegression.fit(points, noisy).predict(point)
    assert dpx.NonInteractive(plain, radius=5.0).explain(point).values == pytest.approx(levelled)


@pytest.mark.parametrize("scale", [0.3, 0.03])
def test_regression_predicts_the_same_at_every_scale_of_the_columns(scale):
    """Penalties are relative to the spread of past queries: absolute ones lost everything where columns are small."""
    rng = np.random.default_rng(3)
    points, slopes = rng.random((200, 5)), 0.3 * rng.normal(size=(5, 5))
    answers, point = 0.2 * points @ slopes + 0.01 * rng.normal(size=(200, 5)), rng.random(5)
    found = [
        dpx.NonInteractive(History.of(ReleasedAnswer(s * p, v) for p, v in zip(points, answers, strict=True))).explain(s * point)
        for s in (1.0, scale)
    ]
    assert found[1].values == pytest.approx(found[0].values, rel=1e-4)
    assert found[0].values == pytest.approx(0.2 * point @ slopes, abs=0.02)


@pytest.mark.parametrize("method", ["regression", "neighbour"])
def test_answers_without_a_cap_are_not_shortened(method):
    """Fitted planes by moments have no cap on their slopes, and nothing in their details."""
    rng, slopes = np.random.default_rng(0), np.array([3.0, -4.0])
    past = (ReleasedAnswer(point, slopes, plane="fitted", intercept=0.1) for point in rng.random((30, 2)))
    found = dpx.NonInteractive(History.of(past), method).explain(np.array([0.5, 0.5]))
    assert found.values == pytest.approx(slopes, rel=0.01)
