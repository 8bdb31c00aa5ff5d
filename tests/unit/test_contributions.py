"""Contributions add up to the answer, in the answer's own units, on every kind of output."""

import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

import dpexplain as dpx
from dpexplain.answers.contributions import Contributions, feature_names, feature_values, frame_of, per_feature
from dpexplain.answers.contributions_batch import ContributionsBatch
from dpexplain.answers.explanation_batch import batch_of
from dpexplain.answers.paid import PaidExplanations
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.errors import InputError, ParameterError
from dpexplain.privacy.relation import Neighbours

GUARANTEE = dpx.Guarantee(0.1, 1e-6, Neighbours())
NAMES = ("age", "<b>work</b>", "married")


def make(**changes):
    values = np.array([0.31, -0.05, 0.12])
    given = {
        "names": NAMES,
        "values": values,
        "base": 0.24,
        "answer": 0.24 + values.sum(),
        "error": np.array([0.01, 0.03, 0.01]),
        "scale": AnswerScale.of("probability"),
        "record": (40.0, "sales", True),
        "guarantee": GUARANTEE,
    }
    return Contributions(**(given | changes))


def batch(count=40, **changes):
    values = np.random.default_rng(1).normal(size=(count, 3)) / 10
    record = [(float(i), "sales" if i % 2 else "law", i % 3 == 0) for i in range(count)]
    given = {"base": np.full(count, 0.24), "answer": 0.24 + values.sum(axis=1), "record": record, "guarantee": GUARANTEE}
    return ContributionsBatch(NAMES, values, scale=AnswerScale.of("probability"), **(given | changes))


def test_the_answer_is_the_average_and_what_the_values_add():
    one = make()
    assert one.sentence == "The model's answer here is about 62 %; the average is 24 %; these values make the difference."
    assert one.top(2) == [("age", 0.31, 0.01), ("married", 0.12, 0.01)]
    assert one.uncertain() == (False, True, False)
    assert make(error=None).uncertain() is None
    assert one.labels == ("age = 40", "<b>work</b> = sales", "married = yes")
    assert "about" not in make(answer_error=0.0).sentence


def test_what_does_not_add_up_is_refused():
    with pytest.raises(ParameterError, match="not add up"):
        make(answer=0.9)
    with pytest.raises(ParameterError, match="not add up"):
        make(answer=float("nan"))
    with pytest.raises(ParameterError, match="for each of the 3 names"):
        make(record=(1, 2))
    with pytest.raises(ParameterError, match="not add up"):
        batch(answer=np.zeros(40))
    with pytest.raises(ParameterError, match="one row for each record"):
        batch(base=np.zeros(3))


def test_an_answer_beyond_its_range_says_what_it_is():
    beyond = make(base=0.9, answer=0.9 + 0.38)
    assert "answer here is about 100 %" in beyond.sentence
    assert beyond.sentence.endswith("They add up to 128.0 %: a straight line passes the end of the scale.")
    far = make(base=1.3, answer=1.3 + 0.38, average="the middle of all ranges")
    assert "the middle of all ranges is 100 %; these values make the difference." in far.sentence
    assert far.sentence.endswith("They start at 130.0 % and add up to 168.0 %: a straight line passes the end of the scale.")
    rare = make(base=-0.001, answer=-0.001 + 0.38)
    assert rare.sentence.endswith("They start at -0.10 %: a straight line passes the end of the scale.")


def test_json_round_trip_is_exact():
    one = make(details={"quantity": "plane"}, titles=("Age", "Work", "Married"))
    two = Contributions.from_json(one.to_json())
    assert two.to_dict() == one.to_dict()
    with pytest.raises(InputError, match="not version 1 of dpexplain contributions"):
        Contributions.from_dict({"format": "other"})


def test_steps_go_from_the_average_to_the_answer():
    names = tuple(f"x{i}" for i in range(20))
    values = np.linspace(-0.1, 0.2, 20)
    one = make(names=names, values=values, answer=0.24 + values.sum(), error=None, record=None)
    found = one.steps(5)
    assert [step.label for step in found][-1] == "15 other values"
    assert found[0].start == 0.24
    assert found[-1].start + found[-1].value == pytest.approx(one.answer)
    assert len(make().steps(2)) == 3  # "1 other value" would take the place of its name


def test_pictures_tables_and_pages():
    figure = make().plot()
    assert isinstance(figure, Figure)
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert labels == ["this record", "<b>work</b> = sales", "married = yes", "age = 40", "the average"]
    figure.savefig(io.BytesIO())
    places = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    steps = np.diff([float(text.removesuffix(" %")) for text in places])
    assert np.ptp(steps) < 1e-9  # 2.5 points apart would read 25 %, 28 %, 30 %
    assert [AnswerScale.of("probability").place(x, 0.005) for x in (0.245, 0.25)] == ["24.5 %", "25.0 %"]
    assert AnswerScale.of("value", (0, 1e5)).place(12_000, 2_000) == "12,000"
    mine = Figure().add_subplot()
    assert make(error=None).plot(ax=mine) is mine.get_figure()
    html = make()._repr_html_()
    assert "62&nbsp;%" in html
    assert "<b>work</b>" not in html
    console = Console(file=io.StringIO(), width=110)
    console.print(make())
    text = console.file.getvalue()
    assert "age = 40" in text
    assert "+31.0" in text
    assert "points" in text
    assert repr(make()).startswith("Contributions(24 % → 62 %: age +31.0 points")


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames(backend):
    assert make().to_frame(backend).shape == (3, 4)
    assert batch().to_frame(backend).shape == (40, 5)


@pytest.mark.slow
def test_many_records():
    many = batch()
    assert isinstance(many[3], Contributions)
    assert isinstance(many[:2], ContributionsBatch)
    assert len(many[:2]) == 2
    assert [name for name, _ in many.importance()] == [NAMES[i] for i in np.argsort(-np.abs(many.values).mean(axis=0))]
    for kind in ("beeswarm", "bar", "scatter"):
        many.plot(kind=kind).savefig(io.BytesIO())
    for name in NAMES:
        assert many.plot(kind="scatter", feature=name).axes[0].get_xlabel() == name
    with pytest.raises(ParameterError, match="no feature 'height'"):
        many.plot(kind="scatter", feature="height")
    assert "<b>work</b>" not in many._repr_html_()
    with pytest.raises(ParameterError, match="kind must be"):
        many.plot(kind="pie")
    with pytest.raises(ParameterError, match="no records"):
        many[:0].plot()


def test_shap_tells_the_truth():
    pytest.importorskip("shap")
    one, many = make().to_shap(), batch().to_shap()
    assert one.base_values + one.values.sum() == pytest.approx(0.62)
    assert list(one.data) == [40.0, "sales", True]
    assert many.base_values.shape == (40,)
    assert many.data.shape == (40, 3)


def test_an_explanation_carries_its_contributions():
    values = np.array([0.2, -0.5, 0.1])
    shared = {"values": values, "names": NAMES, "point": values, "cost": GUARANTEE, "guarantee": GUARANTEE}
    plain = dpx.Explanation(**shared)
    with pytest.raises(InputError, match="Ask with plane='fitted', or explain from a release"):
        plain.contributions()
    given = dpx.Explanation(**shared, added=make(), plane="fitted", intercept=0.24, scale=AnswerScale.of("probability"))
    asked = replace(given, added=make)
    for one in (given, asked, dpx.Explanation.from_json(asked.to_json())):
        assert one.contributions().answer == pytest.approx(0.62)
        assert one.contributions().guarantee.mu == GUARANTEE.mu
        assert (one.plane, one.intercept, one.scale.kind) == ("fitted", 0.24, "probability")


def test_many_explanations_are_looked_at_together():
    shared = {"names": NAMES, "point": np.zeros(3), "cost": GUARANTEE, "guarantee": GUARANTEE}
    many = batch(6)
    answers = PaidExplanations([dpx.Explanation(np.ones(3), **shared, added=one) for one in many], 6)
    together = answers.contributions()
    assert (together.values == many.values).all()
    assert together[2].record == many[2].record
    assert answers.to_frame().shape == (6, 5)
    assert "Mean absolute contribution over 6 records" in answers._repr_html_()
    assert isinstance(answers.plot(kind="bar"), Figure)
    slopes = PaidExplanations([dpx.Explanation(np.ones(3), **shared)] * 2, 2)
    assert slopes.to_frame().shape == (2, 3)
    assert "&lt;b&gt;" in slopes._repr_html_()
    with pytest.raises(InputError, match="has no contributions"):
        slopes.plot()
    with pytest.raises(InputError, match="at least one record"):
        PaidExplanations([], 0).contributions()
    with pytest.raises(InputError, match="one by one"):
        batch_of([make(), make(scale=AnswerScale())])


def test_features_are_not_columns():
    domain = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Categorical("work", ["a", "b", "c"]), dpx.Binary("married")])
    points = np.array([domain.encode_query({"age": 40, "work": "b", "married": True})])
    assert feature_names(domain) == ("age", "work", "married")
    assert feature_values(domain, points) == [(40.0, "b", True)]
    assert per_feature(domain, np.arange(5.0)).tolist() == [0, 6, 4]
    words = dpx.TextDomain(["good", "bad"])
    assert feature_names(words) == ("good", "bad")
    assert feature_values(words, np.array([[1.0, 0.0]])) == [(True, False)]


def test_a_frame_of_an_unknown_package_is_refused():
    with pytest.raises(ParameterError, match=r"backend must be one of 'pandas', 'polars', 'pyarrow', got 'excel'"):
        frame_of({"name": ["age"]}, "excel")
