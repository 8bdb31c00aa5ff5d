"""Numbers of public points are distributed as noisy counts show, and as a Beta where these show nothing."""

import numpy as np
import pytest
from scipy import stats

from dpexplain.core.cells import LevelCells, NumberCells
from dpexplain.estimation.margins import cell_shares, place_as_beta, place_in_cells

NUMBER = NumberCells(0)


def shares_of(values, cell=NUMBER):
    return np.bincount(cell.of(values[:, None]), minlength=cell.count) / len(values)


def noisy_shares_of(values, sigma, seed=0):
    return shares_of(values) + sigma * np.random.default_rng(seed).standard_normal(NUMBER.count)


def amounts(rows=40_000, zeros=0.3):
    """A skewed number with a spike at 0."""
    rng = np.random.default_rng(1)
    return np.where(rng.random(rows) < zeros, 0.0, np.clip(np.exp(rng.normal(-3, 0.8, rows)), 0, 1))


def moments_of(values):
    return float(values.mean()), float(values.var())


def test_counts_without_noise_are_followed():
    values = amounts()
    shares = cell_shares(NUMBER, shares_of(values), 1e-9, moments_of(values))
    assert np.abs(shares - shares_of(values)).sum() < 0.02
    assert shares[0] == pytest.approx(np.mean(values == 0), abs=0.005)


@pytest.mark.parametrize("seed", range(5))
def test_a_spike_is_found_in_noise_and_the_tail_is_not_filled_with_it(seed):
    values, sigma = amounts(), 0.0075
    shares = cell_shares(NUMBER, noisy_shares_of(values, sigma, seed), sigma, moments_of(values))
    assert shares[0] == pytest.approx(np.mean(values == 0), abs=0.05)
    assert shares[130:].sum() < 0.03  # 0.001 of the rows are there
    assert np.abs(shares - shares_of(values)).sum() < 0.5
    by_beta = cell_shares(NUMBER, np.zeros(NUMBER.count), sigma, moments_of(values))
    assert np.abs(by_beta - shares_of(values)).sum() > 0.6


@pytest.mark.parametrize("seed", range(5))
def test_counts_that_are_noise_leave_the_beta_as_it_is(seed):
    noisy = 0.01 * np.random.default_rng(seed).standard_normal(NUMBER.count)
    shares = cell_shares(NUMBER, noisy, 0.01, (0.3, 0.02))
    a = 0.3 * (0.3 * 0.7 / 0.02 - 1)
    beta = np.diff(stats.beta.cdf(np.linspace(0, 1, 257), a, a * 0.7 / 0.3))
    assert np.abs(shares[1:-1] - beta).sum() < 0.01


def test_the_released_mean_and_variance_are_matched():
    values = amounts()
    shares = cell_shares(NUMBER, noisy_shares_of(values, 0.0075), 0.0075, moments_of(values), (1e-4, 1e-4))
    middles = NUMBER.columns(np.arange(NUMBER.count), np.full(NUMBER.count, 0.5))[:, 0]
    mean = shares @ middles
    assert mean == pytest.approx(values.mean(), abs=1e-3)
    assert shares @ np.square(middles - mean) == pytest.approx(values.var(), rel=0.05)


def test_within_bins_spikes_are_followed_that_leave_too_little_to_be_seen():
    values, sigma = amounts(zeros=0.9), 0.0075
    counted, moments = noisy_shares_of(values, sigma), moments_of(values)
    assert cell_shares(NUMBER, counted, sigma, moments)[0] == 0.0
    assert cell_shares(NUMBER, counted, sigma, moments, within_bins=True)[0] == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize("moments", [(0.0, 0.0), (1.0, 1e-9), (0.5, 0.25), (0.01, 0.2)])
@pytest.mark.parametrize("counted", [np.zeros(258), np.full(258, -1e9), np.full(258, 1e12), np.eye(258)[0], 1e6 * np.eye(258)[3]])
@pytest.mark.parametrize("within_bins", [False, True])
def test_any_released_numbers_give_shares(moments, counted, within_bins):
    shares = cell_shares(NUMBER, counted, 0.01, moments, within_bins=within_bins)
    assert np.isfinite(shares).all()
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)


def test_levels_and_missing_ones_have_their_shares():
    cell = LevelCells(0, 4)
    counted = np.array([0.4, 0.1, 0.05, 0.25, 0.2])  # the last are missing, at 1/2
    values = np.repeat([0, 1 / 3, 2 / 3, 1, 0.5], np.rint(1000 * counted).astype(int))
    shares = cell_shares(cell, counted, 1e-9, moments_of(values))
    assert shares == pytest.approx(counted, abs=1e-3)
    placed = place_in_cells(np.random.default_rng(0).standard_normal(1000), cell, shares)
    found, how_often = np.unique(placed, return_counts=True)
    assert found == pytest.approx([0, 1 / 3, 0.5, 2 / 3, 1])
    assert how_often == pytest.approx([400, 100, 200, 50, 250], abs=2)


def test_numbers_keep_their_order_and_fill_cells_evenly():
    values = amounts()
    shares, standard = shares_of(values), np.random.default_rng(2).standard_normal(5000)
    placed = place_in_cells(standard, NUMBER, shares)
    assert (np.diff(placed[np.argsort(standard)]) >= 0).all()
    assert np.abs(shares_of(placed) - shares).max() < 1e-3
    assert stats.kstest(placed, values).statistic < 0.01


def test_a_beta_has_the_mean_and_variance():
    placed = place_as_beta(np.random.default_rng(3).standard_normal(50_000), 0.2, 0.01)
    assert placed.mean() == pytest.approx(0.2, abs=0.002)
    assert placed.var() == pytest.approx(0.01, rel=0.05)
