"""Margins that are not known make slopes at public points doubtful, as far as the model is bent along a number."""

import numpy as np
import pytest

from dpexplain.estimation.global_slopes import guessed_slopes
from dpexplain.estimation.margin_doubt import margin_variances

NUMBERS = np.array([0, 1])
COUNT = 20_000


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return np.column_stack([rng.beta(0.9, 8, COUNT), rng.beta(3, 3, COUNT), rng.random(COUNT) < 0.3]).astype(float)


def variances(points, labels, numbers=NUMBERS):
    share = np.full(len(points), 1 / len(points))
    slopes = guessed_slopes(points, labels, share).values
    residuals = labels - labels.mean() - (points - points.mean(axis=0)) @ slopes
    return margin_variances(points, residuals, share, numbers)


def test_a_straight_model_has_no_doubt(points):
    assert variances(points, points @ [0.7, -0.2, 0.4]) == pytest.approx(np.zeros(3), abs=1e-8)


def test_a_bent_model_is_doubtful_along_the_number_that_it_is_bent_in(points):
    skewed, even, code = variances(points, np.exp(4 * points[:, 0]) / 20 + 0.2 * points[:, 2])
    assert np.sqrt(skewed) > 0.02
    assert even < skewed / 100
    assert code == 0.0


def test_it_is_as_large_as_the_change_of_slope_among_rows_with_a_longer_tail(points):
    """Rows with the points' mean and variance and a lognormal margin: their slope is within three of these deviations, and not within a tenth."""
    rng, x = np.random.default_rng(1), points[:, 0]
    ratio = np.log1p(x.var() / x.mean() ** 2)
    rows = points.copy()
    rows[:, 0] = np.minimum(rng.lognormal(np.log(x.mean()) - ratio / 2, np.sqrt(ratio), COUNT), 1.0)

    def model(z):
        return np.tanh(3 * np.square(z[:, 0]))

    there, here = (guessed_slopes(z, model(z), np.ones(COUNT)).values[0] for z in (rows, points))
    deviation = np.sqrt(variances(points, model(points))[0])
    assert 0.1 * deviation < abs(there - here) < 3 * deviation


def test_numbers_that_take_few_values_or_one_have_finite_doubt(points):
    few = points.copy()
    few[:, 0], few[:, 1] = np.rint(2 * points[:, 1]) / 2, 0.25
    found = variances(few, np.square(few[:, 0]) + few[:, 2])
    assert np.isfinite(found).all()
    assert found[1] == 0.0


def test_a_guess_knows_its_margins_only_where_numbers_are_named(points):
    labels = np.exp(3 * points[:, 0]) / 20
    assert guessed_slopes(points, labels, np.ones(COUNT)).margins == 0.0
    assert guessed_slopes(points, labels, np.ones(COUNT), NUMBERS).margins[0] > 0
