"""Records, labels, weights and queries that try to move an influence sum further than `proofs/influence.md` allows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from dpexplain.backends.dense import DenseRows
from dpexplain.backends.oracle import OracleRows
from dpexplain.backends.sparse import SparseRows
from dpexplain.core import sensitivity, weights
from dpexplain.core.moments import LocalMoments
from dpexplain.core.shape import noise_shape
from dpexplain.mechanisms.influence import influence_sum
from hypothesis_support import examples

WEIGHTS = [
    weights.Stable(1.0),
    weights.Stable(0.3),
    weights.Inverse(1.0),
    weights.Gaussian(0.4),
    weights.Gaussian(2.0),
    weights.Window(0.8),
    weights.Custom(lambda d: 1e6 / (d + 1e-9), c=0.7, maximum=5.0),
]
vectors = st.lists(st.floats(-2, 2), min_size=3, max_size=3).map(np.array)
signs = st.sampled_from([-1.0, 0.0, 1.0])


def influence_at(rows, z, weight, sign):
    return influence_sum(rows.local(LocalMoments(z, weight)), sign)


@settings(max_examples=examples(400))
@given(st.sampled_from(WEIGHTS), vectors, vectors, st.floats(-1, 1), signs)
def test_no_record_moves_the_sum_further(weight, x, z, y, sign):
    step = influence_at(OracleRows(x[None], np.array([y])), z, weight, sign)
    assert np.linalg.norm(step) <= sensitivity.linear(weight) * (1 + 1e-9)


@settings(max_examples=examples(200))
@given(st.integers(0, 4), st.integers(0, 4), st.floats(-1, 1), signs, st.floats(0, 1), st.floats(0, 1))
def test_shaped_noise_is_enough_for_every_record_of_the_domain(own, other, y, sign, a, b):
    """Four categories (4 stands for none) and a number."""
    z, x = np.append(np.eye(5)[own][:4], a), np.append(np.eye(5)[other][:4], b)
    shape = noise_shape(z, [(0, 4)])
    for weight in WEIGHTS:
        step = influence_at(OracleRows(x[None], np.array([y])), z, weight, sign) / shape
        assert np.linalg.norm(step) <= sensitivity.linear(weight) * (1 + 1e-9)


@pytest.mark.parametrize("weight", [w for w in WEIGHTS if w.kind != "custom"], ids=lambda w: w.kind)
@pytest.mark.parametrize("sign", [-1.0, 0.0, 1.0])
def test_a_record_of_the_querys_class_attains_the_bound(weight, sign):
    distances = np.concatenate([np.geomspace(1e-9, 1e-2, 500), np.linspace(1e-2, 8, 100_001)])
    worst = distances[np.argmax(weight(distances) * distances)]
    step = influence_at(OracleRows(np.array([[worst, 0.0]]), np.array([sign or 1.0])), np.zeros(2), weight, sign)
    assert np.linalg.norm(step) >= 0.99 * sensitivity.linear(weight)


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(1, 300), st.integers(1, 9), signs, st.integers(0, 2**32 - 1))
def test_backends_agree_on_the_sum(m, n, sign, seed):
    rng = np.random.default_rng(seed)
    X, y, z = rng.random((m, n)).astype(np.float32).astype(float), rng.uniform(-1, 1, m), rng.random(n)
    ours, theirs = (influence_at(rows, z, weights.Stable(), sign) for rows in (DenseRows([X], y, n), OracleRows(X, y)))
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-11)


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(1, 200), st.integers(1, 9), signs, st.integers(0, 2**32 - 1))
def test_sparse_rows_agree_on_the_sum(m, n, sign, seed):
    rng = np.random.default_rng(seed)
    X, y, z = rng.integers(0, 2, (m, n)).astype(float), rng.choice([-1.0, 1.0], m), rng.integers(0, 2, n).astype(float)
    ours, theirs = (
        influence_at(rows, z, weights.Stable(), sign) for rows in (SparseRows([csr_array(X)], y, n), OracleRows(X, y))
    )
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-11)
