"""Counts to records: consistent, never negative, close in every pair, and defined whatever the noise made of them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpexplain.core.cells import NumberCells
from dpexplain.core.marginals import one_hot
from dpexplain.core.uniforms import Uniforms
from dpexplain.estimation import response
from dpexplain.estimation._table_kernels import find_cells
from dpexplain.estimation.gibbs import STATES, learn_potentials, pair_shares, refresh_records
from dpexplain.estimation.population import draw, on_simplex, sample_tree, tables, tree, tree_potentials
from dpexplain.estimation.raking import Raking
from dpexplain.estimation.response import respond, table_changes
from dpexplain.mechanisms.marginals_plan import equal_mass, join

SIZES = (3, 4, 2, 5)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
USED = [np.arange(size) for size in SIZES]


def triangle(m=40_000):
    """Three attributes that depend on each other in a circle, which no tree can say, and one that depends on none."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, m)
    b = np.where(rng.random(m) < 0.5, a, rng.integers(0, 4, m))
    c = ((a + b) > 3).astype(int) ^ (rng.random(m) < 0.1)
    return np.column_stack([a, b, c, rng.integers(0, 5, m)])


def counts(codes):
    inside = one_hot(codes, OFFSETS).astype(np.float64)
    owner = np.repeat(np.arange(4), SIZES)
    return np.where(owner[:, None] == owner, 0.0, inside.T @ inside)


def shares(codes):
    inside = one_hot(codes, OFFSETS).astype(np.float64)
    return inside.T @ inside / len(codes)


def farthest(codes, weights=None):
    inside = one_hot(codes, OFFSETS).astype(np.float64)
    weights = np.full(len(codes), 1 / len(codes)) if weights is None else weights
    owner = np.repeat(np.arange(4), SIZES)
    ours = (inside * weights[:, None]).T @ inside
    return np.abs(ours - counts(triangle()) / 40_000)[owner[:, None] != owner].max()


def distance(codes, found):
    """How far records are from the released tables, in the norm of their counts."""
    return np.linalg.norm(np.where(found.owner[:, None] == found.owner, 0.0, pair_shares(codes, found.offsets) - found.pairs))


def test_raking_brings_every_table_close_and_the_tree_alone_does_not():
    found = tables(counts(triangle()), OFFSETS, USED, 0.5)
    codes = sample_tree(found, 30_000, Uniforms())
    raking = Raking(codes, found)
    weights = np.exp(raking.energy(raking.minimise_dual(25)))
    assert farthest(codes) > 0.02
    assert farthest(codes, weights / weights.sum()) < 0.003
    assert farthest(draw(found, 30_000, Uniforms())) < 0.01


def test_gibbs_sampling_under_the_tree_s_potentials_keeps_the_tree():
    found = tables(counts(triangle()), OFFSETS, USED, 0.5)
    codes = sample_tree(found, 30_000, Uniforms())
    again = refresh_records(codes, *tree_potentials(found), OFFSETS, 2, Uniforms(10**9))
    assert (again != codes).mean() > 0.3
    assert np.abs(shares(again) - shares(codes)).max() < 0.012


@pytest.mark.parametrize("rows", [1, 16, 37])
@pytest.mark.parametrize("sweeps", [1, 3])
def test_gibbs_sampling_draws_what_the_plain_loop_draws(rows, sweeps):
    rng, total = np.random.default_rng(rows + sweeps), OFFSETS[-1]
    owner, theta, field = np.repeat(np.arange(4), SIZES), rng.standard_normal((total, total)), rng.standard_normal(total)
    theta = np.where(owner[:, None] == owner, 0.0, theta + theta.T)
    codes = rng.integers(0, SIZES, (rows, 4))
    expected, uniforms = codes.copy(), Uniforms().take(rows * sweeps * 4).reshape(rows, sweeps, 4)
    for r, s, a in np.ndindex(rows, sweeps, 4):
        energy = (field + theta[OFFSETS[:-1] + expected[r]].sum(axis=0))[OFFSETS[a] : OFFSETS[a + 1]]
        steps = np.cumsum(np.exp(energy))
        expected[r, a] = np.searchsorted(steps, uniforms[r, s, a] * steps[-1])
    assert (refresh_records(codes, theta, field, OFFSETS, sweeps, Uniforms()) == expected).all()


def test_a_chain_learns_every_table():
    found = tables(counts(triangle()), OFFSETS, USED, 40.0)
    uniforms = Uniforms()
    potentials = learn_potentials(sample_tree(found, 8192, uniforms), found, tree_potentials(found), uniforms)
    assert farthest(potentials.records(30_000, uniforms)) < 0.014
    assert farthest(draw(found, 150_000, uniforms)) < 0.014  # more than a chain of the usual size has in its states
    assert potentials.records(500, uniforms).shape == (500, 4)


def test_records_of_a_chain_follow_its_last_turns_and_differ():
    """States of several turns are nearer to the tables than copies of one of them."""
    found = tables(counts(triangle()), OFFSETS, USED, 40.0)
    uniforms = Uniforms()
    potentials = learn_potentials(sample_tree(found, 1024, uniforms), found, tree_potentials(found), uniforms)
    copies = replace(potentials, states=potentials.states[-1:] * len(potentials.states))
    rows = 1024 * STATES
    assert distance(potentials.records(rows, uniforms), found) < distance(copies.records(rows, uniforms), found)


def test_cells_are_found_as_by_searching_all_edges():
    rng = np.random.default_rng(0)
    edges, first = np.concatenate([[0.0], np.cumsum(rng.random(50))]), np.array([0, 7, 8, 30])
    last, bins, uniforms = np.append(first[1:], 50), rng.integers(0, 4, 5_000), rng.random(5_000)
    found = np.empty(5_000, dtype=np.int64)
    find_cells(bins, first, last, edges, uniforms, found)
    place = edges[first[bins]] + uniforms * (edges[last[bins]] - edges[first[bins]])
    assert (found == np.searchsorted(edges, place, side="right") - 1).all()


@pytest.mark.slow
@pytest.mark.parametrize(("own", "limit"), [(0.6, 0.005), (0.25, 0.02)])
def test_many_dependent_attributes_are_drawn_without_losing_the_sample(own, limit):
    """Twelve views of one hidden number, moderately and strongly dependent: weights alone would rest on few rows."""
    rng = np.random.default_rng(0)
    codes = np.clip((4 * ((1 - own) * rng.random((20_000, 1)) + own * rng.random((20_000, 12)))).astype(int), 0, 3)
    offsets, owner = np.arange(13) * 4, np.repeat(np.arange(12), 4)
    inside = one_hot(codes, offsets).astype(np.float64)
    truth = np.where(owner[:, None] == owner, 0.0, inside.T @ inside)
    found = tables(truth, offsets, [np.arange(4)] * 12, 5.0)
    uniforms = Uniforms()
    tree_alone, drawn = sample_tree(found, 8192, uniforms), draw(found, 8192, Uniforms())
    cells = 132 * 16
    assert distance(drawn, found) / np.sqrt(cells) < limit
    assert distance(drawn, found) < 0.6 * distance(tree_alone, found)


def test_the_tree_spans_and_has_parents_first():
    order = tree(tables(counts(triangle()), OFFSETS, USED, 0.5))
    seen = set()
    for child, parent in order:
        assert parent is None or parent in seen
        seen.add(child)
    assert seen == {0, 1, 2, 3}


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 1e6))
def test_pure_noise_still_gives_records(seed, sigma):
    rng = np.random.default_rng(seed)
    noisy = np.triu(rng.standard_normal((14, 14)) * sigma, 1)
    found = tables(noisy + noisy.T, OFFSETS, USED, sigma)
    codes = draw(found, 500, Uniforms())
    assert codes.shape == (500, 4)
    assert ((codes >= 0) & (codes < np.array(SIZES))).all()
    assert found.p == pytest.approx(np.clip(found.p, 0, 1))
    assert np.add.reduceat(found.p, OFFSETS[:-1]) == pytest.approx(np.ones(4))


def test_bins_that_nothing_falls_into_are_never_drawn():
    used = [np.array([0, 2]), *USED[1:]]
    noisy = counts(triangle()) + 50 * np.random.default_rng(0).standard_normal((14, 14))
    codes = draw(tables((noisy + noisy.T) / 2, OFFSETS, used, 50.0), 5000, Uniforms())
    assert not (codes[:, 0] == 1).any()


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20))
def test_the_simplex(values):
    found = on_simplex(np.array(values))
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()


@given(st.lists(st.floats(0, 1), min_size=30, max_size=60), st.integers(4, 24))
def test_joined_cells_are_consecutive_and_few(mass, size):
    joined = equal_mass((np.array(mass) + 1e-9) / (np.array(mass) + 1e-9).sum(), size)
    assert joined[0] == 0
    assert set(np.diff(joined)) <= {0, 1}
    assert joined.max() < size


def test_an_atom_gets_a_bin_of_its_own():
    histogram = np.full(258, 10.0)
    histogram[0] = 5000
    joined = join(NumberCells(0), histogram, 10, 1.0)
    assert (joined == joined[0]).sum() == 1


def test_what_atoms_leave_gets_as_many_bins_as_its_rows_alone_would():
    histogram = np.full(258, 1.0)
    histogram[0] = 4000
    joined = join(NumberCells(0), histogram, 16, 0.0)
    assert 5 <= joined.max() <= 7  # 16 times the cube root of 6 %; bins of equal mass would leave one
    sizes = np.bincount(joined)[1:]
    assert sizes.max() <= 1.5 * np.median(sizes)


def test_without_atoms_bins_hold_equal_mass():
    joined = equal_mass(np.full(256, 1 / 256), 16)
    assert (np.bincount(joined) == 16).all()


def test_uniforms_are_uniform_repeatable_and_different_each_time():
    stream = Uniforms()
    first, second = stream.take(20_000), stream.take(20_000)
    assert (first == Uniforms().take(20_000)).all()
    assert abs(first.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert 0 < first.min() < first.max() < 1


def test_public_numbers_are_the_same_however_many_are_taken_at_once():
    one, other = Uniforms(7), Uniforms(7)
    whole = one.take(40_000)
    np.testing.assert_array_equal(whole, np.concatenate([other.take(count) for count in (1, 16_384, 3, 23_612)]))
    state = np.arange(7, 12, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    mixed = (state ^ (state >> np.uint64(31))) >> np.uint64(12)
    np.testing.assert_array_equal(whole[:5], (mixed.astype(float) + 0.5) * 2.0**-52)


def test_records_respond_to_a_small_change_of_the_tables_by_as_much():
    codes = triangle(20_000)
    found = tables(counts(triangle()), OFFSETS, USED, 0.5)
    raking = Raking(codes, found)
    wanted = 1e-3 * np.sin(np.arange(len(raking.limit)))[:, None] * np.arange(1, 9)
    wanted = raking_directions(raking, wanted)
    theta = respond(raking, wanted, 60)
    energy = raking.energy(theta[:, 3])
    weights = np.exp(energy) / np.exp(energy).sum()
    moved = raking._means(weights) - raking._means(np.full(len(codes), 1 / len(codes)))
    assert np.abs(moved - wanted[:, 3]).max() < 0.05 * np.abs(wanted[:, 3]).max()


def raking_directions(raking, potentials):
    """Changes of tables and margins that small potentials make: those that weights can make at all."""
    base, columns = raking._means(np.full(raking.rows, 1 / raking.rows)), []
    for column in potentials.T:
        weights = np.exp(raking.energy(column))
        columns.append(raking._means(weights / weights.sum()) - base)
    return np.column_stack(columns)


@pytest.mark.parametrize("linear_from", [2, 24])
def test_noise_on_the_tables_moves_log_weights_in_proportion(monkeypatch, linear_from):
    monkeypatch.setattr(response, "LINEAR_FROM", linear_from)
    codes = triangle(20_000)
    small, large = (table_changes(codes, tables(counts(triangle()), OFFSETS, USED, s), Uniforms(), 10) for s in (2.0, 8.0))
    assert small.shape == (10, 20_000)
    assert np.abs(small.mean(axis=1)).max() < 1e-12
    assert 2.5 < large.std() / small.std() < 5.5
