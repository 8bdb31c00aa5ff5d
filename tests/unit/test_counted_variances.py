"""Variances of numbers that use little of their declared ranges, from noisy counts."""

import numpy as np
import pytest

from dpexplain.core.cells import LevelCells, NumberCells
from dpexplain.core.marginals import NumberCounts
from dpexplain.estimation.counted_variances import counted_variances, expect_variances

ROWS = 50_000
NUMBER = NumberCells(0)


def counts(values, sigma, seed=0, cell=NUMBER):
    """Noisy counts of these values, noise `sigma` as a share of them."""
    counted = np.bincount(cell.of(np.asarray(values)[:, None]), minlength=cell.count) / len(values)
    return NumberCounts((cell,), (counted + sigma * np.random.default_rng(seed).standard_normal(cell.count),), sigma)


def draw(scale, seed=1):
    return np.random.default_rng(seed).gamma(4, scale / 2, ROWS).clip(0, 1)  # a standard deviation of `scale`


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sigma", [0.001, 0.01, 0.02])
@pytest.mark.parametrize("scale", [0.0025, 0.005, 0.01, 0.02])
def test_counts_show_the_variance_of_numbers_in_a_few_cells(scale, sigma, seed):
    values = draw(scale)
    found = counted_variances(counts(values, sigma, seed))
    seen = sigma * scale < 1e-4  # noise of more cells hides how far they reach
    if seen:
        assert np.isfinite(found.values[0])
    if np.isfinite(found.values[0]):
        assert abs(found.values[0] - values.var()) < 3 * found.errors[0] + (0.3 if seen else 0.6) * values.var()
        assert found.most[0] > values.var()


def test_ordered_levels_are_counted_exactly():
    cell = LevelCells(0, 200)
    values = np.random.default_rng(0).integers(40, 46, ROWS) / 199
    found = counted_variances(counts(values, 0.001, cell=cell))
    assert found.values[0] == pytest.approx(values.var(), rel=0.05)


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).uniform(0, 1, ROWS),
        np.random.default_rng(0).beta(2, 5, ROWS),
        np.where(np.arange(ROWS) % 10, 0.0, np.random.default_rng(0).uniform(0, 1, ROWS)),  # nine in ten are 0
        np.where(np.arange(ROWS) % 5, draw(0.01), 0.9),  # a fifth is far away
        np.full(ROWS, 0.5),  # in one cell: nothing is known within it
    ],
)
def test_nothing_is_known_of_numbers_that_use_their_ranges_or_one_cell(values):
    margins = counts(values, 0.005)
    assert np.isnan(counted_variances(margins).values[0])
    assert expect_variances(np.array([0.02]), np.array([0.0201]), 0.001, margins) == np.array([0.0201])


def test_what_noise_hides_is_decided_by_counts_and_what_it_shows_by_the_released_variance():
    values = draw(0.01)
    margins, exact = counts(values, 0.005), values.var()

    def expect(released, error):
        return float(expect_variances(np.array([released]), np.array([max(released, error)]), error, margins)[0])

    assert exact < expect(0.0, 0.001) < 2 * exact  # a tenth of the noise
    assert expect(exact, 1e-6) == pytest.approx(exact, rel=0.2)
    assert expect(0.004, 0.0002) == pytest.approx(0.004, rel=0.2)  # a few rows are far away: twenty standard errors


def test_rows_too_few_for_any_cell_are_allowed_for():
    """One in a hundred is spread over the range: counts cannot show it, and the released variance does."""
    values = np.where(np.arange(ROWS) % 100, draw(0.01), np.random.default_rng(3).uniform(0, 1, ROWS))
    margins = counts(values, 0.01)
    found = counted_variances(margins)
    assert found.values[0] < 0.1 * values.var() < found.most[0]
    assert expect_variances(np.array([values.var()]), np.array([values.var()]), 0.0002, margins)[0] > 0.5 * values.var()


def test_several_estimates_together_are_those_of_each():
    margins = NumberCounts(
        (NUMBER, NumberCells(1)), (counts(draw(0.01), 0.005).shares[0], counts(np.linspace(0, 1, ROWS), 0.005).shares[0]), 0.005
    )
    released = np.random.default_rng(0).normal(0, 0.001, (6, 2))
    together = expect_variances(released, np.abs(released), np.full((6, 1), 0.001), margins)
    each = [expect_variances(one, np.abs(one), np.full(1, 0.001), margins) for one in released]
    np.testing.assert_allclose(together, each, rtol=1e-12)
    np.testing.assert_array_equal(together[:, 1], np.abs(released[:, 1]))
