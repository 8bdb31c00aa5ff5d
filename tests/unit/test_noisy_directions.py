"""Directions whose whole variance may be noise: how likely that is, and what errors have to count of it."""

import numpy as np
import pytest

from dpexplain.estimation.noisy_directions import NoisyDirections


def directions(covariance, error, numbers=None):
    values, vectors = np.linalg.eigh(covariance)
    return NoisyDirections(np.maximum(values, 1e-7), vectors, error, np.arange(len(values)) if numbers is None else numbers)


def symmetric_noise(rng, count, error):
    noise = error * rng.standard_normal((count, count))
    return np.triu(noise) + np.triu(noise, 1).T


def equal_pair(count, variance=0.05):
    """Numbers of which the last two are the same."""
    covariance = variance * np.eye(count)
    covariance[-1, -2] = covariance[-2, -1] = variance
    return covariance


def test_a_direction_that_is_alone_is_moved_by_its_own_noise_however_many_columns_there_are():
    for count in (4, 16, 64):
        found = directions(0.05 * np.eye(count), 1e-3)
        assert found.shift == pytest.approx(np.full(count, 1e-3), rel=1e-6)  # each is one column: vᵀNv is one entry of the noise
        assert float(found.largest_shift[0]) == pytest.approx(1e-3 * np.sqrt(count))


@pytest.mark.parametrize("count", [2, 6, 20])
def test_directions_without_variance_are_moved_by_the_root_of_their_number(count):
    rng, columns, error = np.random.default_rng(3), 30, 1e-3
    clear = np.diag(np.r_[np.zeros(count), np.full(columns - count, 0.1)])
    found = directions(clear, error)
    moved = [np.linalg.eigvalsh(clear + symmetric_noise(rng, columns, error))[:count] for _ in range(200)]
    assert float(found.shift[0]) == pytest.approx(float(np.sqrt(np.square(moved).mean())), rel=0.2)


def test_a_tied_direction_is_suspected_and_one_that_noise_cannot_have_made_is_not():
    rng, suspected = np.random.default_rng(4), []
    for _ in range(50):
        found = directions(equal_pair(6) + symmetric_noise(rng, 6, 2e-3), 2e-3)
        suspected.append(found.probability[0])
        assert (found.probability[1:] < 1e-6).all()
    assert np.median(suspected) > 0.5
    clear = directions(equal_pair(6) + np.diag([0, 0, 0, 0, 0.01, 0.01]), 5e-4)
    assert (clear.probability < 1e-6).all()


def test_where_noise_exceeds_all_variance_nothing_is_learned():
    found = directions(0.01 * np.eye(5), 0.5)
    assert found.probability == pytest.approx(np.full(5, 0.5), abs=0.01)


def test_what_counts_covers_a_mixture():
    """Slopes that are 0 but for a share p, where they are normal with mean square h: two errors hold 95.45 % of them."""
    rng, p = np.random.default_rng(5), 0.3
    found = directions(equal_pair(4), 2e-3)
    object.__setattr__(found, "probability", np.array([p, 1.0, 0.0455, 0.01]))
    slopes = np.where(rng.random(400_000) < p, rng.standard_normal(400_000), 0.0)
    assert (np.abs(slopes) <= 2 * np.sqrt(found.counted_share[0])).mean() == pytest.approx(0.9545, abs=0.002)
    assert found.counted_share[1:] == pytest.approx([1.0, 0.0, 0.0], abs=1e-3)


def test_rows_of_several_estimates_are_treated_one_by_one():
    matrices = np.stack([equal_pair(4), 0.02 * np.eye(4) + 0.01])
    values, vectors = np.linalg.eigh(matrices)
    values = np.maximum(values, 1e-7)
    together = NoisyDirections(values, vectors, np.array([1e-3, 4e-3]), np.arange(3))
    for i, error in enumerate((1e-3, 4e-3)):
        alone = NoisyDirections(values[i], vectors[i], error, np.arange(3))
        for name in ("collinearity", "shift", "probability", "counted_share"):
            assert getattr(together, name)[i] == pytest.approx(getattr(alone, name)), name
