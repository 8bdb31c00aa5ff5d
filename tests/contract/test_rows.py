"""One suite for every backend: its sums agree with the NumPy oracle within the error it states."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpexplain.backends.oracle import OracleRows
from dpexplain.core import weights
from dpexplain.core.expected_labels import ExpectedLabels, LabelDistances
from dpexplain.core.moments import LocalMoments, RawMoments
from dpexplain.core.release_moments import CentreMoments, NormalisedMoments
from dpexplain.errors import DataError
from hypothesis_support import examples
from rows_support import ALL, BACKENDS, LOCAL, cases, coded_columns

SHAPES = [(1, 1), (2, 3), (255, 4), (256, 5), (257, 8), (1000, 17), (5000, 70)]
WEIGHTS = [weights.Stable(), weights.Gaussian(0.4), weights.Window(0.7), weights.Inverse(), weights.Custom(lambda d: 1 / (1 + d))]


def rows(m, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((m, n)).astype(np.float32).astype(np.float64)
    X[:, : n // 2] = X[:, : n // 2].round()
    return X, rng.uniform(-1, 1, m)


def share(oracle, X, y, anchor, weight):
    """Σ|terms| of each sum, from the oracle on absolute values: what a summation error is relative to."""
    v = np.abs(X - anchor)
    w = weight(np.sqrt((v**2).sum(axis=1)))
    return w.sum(), w @ v, (v * w[:, None]).T @ v, w @ np.abs(y), (w * np.abs(y)) @ v


@pytest.mark.parametrize(("name", "shape"), cases(SHAPES, [(1000, 17)]))
def test_sums_agree_with_the_oracle(name, shape):
    X, y = rows(*shape)
    backend, oracle = BACKENDS[name](X, y), OracleRows(X, y)
    for weight in WEIGHTS:
        agree(backend, oracle, X, y, X[0] * 0.9 + 0.01, weight)


@pytest.mark.parametrize("name", ["dense", "sparse"])
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_binary_rows_agree_with_the_oracle(name, shape):
    X, y = rows(*shape)
    X, y = (X < 0.3).astype(np.float64), np.rint(y * 2.0**20) / 2.0**20  # both on the grids of every backend
    backend, oracle = BACKENDS[name](X, y), OracleRows(X, y)
    for weight in WEIGHTS:
        agree(backend, oracle, X, y, X[0], weight)


def agree(backend, oracle, X, y, z, weight):
    ours, theirs = backend.raw(RawMoments(z, weight)), oracle.raw(RawMoments(z, weight))
    allowed = backend.summation_error + oracle.summation_error
    for part, total in zip(("S0", "S1", "S2", "t0", "t1"), share(oracle, X, y, z, weight), strict=True):
        assert (np.abs(getattr(ours, part) - getattr(theirs, part)) <= 4 * allowed * total + 1e-300).all(), part
    local = backend.local(LocalMoments(z, weight))
    assert pytest.approx(theirs.S2, rel=1e-9, abs=1e-12) == local.A
    assert local.b == pytest.approx(theirs.t1, rel=1e-9, abs=1e-12)
    assert local.s == pytest.approx(theirs.S1, rel=1e-9, abs=1e-12)
    assert (local.A == local.A.T).all()


@pytest.mark.parametrize("name", ALL)
def test_distances_are_in_scaled_columns_and_sums_are_not(name):
    X, y = rows(1000, 17)
    backend, oracle, scale = BACKENDS[name](X, y), OracleRows(X, y), np.linspace(0.2, 3.0, 17)
    for weight in WEIGHTS:
        query = LocalMoments(X[0] * 0.9 + 0.01, weight, scale)
        ours, theirs = backend.local(query), oracle.local(query)
        distance = np.linalg.norm((X - query.point) * scale, axis=1)
        assert theirs.s == pytest.approx(weight(distance) @ (X - query.point), rel=1e-9)
        assert pytest.approx(theirs.A, rel=1e-9, abs=1e-12) == ours.A
        assert ours.b == pytest.approx(theirs.b, rel=1e-9, abs=1e-12)


def test_binary_rows_have_one_scale():
    X, y = rows(500, 17)
    X = X.round()
    ours, oracle = BACKENDS["sparse"](X, np.sign(y)), OracleRows(X, np.sign(y))
    for point in (X[0], X[0] * 0.9 + 0.01):
        query = LocalMoments(point, weights.Stable(), np.full(17, 0.3))
        assert pytest.approx(oracle.local(query).A, rel=1e-7, abs=1e-8) == ours.local(query).A
    with pytest.raises(DataError, match="one scale"):
        ours.local(LocalMoments(X[0], weights.Stable(), np.linspace(0.2, 3.0, 17)))


@pytest.mark.parametrize("name", ALL)
def test_repeating_a_query_gives_the_same_bits(name):
    X, y = rows(3000, 9)
    backend, query = BACKENDS[name](X, y), LocalMoments(X[1], weights.Stable())
    first, second = backend.local(query), backend.local(query)
    assert (first.A == second.A).all()
    assert (first.b == second.b).all()


@pytest.mark.parametrize("name", ALL)
def test_many_queries_together_are_answered_as_each_alone(name):
    X, y = rows(3000, 9)
    queries = [LocalMoments(X[i] * 0.9, weight) for i, weight in enumerate([*WEIGHTS, *WEIGHTS, *WEIGHTS, *WEIGHTS])]
    backend = BACKENDS[name](X, y)
    together = backend.local_many(queries)
    assert len(together) == len(queries)
    assert backend.local_many([]) == []
    for query, many in zip(queries, together, strict=True):
        alone = backend.local(query)
        assert (alone.A == many.A).all()
        assert (alone.b == many.b).all()
        assert (alone.s == many.s).all()


@pytest.mark.parametrize("name", LOCAL)
@settings(max_examples=examples(25), deadline=None)
@given(st.integers(1, 400), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_any_shape(name, m, n, seed):
    X, y = rows(m, n, seed)
    z = np.random.default_rng(seed).random(n)
    ours = BACKENDS[name](X, y).local(LocalMoments(z, weights.Stable()))
    theirs = OracleRows(X, y).local(LocalMoments(z, weights.Stable()))
    assert pytest.approx(theirs.A, rel=1e-9, abs=1e-12) == ours.A
    assert ours.b == pytest.approx(theirs.b, rel=1e-9, abs=1e-12)


def test_shifting_raw_moments_gives_the_local_ones():
    X, y = rows(500, 6)
    anchor, z = np.full(6, 0.5), X[3]
    constant = weights.Window(10.0)
    oracle = OracleRows(X, y)
    shifted = oracle.raw(RawMoments(anchor, constant)).shift(anchor - z)
    direct = oracle.local(LocalMoments(z, constant))
    assert pytest.approx(direct.A, abs=1e-9) == shifted.A
    assert shifted.b == pytest.approx(direct.b, abs=1e-9)
    assert shifted.s == pytest.approx(direct.s, abs=1e-9)


@pytest.mark.parametrize(("name", "m"), cases([1, 255, 256, 1000], [1000]))
def test_the_sums_of_a_release_agree_with_the_oracle(name, m):
    kinds = product([(), (1, 1), (3, 1, 4), (9,)], [0, 1, 6]) if name in LOCAL else [((3, 1, 4), 6)]
    for codes, numbers in kinds:
        if codes or numbers:
            release_agrees(name, m, codes, numbers)


def release_agrees(name, m, codes, numbers):
    layout, X, y = mixed_columns(m, codes, numbers)
    backend, oracle = BACKENDS[name](X, y), OracleRows(X, y)
    ours, theirs = backend.centre(CentreMoments(layout)), oracle.centre(CentreMoments(layout))
    allowed = 8 * (backend.summation_error + oracle.summation_error)
    assert ours == pytest.approx(theirs, rel=0, abs=allowed * m)
    variance = np.maximum(X.var(axis=0), 1e-3)
    plane = ExpectedLabels(0.1, np.linspace(-0.5, 0.5, layout.width), 0.3)
    for query in (NormalisedMoments(layout, X.mean(axis=0), variance, expected) for expected in (None, plane)):
        ours, theirs = backend.normalised(query), oracle.normalised(query)
        assert query.vector(ours) == pytest.approx(query.vector(theirs), rel=0, abs=allowed * 4 * m)
        assert (ours.S2 == ours.S2.T).all()
        assert not query.sums(ours).s2[layout.same_attribute()].any()
    distances = LabelDistances(plane)
    assert (backend.label_distances(distances) == oracle.label_distances(distances)).all()


def mixed_columns(m, codes, numbers):
    """Codes of these sizes, some of their rows unknown, then numbers."""
    layout, X, rng = coded_columns(m, codes, numbers)
    X[:, layout.width - numbers :] = rng.random((m, numbers)).astype(np.float32)
    return layout, X, rng.uniform(-1, 1, m)
