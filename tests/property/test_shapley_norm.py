"""Games that try to have longer Shapley values than `proofs/shapley.md` allows; and what Shapley values are, on games with known ones."""

from fractions import Fraction
from itertools import permutations
from math import comb, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpexplain.backends.dense import DenseRows
from dpexplain.backends.oracle import OracleRows
from dpexplain.core.baseline_shapley import ShapleySum, baseline_shapley, exact_grid, largest_norm, orders_from, walk_orders
from dpexplain.core.row_hash import hash_rows
from hypothesis_support import examples


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


@settings(max_examples=examples(100))
@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_walks_over_all_orders_give_the_exact_values(d, seed):
    rng = np.random.default_rng(seed)
    worth = rng.uniform(-1, 1, 2**d)
    ask = lambda rows: worth[(rows @ (1 << np.arange(d))).astype(int)]  # noqa: E731
    every = np.array(list(permutations(range(d))))
    walked = baseline_shapley(ask, np.ones(d), np.zeros((len(every), d)), np.arange(d), every)
    exact = worth @ coefficients(d)
    assert walked.mean(axis=0) == pytest.approx(exact, abs=1e-9)
    assert np.linalg.norm(exact) <= largest_norm(d)
    assert walked.sum(axis=1) == pytest.approx(np.full(len(every), worth[-1] - worth[0]))  # each pair shares out all of it


def test_one_pair_of_walks_is_exact_up_to_interactions_of_two():
    rng = np.random.default_rng(0)
    linear, pairs = rng.standard_normal(6), rng.standard_normal((6, 6))
    ask = lambda rows: rows @ linear + np.einsum("ij,jk,ik->i", rows, pairs, rows)  # noqa: E731
    owner = np.array([0, 0, 1, 2, 2, 2])  # features of several columns move as a whole
    rows, point, every = np.tile(rng.random(6), (6, 1)), rng.random(6), np.array(list(permutations(range(3))))
    found = baseline_shapley(ask, point, rows, owner, every)
    assert found == pytest.approx(np.tile(found[0], (6, 1)), abs=1e-9)


def test_orders_are_orders():
    found = orders_from(np.random.default_rng(0).random((5, 7)))
    assert (np.sort(found, axis=1) == np.arange(7)).all()


def wild(seed):
    """A model that answers anything: huge, not a number, or not at all; but each row by itself."""

    def answer(row):
        kind = int(row @ (1 + np.arange(len(row))) * 7 + seed) % 7
        if kind == 3:
            raise RuntimeError("no answer")
        return [1.0, -1.0, 1e300, 0.0, float("nan"), -0.5, float("-inf")][kind]

    return lambda rows: np.array([answer(row) for row in rows])


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 6), st.integers(2, 12), st.floats(0.05, 3.0), st.floats(0.2, 1.0), st.integers(0, 2**31))
def test_no_record_moves_the_sum_further_than_the_cut_whatever_the_model_does(d, count, clip, share, seed):
    """One record is taken out: the others move up a place, and nothing else happens to them."""
    rng = np.random.default_rng(seed)
    rows, point = rng.integers(0, 3, (count, d)) / 2, rng.integers(0, 3, d) / 2
    query = ShapleySum(point, wild(seed), np.arange(d), clip, share)
    place = int(rng.integers(count))
    moved = query.from_units(query.units(rows)) - query.from_units(query.units(np.delete(rows, place, axis=0)))
    assert np.linalg.norm(moved) <= query.sensitivity()
    assert (moved == query.from_units(query.units(rows[[place]]))).all()
    if not query.select_rows(rows)[place]:
        assert (moved == 0).all()


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(1, 700), st.integers(0, 2**31))
def test_backends_and_pieces_agree_to_the_last_bit(count, seed):
    rng = np.random.default_rng(seed)
    rows = rng.random((count, 5)).astype(np.float32).astype(float)
    ask = lambda asked: np.tanh(asked @ np.arange(-2, 3) + asked[:, 0] * asked[:, 3])  # noqa: E731
    query = ShapleySum(rng.random(5), ask, np.array([0, 0, 1, 2, 2]), 0.3, 0.7)
    whole = OracleRows(rows, np.zeros(count)).shapley(query)
    assert (DenseRows([rows], np.zeros(count), 5).shapley(query) == whole).all()
    half = count // 2
    assert (query.from_units(query.units(rows[:half]) + query.units(rows[half:])) == whole).all()
    parts = [DenseRows([some], np.zeros(len(some)), 5).shapley(query) for some in (rows[:half], rows[half:])]
    assert (parts[0] + parts[1] == whole).all()
    shuffled = rng.permutation(rows)
    assert (OracleRows(shuffled, np.zeros(count)).shapley(query) == whole).all()


def test_the_cut_is_attained():
    rows, point = np.zeros((1, 2)), np.ones(2)
    query = ShapleySum(point, lambda asked: 2 * asked[:, 0] - 1, np.arange(2), 0.5)
    assert np.linalg.norm(query.from_units(query.units(rows))) == pytest.approx(0.5, abs=1e-8)


@given(st.integers(1, 2**40))
def test_sums_over_all_rows_are_exact_on_the_grid(size):
    grid = exact_grid(size)
    assert 2 * size * 2 <= 2**53 * Fraction(grid)
    assert grid == 2.0**-30 or grid < size * 2.0**-50


def test_about_the_declared_share_of_rows_is_asked_each_with_its_own_order():
    rows = np.random.default_rng(0).random((20_000, 4))
    query = ShapleySum(np.zeros(4), lambda rows: np.zeros(len(rows)), np.arange(4), 1.0, 0.3)
    assert query.expected_count(20_000) == 6000
    assert query.select_rows(rows).sum() == pytest.approx(6000, abs=5 * np.sqrt(20_000 * 0.3 * 0.7))
    orders, counts = np.unique(walk_orders(rows, 4), axis=0, return_counts=True)
    assert len(orders) == 24
    assert counts == pytest.approx(np.full(24, 20_000 / 24), abs=5 * np.sqrt(20_000 / 24))
    binary = np.eye(4)[np.arange(4)].repeat(2, axis=0)
    assert len(np.unique(hash_rows(binary, 1))) == 4
    assert len(np.unique(hash_rows(rows, 1))) == 20_000
