"""Reference records are raked to the released moments, and to the variances of numbers where these are named."""

import numpy as np
import pytest

from dpexplain.estimation.local_reference import MomentRaking, MomentTargets


def long_tailed(rows=20_000):
    """Records of which 2 % lie in a tail that the released variance of 0.006 does not have, and labels that do not depend on them."""
    rng = np.random.default_rng(0)
    tail = rng.random(rows) < 0.02
    points = np.column_stack(
        [np.where(tail, rng.uniform(0.4, 1.0, rows), rng.gamma(1.5, 0.06, rows).clip(0, 1)), rng.random(rows)]
    )
    labels = 2 * points[:, 1] - 1
    mean, covariance = np.array([0.1, 0.5]), np.diag([0.006, 1 / 12])
    return points, labels, MomentTargets(mean, covariance, 0.0, np.array([0.0, 1 / 6]), 1e-4, 1e-4, 1e-4, np.array([0.0, 2.0]))


def weighted_variance(weights, values):
    share = weights / weights.sum()
    return share @ np.square(values - share @ values)


def test_variances_of_named_columns_become_the_released_ones():
    points, labels, targets = long_tailed()
    even = np.ones(len(points))
    assert weighted_variance(even, points[:, 0]) > 2 * 0.006
    raked = MomentRaking(points, labels, even, targets, np.array([0])).weights()
    assert weighted_variance(raked, points[:, 0]) == pytest.approx(0.006, rel=0.05)
    assert raked @ points[:, 0] / raked.sum() == pytest.approx(0.1, abs=0.002)
    assert raked @ labels / raked.sum() == pytest.approx(0.0, abs=0.002)
    plain = MomentRaking(points, labels, even, targets).weights()
    assert weighted_variance(plain, points[:, 0]) > 1.3 * 0.006


def test_the_bias_is_that_of_the_label_moments_alone():
    points, labels, targets = long_tailed()
    even, none = np.ones(len(points)), np.zeros((1, len(points)))
    with_squares = MomentRaking(points, labels, even, targets, np.array([0])).bias(none)
    assert with_squares == pytest.approx(MomentRaking(points, labels, even, targets).bias(none))
