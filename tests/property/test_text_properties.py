"""Texts and records that try to break what text domains and sparse rows promise. `proofs/sparse.md`."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import dpexplain as dpx
from dpexplain.backends.oracle import OracleRows
from dpexplain.backends.sparse import SparseRows
from dpexplain.core import sensitivity, weights
from dpexplain.core.ball import Ball
from dpexplain.core.layout import Layout
from dpexplain.core.moments import LocalMoments
from dpexplain.core.release_moments import CentreMoments, NormalisedMoments, centre_of, stage_bounds
from dpexplain.domain.text import word_spans, words_of
from dpexplain.mechanisms.setting import Setting
from dpexplain.privacy.relation import Neighbours
from hypothesis_support import examples

DOMAIN = dpx.TextDomain(["the", "film", "good", "don't", "é", "10"])
WEIGHTS = [weights.Stable(), weights.Stable(0.3), weights.Inverse(), weights.Gaussian(1.0), weights.Window(1.5)]

anything = st.one_of(
    st.text(),
    st.text(alphabet="the film GOOD don’t'é10<br />_\n"),
    st.none(),
    st.floats(),
    st.integers(),
    st.binary(),
    st.lists(st.text(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.text(max_size=2), max_size=2),
)
seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(anything, max_size=6))
def test_any_private_values_are_encoded_each_by_itself(rows):
    rows = [*rows, "the end"]  # a list of dicts only would be a table
    found = DOMAIN.encode(rows).toarray()
    assert found.shape == (len(rows), 6)
    assert np.isin(found, (0.0, 1.0)).all()
    for row, encoded in zip(rows, found, strict=True):
        assert (DOMAIN.encode([row, ""]).toarray()[0] == encoded).all()


@settings(max_examples=examples(300), deadline=None)
@given(st.text(alphabet="the film GOOD don’t'é10<br />_\nİß"))
def test_spans_and_words_say_the_same(text):
    assert {word for _, _, word in word_spans(text)} == words_of(text)
    assert {word for _, _, word in DOMAIN.spans(text)} == {
        name for name, there in zip(DOMAIN.names, DOMAIN.encode([text]).toarray()[0], strict=True) if there
    }


def binary(seed, m, n):
    rng = np.random.default_rng(seed)
    X = (rng.random((m, n)) < rng.beta(0.4, 0.8, n)).astype(np.float64)
    return X, rng.choice([-1.0, 1.0, 0.25], m), rng


@settings(max_examples=examples(60), deadline=None)
@given(seeds, st.integers(1, 200), st.integers(1, 12), st.sampled_from(WEIGHTS))
def test_sparse_sums_are_the_oracles(seed, m, n, weight):
    X, y, rng = binary(seed, m, n)
    z = (rng.random(n) < 0.4).astype(np.float64)
    found = SparseRows([sparse.csr_array(X)], y, n).local(LocalMoments(z, weight))
    true = OracleRows(X, y).local(LocalMoments(z, weight))
    assert np.allclose(found.A, true.A, rtol=1e-12, atol=1e-12)
    assert np.allclose(found.b, true.b, rtol=1e-12, atol=1e-12)


@settings(max_examples=examples(60), deadline=None)
@given(seeds, st.integers(2, 60), st.integers(1, 12), st.sampled_from(WEIGHTS), st.sampled_from([0.5, 1.0, 3.0]))
def test_no_text_moves_a_gradient_further_than_its_noise_is_made_for(seed, m, n, weight, radius):
    X, y, rng = binary(seed, m, n)
    z, phi = X[rng.integers(m)], Ball(radius).project(rng.standard_normal(n) * radius)
    all_rows, fewer = SparseRows([sparse.csr_array(X)], y, n), SparseRows([sparse.csr_array(X[1:])], y[1:], n)
    setting = Setting(n, m, Neighbours(), all_rows.summation_error)
    query = LocalMoments(z, weight)
    moved = all_rows.local(query).gradient(phi) - fewer.local(query).gradient(phi)
    assert np.linalg.norm(moved) <= setting.sensitivity_of_sum(sensitivity.gradient(weight, radius))


@settings(max_examples=examples(60), deadline=None)
@given(seeds, st.integers(2, 60), st.integers(1, 12), st.sampled_from([0.0, 0.1, 1.0, 100.0]))
def test_no_text_moves_a_release_further_than_its_noise_is_made_for(seed, m, n, noise):
    X, y, rng = binary(seed, m, n)
    layout = Layout.of(dpx.TextDomain([f"w{i}" for i in range(n)]).blocks)
    all_rows, fewer = SparseRows([sparse.csr_array(X)], y, n), SparseRows([sparse.csr_array(X[1:])], y[1:], n)
    setting = Setting(n, m, Neighbours(), all_rows.summation_error)
    first = all_rows.centre(CentreMoments(layout)) - fewer.centre(CentreMoments(layout))
    reach = CentreMoments(layout).sensitivity()
    assert np.linalg.norm(first) <= setting.sensitivity_of_sum(reach, terms=3 * reach)
    found = noise * rng.standard_normal(n)
    query = NormalisedMoments(layout, *centre_of(found, layout, 1, noise))
    sums = [query.vector(rows.normalised(query)) for rows in (all_rows, fewer)]
    bounds = stage_bounds(layout)
    bound = setting.sensitivity_of_sum(bounds.moments, bounds.moments_terms)
    moved = float(np.linalg.norm(sums[0] - sums[1]))
    assert moved <= bound
    assert moved >= (1 - 1e-6) * bound or abs(y[0]) < 1  # and every text with a full label attains it
