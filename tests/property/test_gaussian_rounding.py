"""The claims of `proofs/gaussian_mechanism.md` about rounding, attacked in exact arithmetic."""

from fractions import Fraction
from math import frexp, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpexplain.errors import ParameterError
from dpexplain.mechanisms.gaussian import quantise
from noise_support import gaussian

unhurried = settings(deadline=None)
sensitivities = st.floats(1e-12, 1e6) | st.integers(-39, 19).map(lambda e: 2.0**e)
prices = st.floats(1e-8, 50.0) | st.floats(-8, 1.69).map(lambda e: 10**e)
dimensions = st.integers(1, 40) | st.integers(1, 3_000_000)


def _least(dimension):
    return sqrt(dimension) * 2.0**-30


parameters = st.tuples(sensitivities, dimensions, prices).filter(lambda p: p[2] >= 1.0001 * _least(p[1]))
mechanisms = parameters.map(lambda p: gaussian(*p))


@unhurried
@given(sensitivities, dimensions, st.floats(1e-6, 0.9999))
def test_prices_too_small_for_float64_are_refused(sensitivity, dimension, fraction):
    with pytest.raises(ParameterError, match=r"too small for float64 .* Spend at least"):
        gaussian(sensitivity, dimension, fraction * _least(dimension))


@unhurried
@given(mechanisms)
def test_the_grid_is_the_largest_power_of_two_that_is_fine_enough(mechanism):
    mantissa, _ = frexp(mechanism.grid)
    assert mantissa == 0.5
    delta, n, mu = mechanism.sensitivity, mechanism.dimension, mechanism.mu
    bound = max(delta * 2.0**-20 / sqrt(n), delta / mu * 2.0**-40)
    assert mechanism.grid <= bound < 2 * mechanism.grid


@unhurried
@given(mechanisms)
def test_the_stated_price_is_kept_in_exact_arithmetic(mechanism):
    """rounded/σ ≤ μ; and rounded/σ covers (Δ + √n·grid)/σ + 2ν, with the proof's 2ν < 0.6·√n·2⁻³¹."""
    rounded, sigma = Fraction(mechanism.rounded_sensitivity), Fraction(mechanism.sigma)
    assert rounded / sigma <= Fraction(mechanism.mu)
    left_for_rounding = rounded - Fraction(6, 10) * Fraction(mechanism.precision_cost) * sigma - Fraction(mechanism.sensitivity)
    assert left_for_rounding > 0
    assert left_for_rounding**2 >= mechanism.dimension * Fraction(mechanism.grid) ** 2
    assert Fraction(mechanism.precision_cost) ** 2 >= Fraction(mechanism.dimension, 2**62)


@unhurried
@given(mechanisms)
def test_rounding_up_does_not_waste(mechanism):
    wasteful = (1 + 2.0**-20 + sqrt(mechanism.dimension) * 2.0**-40 / mechanism.mu) / (
        1 - mechanism.precision_cost / mechanism.mu
    )
    assert mechanism.sigma <= mechanism.sensitivity / mechanism.mu * wasteful * (1 + 1e-12)


@unhurried
@given(mechanisms)
def test_noise_in_grid_units_stays_far_below_the_end_of_float_integers(mechanism):
    assert mechanism.sigma / mechanism.grid * 40 < 2**53
    assert mechanism.sigma / mechanism.grid <= 2**43


values = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=12)


@unhurried
@given(values, st.data(), sensitivities, st.floats(1e-6, 50.0))
def test_neighbours_are_never_further_apart_than_the_rounded_sensitivity(value, data, sensitivity, mu):
    """Any two vectors within Δ of each other, also where the adversary puts them half-way between grid points."""
    mechanism = gaussian(sensitivity, len(value), mu)
    first = np.array(value) * sensitivity
    if data.draw(st.booleans(), label="at ties"):
        first = (np.rint(first / mechanism.grid) + 0.5) * mechanism.grid
    move = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=len(value), max_size=len(value)), label="direction"))
    assume(np.linalg.norm(move) > 1e-3)
    second = first + move / np.linalg.norm(move) * sensitivity
    apart = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(first.tolist(), second.tolist(), strict=True))
    assume(apart <= Fraction(sensitivity) ** 2)
    shift = quantise(first, mechanism.grid) - quantise(second, mechanism.grid)
    units = sum(int(s) ** 2 for s in shift)
    assert units <= (Fraction(mechanism.rounded_sensitivity) / Fraction(mechanism.grid)) ** 2


@unhurried
@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.integers(-400, 400).map(lambda e: 2.0**e))
def test_rounding_and_clamping_never_move_two_values_more_than_one_unit_apart(a, b, grid):
    first, second = quantise(np.array([a, b]), grid).tolist()
    assert abs(first) <= 2**60
    assert abs(second) <= 2**60
    if np.isfinite(a) and np.isfinite(b):
        assert abs(first - second) <= abs(Fraction(a) - Fraction(b)) / Fraction(grid) + 1
