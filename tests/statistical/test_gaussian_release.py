"""Noise that must have the stated distribution, each test with a mutant it rejects; and the float-grid attack, which must fail.

Secure draws have no seed: a right implementation fails each of their assertions with probability `PASS`, one in a million.
"""

import numpy as np
import pytest
from scipy import stats

from dpexplain.mechanisms.gaussian import rounded_gaussian
from dpexplain.noise.secure import SecureNoise, normals
from dpexplain.noise.seeded import SeededNoise
from noise_support import Scaled, gaussian, release

PASS, REJECT = 1e-6, 1e-9


sources = pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(11)], ids=repr)


def ks(draws):
    return stats.kstest(draws, "norm").pvalue


def variance(draws):
    """Σx² is χ² with as many degrees of freedom as draws."""
    return 2 * min(stats.chi2.cdf(draws @ draws, draws.size), stats.chi2.sf(draws @ draws, draws.size))


def mean(draws):
    return 2 * stats.norm.sf(abs(draws.mean()) * np.sqrt(draws.size))


def fourth_moment(draws):
    """E x⁴ = 3, Var x⁴ = 96."""
    return 2 * stats.norm.sf(abs((draws**4).mean() - 3) * np.sqrt(draws.size / 96))


def tail_count(draws, beyond=3.0):
    return stats.binomtest(int((np.abs(draws) > beyond).sum()), draws.size, 2 * stats.norm.sf(beyond)).pvalue


@sources
@pytest.mark.parametrize("p_value", [ks, variance, fourth_moment, tail_count])
def test_normals_are_standard_and_smaller_ones_are_noticed(noise, p_value):
    assert p_value(noise.standard_normal(200_000)) > PASS
    assert p_value(Scaled(noise, 0.8).standard_normal(200_000)) < REJECT


@sources
def test_normals_have_mean_zero_and_another_mean_is_noticed(noise):
    draws = noise.standard_normal(200_000)
    assert mean(draws) > PASS
    assert mean(draws + 0.03) < REJECT  # thirteen standard errors: with 0.02 one run in 400 would miss it


@sources
def test_uniforms_are_uniform(noise):
    draws = noise.uniform(200_000)
    assert stats.kstest(draws, "uniform").pvalue > PASS
    assert stats.kstest(draws**1.05, "uniform").pvalue < REJECT


@sources
@pytest.mark.parametrize("lag", [1, 2, 7])
def test_consecutive_draws_are_independent(noise, lag):
    """Neither values nor sizes correlate; also not across calls."""
    draws = np.concatenate([noise.standard_normal(1000) for _ in range(200)])
    for series in (draws, np.abs(draws), np.sign(draws)):
        assert stats.pearsonr(series[:-lag], series[lag:]).pvalue > PASS
    sticky = draws[lag:] + 0.05 * draws[:-lag]
    assert stats.pearsonr(sticky[:-lag], sticky[lag:]).pvalue < REJECT


def test_sign_and_size_are_independent():
    draws = SecureNoise().standard_normal(200_000)
    assert stats.pearsonr(np.sign(draws), np.abs(draws)).pvalue > PASS


def tail_distribution(draws, beyond):
    """Given |x| > t, Φ(-|x|)/Φ(-t) is uniform."""
    far = np.abs(draws[np.abs(draws) > beyond])
    return stats.kstest(stats.norm.sf(far) / stats.norm.sf(beyond), "uniform").pvalue


@pytest.mark.slow
@sources
def test_the_tail_beyond_four_sigma_is_normal(noise):
    draws = np.concatenate([noise.standard_normal(1_000_000) for _ in range(20)])
    assert tail_count(draws, 4.0) > PASS
    assert tail_distribution(draws, 4.0) > PASS
    assert tail_count(0.95 * draws, 4.0) < REJECT
    assert tail_distribution(draws * (1 + 0.2 * (np.abs(draws) > 4)), 4.0) < REJECT


@pytest.mark.parametrize("bits", [40, 20, 8, 0])
def test_the_tail_is_normal_far_beyond_eight_sigma(bits):
    """Random words given that U < 2^(bits-64): from 5 to 9 sigma and further, a distribution no sampling would reach."""
    rng = np.random.default_rng(bits)
    high = rng.integers(0, 2**bits, 50_000, dtype=np.uint64)
    low = rng.integers(0, 2**64, 50_000, dtype=np.uint64, endpoint=False)
    sizes = np.abs(normals(high, low))
    edge = stats.norm.isf(2.0 ** (bits - 65))
    assert stats.kstest(stats.norm.sf(sizes) / stats.norm.sf(edge), "uniform").pvalue > PASS
    assert np.unique(sizes).size == sizes.size
    assert stats.kstest(stats.norm.sf(0.999 * sizes) / stats.norm.sf(edge), "uniform").pvalue < REJECT


# What is released

MECHANISMS = [gaussian(7e-7, 70, 2e-4), gaussian(1.0, 2500, 0.03), gaussian(3.0, 20, 30.0)]


def released_noise(mechanism, noise, draws=20_000):
    value = np.linspace(-3, 3, mechanism.dimension) * mechanism.sensitivity
    rounds = -(-draws // mechanism.dimension)
    return np.concatenate([release(mechanism, value, noise) - value for _ in range(rounds)]) / mechanism.sigma


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@sources
def test_released_noise_has_the_stated_sigma_and_less_is_noticed(mechanism, noise):
    assert variance(released_noise(mechanism, noise)) > PASS
    assert ks(released_noise(mechanism, noise)) > PASS
    too_small = released_noise(mechanism, Scaled(noise, 0.8))
    assert variance(too_small) < REJECT
    assert ks(too_small) < REJECT


def chi_square(units, scale):
    """Observed integers against P(k) = Φ((k+½)/s) - Φ((k-½)/s), the exact rounded Gaussian; tails are joined."""
    edges = np.arange(-int(2.7 * scale), int(2.7 * scale) + 1) + 0.5
    probabilities = np.diff(stats.norm.cdf(np.concatenate([[-np.inf], edges, [np.inf]]) / scale))
    observed = np.bincount(np.searchsorted(edges, units), minlength=probabilities.size)
    assert (probabilities * units.size).min() > 20
    return stats.chisquare(observed, probabilities * units.size).pvalue


@pytest.mark.parametrize("scale", [0.3, 3.0, 90.0])
def test_released_integers_have_exactly_the_rounded_gaussian_probabilities(scale):
    """On a coarse grid, where every single integer is hit often enough to be counted."""
    units = rounded_gaussian(scale, 400_000, SeededNoise(5))
    total = np.hypot(scale, 64.0)
    assert chi_square(units, total) > 1e-4
    assert chi_square(units, 0.98 * total) < REJECT
    sixteenth = (units % 16 == 0) & (SeededNoise(6).uniform(units.size) < 0.5)  # half of these slip to the next integer
    assert chi_square(units + sixteenth, total) < REJECT


def test_no_integer_is_left_out_or_favoured_on_the_real_grid():
    """The last bits of the released integers are uniform, for scales up to the largest."""
    for scale in (2.0**20, 2.0**35.7, 2.0**43):
        units = rounded_gaussian(scale, 200_000, SecureNoise())
        assert stats.chisquare(np.bincount(units % 64, minlength=64)).pvalue > PASS


# The float-grid attack


def naive_release(x, noise, size):
    """What must not be done: which floats come out depends on x."""
    return x + noise.standard_normal(size)


def off_grid(outputs, step):
    """The attack's statistic: how often is an output no multiple of `step`?"""
    return float(np.mean(outputs / step != np.rint(outputs / step)))


def test_the_attack_tells_zero_from_one_when_noise_is_added_naively():
    """Floats nearer to 0 than ½ are finer than the step: 0.257 ± 0.003 of the outputs for x = 0, none for x = 1."""
    noise = SecureNoise()
    zero, one = (off_grid(naive_release(x, noise, 20_000), 2.0**-53) for x in (0.0, 1.0))
    assert zero - one >= 0.2


@pytest.mark.parametrize("mu", [1.0, 1e-3])
def test_the_attack_finds_nothing_in_a_release(mu):
    mechanism = gaussian(1.0, 20_000, mu)
    for x in (0.0, 1.0, -1.0, 0.1, 1 / 3, 2.0**-60, 1e9 + 0.3, np.pi * 1e-9):
        released = release(mechanism, np.full(20_000, x), SecureNoise())
        assert off_grid(released, 2.0**-53) == 0
        assert off_grid(released, mechanism.grid) == 0


def test_the_last_bits_of_a_release_do_not_depend_on_the_value():
    mechanism = gaussian(1.0, 100_000, 1.0)
    counts = []
    for x in (0.0, 1 / 3):
        units = (release(mechanism, np.full(100_000, x), SecureNoise()) / mechanism.grid).astype(np.int64)
        counts.append(np.bincount(units % 32, minlength=32))
    assert stats.chi2_contingency(counts).pvalue > PASS
