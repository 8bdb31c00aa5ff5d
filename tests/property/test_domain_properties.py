"""Private rows attack the encoding: it must never raise, never leave the declared set, and never let one row move another."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpexplain.domain import Binary, Categorical, Domain, Numeric, Ordinal
from hypothesis_support import examples

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
values = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(-1e9, 1e9),
)
several = st.lists(values, min_size=2, max_size=6, unique_by=lambda v: str(int(v)) if v == v and _whole(v) else str(v))
bounds = st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300)).filter(lambda b: b[0] < b[1])


def _whole(value):
    return isinstance(value, float) and value == int(value)


@st.composite
def features(draw, name):
    kind = draw(st.sampled_from([Numeric, Ordinal, Categorical, Binary]))
    if kind is Numeric:
        low, high = draw(bounds)
        return Numeric(name, low, high, missing=draw(st.none() | st.floats(low, high)))
    declared = draw(several)
    if kind is Ordinal:
        return Ordinal(name, declared, missing=draw(st.none() | st.sampled_from(declared)))
    if kind is Categorical:
        return Categorical(name, declared, other=draw(st.sampled_from([None, "the rest of them"])))
    return Binary(name, values=draw(st.sampled_from([None, tuple(declared[:2])])))


@st.composite
def domains(draw):
    chosen = draw(st.lists(names.filter(lambda n: "=" not in n), min_size=1, max_size=4, unique=True))
    return Domain([draw(features(name)) for name in chosen])


ODDITIES = [
    *("yes", "no", "a", "b", "1", "nan", "inf", "-1e999", "True", "9" * 400),
    *(np.float32(1), np.longdouble("1e4000"), np.int8(1), np.timedelta64(1, "s"), np.datetime64("NaT", "s"), pd.NA, pd.NaT),
    *(object(), date, len, np.zeros(1), np.zeros((2, 2)), pd.Series([1, 2]), np.ma.masked, 10**400, -(10**5000)),
]
scalars = st.one_of(
    st.integers(0, len(ODDITIES) - 1).map(ODDITIES.__getitem__),  # some of them cannot even be hashed
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=4),
    st.complex_numbers() | st.decimals() | st.fractions() | st.dates() | st.timedeltas(),
)
garbage = scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(max_size=2), scalars, max_size=2)

FIXED = Domain(
    [
        Numeric("n", -1, 3),
        Ordinal("o", levels=["a", "b", 1]),
        Categorical("c", values=["a", "b", 1]),
        Categorical("d", values=[0, 1], other="rest"),
        Binary("y"),
        Binary("z", values=("a", "b"), missing="b"),
    ]
)
RAW = [feature.name for feature in FIXED.features]
garbage_rows = st.lists(garbage.map(lambda entry: dict.fromkeys(RAW, entry)), min_size=1, max_size=8)
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(150))


def assert_in_the_declared_set(domain, encoded):
    assert encoded.shape[1] == domain.width
    assert ((encoded >= 0) & (encoded <= 1)).all()
    for block in domain.blocks:
        part = encoded[:, block.start : block.stop]
        assert block.kind == "numeric" or np.isin(part, (0, 1)).all()
        assert block.kind != "one-hot" or (part.sum(axis=1) <= 1).all()


def object_columns(rows):
    return {name: np.fromiter((row[name] for row in rows), dtype=object, count=len(rows)) for name in rows[0]}


@patient
@given(garbage_rows)
def test_no_private_value_raises_or_leaves_the_declared_set(rows):
    encoded = FIXED.encode(rows)
    assert_in_the_declared_set(FIXED, encoded)
    for table in (object_columns(rows), pd.DataFrame(object_columns(rows), dtype=object)):
        np.testing.assert_array_equal(FIXED.encode(table), encoded)


@patient
@given(garbage_rows)
def test_each_row_is_encoded_by_itself(rows):
    alone = np.concatenate([FIXED.encode([row]) for row in rows])
    np.testing.assert_array_equal(FIXED.encode(rows), alone)


@patient
@given(st.lists(garbage, min_size=6, max_size=6))
def test_no_private_entry_of_a_vector_raises(entries):
    domain = Domain.encoded(3, bounds=(-1, [1, 2, 3]))
    encoded = domain.encode(np.fromiter(entries, dtype=object, count=6).reshape(2, 3))
    assert_in_the_declared_set(domain, encoded)


TYPED = {
    "floats": st.lists(st.none() | st.floats(), min_size=1, max_size=5),
    "integers": st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    "text": st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=4), min_size=1, max_size=5),
    "booleans": st.lists(st.none() | st.booleans(), min_size=1, max_size=5),
    "dates": st.lists(st.none() | st.dates(), min_size=1, max_size=5),
    "bytes": st.lists(st.none() | st.binary(max_size=3), min_size=1, max_size=5),
    "lists": st.lists(st.none() | st.lists(st.integers(0, 9), max_size=2), min_size=1, max_size=5),
}


@pytest.mark.parametrize("column", TYPED.values(), ids=TYPED.keys())
@patient
@given(data=st.data())
def test_every_frame_agrees_on_typed_columns(column, data):
    entries = data.draw(column)
    records = [dict.fromkeys(RAW, entry) for entry in entries]
    polars = pl.DataFrame({name: pl.Series(name, entries) for name in RAW})
    expected = FIXED.encode(records)
    assert_in_the_declared_set(FIXED, expected)
    for frame in (polars, polars.to_arrow(), pd.DataFrame(dict.fromkeys(RAW, entries))):
        np.testing.assert_array_equal(FIXED.encode(frame), expected)


def fitting_values(feature):
    if isinstance(feature, Numeric):
        return st.floats(feature.low, feature.high)
    if isinstance(feature, Ordinal):
        return st.sampled_from(feature.levels)
    if isinstance(feature, Categorical):
        return st.sampled_from(feature.columns)
    return st.sampled_from(feature.values or [True, False, 0, 1, "yes", "no", "true", "false"])


@patient
@given(domains(), st.data())
def test_a_fitting_query_is_encoded_like_a_private_row(domain, data):
    record = {feature.name: data.draw(fitting_values(feature)) for feature in domain.features}
    query = domain.encode_query(record)
    np.testing.assert_array_equal(query, domain.encode([record])[0])
    np.testing.assert_array_equal(query, domain.encode_queries([record, record])[1])
    assert_in_the_declared_set(domain, query[np.newaxis])


@patient
@given(domains())
def test_every_declared_value_has_its_own_code(domain):
    for feature in domain.features:
        if isinstance(feature, (Ordinal, Categorical)):
            declared = feature.levels if isinstance(feature, Ordinal) else feature.columns
            encoded = Domain([feature]).encode({feature.name: list(declared)})
            assert len({tuple(row) for row in encoded.tolist()}) == len(declared)


@patient
@given(domains())
def test_round_trips_are_exact(domain):
    for copy in (Domain.from_dict(domain.to_dict()), Domain.from_json(domain.to_json()), Domain.from_toml(domain.to_toml())):
        assert copy == domain
        assert copy.fingerprint == domain.fingerprint
