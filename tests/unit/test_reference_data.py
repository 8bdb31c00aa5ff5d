"""Stored reference records in the domain's own terms: decoding and encoding each value once is decoding and encoding every record."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.core.layout import Layout
from dpexplain.estimation.reference import Reference
from dpexplain.release.reference_data import ReferenceData, columns_of, largest_codes, reference_rows

FEATURES = [
    dpx.Numeric("age", 0, 100, integer=True),
    dpx.Numeric("gain", -5, 5),
    dpx.Categorical("work", values=["a", "b", "c"]),
    dpx.Categorical("rank", values=[1, 2, 3], other="else", missing=2),
    dpx.Binary("married"),
    dpx.Binary("sex", values=("F", "M")),
    dpx.Ordinal("school", levels=["low", "middle", "high", "top"]),
    dpx.Date("since", "2000-01-01", "2020-12-31"),
]


@pytest.mark.parametrize("known", [True, False])
def test_each_record_is_decoded_and_encoded_as_by_itself(known):
    domain, rng = dpx.Domain(FEATURES), np.random.default_rng(0)
    layout, empty = Layout.of(domain.blocks), np.empty(0)
    largest = largest_codes(layout) - (~np.array(layout.is_number) & known)  # the largest code of a category is none of them
    codes = rng.integers(0, largest[:, None] + 1, (len(FEATURES), 500))
    plain = domain.decode(Reference(codes, empty, empty).points(layout))
    found = columns_of(codes, domain)
    assert list(found) == list(plain)
    for name, column in found.items():
        assert column.dtype == plain[name].dtype
        np.testing.assert_array_equal(column, plain[name])
    np.testing.assert_array_equal(ReferenceData(domain, codes, None, None, 1.0).encoded, domain.encode(plain))


@pytest.mark.parametrize(
    ("wanted", "rows", "columns", "records"),
    [
        (False, 5_000_000, 10, 0),
        (True, 999_999, 10, 1 << 17),
        (True, 1_000_000, 128, 1 << 19),
        (True, 1_000_000, 129, 1 << 17),
        (2048, 5_000_000, 10, 2048),
    ],
)
def test_large_tables_get_more_records_by_default(wanted, rows, columns, records):
    assert reference_rows(wanted, rows, columns) == records
