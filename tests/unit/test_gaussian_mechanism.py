"""What `GaussianMechanism` accepts, plans and returns; its distribution is examined in tests/statistical."""

import warnings
from dataclasses import FrozenInstanceError
from itertools import pairwise

import numpy as np
import pytest

from dpexplain.errors import ParameterError
from dpexplain.mechanisms.gaussian import GaussianMechanism, ladder, quantise, rounded_gaussian
from dpexplain.noise.seeded import SeededNoise
from noise_support import Declared, gaussian, release


class Silence:
    """No noise, to see the statistic's own path."""

    secure = False

    def standard_normal(self, size):
        return np.zeros(size)


class Script:
    """Returns the given numbers in order."""

    secure = False

    def __init__(self, *draws):
        self.draws = list(draws)

    def standard_normal(self, size):
        return np.array([self.draws.pop(0) for _ in range(size)])


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf"), 1e-200, 1e200])
@pytest.mark.parametrize("field", ["sensitivity", "mu"])
def test_meaningless_scales_are_refused(field, bad):
    with pytest.raises(ParameterError, match=f"{field} must be positive and finite"):
        gaussian(**{"sensitivity": 1.0, "dimension": 3, "mu": 0.1} | {field: bad})


@pytest.mark.parametrize("bad", [0, -1, 2.5])
def test_meaningless_dimensions_are_refused(bad):
    with pytest.raises(ParameterError, match="dimension must be a whole number"):
        gaussian(1.0, bad, 0.1)


@pytest.mark.parametrize("bare", [1.0, 3, None, "gradient"])
def test_a_bare_bound_is_refused_because_it_protects_no_statistic(bare):
    with pytest.raises(ParameterError, match="needs a bounded query"):
        GaussianMechanism(bare, 0.1)
    GaussianMechanism(Declared(1.0, 3), 0.1)


def test_a_price_below_what_floats_can_account_for_is_refused_with_the_least_possible():
    with pytest.raises(ParameterError, match=r"Spend at least 9\.31e-09"):
        gaussian(1.0, 100, 9e-9)
    gaussian(1.0, 100, 9.4e-9)


def test_the_mechanism_is_a_value():
    mechanism = gaussian(1.0, 3, 0.1)
    assert mechanism == gaussian(1.0, 3, 0.1)
    assert len({mechanism, gaussian(1.0, 3, 0.1)}) == 1
    with pytest.raises(FrozenInstanceError):
        mechanism.mu = 1.0


def test_the_worked_example():
    """Δ = 1, n = 4, μ = ½: the grid is 2⁻²⁰/√4 = 2⁻²¹, rounding adds 2·2⁻²¹, and σ = (1 + 2⁻²⁰)/(½ - 2·2⁻³¹)."""
    mechanism = gaussian(1.0, 4, 0.5)
    assert mechanism.grid == 2.0**-21
    assert mechanism.rounded_sensitivity == pytest.approx((1 + 2.0**-20) / (1 - 2.0**-29), rel=1e-15)
    assert mechanism.precision_cost == 2.0**-30
    assert mechanism.sigma == pytest.approx((1 + 2.0**-20) / (0.5 - 2.0**-30), rel=1e-15)


@pytest.mark.parametrize(("sensitivity", "dimension", "mu"), [(7e-7, 70, 2e-4), (1.0, 2500, 3e-3), (1e-6, 2_500_000, 0.03)])
def test_safety_costs_less_than_a_thousandth_of_the_noise(sensitivity, dimension, mu):
    mechanism = gaussian(sensitivity, dimension, mu)
    assert 1 < mechanism.sigma * mu / sensitivity < 1.001


@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 6, 1)])
def test_a_release_keeps_the_shape_and_leaves_its_argument_alone(shape):
    value = np.arange(6.0).reshape(shape)
    before = value.copy()
    released = release(gaussian(1.0, 6, 50.0), value, SeededNoise(0))
    assert released.shape == shape
    assert released.dtype == np.float64
    np.testing.assert_array_equal(value, before)


def test_another_number_of_values_than_paid_for_is_refused():
    with pytest.raises(ParameterError, match="pays for 6 numbers, got 5"):
        release(gaussian(1.0, 6, 1.0), np.zeros(5), SeededNoise(0))


@pytest.mark.parametrize("row", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0])
@pytest.mark.parametrize("sensitivity", [1e-150, 1e-6, 1.0, 1e150])
def test_no_private_value_raises_warns_or_comes_through_as_nan(row, sensitivity):
    mechanism = gaussian(sensitivity, 2, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released = release(mechanism, np.array([row, 0.0]), SeededNoise(1))
    assert np.isfinite(released).all()
    if np.isnan(row):
        np.testing.assert_array_equal(released, release(mechanism, np.zeros(2), SeededNoise(1)))


def test_values_far_outside_are_clamped_not_wrapped():
    units = quantise(np.array([1e300, -1e300, 2.0**59, 3.4]), 1.0)
    np.testing.assert_array_equal(units, [2**60, -(2**60), 2**59, 3])


def test_without_noise_the_nearest_grid_point_is_returned():
    mechanism = gaussian(1.0, 3, 1.0)
    value = np.array([0.1, -2.3, 1e6 + 1 / 3])
    released = release(mechanism, value, Silence())
    assert (np.abs(released - value) <= mechanism.grid / 2).all()


def test_the_ladder_falls_to_the_finest_step_by_at_most_a_thousand_at_a_time():
    for scale in (0.5, 64.0, 100.0, 2.0**16, 2.0**16 + 1, 2.0**35.7, 2.0**43):
        steps = ladder(scale)
        assert steps[0] == scale
        assert steps[-1] == 64
        assert max(a / b for a, b in pairwise(steps)) <= 1024
        assert len(steps) <= 5


def test_fractions_are_carried_to_the_next_step_and_no_bit_is_lost():
    """0.4 + 0.4 units are 1 after rounding; rounding each alone would give 0."""
    assert rounded_gaussian(1.0, 1, Script(0.4, 0.4 / 64))[0] == 1
    scale = 2.0**43
    tiny = 1 / 64 + 2.0**-50
    assert rounded_gaussian(scale, 1, Script(1.0, 0, 0, 0, tiny))[0] == 2**43 + 1
