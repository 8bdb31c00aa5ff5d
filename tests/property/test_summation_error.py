"""`proofs/summation.md`, attacked: dense sums against exact rational arithmetic, and what their order may depend on."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from math import fsum, isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpexplain.backends import _workers as workers
from dpexplain.backends import dense
from dpexplain.backends.dense import DenseRows, summation_error
from dpexplain.core import compiling, weights
from dpexplain.core.layout import Layout
from dpexplain.core.moments import LocalMoments, RawMoments
from dpexplain.core.release_moments import CentreMoments
from hypothesis_support import examples

EVERYTHING = weights.Window(1e6)  # α = 1: the sums are then rational functions of what is stored


def table(m, n, seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((m, n)) ** rng.integers(1, 20)).astype(np.float32)  # of very different sizes
    return X, rng.uniform(-1, 1, m)


def exactly(columns, others):
    """(Σ ab, Σ|ab|) in rational arithmetic."""
    products = [a * b for a, b in zip(columns, others, strict=True)]
    return sum(products), sum(abs(product) for product in products)


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(1, 1500), st.integers(0, 2**32 - 1))
def test_sums_err_by_no_more_than_stated(m, seed):
    X, y = table(m, 2, seed)
    z = np.random.default_rng(seed + 1).random(2)
    store = DenseRows([X], y, 2)
    found, allowed = store.raw(RawMoments(z, EVERYTHING)), Fraction(summation_error(m, 2))
    u = [[Fraction(float(x)) - Fraction(float(point)) for x in column] for column, point in zip(X.T, z, strict=True)]
    labels = [Fraction(float(label)) for label in y]
    ones = [Fraction(1)] * m
    pairs = [(found.S2[0, 0], u[0], u[0]), (found.S2[0, 1], u[0], u[1]), (found.S1[1], u[1], ones)]
    pairs += [(found.t1[0], u[0], labels), (found.t0, labels, ones), (found.S0, ones, ones)]
    for computed, left, right in pairs:
        true, size = exactly(left, right)
        assert abs(Fraction(float(computed)) - true) <= allowed * size


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(1, 1500), st.integers(0, 2**32 - 1))
def test_the_centre_errs_by_no_more_than_stated(m, seed):
    X, y = table(m, 2, seed)
    found = DenseRows([X], y, 2).centre(CentreMoments(Layout((0, 1), (1, 2), (True, True))))
    v = X.astype(np.float64) - 0.5  # exact
    assert abs(found[0] - fsum(v[:, 0])) <= summation_error(m, 2) * fsum(np.abs(v[:, 0])) * (1 + 1e-12)


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_sums_are_the_same_to_the_last_bit_with_any_number_of_threads(threads, monkeypatch):
    X, y = table(70_000, 20, 0)
    store, query = DenseRows([X], y, 20), LocalMoments(X[3].astype(np.float64), weights.Stable())
    assert len(store._pieces()) > 2
    usual = store.local(query)
    with ThreadPoolExecutor(threads) as pool:
        monkeypatch.setattr(workers, "_pool", lambda: pool)
        other = store.local(query)
    assert (usual.A == other.A).all()
    assert (usual.b == other.b).all()


@given(st.integers(1, 10**6), st.integers(1, 3000))
def test_no_chain_of_additions_is_longer_than_counted(blocks, width):
    """Pieces, and stretches in a piece, for any table: together at most the 3√N + 2 of `summation_error`."""
    store = DenseRows.__new__(DenseRows)
    store.width, store._blocks = width, range(blocks)
    pieces = store._pieces()
    longest = max(
        len(list(store._stretches(*piece))) for piece in (pieces[0], pieces[-1], max(pieces, key=lambda p: p[1] - p[0]))
    )
    stretches = -(-blocks // dense._stretch(width))
    assert len(pieces) + longest <= 3 * (isqrt(stretches - 1) + 1) + 2
    assert [b for _, b in pieces[:-1]] == [a for a, _ in pieces[1:]]
    assert (pieces[0][0], pieces[-1][1]) == (0, blocks)


def test_a_query_makes_no_temporary_as_long_as_the_table(monkeypatch):
    m = 400_000
    X, y = table(m, 10, 0)
    store, query = DenseRows([X], y, 10), LocalMoments(np.full(10, 0.3), weights.Stable())
    monkeypatch.setattr(dense, "in_threads", map)  # what one thread needs
    store.local(query)
    tracemalloc.start()
    store.local(query)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < m * 8 / 2


def test_kernels_compile_where_nothing_can_be_written(monkeypatch):
    def without_cache(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda kernel: (kernel, options)

    monkeypatch.setattr(compiling, "njit", without_cache)
    kernel, options = compiling.compile_kernel(test_kernels_compile_where_nothing_can_be_written)
    assert kernel is test_kernels_compile_where_nothing_can_be_written
    assert options["nogil"]
