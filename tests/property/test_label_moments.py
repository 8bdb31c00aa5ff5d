"""Records that try to break the bound of `proofs/label_moments.md`: any point, centre, spread and label."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpexplain.backends.dense import DenseRows
from dpexplain.backends.oracle import OracleRows
from dpexplain.core.label_moments import LabelMoments
from dpexplain.core.layout import Layout
from dpexplain.mechanisms.label_moments_plan import row_wise_matrix, simplex
from hypothesis_support import examples

LAYOUT = Layout((0, 1, 4), (1, 4, 5), (True, False, True))
unit = st.floats(0, 1)
points = arrays.arrays(np.float64, 5, elements=unit)
spreads = arrays.arrays(np.float64, 5, elements=st.floats(0, 10))


@settings(max_examples=examples(300), deadline=None)
@given(points, points, spreads, st.floats(-1, 1))
def test_no_record_moves_the_label_moments_further(row, centre, variance, label):
    query = LabelMoments(LAYOUT, centre, variance)
    vector = query.vector(OracleRows(row[None], np.array([label])).normalised(query))
    assert len(vector) == query.dimension == 6
    assert np.linalg.norm(vector) <= query.sensitivity()


@settings(max_examples=examples(100), deadline=None)
@given(points, points, spreads, st.sampled_from([-1.0, 1.0]))
def test_every_record_with_a_certain_label_attains_it(row, centre, variance, label):
    query = LabelMoments(LAYOUT, centre, variance)
    vector = query.vector(OracleRows(row[None], np.array([label])).normalised(query))
    assert np.linalg.norm(vector) >= query.sensitivity() * (1 - 1e-8)


@settings(max_examples=examples(200), deadline=None)
@given(points, points, spreads, arrays.arrays(np.float64, 4, elements=unit))
def test_all_classes_together_move_no_further_than_one(row, centre, variance, raw):
    probabilities = raw / max(raw.sum(), 1.0)
    query = LabelMoments(LAYOUT, centre, variance)
    parts = [query.vector(OracleRows(row[None], np.array([p])).normalised(query)) for p in probabilities]
    assert np.linalg.norm(np.concatenate(parts)) <= query.sensitivity()


@settings(max_examples=examples(200), deadline=None)
@given(points, points, spreads, arrays.arrays(np.float64, 4, elements=st.floats(-1, 1)))
def test_whatever_a_model_answers_all_classes_together_move_no_further_than_one(row, centre, variance, labels):
    query = LabelMoments(LAYOUT, centre, variance)
    summed = simplex(labels[None])[0]
    parts = [query.vector(OracleRows(row[None], np.array([p])).normalised(query)) for p in summed]
    assert np.linalg.norm(np.concatenate(parts)) <= query.sensitivity()


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_numbers_are_the_moments_they_are_said_to_be(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.random((20, 5)).astype(np.float32).astype(float), rng.uniform(-1, 1, 20)
    query = LabelMoments(LAYOUT, rng.random(5), rng.random(5))
    t0, t1 = query.moments(query.vector(DenseRows(iter([X]), y, 5).normalised(query)))
    w, v = query.weights(X), X - query.centre
    np.testing.assert_allclose(w, 1 / np.sqrt(1 + query.scales.label * np.square(v).sum(axis=1)))
    np.testing.assert_allclose(np.append(t1, t0), np.append((w * y) @ v, w @ y), atol=1e-9)


def test_rows_that_another_model_cannot_answer_move_no_other_row():
    rng = np.random.default_rng(0)
    X = rng.random((600, 5))

    def ask(rows):
        if (rows[:, 0] > 0.99).any():
            raise ValueError("some row")
        return 3 * rows[:, [1]] - 1

    (rows,) = DenseRows(iter([X]), np.zeros(600), 5).relabel(row_wise_matrix(ask, 1))
    kept = np.concatenate(list(rows.labelled_pieces()))
    expected = np.where(kept[:, 0] > 0.99, 0.0, np.clip(3 * kept[:, 1] - 1, -1, 1))
    np.testing.assert_allclose(kept[:, 5], expected)
    assert (kept[:, 5] == 0).any()
