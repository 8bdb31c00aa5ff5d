"""Records that try to break the bounds of `proofs/expected_labels.md`: any point, plane, scale and label."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpexplain.backends.dense import DenseRows
from dpexplain.backends.oracle import OracleRows
from dpexplain.core.expected_labels import BINS, ExpectedLabels, LabelDistances
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import NormalisedMoments
from hypothesis_support import examples

LAYOUT = Layout((0, 1, 4), (1, 4, 5), (True, False, True))
points = arrays.arrays(np.float64, 5, elements=st.floats(0, 1, width=32))
slopes = arrays.arrays(np.float64, 5, elements=st.floats(-50, 50))
planes = st.builds(ExpectedLabels, st.floats(-50, 50), slopes, st.floats(1e-3, 10))
labels = st.floats(-1, 1)


def query_with(centre, plane):
    return NormalisedMoments(LAYOUT, centre, np.full(5, 0.1), plane)


@settings(max_examples=examples(300), deadline=None)
@given(points, points, planes, labels)
def test_no_record_moves_the_moments_further(row, centre, plane, label):
    query = query_with(centre, plane)
    vector = query.vector(OracleRows(row[None], np.array([label])).normalised(query))
    assert np.linalg.norm(vector) <= query.sensitivity()


@settings(max_examples=examples(100), deadline=None)
@given(points, points, planes, labels)
def test_a_label_that_is_clipped_attains_the_bound(row, centre, plane, label):
    query = query_with(centre, plane)
    if abs(label - plane.evaluate(row)) >= plane.scale:
        vector = query.vector(OracleRows(row[None], np.array([label])).normalised(query))
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-9)


def test_without_clipping_a_record_would_move_them_further(monkeypatch):
    plane = ExpectedLabels(0.5, np.zeros(5), 0.25)
    query, rows = query_with(np.full(5, 0.5), plane), OracleRows(np.ones((1, 5)), np.array([-1.0]))
    monkeypatch.setattr(ExpectedLabels, "differences", lambda self, y, products: (y - self.level - products) / self.scale)
    assert np.linalg.norm(query.vector(rows.normalised(query))) > 2 * query.sensitivity()


@settings(max_examples=examples(200), deadline=None)
@given(points, planes, labels)
def test_one_record_is_counted_once(row, plane, label):
    query = LabelDistances(plane)
    counts = OracleRows(row[None], np.array([label])).label_distances(query)
    assert len(counts) == BINS
    assert np.linalg.norm(counts) == counts.sum() == query.sensitivity() == 1


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_record_changes_how_others_are_compared(seed):
    """Sums with and without a record differ by what this record adds alone."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((300, 5)).astype(np.float32).astype(float), rng.uniform(-1, 1, 300)
    X[:, 1:4] = np.eye(3)[rng.integers(0, 3, 300)]
    plane = ExpectedLabels(float(rng.normal()), rng.normal(size=5), float(rng.uniform(0.05, 2)))
    query, distances = query_with(rng.random(5), plane), LabelDistances(plane)
    everyone, others = DenseRows(iter([X]), y, 5), DenseRows(iter([X[1:]]), y[1:], 5)
    alone = OracleRows(X[:1], y[:1])
    moved = query.vector(everyone.normalised(query)) - query.vector(others.normalised(query))
    assert moved == pytest.approx(query.vector(alone.normalised(query)), abs=1e-9)
    counted = everyone.label_distances(distances) - others.label_distances(distances)
    assert (counted == alone.label_distances(distances)).all()
