"""Tables that follow released covariances too: closer to the truth in what both know, unchanged in what only tables know."""

from types import SimpleNamespace

import numpy as np
import pytest

from dpexplain.core.layout import Layout
from dpexplain.core.marginals import one_hot
from dpexplain.domain import Block
from dpexplain.estimation.known_covariances import PreliminaryRecords, add_covariances
from dpexplain.estimation.population import tables

ROWS, SIGMA = 40_000, 200.0
SIZES = (3, 4, 6)  # two codes and a number of six bins
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
USED = [np.arange(size) for size in SIZES]
OWNER = np.repeat(np.arange(3), SIZES)
ACROSS = OWNER[:, None] != OWNER
LAYOUT = Layout.of((Block(0, 3, "categorical"), Block(3, 7, "categorical"), Block(7, 8, "numeric")))


def people(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    b = np.where(rng.random(rows) < 0.4, a, rng.integers(0, 4, rows))
    return np.column_stack([a, b, np.clip(a + b + rng.integers(-1, 2, rows), 0, 5)])


def encode(codes):
    return np.column_stack([one_hot(codes[:, :2], OFFSETS[:3])[:, :7].astype(float), codes[:, 2] / 5])


def noisy_tables(codes, seed=0):
    inside = one_hot(codes, OFFSETS).astype(float)
    noise = np.triu(SIGMA * np.random.default_rng(seed).standard_normal((13, 13)), 1)
    return tables(np.where(ACROSS, inside.T @ inside + noise + noise.T, 0.0), OFFSETS, USED, SIGMA)


def moments(points, weights, error, seed=1):
    """The covariances of weighted rows with noise, as an estimate has them."""
    share = weights / weights.sum()
    centred = points - share @ points
    noise = np.triu(error * np.random.default_rng(seed).standard_normal((8, 8)), 1)
    return SimpleNamespace(shrunk=(centred * share[:, None]).T @ centred + noise + noise.T, spread=SimpleNamespace(s2=error))


def misses(found, codes):
    """By how much tables miss the rows' distance from independence."""
    inside = one_hot(codes, OFFSETS).astype(float)
    margins = inside.mean(axis=0)
    return found.pairs - np.outer(found.p, found.p) - inside.T @ inside / len(codes) + np.outer(margins, margins)


@pytest.mark.parametrize("weighted", [False, True])
def test_codes_become_as_accurate_as_the_covariances(weighted):
    codes = people()
    before, points = noisy_tables(codes), encode(codes)
    weights = 1 / (1 + points[:, 7] + points[:, 0]) if weighted else np.ones(ROWS)
    few = encode(drawn := people(30_000, 5))
    some = PreliminaryRecords(drawn, few, 1 / (1 + few[:, 7] + few[:, 0]) if weighted else np.ones(len(few)))
    found = add_covariances(before, moments(points, weights, 2e-4), some, LAYOUT)
    codes_only = (OWNER[:, None] < 2) & (OWNER < 2) & ACROSS
    was, now = (np.sqrt(np.square(misses(one, codes)[codes_only]).mean()) for one in (before, found))
    assert now < 0.5 * was
    assert found.errors[codes_only].max() < 0.8 * before.error


def test_margins_stay_and_tables_stay_symmetric():
    codes = people()
    before, points = noisy_tables(codes), encode(codes)
    found = add_covariances(
        before, moments(points, np.ones(ROWS), 2e-4), PreliminaryRecords(codes, points, np.ones(ROWS)), LAYOUT
    )
    np.testing.assert_array_equal(found.p, before.p)
    np.testing.assert_allclose(found.pairs, found.pairs.T)
    margins = np.add.reduceat(found.pairs, OFFSETS[:-1], axis=1)
    np.testing.assert_allclose(margins, np.add.reduceat(before.pairs, OFFSETS[:-1], axis=1), atol=1e-12)


def test_of_a_number_only_its_mean_given_the_code_moves():
    codes = people()
    before, points = noisy_tables(codes), encode(codes)
    found = add_covariances(
        before, moments(points, np.ones(ROWS), 2e-4), PreliminaryRecords(codes, points, np.ones(ROWS)), LAYOUT
    )
    moved = (found.pairs - before.pairs)[before.block(0), before.block(2)]
    places = np.arange(6) / 5 - 0.5
    across = moved - np.outer(moved @ places, places) / (places @ places)
    assert np.abs(across).max() < 1e-12 < np.abs(moved).max()
    truth = np.array([[(points[:, 7] * (codes[:, 0] == k)).mean()] for k in range(3)])
    off = [np.abs(one.pairs[one.block(0), one.block(2)] @ (np.arange(6) / 5) - truth[:, 0]).max() for one in (before, found)]
    assert off[1] < off[0]


def test_covariances_that_noise_hides_change_nothing():
    codes = people()
    before, points = noisy_tables(codes), encode(codes)
    found = add_covariances(
        before, moments(points, np.ones(ROWS), 50.0), PreliminaryRecords(codes, points, np.ones(ROWS)), LAYOUT
    )
    assert np.abs(found.pairs - before.pairs).max() < 0.02 * before.error
    np.testing.assert_allclose(found.errors, before.errors, rtol=1e-3)


def test_a_value_that_no_preliminary_record_has_keeps_its_row():
    codes = people()
    before, points = noisy_tables(codes), encode(codes)
    seen = codes[:, 0] != 2
    some = PreliminaryRecords(codes[seen], points[seen], np.ones(seen.sum()))
    found = add_covariances(before, moments(points, np.ones(ROWS), 2e-4), some, LAYOUT)
    assert np.isfinite(found.pairs).all()
    assert (found.smooth >= 0).all()
