"""Sparse rows keep the contract of `Rows`: their sums are the oracle's within the error they state, and the dense backend's."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from dpexplain.backends import _workers as workers
from dpexplain.backends import sparse as backend
from dpexplain.backends.dense import DenseRows
from dpexplain.backends.oracle import OracleRows
from dpexplain.backends.sparse import GRID, SparseRows
from dpexplain.core import weights
from dpexplain.core.cells import CodeCells
from dpexplain.core.expected_labels import ExpectedLabels, LabelDistances
from dpexplain.core.marginals import Bins, Histograms, PairTables
from dpexplain.core.moments import LocalMoments, RawMoments
from dpexplain.core.release_moments import CentreMoments, NormalisedMoments
from rows_support import coded_columns
from rows_support import sparse_rows as stored

WEIGHTS = [weights.Stable(), weights.Gaussian(1.5), weights.Window(2.0), weights.Inverse(), weights.Custom(lambda d: 1 / (1 + d))]
# around the ends of words, lines and blocks of bits
SHAPES = [
    (1, 1),
    (2, 3),
    (64, 5),
    (511, 63),
    (513, 64),
    (5000, 70),
    (40_000, 2),
]


def rows(m, n, seed=0):
    """Binary rows of all densities, and labels on the grid that sparse rows keep them on."""
    rng = np.random.default_rng(seed)
    X = (rng.random((m, n)) < rng.beta(0.5, 1, n)).astype(np.float64)
    return X, np.rint(rng.uniform(-1, 1, m) * 2.0**20) / 2.0**20


def shares(X, y, anchor, weight):
    """Σ|terms| of each sum: what a summation error is relative to."""
    v = np.abs(X - anchor)
    w = weight(np.sqrt((v**2).sum(axis=1)))
    return {"S0": w.sum(), "S1": w @ v, "S2": (v * w[:, None]).T @ v, "t0": w @ np.abs(y), "t1": (w * np.abs(y)) @ v}


@pytest.mark.parametrize("weight", WEIGHTS, ids=lambda w: w.kind)
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_sums_around_a_corner_are_within_the_stated_error(weight, m, n):
    X, y = rows(m, n)
    ours, oracle = stored(X, y), OracleRows(X, y)
    for z in (X[0], X[-1], np.zeros(n), np.ones(n)):
        found, true = ours.raw(RawMoments(z, weight)), oracle.raw(RawMoments(z, weight))
        for part, total in shares(X, y, z, weight).items():
            allowed = 4 * (ours.summation_error + oracle.summation_error) * total + 1e-300
            assert (np.abs(getattr(found, part) - getattr(true, part)) <= allowed).all(), part
        assert (found.S2 == found.S2.T).all()


@pytest.mark.parametrize("weight", WEIGHTS, ids=lambda w: w.kind)
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_sums_around_any_point_differ_by_what_rounding_weights_to_the_grid_takes_away(weight, m, n):
    X, y = rows(m, n)
    z = X[0] * 0.8 + 0.1
    nearest = 0.1 * np.sqrt(n)
    unit = 2 * weight.c / (2 * nearest * (1 + nearest)) * 2.0**-GRID
    ours, oracle = stored(X, y), OracleRows(X, y)
    found, true, heavy = ours.raw(RawMoments(z, weight)), oracle.raw(RawMoments(z, weight)), shares(X, y, z, weight)
    for part, total in heavy.items():
        allowed = 4 * (ours.summation_error + oracle.summation_error) * total + m * unit
        assert (np.abs(getattr(found, part) - getattr(true, part)) <= allowed).all(), part
    assert (found.S2 == found.S2.T).all()


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_sparse_results_equal_dense_ones(m, n):
    X, y = rows(m, n, seed=1)
    ours, dense = stored(X, y), DenseRows([X], y, n)
    query = LocalMoments(X[m // 2], weights.Stable())
    found, expected = ours.local(query), dense.local(query)
    assert pytest.approx(expected.A, rel=1e-12, abs=1e-12) == found.A
    assert found.b == pytest.approx(expected.b, rel=1e-12, abs=1e-12)


def test_repeating_splitting_and_batching_give_the_same_bits():
    X, y = rows(3000, 9)
    ours, query = stored(X, y), LocalMoments(X[1], weights.Stable())
    first = ours.local(query)
    others = [ours.local(query), stored(X, y).local(query), *ours.local_many([query, query])]
    shuffled = np.random.default_rng(0).permutation(len(X))
    others.append(stored(X[shuffled], y[shuffled]).local(query))  # exact sums do not know the order of rows
    for other in others:
        assert (other.A == first.A).all()
        assert (other.b == first.b).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_sums_are_the_same_to_the_last_bit_with_any_number_of_threads(threads, monkeypatch):
    X, y = rows(3000, 40)
    query = RawMoments(X[1], weights.Stable())
    expected = stored(X, y).raw(query)
    with ThreadPoolExecutor(threads) as pool:
        monkeypatch.setattr(workers, "_pool", lambda: pool)
        monkeypatch.setattr(backend, "cpu_count", lambda: threads)
        found = stored(X, y).raw(query)
    assert (found.S2 == expected.S2).all()
    assert (found.t1 == expected.t1).all()


def test_labels_are_added_up_to_their_last_bit():
    X, _ = rows(2000, 9)
    whole = np.random.default_rng(2).choice([-(2**GRID), 1 - 2**GRID, -1, 0, 1, 2**GRID - 1, 2**GRID], len(X))
    for z in (X[0], 1 - X[0]):
        found = stored(X, whole * 2.0**-GRID).raw(RawMoments(z, weights.Window(9.0)))
        assert found.t0 * 2.0**GRID == whole.sum()
        assert (found.t1 * 2.0**GRID == whole @ (X - z).astype(np.int64)).all()


@pytest.mark.parametrize("m", [1, 64, 1000])
@pytest.mark.parametrize("codes", [(), (1, 1), (3, 1, 4), (9,)])
@pytest.mark.parametrize("numbers", [0, 1, 6])
def test_the_sums_of_a_release_agree_with_the_oracle(m, codes, numbers):
    if not codes and not numbers:
        return
    layout, X, y = mixed_columns(m, codes, numbers)
    ours, oracle = stored(X, y), OracleRows(X, y)
    found, true = ours.centre(CentreMoments(layout)), oracle.centre(CentreMoments(layout))
    allowed = 8 * (ours.summation_error + oracle.summation_error) * m
    assert found == pytest.approx(true, rel=0, abs=allowed)
    around = layout, np.clip(X.mean(axis=0), 0.01, 0.99), np.maximum(X.var(axis=0), 1e-3)
    plane, grid = ExpectedLabels(0.1, np.linspace(-0.5, 0.5, layout.width), 0.3), m * 2.0**-GRID * layout.width
    for query in (NormalisedMoments(*around, expected) for expected in (None, plane)):
        found, true = ours.normalised(query), oracle.normalised(query)
        assert query.vector(found) == pytest.approx(query.vector(true), rel=0, abs=4 * allowed + 4 * grid)
        assert (found.S2 == found.S2.T).all()
        assert not query.sums(found).s2[layout.same_attribute()].any()
    distances = LabelDistances(plane)
    assert (ours.label_distances(distances) == oracle.label_distances(distances)).all()


def mixed_columns(m, codes, numbers):
    """Codes of these sizes, some of their rows unknown, then numbers that are 0 or 1."""
    layout, X, rng = coded_columns(m, codes, numbers)
    X[:, layout.width - numbers :] = rng.integers(0, 2, (m, numbers))
    return layout, X, np.rint(rng.uniform(-1, 1, m) * 2.0**20) / 2.0**20


@pytest.mark.parametrize("m", [1, 4096, 5000])
def test_counts_are_the_oracles(m):
    X, y = rows(m, 4)
    cells = (CodeCells(0, 1), CodeCells(1, 2), CodeCells(2, 3), CodeCells(3, 4))
    pairs = PairTables(Bins(cells, (np.array([0, 1]),) * 4, (2,) * 4))
    ours, oracle = stored(X, y), OracleRows(X, y)
    assert (ours.histograms(Histograms(cells)) == oracle.histograms(Histograms(cells))).all()
    assert (ours.pair_tables(pairs) == oracle.pair_tables(pairs)).all()


def test_a_selection_holds_the_rows_in_the_order_asked_for():
    X, y = rows(500, 6)
    chosen = np.array([7, 3, 499, 3])
    query = LocalMoments(X[7], weights.Stable())
    part, expected = stored(X, y).select(chosen), stored(X[chosen], y[chosen])
    assert (part.local(query).A == expected.local(query).A).all()
    assert (part.local(query).b == expected.local(query).b).all()


def test_duplicate_and_explicit_zero_entries_are_read_as_the_matrix_they_mean():
    messy = sparse.coo_array(([1.0, 0.0, 0.5, 0.5], ([0, 0, 1, 1], [2, 0, 1, 1])), shape=(2, 3)).tocsr()
    query = LocalMoments(np.zeros(3), weights.Window(9.0))
    assert (SparseRows([messy], np.ones(2), 3).local(query).b == [0.0, 1.0, 1.0]).all()
