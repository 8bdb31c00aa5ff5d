"""What contributions are compared with: the average where an answer knows one, else a declared record or the public middle of the domain."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.answers.baseline import MIDDLE, NO_WORDS
from dpexplain.answers.explanation_batch import batch_of
from dpexplain.errors import InputError, QueryError
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain([dpx.Numeric("age", 20, 100), dpx.Categorical("work", values=list("abc")), dpx.Binary("married")])
RECORD = {"age": 80, "work": "b", "married": True}
BASELINE = {"age": 40, "work": "b", "married": False}
BUDGET = dpx.Budget(9.0, 1e-6)
DESCENT = dpx.Basic(1.0, 1e-6, by="descent")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    rows = {"age": rng.uniform(20, 60, 5000), "work": rng.choice(list("abc"), 5000), "married": rng.random(5000) < 0.5}
    return dpx.PrivateData(rows, DOMAIN, model=lambda table: np.asarray(table["age"]) / 100, output="probability")


def explainer_of(data, mechanism=DESCENT, seed=1, **options):
    return dpx.Explainer(data, BUDGET, mechanism, noise=SeededNoise(seed), **options)


def print_text(thing):
    console = Console(file=io.StringIO(), width=100)
    console.print(thing)
    return console.file.getvalue()


@pytest.mark.parametrize("mechanism", [DESCENT, dpx.Adaptive(0.5, 1e-6, steps=50), dpx.Enhanced(0.5, 1e-6, by="descent")])
def test_a_descent_is_compared_with_the_middle_of_the_domain_and_never_with_an_average(data, mechanism):
    answer = explainer_of(data, mechanism).explain(RECORD)
    found = answer.contributions()
    middle = np.array([0.5, 1 / 3, 1 / 3, 1 / 3, 0.5])  # public: it is not the rows' mean age, which is a quarter of the way
    plane = answer.intercept + answer.values @ (middle - answer.point)
    assert found.base == pytest.approx(answer.scale.answer(plane))
    assert found.base + found.values.sum() == pytest.approx(found.answer) == answer.scale.answer(answer.intercept)
    assert found.values[0] == pytest.approx(answer.values[0] * 0.25 / 2)
    assert (found.average, found.error) == (MIDDLE, None)
    picture = answer.plot().axes[0]
    assert MIDDLE in [tick.get_text() for tick in picture.get_yticklabels()]
    texts = [found.sentence, picture.get_title(loc="left"), answer._repr_html_(), print_text(answer), found._repr_html_()]
    assert all("the middle of all ranges" in " ".join(text.split()) for text in texts)
    assert not any("average" in text for text in texts)


def test_answers_from_a_ledger_a_file_and_a_history_are_compared_alike(data, tmp_path):
    pytest.importorskip("shap")
    url = f"sqlite:///{tmp_path / 'a.ledger'}"
    first = explainer_of(data, ledger=url).explain(RECORD, request_id="a")
    again = explainer_of(data, ledger=url, seed=2)
    stored = first.contributions().to_dict()
    assert again.explain(RECORD, request_id="a").contributions().to_dict() == stored
    assert dpx.Explanation.from_json(first.to_json()).contributions().to_dict() == stored
    again.explain({**RECORD, "age": 30})
    free = dpx.NonInteractive(again.history).explain(RECORD).contributions()
    assert (free.average, free.base + free.values.sum()) == (MIDDLE, pytest.approx(free.answer))
    many = again.explain_many([RECORD, BASELINE])
    assert "Compared with the middle of all ranges." in many._repr_html_()
    assert many.to_shap().base_values == pytest.approx(many.contributions().base)
    assert first.to_shap().base_values == first.contributions().base


def test_the_error_to_expect_stands_below_the_picture(data):
    answer = explainer_of(data).explain(RECORD)
    assert answer.expectation
    assert answer.expectation in answer.plot().get_supxlabel()


def test_any_plane_can_be_compared_with_a_record(data):
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(2))
    for answer in (
        release.explain(RECORD),
        explainer_of(data, dpx.Basic(1.0, 1e-6)).explain(RECORD),
        explainer_of(data).explain(RECORD),
    ):
        found = answer.contributions(baseline=BASELINE)
        assert found.average == "the baseline"
        assert found.base + found.values.sum() == pytest.approx(found.answer) == answer.scale.answer(answer.intercept)
        assert found.values.tolist() == pytest.approx([answer.values[0] / 4, 0.0, answer.values[4] / 2])
        if answer.error is not None:
            assert found.error.tolist() == pytest.approx([answer.error[0] / 4, 0.0, answer.error[4] / 2])
    many = release.explain_many([RECORD, BASELINE])
    assert many.contributions(BASELINE)[0].values.tolist() == pytest.approx(
        release.explain(RECORD).contributions(BASELINE).values.tolist()
    )
    assert many.contributions(BASELINE)[1].values.tolist() == [0.0] * 3
    with pytest.raises(QueryError, match=r"the baseline does not fit the domain: age: 400 is not"):
        release.explain(RECORD).contributions(baseline=BASELINE | {"age": 400})
    with pytest.raises(InputError, match="was read from a file"):
        dpx.Explanation.from_json(release.explain(RECORD).to_json()).contributions(BASELINE)


def test_errors_against_a_record_cover_exact_differences(data):
    """At least 90 % of what age adds, against a record, is within two errors of the exact answer's."""
    exact = evaluation.optimum(data, RECORD)[0] / 4
    found = [explainer_of(data, dpx.Basic(0.3, 1e-6), seed).explain(RECORD).contributions(BASELINE) for seed in range(20)]
    assert np.mean([abs(one.values[0] - exact) <= 2 * one.error[0] for one in found]) >= 0.9


def test_a_text_is_compared_with_one_without_words():
    rows = [" ".join(np.random.default_rng(i).choice(["good", "bad", "film"], 2)) for i in range(2000)]
    words = dpx.PrivateData(
        rows, dpx.TextDomain(["good", "bad", "film"]), labels=[1.0 if "good" in text else -1.0 for text in rows]
    )
    found = explainer_of(words).explain("a good film").contributions()
    assert found.average == NO_WORDS
    assert found.values[1] == 0.0  # "bad" is not in the text
    assert found.base + found.values.sum() == pytest.approx(found.answer)


def test_what_is_no_estimate_of_answers_has_nothing_that_adds_up(data):
    """The paper's plane is 0 at every record; influence and batches compared with different things are refused too."""
    for mechanism in (dpx.Basic(1.0, 1e-6, plane="paper", by="descent"), dpx.Influence(1.0, 1e-6)):
        answer = explainer_of(data, mechanism).explain(RECORD)
        for options in ({}, {"baseline": BASELINE}):
            with pytest.raises(InputError, match="only fitted and anchored planes"):
                answer.contributions(**options)
        assert answer.to_dict()["contributions"] is None
    assert explainer_of(data, dpx.Basic(1.0, 1e-6, plane="paper", by="descent"), baseline=BASELINE).explain(RECORD).added is None
    both = explainer_of(data).explain_many([RECORD, BASELINE])
    mixed = [both[0], replace(both[1], added=both[1].contributions(BASELINE))]
    with pytest.raises(InputError, match="compared with different things"):
        batch_of([one.contributions() for one in mixed])
