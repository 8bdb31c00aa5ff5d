"""Weights: values at known distances, and what they refuse."""

import numpy as np
import pytest

from dpexplain.core import weights
from dpexplain.errors import ParameterError

DISTANCES = np.array([0.0, 0.2, 0.366025, 0.5, 1.0, 10.0])


def test_stable_is_one_near_and_decays_far():
    alpha = weights.Stable(1.0)(DISTANCES)
    assert alpha[:2] == pytest.approx([1.0, 1.0])
    assert alpha[3:] == pytest.approx([1 / 1.5, 0.25, 1 / 220])


@pytest.mark.parametrize("weight", [weights.Stable(), weights.Inverse(), weights.Gaussian(0.7), weights.Window(0.4)])
def test_weights_are_finite_non_increasing_and_come_back_from_their_description(weight):
    alpha = weight(DISTANCES)
    assert np.isfinite(alpha).all()
    assert (np.diff(alpha) <= 0).all()
    assert weights.from_dict(weight.to_dict()) == weight
    assert hash(weight) == hash(weights.from_dict(weight.to_dict()))


@pytest.mark.parametrize("make", [weights.Stable, weights.Inverse, weights.Gaussian, weights.Window])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_meaningless_parameters_are_refused(make, value):
    with pytest.raises(ParameterError, match="must be positive and finite"):
        make(value)


def test_custom_weights_are_capped_whatever_they_return():
    wild = weights.Custom(lambda d: np.where(d < 0.3, np.nan, np.inf), c=2.0, maximum=4.0)
    alpha = wild(DISTANCES)
    assert alpha[:2] == pytest.approx([0.0, 0.0])
    assert (2 * alpha * DISTANCES * (1 + DISTANCES) <= 2.0 + 1e-12).all()
    with pytest.raises(ParameterError, match="one number for each distance"):
        weights.Custom(lambda d: np.array(1.0))(DISTANCES)
    with pytest.raises(ParameterError, match="cannot be stored"):
        wild.to_dict()
    with pytest.raises(ParameterError, match="is unknown"):
        weights.from_dict({"kind": "custom"})


@pytest.mark.parametrize("weight", [weights.Stable(0.7), weights.Inverse(), weights.Gaussian(0.7), weights.Window(0.4)])
def test_a_profile_says_what_the_weight_is(weight):
    height, cap, width, reach = weight.profile
    with np.errstate(divide="ignore"):
        tail = cap / (2 * DISTANCES * (1 + DISTANCES))
    alpha = np.minimum(height, tail) * np.exp(-np.square(DISTANCES / width)) * (reach >= DISTANCES)
    assert alpha == pytest.approx(weight(DISTANCES), rel=1e-14)


def test_code_has_no_profile():
    assert weights.Custom(lambda d: 1 - d).profile is None
