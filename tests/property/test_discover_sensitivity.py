"""`proofs/discover.md`, attacked: no record, of any kind a table can hold, moves the counts further, or any other record's share of them."""

from collections import Counter
from datetime import date, datetime, timedelta, timezone

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from dpexplain.core.text_prior import LONGEST, TextPrior
from dpexplain.core.value_bins import COARSE, coarse_bins, fine_bins
from dpexplain.domain import Categorical, Domain, Numeric
from dpexplain.mechanisms.discovery_counts import CoarseCounts, FineCounts, TextCounts
from dpexplain.mechanisms.misfit_counts import MisfitCounts
from dpexplain.privacy.relation import Neighbours
from dpexplain.registration.misfitting_rows import MisfittingRows
from dpexplain.registration.options import RegistrationOptions
from dpexplain.registration.raw_columns import RawColumns

values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=80), st.binary(max_size=5), st.dates(), st.datetimes(),
    st.decimals(), st.lists(st.integers(), max_size=2), st.sampled_from(["a", "7", "7.0", 7, 7.0, np.int64(7), date(2020, 1, 1), datetime(2020, 1, 1)]),
)  # fmt: skip
records = st.lists(st.fixed_dictionaries({"a": values, "b": values}), min_size=1, max_size=12)
KINDS = {"a": "numeric", "b": "categorical"}
WHOLE = Neighbours()


def columns(rows, kinds=KINDS):
    return RawColumns({name: [row[name] for row in rows] for name in kinds}, kinds, RegistrationOptions())


@given(records, st.integers(0, 11))
def test_no_record_moves_bin_counts_further_than_claimed(rows, i):
    rest = rows[: i % len(rows)] + rows[i % len(rows) + 1 :]
    numeric = {"a": "numeric", "b": "numeric"}
    coarse, fine = CoarseCounts(("a", "b"), WHOLE), FineCounts(("a", "b"), WHOLE)
    ranges = {"a": (-3.0, 50.0), "b": (0.0, 1.0)}
    with_, without = columns(rows, numeric), columns(rest, numeric)
    for query, at in ((coarse, None), (fine, ranges)):
        moved = query.evaluate(with_, at) - query.evaluate(without, at)
        assert len(moved) == query.dimension
        assert np.linalg.norm(moved) <= query.sensitivity
        assert set(moved.tolist()) <= {0.0, 1.0}


NOON, SAME_NOON = (datetime(2020, 1, 1, 12 + hours, tzinfo=timezone(timedelta(hours=hours))) for hours in (0, 1))


@given(records, st.integers(0, 11))
@example([{"a": 0, "b": one} for one in (NOON, SAME_NOON, SAME_NOON)], 0)  # equal, and not the same
@example([{"a": 0, "b": one.timetz()} for one in (NOON, SAME_NOON, SAME_NOON)], 0)
def test_no_record_moves_text_counts_further_than_claimed_nor_any_other_record(rows, i):
    rest = rows[: i % len(rows)] + rows[i % len(rows) + 1 :]
    query = TextCounts((("b", TextPrior()),), WHOLE)
    with_, without = Counter(columns(rows).texts("b")), Counter(columns(rest).texts("b"))
    moved = {text: with_[text] - without[text] for text in with_ | without if with_[text] != without[text]}
    assert all(0 < len(text) <= LONGEST for text in with_)
    assert len(moved) <= query.dimension
    assert np.linalg.norm(list(moved.values()) or [0]) <= query.sensitivity


@given(records, st.integers(0, 11))
def test_no_record_moves_counts_of_misfits_further_than_claimed(rows, i):
    rest = rows[: i % len(rows)] + rows[i % len(rows) + 1 :]
    domain = Domain([Numeric("a", 0, 10), Categorical("b", ["a", "7"])])
    with_, without = (
        MisfittingRows({name: [row[name] for row in some] for name in "ab"}, domain, RegistrationOptions()).misfits()
        for some in (rows, rest)
    )
    query = MisfitCounts(2, WHOLE)
    assert len(with_) == query.dimension
    assert np.linalg.norm(with_ - without) <= query.sensitivity
    assert set((with_ - without).tolist()) <= {0.0, 1.0}


def test_bounds_are_attained_and_grow_with_units():
    query = CoarseCounts(("a", "b"), Neighbours(unit="person", rows_per_unit=3))
    assert query.sensitivity >= 3 * np.sqrt(2)
    assert query.sensitivity <= 3 * np.sqrt(2) * (1 + 1e-9)
    assert TextCounts((("b", TextPrior()),), Neighbours(unit="p", rows_per_unit=3)).dimension == 3


@given(st.floats(), st.floats(-100, 100), st.floats(0.001, 100))
def test_every_number_has_one_bin_and_only_missing_ones_have_none(value, low, width):
    (coarse,), (fine,) = coarse_bins(np.array([value])), fine_bins(np.array([value]), low, low + width)
    assert (coarse == -1) == (fine == -1) == np.isnan(value)
    assert -1 <= coarse < COARSE
    assert -1 <= fine < 16


@given(st.text(min_size=1, max_size=LONGEST), st.lists(st.text(min_size=1, max_size=5), max_size=5, unique=True))
def test_a_prior_is_a_probability_and_its_threshold_has_that_tail(text, candidates):
    from scipy.stats import norm

    prior = TextPrior(tuple(candidates))
    chance = np.exp(prior.log_probability(text))
    assert 0 <= chance <= 1 + 1e-12
    threshold = prior.threshold(text)
    if chance > 1e-200:
        assert np.isclose(norm.logsf(threshold), np.log(chance) + np.log(0.01), rtol=1e-6)
