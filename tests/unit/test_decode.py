"""Encoded rows in the domain's own terms: encoding what was decoded gives the rows again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpexplain as dpx
from dpexplain.errors import DataError

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 17, 97),
        dpx.Ordinal("size", levels=["S", "M", "L", "XL"]),
        dpx.Ordinal("grade", levels=[1, 2, 3, 4], missing=2),
        dpx.Categorical("work", values=["private", "public"]),
        dpx.Categorical("area", values=[1, 2], other="else"),
        dpx.Binary("married"),
        dpx.Binary("sex", values=("F", "M")),
    ]
)
ANY = st.one_of(st.none(), st.floats(), st.integers(-3, 120), st.sampled_from(["S", "XL", "private", "yes", "M", "nonsense"]))


@given(st.lists(st.fixed_dictionaries({feature.name: ANY for feature in DOMAIN.features}), min_size=1, max_size=5))
def test_encoding_decoded_rows_changes_nothing(records):
    encoded = DOMAIN.encode(records)
    assert DOMAIN.encode(DOMAIN.decode(encoded)) == pytest.approx(encoded, abs=1e-12)


def test_values_come_back_as_declared_and_missing_ones_as_documented():
    record = {"age": 41.0, "size": "L", "grade": 3, "work": "public", "area": 2, "married": True, "sex": "M"}
    columns = DOMAIN.decode(DOMAIN.encode([record, dict.fromkeys(record)]))
    first, second = ({name: column[i] for name, column in columns.items()} for i in (0, 1))
    assert {**first, "age": round(first["age"], 9)} == record
    assert second == {"age": 57.0, "size": None, "grade": 2, "work": None, "area": "else", "married": False, "sex": "F"}


def test_whole_numbers_stay_whole():
    assert DOMAIN.decode(DOMAIN.encode([{**dict.fromkeys(f.name for f in DOMAIN.features)}]))["grade"].dtype == np.int64


def test_rows_of_another_width_are_refused():
    with pytest.raises(DataError, match="shape"):
        DOMAIN.decode(np.zeros((3, 2)))
