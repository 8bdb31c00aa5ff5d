"""One suite for every backend: its counts are the oracle's, exactly."""

import numpy as np
import pytest

from dpexplain.backends.oracle import OracleRows
from dpexplain.core.cells import CodeCells, LevelCells, NumberCells
from dpexplain.core.marginals import Bins, Histograms, LabelTables, PairTables
from rows_support import ALL, BACKENDS, cases

CELLS = (NumberCells(0), CodeCells(1, 4), LevelCells(4, 6), CodeCells(5, 6))
BINARY_CELLS = (CodeCells(0, 4), CodeCells(4, 8), CodeCells(8, 9), CodeCells(9, 10))


def rows(m, seed=0):
    """A number, a code that is sometimes unknown, a scale that is sometimes missing, a yes/no."""
    rng = np.random.default_rng(seed)
    code, level = rng.integers(0, 4, m), rng.integers(0, 7, m)
    number = np.where(rng.random(m) < 0.3, rng.integers(0, 2, m), rng.random(m))
    scale = np.append(np.linspace(0, 1, 6), 0.5)[level]
    X = np.column_stack([number, np.eye(4)[code, :3], scale, rng.integers(0, 2, m)])
    return X.astype(np.float32).astype(np.float64), rng.uniform(-1, 1, m)


def binary_rows(m, seed=0):
    """Two codes that are sometimes unknown and two yes/no columns: what sparse rows can hold."""
    rng = np.random.default_rng(seed)
    codes = [np.eye(5)[rng.integers(0, 5, m), :4] for _ in range(2)]
    return np.column_stack([*codes, rng.integers(0, 2, (m, 2))]).astype(np.float64), rng.uniform(-1, 1, m)


def bins(cells=CELLS, seed=1):
    rng = np.random.default_rng(seed)
    return Bins(cells, tuple(rng.integers(0, 3, cell.count) for cell in cells), (3,) * len(cells))


def agree(backend, oracle, cells):
    histograms, pairs = Histograms(cells), PairTables(bins(cells))
    assert (backend.histograms(histograms) == oracle.histograms(histograms)).all()
    assert (backend.pair_tables(pairs) == oracle.pair_tables(pairs)).all()
    assert (backend.label_tables(LabelTables(pairs)) == oracle.label_tables(LabelTables(pairs))).all()


@pytest.mark.parametrize(("name", "m"), cases([1, 127, 128, 1000, 70_000], [1000]))
def test_counts_are_the_oracles(name, m):
    X, y = rows(m)
    agree(BACKENDS[name](X, y), OracleRows(X, y), CELLS)


@pytest.mark.parametrize("m", [1, 3, 127, 1000, 20_000])
def test_sparse_counts_are_the_oracles(m):
    X, y = binary_rows(m)
    agree(BACKENDS["sparse"](X, y), OracleRows(X, y), BINARY_CELLS)


@pytest.mark.parametrize("name", ALL)
def test_every_row_is_counted_once_in_each_histogram_and_table(name):
    X, y = rows(1000)
    backend, query, pairs = BACKENDS[name](X, y), Histograms(CELLS), PairTables(bins())
    assert [part.sum() for part in query.split(backend.histograms(query))] == [1000] * 4
    counts = backend.pair_tables(pairs)
    assert (counts == counts.T).all()
    assert pairs.vector(counts).sum() == 1000 * 6
    assert (pairs.matrix(pairs.vector(counts)) == counts).all()


@pytest.mark.parametrize("name", ALL)
def test_an_answer_beyond_its_bounds_counts_as_its_bound(name):
    """Registration clips answers; tables do so once more, because their sensitivity depends on it."""
    X, y = rows(1000)
    query = LabelTables(PairTables(bins()))
    expected = OracleRows(X, np.clip(3 * y, -1, 1)).label_tables(query)
    assert (BACKENDS[name](X, 3 * y).label_tables(query) == expected).all()
    assert (OracleRows(X, 3 * y).label_tables(query) == expected).all()


@pytest.mark.parametrize("name", ALL)
def test_every_label_is_added_once_in_each_table(name):
    X, _ = rows(1000)
    labels, pairs = np.where(X[:, 0] > 0.4, 1.0, -1.0), PairTables(bins())
    sums = BACKENDS[name](X, labels).label_tables(LabelTables(pairs))
    assert (sums == sums.T).all()
    assert pairs.vector(sums).sum() == labels.sum() * 6


def test_cells_are_read_back_as_the_columns_they_came_from():
    X, _ = rows(3000)
    half = np.full(len(X), 0.5)
    for cell in CELLS:
        columns = X[:, cell.start : cell.stop]
        back = cell.columns(cell.of(columns), half)
        assert (cell.of(back) == cell.of(columns)).all()
        assert np.abs(back - columns).max() < 1 / 256
