"""Labels and answers in their own units."""

import numpy as np
import pytest

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.errors import ParameterError


def test_a_probability_is_half_a_label_above_one_half():
    scale = AnswerScale.of("probability")
    assert scale.answers([-1, 0, 0.5, 1]).tolist() == [0, 0.5, 0.75, 1]
    assert scale.slopes([0.4]).tolist() == [0.2]
    assert scale.labels([0, 0.5, 1]).tolist() == [-1, 0, 1]


def test_a_value_is_told_in_its_own_units():
    scale = AnswerScale.of("value", (0, 250_000))
    assert scale.answers([-1, 0, 1]).tolist() == [0, 125_000, 250_000]
    assert scale.slopes(0.1) == pytest.approx(12_500)
    assert scale.labels([-5, 62_500, 1e9, np.inf, -np.inf, np.nan]).tolist() == [-1, -0.5, 1, 1, -1, 0]


def test_labels_are_their_own_answers():
    assert AnswerScale().answers([-0.3, 1.5]).tolist() == [-0.3, 1.5]
    assert AnswerScale().slopes([0.3]).tolist() == [0.3]


def test_answers_and_labels_are_inverse():
    scale = AnswerScale.of("value", (-3.5, 12.25))
    labels = np.linspace(-1, 1, 101)
    np.testing.assert_allclose(scale.labels(scale.answers(labels)), labels, atol=1e-15)


@pytest.mark.parametrize("scale", [AnswerScale(), AnswerScale.of("class"), AnswerScale.of("value", (-1e6, 3))])
def test_the_description_can_be_stored(scale):
    assert AnswerScale.from_dict(scale.to_dict()) == scale
    assert AnswerScale.from_dict(None) == AnswerScale()


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [
        ("value", None),
        ("value", (1, 1)),
        ("value", (0, float("inf"))),
        ("value", ("0", 1)),
        ("probability", (0, 2)),
        ("odds", (0, 1)),
        ("value", (False, 5)),
    ],
)
def test_a_meaningless_scale_is_refused(kind, bounds):
    with pytest.raises(ParameterError):
        AnswerScale.of(kind, bounds)


@pytest.mark.parametrize(
    ("value", "answer", "difference"),
    [
        (0.62, "62 %", "+62.0 points"),
        (0.073, "7.3 %", "+7.3 points"),
        (0.0004, "0.04 %", "+0.04 points"),
        (-0.031, "-3.1 %", "-3.1 points"),
        (0.0, "0 %", "+0.0 points"),
        (-1e-9, "0 %", "+0.0 points"),
        (1.0, "100 %", "+100.0 points"),
    ],
)
def test_probabilities_are_shown_in_per_cent_and_their_differences_in_points(value, answer, difference):
    scale = AnswerScale.of("probability")
    assert (scale.format(value), scale.format(value, signed=True)) == (answer, difference)


def test_values_are_shown_in_their_own_units():
    scale = AnswerScale.of("value", (0, 250_000))
    assert (scale.format(41_234), scale.format(-1_234.5, signed=True), scale.spread(-56)) == ("41,200", "-1,230", "60")
    assert AnswerScale().format(0.3123) == "0.312"
    assert AnswerScale().format(-0.3123, signed=True) == "-0.3123"
