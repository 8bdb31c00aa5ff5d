"""Games that try to have longer Shapley values than `proofs/shapley.md` allows; and what Shapley values are, on games with known ones."""

from itertools import permutations
from math import comb, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpexplain.core.shapley import baseline_shapley, largest_norm, orders_from


def coefficients(d):
    """(2^d, d): how v(S) enters each player's value."""
    inside = ((np.arange(2**d)[:, None] >> np.arange(d)) & 1).astype(bool)
    size = inside.sum(axis=1)
    ways = np.array([comb(d, int(s)) for s in size])
    with np.errstate(divide="ignore"):
        return np.where(inside, (1 / (size * ways))[:, None], (-1 / ((d - size) * ways))[:, None])


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 10])
def test_no_game_passes_the_bound_and_some_come_near(d):
    weights, rng, longest = coefficients(d), np.random.default_rng(d), 0.0
    for _ in range(20):
        worth = rng.choice([-1.0, 1.0], 2**d)
        for _ in range(50):  # the norm is convex in the game: step to the vertex that the current values point at
            worth = np.where(weights @ (worth @ weights) >= 0, 1.0, -1.0)
        longest = max(longest, float(np.linalg.norm(worth @ weights)))
    assert longest <= largest_norm(d)
    assert longest >= largest_norm(d) / 1.2


def test_the_bound_is_below_pi_and_grows_slowly():
    bounds = [largest_norm(d) for d in range(1, 400)]
    assert bounds[0] == pytest.approx(2)
    assert bounds[9] == pytest.approx(2.4152, abs=1e-4)
    assert max(bounds) < pi


@settings(max_examples=100)
@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_walks_over_all_orders_give_the_exact_values(d, seed):
    rng = np.random.default_rng(seed)
    worth = rng.uniform(-1, 1, 2**d)
    ask = lambda rows: worth[(rows @ (1 << np.arange(d))).astype(int)]  # noqa: E731
    players = [slice(i, i + 1) for i in range(d)]
    orders = list(permutations(range(d)))
    walked = [baseline_shapley(ask, np.ones(d), np.zeros((2, d)), players, order) for order in orders]
    exact = worth @ coefficients(d)
    assert np.mean(walked, axis=0) == pytest.approx(np.tile(exact, (2, 1)), abs=1e-9)
    assert np.linalg.norm(exact) <= largest_norm(d)
    for one in walked:  # each pair of walks shares out the whole difference
        assert one.sum(axis=1) == pytest.approx(np.full(2, worth[-1] - worth[0]))


def test_one_pair_of_walks_is_exact_up_to_interactions_of_two():
    rng = np.random.default_rng(0)
    linear, pairs = rng.standard_normal(6), rng.standard_normal((6, 6))
    ask = lambda rows: rows @ linear + np.einsum("ij,jk,ik->i", rows, pairs, rows)  # noqa: E731
    players = [slice(0, 2), slice(2, 3), slice(3, 6)]  # features of several columns move as a whole
    rows, point = rng.random((4, 6)), rng.random(6)
    first, *others = (baseline_shapley(ask, point, rows, players, order) for order in permutations(range(3)))
    for other in others:
        assert other == pytest.approx(first, abs=1e-9)


def test_orders_are_orders():
    found = orders_from(np.random.default_rng(0).random((5, 7)))
    assert (np.sort(found, axis=1) == np.arange(7)).all()
