"""Records that try to break the bounds of `proofs/release_moments.md`: any point of any domain, any centre stage 1 could find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpexplain.backends.oracle import OracleRows
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import (
    CentreMoments,
    NormalisedMoments,
    NormalisedSums,
    centre_of,
    normalised_dimension,
    stage_bounds,
)
from hypothesis_support import examples

attributes = st.lists(st.one_of(st.just("number"), st.integers(1, 5)), min_size=1, max_size=6)
seeds = st.integers(0, 2**32 - 1)


def layout_of(kinds):
    sizes = [1 if kind == "number" else kind for kind in kinds]
    stops = np.cumsum(sizes).tolist()
    starts = [stop - size for stop, size in zip(stops, sizes, strict=True)]
    return Layout(tuple(starts), tuple(stops), tuple(kind == "number" for kind in kinds))


@st.composite
def settings_and_records(draw, records=1):
    """A layout, and rows anywhere in it: numbers in [0, 1], often at the ends; codes known or all zeros."""
    layout = layout_of(draw(attributes))
    rows = np.zeros((records, layout.width))
    for row in rows:
        for a in range(layout.attributes):
            block = layout.columns(a)
            if layout.is_number[a]:
                row[block.start] = draw(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)))
            elif (code := draw(st.integers(0, block.stop - block.start))) < block.stop - block.start:
                row[block.start + code] = 1.0
    return layout, rows


def centre_vector(layout, rows):
    return OracleRows(rows, np.zeros(len(rows))).centre(CentreMoments(layout))


def any_query(layout, seed, noise):
    """What stage 1 might hand to stage 2, however wild its noise."""
    rng = np.random.default_rng(seed)
    released = noise * rng.standard_normal(CentreMoments(layout).dimension)
    return NormalisedMoments(layout, *centre_of(released, layout, 1, noise))


def moment_vector(query, rows, labels):
    return query.vector(OracleRows(rows, labels).normalised(query))


@settings(max_examples=examples(200), deadline=None)
@given(settings_and_records())
def test_no_record_moves_the_centre_further(drawn):
    layout, rows = drawn
    vector = centre_vector(layout, rows)
    assert len(vector) == CentreMoments(layout).dimension
    assert np.linalg.norm(vector) <= CentreMoments(layout).sensitivity()


@settings(max_examples=examples(100), deadline=None)
@given(attributes)
def test_some_record_attains_the_centre_bound(kinds):
    layout = layout_of(kinds)
    row = np.zeros((1, layout.width))
    row[0, list(layout.starts)] = 1.0
    assert np.linalg.norm(centre_vector(layout, row)) >= CentreMoments(layout).sensitivity() * (1 - 1e-9)


@settings(max_examples=examples(300), deadline=None)
@given(settings_and_records(), st.floats(-1, 1), seeds, st.sampled_from([0.0, 0.1, 1.0, 100.0]))
def test_no_record_moves_the_moments_further(drawn, label, seed, noise):
    layout, rows = drawn
    query = any_query(layout, seed, noise)
    vector = moment_vector(query, rows, np.array([label]))
    assert len(vector) == normalised_dimension(layout)
    assert np.linalg.norm(vector) <= query.sensitivity()


@settings(max_examples=examples(200), deadline=None)
@given(settings_and_records(), st.sampled_from([-1.0, 1.0]), seeds, st.sampled_from([0.0, 1.0]))
def test_every_record_with_a_hard_label_attains_the_moment_bound(drawn, label, seed, noise):
    layout, rows = drawn
    vector = moment_vector(any_query(layout, seed, noise), rows, np.array([label]))
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-9)


@settings(max_examples=examples(100), deadline=None)
@given(settings_and_records(records=2), st.floats(-1, 1), st.floats(-1, 1), seeds)
def test_replacing_a_record_moves_at_most_twice_as_far(drawn, first, second, seed):
    layout, rows = drawn
    query = any_query(layout, seed, 0.3)
    before, after = (moment_vector(query, rows[i : i + 1], np.array([y])) for i, y in enumerate((first, second)))
    assert np.linalg.norm(before - after) <= 2 * query.sensitivity()


@settings(max_examples=examples(100), deadline=None)
@given(settings_and_records(), st.floats(-1, 1), seeds, st.sampled_from([0.0, 0.1, 1.0]))
def test_what_is_summed_for_one_record_stays_within_the_stated_terms(drawn, label, seed, noise):
    """The squares of numbers are computed as Σwv² - varianceΣw, missing values as Σw - Σ(Σwv + cΣw): rounding is relative to all parts."""
    layout, rows = drawn
    query = any_query(layout, seed, noise)
    moved = np.abs(moment_vector(query, rows, np.array([label])))
    numbers, weight = layout.numbers, query.weights(rows)[0]
    parts = np.square(rows[0] - query.centre)[numbers] + query.variance[numbers]
    first = 2 + 2 * layout.width + len(layout.pairs[0])
    moved[first : first + len(numbers)] = np.sqrt(query.scales.squares) * weight * parts
    apart = layout.per_attribute(np.abs(rows[0] - query.centre))[layout.choices]
    left = np.abs(1 - layout.per_attribute(query.centre)[layout.choices])
    moved[first + len(numbers) :] = np.sqrt(query.scales.absent) * weight * (apart + left)
    assert np.linalg.norm(moved) <= stage_bounds(layout).moments_terms


@settings(max_examples=examples(100), deadline=None)
@given(attributes, seeds)
def test_released_numbers_are_read_back_as_they_were_written(kinds, seed):
    layout = layout_of(kinds)
    query = any_query(layout, seed, 0.2)
    values = np.random.default_rng(seed).standard_normal(normalised_dimension(layout))
    if query.scales.second == 0:
        values[2 + 2 * layout.width : len(values) - len(layout.numbers) - len(layout.choices)] = 0
    again = NormalisedSums.from_vector(values, query.scales, layout).vector(query.scales, layout)
    assert again == pytest.approx(values, rel=1e-12, abs=1e-12)
