"""The study's non-interactive phase for several histories at once answers what the library answers from each."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.paper._free_labels import LabelsOfHistories

import dpexplain as dpx
from dpexplain import evaluation


@pytest.mark.parametrize("length", [0.01, 3.0])  # of a plane's slopes: the ball does not hold the first, and holds the second
@pytest.mark.parametrize("answers", [5, 60])  # fewer than the columns, and more
def test_answers_of_several_histories_are_those_of_each(length, answers):
    rng = np.random.default_rng(answers)
    points = rng.random((answers, 12)) * 0.3
    slopes = rng.normal(size=(3, answers, 12)) * length
    slopes /= np.maximum(np.linalg.norm(slopes, axis=2, keepdims=True), 1)
    histories = [
        evaluation.History.of(evaluation.ReleasedAnswer(point, value) for point, value in zip(points, each, strict=True))
        for each in slopes
    ]
    asked = rng.random(12) * 0.3
    expected = [dpx.NonInteractive(history, "labels").explain(asked).values for history in histories]
    np.testing.assert_allclose(LabelsOfHistories(histories).answers(asked), expected, atol=1e-9)
