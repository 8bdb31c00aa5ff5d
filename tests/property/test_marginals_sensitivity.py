"""The claim of `proofs/marginals.md`, attacked: no record moves the counts further, and every record moves them that far."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpexplain.backends.oracle import OracleRows
from dpexplain.core.cells import CodeCells, LevelCells, NumberCells
from dpexplain.core.marginals import LABEL_STEPS, Bins, Histograms, LabelTables, PairTables
from dpexplain.mechanisms.marginals_plan import PairLabels
from dpexplain.mechanisms.setting import Setting
from dpexplain.privacy.relation import Neighbours, Relation

CELLS = (NumberCells(0), LevelCells(1, 4), CodeCells(2, 5), CodeCells(5, 6), NumberCells(6))
RECORD = st.lists(st.floats(0, 1), min_size=7, max_size=7)


@given(st.lists(RECORD, min_size=1, max_size=6), RECORD, st.integers(0, 2**32 - 1))
def test_one_record_moves_counts_by_exactly_the_bound(others, record, seed):
    rng = np.random.default_rng(seed)
    bins = Bins(CELLS, tuple(rng.integers(0, 3, cell.count) for cell in CELLS), (3,) * 5)
    without, with_ = (OracleRows(np.array(rows), np.zeros(len(rows))) for rows in (others, [*others, record]))
    histograms, pairs = Histograms(CELLS), PairTables(bins)
    moved = np.linalg.norm(with_.histograms(histograms) - without.histograms(histograms))
    assert moved <= histograms.sensitivity()
    assert moved == pytest.approx(histograms.sensitivity())
    moved = np.linalg.norm(pairs.vector(with_.pair_tables(pairs)) - pairs.vector(without.pair_tables(pairs)))
    assert moved <= pairs.sensitivity()
    assert moved == pytest.approx(pairs.sensitivity())


LABELLED = st.tuples(RECORD, st.floats(-1, 1))


@given(st.lists(LABELLED, min_size=1, max_size=6), LABELLED, st.integers(0, 2**32 - 1))
def test_one_record_moves_labels_in_tables_by_at_most_the_bound(others, record, seed):
    rng = np.random.default_rng(seed)
    pairs = PairTables(Bins(CELLS, tuple(rng.integers(0, 3, cell.count) for cell in CELLS), (3,) * 5))
    without, with_ = (
        OracleRows(np.array([row for row, _ in rows]), np.array([label for _, label in rows]))
        for rows in (others, [*others, record])
    )
    query = LabelTables(pairs)
    moved = np.linalg.norm(pairs.vector(with_.label_tables(query)) - pairs.vector(without.label_tables(query)))
    assert moved <= query.sensitivity()
    assert moved == pytest.approx(abs(round(record[1] * LABEL_STEPS)) / LABEL_STEPS * query.sensitivity(), abs=1e-9)


@given(RECORD)
def test_a_record_that_is_replaced_by_one_with_the_opposite_answer_attains_twice_the_bound(record):
    """So the factor of replace-one is 2 here, where √2 would do for counts."""
    pairs = PairTables(Bins(CELLS, tuple(np.zeros(cell.count, dtype=int) for cell in CELLS), (1,) * 5))
    yes, no = (OracleRows(np.array([record]), np.array([label])) for label in (1.0, -1.0))
    moved = np.linalg.norm(pairs.vector(yes.label_tables(LabelTables(pairs))) - pairs.vector(no.label_tables(LabelTables(pairs))))
    asked = PairLabels((1,) * 5, Setting(7, 100, Neighbours(Relation.REPLACE_ONE), 0.0))
    assert moved <= asked.sensitivity
    assert moved == pytest.approx(asked.sensitivity)


@given(RECORD)
def test_every_record_has_one_cell_in_each_attribute(record):
    row = np.array([record])
    for cell in CELLS:
        assert 0 <= cell.of(row[:, cell.start : cell.stop])[0] < cell.count
