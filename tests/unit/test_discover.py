"""A domain bought from private rows: what is found, what is refused before anything is spent, and that the ledger counts it."""

from datetime import date, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpexplain as dpx
from dpexplain.core.value_bins import EDGES, coarse_bins, coarse_range, fine_range, visible_range, visible_zeros
from dpexplain.errors import BudgetExhausted, DomainError, LedgerMismatch, ParameterError, Undeclared
from dpexplain.noise.seeded import SeededNoise
from dpexplain.onboarding.discovery import _categories

BUDGET = dpx.Budget(2.0, 1e-6)
KINDS = {
    "age": "integer",
    "share": "number",
    "work": "category",
    "code": "category",
    "married": "yes-no",
    "opened": "date",
    "year": "integer",
}


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    size = 6000
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, size),
            "share": np.where(rng.random(size) < 0.2, np.nan, rng.gamma(2, 0.1, size)),
            "work": rng.choice(["private", "public", "self-employed", None], size, p=[0.6, 0.2, 0.15, 0.05]),
            "code": rng.choice([1, 2, 33], size),
            "married": rng.random(size) < 0.5,
            "opened": [date(2015, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 3000, size)],
            "year": rng.integers(1980, 2025, size),
            "person": np.arange(size),
        }
    )


def discover_domain(rows, tmp_path, **options):
    return dpx.discover(
        rows, BUDGET, **({"columns": KINDS, "noise": SeededNoise(4), "ledger": f"sqlite:///{tmp_path}/one.ledger"} | options)
    )


def test_bounds_and_categories_are_found(people, tmp_path):
    domain = discover_domain(people, tmp_path)
    age, share, work, code, married, opened, year = domain.features
    assert age.integer
    assert 0 <= age.low <= 20
    assert 80 <= age.high <= 110
    assert share.low <= 0.02
    assert 0.4 <= share.high <= 2
    assert 0.1 < share.missing < 0.3
    assert set(work.values) == {"private", "public", "self-employed"}
    assert work.other == "other"
    assert code.values == (1, 2, 33)
    assert married == dpx.Binary("married")
    assert "2010" < opened.low <= "2015-03"
    assert "2023" <= opened.high < "2030"
    assert 1900 <= year.low <= 1985
    assert 2020 <= year.high <= 2100


def test_one_ledger_pays_for_the_domain_and_what_follows(people, tmp_path):
    ledger, spend = f"sqlite:///{tmp_path}/one.ledger", dpx.Budget(0.5, 1e-6)
    domain = discover_domain(people, tmp_path, spend=spend, request_id="domain")
    assert discover_domain(people, tmp_path, spend=spend, request_id="domain", noise=SeededNoise(9)) == domain
    data = dpx.PrivateData(people, domain, labels=np.where(people["age"] > 50, 1.0, -1.0))
    with pytest.raises(BudgetExhausted):
        dpx.release(data, BUDGET, ledger=ledger, noise=SeededNoise(1))
    dpx.release(data, BUDGET, spend=dpx.Budget(1.0, 1e-6), ledger=ledger, noise=SeededNoise(1))
    assert 1.0 < data.spent.epsilon <= 2.0
    with pytest.raises(LedgerMismatch):
        dpx.release(data, dpx.Budget(3.0, 1e-6), ledger=ledger)


def test_what_is_declared_is_not_paid_for_and_public_candidates_are_found_sooner(people, tmp_path):
    few = people.iloc[:1500]
    declared = {
        "age": (18, 90),
        "share": (0, 1),
        "opened": ("2010-01-01", "2030-01-01"),
        "code": [1, 2, 33],
        "year": (1980, 2025),
    }
    tight = {"declare": declared, "spend": dpx.Budget(0.15, 1e-6)}
    without = _values(few, tmp_path / "a", tight)
    assert "self-employed" not in without
    with_ = _values(few, tmp_path / "b", tight | {"candidates": {"work": ["private", "public", "self-employed", "unemployed"]}})
    assert set(with_) >= {"private", "public"}
    assert "unemployed" not in with_


def _values(rows, folder, options):
    folder.mkdir()
    try:
        return discover_domain(rows, folder, **options).features[2].values
    except Undeclared:
        return ()


def test_tables_with_a_declared_schema_need_no_list_of_kinds(people, tmp_path):
    plain = people[["age", "work"]]
    for rows in (pl.from_pandas(plain), pa.Table.from_pandas(plain, preserve_index=False)):
        (tmp_path / type(rows).__module__[:2]).mkdir()
        domain = discover_domain(rows, tmp_path / type(rows).__module__[:2], columns=None)
        assert domain.columns == ("age", "work")
    pq.write_table(pa.Table.from_pandas(plain, preserve_index=False), tmp_path / "rows.parquet")
    assert discover_domain(tmp_path / "rows.parquet", tmp_path, columns=None).columns == ("age", "work")


def test_units_are_respected(people, tmp_path):
    domain = discover_domain(people, tmp_path, columns={"age": "integer", "person": "number"}, unit="person")
    assert domain.columns == ("age",)


def test_what_does_not_stand_out_is_listed_and_was_paid(tmp_path):
    rows = {"age": [30.0] * 5, "work": ["a"] * 5}
    with pytest.raises(Undeclared, match=r"discovery does not say everything.*\n  age \(numeric\): low, high"):
        discover_domain(
            rows, tmp_path, columns={"age": "number", "work": "category"}, spend=dpx.Budget(0.05, 1e-6), request_id="x"
        )
    declared = {"age": (0, 99), "work": ["a", "b"]}
    columns = {"age": "number", "work": "category", "more": "category"}
    with pytest.raises(BudgetExhausted):
        discover_domain(rows | {"more": ["x"] * 5}, tmp_path, columns=columns, declare=declared)


def test_rows_that_do_not_fit_a_domain_are_counted_with_noise(tmp_path):
    rows = {
        "age": [10, 50, 200, None] * 500,
        "work": ["a", "b", None, "circus"] * 500,
        "opened": ["1990-01-01", "x", "2010-01-01", None] * 500,
    }
    domain = dpx.Domain(
        [dpx.Numeric("age", 18, 98), dpx.Categorical("work", ["a", "b"]), dpx.Date("opened", "2000-01-01", "2020-01-01")]
    )
    options = {"ledger": f"sqlite:///{tmp_path}/a.ledger", "noise": SeededNoise(3), "request_id": "fit"}
    found = dpx.count_misfits(rows, domain, BUDGET, **options)
    assert dpx.count_misfits(rows, domain, BUDGET, **(options | {"noise": SeededNoise(4)})) == found
    for name, expected in (("age", (500, 500, 500, 0)), ("work", (0, 0, 500, 500)), ("opened", (500, 0, 1000, 0))):
        assert np.allclose(
            [found[name][kind] for kind in ("below", "above", "missing", "undeclared")], expected, atol=6 * found[name]["noise"]
        )
    with pytest.raises(BudgetExhausted):
        dpx.count_misfits(rows, domain, BUDGET, ledger=options["ledger"])
    with pytest.raises(ParameterError, match="domain cannot be"):
        dpx.count_misfits(rows, dpx.TextDomain(["a"]), BUDGET, ledger=options["ledger"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"ledger": None}, ParameterError, "discovery spends budget and must be recorded. Pass ledger="),
        ({"columns": None}, ParameterError, 'Pass columns={"age": "number"'),
        ({"columns": {"age": "numbre"}}, ParameterError, r"did you mean 'number'\?"),
        ({"columns": {"nothing": "number"}}, dpx.DpexplainError, "column 'nothing' is missing"),
        ({"candidates": {"wrk": ["a"]}}, ParameterError, r"did you mean 'work'\?"),
        ({"declare": {"wrk": ["a"]}}, DomainError, r"did you mean 'work'\?"),
        ({"columns": {"married": "yes-no"}}, ParameterError, "nothing to discover"),
        ({"spend": 0.5}, ParameterError, "Write dpx.Budget"),
        ({"columns": pa.schema([("tags", pa.list_(pa.string()))])}, DomainError, "cannot be discovered"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_spent(people, tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        discover_domain(people, tmp_path, **options)


@pytest.mark.parametrize(
    ("texts", "values"),
    [(["10", "9", "-1"], [-1, 9, 10]), (["1", "²"], ["1", "²"]), (["1", "٣"], ["1", "٣"]), (["01", "1"], ["01", "1"])],
)
def test_categories_are_numbers_only_where_all_are_written_like_one(texts, values):
    """A superscript is a digit, and no number: what was paid for must not end in an error."""
    assert _categories(texts)["values"] == values


def test_ranges_are_read_off_noisy_counts():
    values = np.array([0.3, 7.0, 55.0, -2.0, 0.0, np.nan, np.inf])
    bins = coarse_bins(values)
    assert EDGES[bins[1] - 1] <= 7.0 < EDGES[bins[1]]
    counts = np.bincount(bins[bins >= 0], minlength=len(EDGES) + 2) * 1000.0
    assert coarse_range(counts * (np.arange(len(counts)) < len(EDGES)), 1.0) == (-2.0, 100.0)
    assert coarse_range(np.zeros(len(EDGES) + 2), 1.0) is None
    only_zero = np.zeros(len(EDGES) + 2)
    only_zero[-1] = 500
    assert coarse_range(only_zero, 1.0) == (-1.0, 1.0)
    assert visible_range(np.array([0.0, 0, 100, 3, 90, 0]), 1.0) == (2, 4)
    assert fine_range(np.array([0.0] * 4 + [1000.0] * 4 + [0.0] * 8), 1.0, 0.0, 16.0) == (4.0, 8.0)
    assert fine_range(np.zeros(16), 1.0, 0.0, 16.0) == (0.0, 16.0)


def test_zeros_do_not_decide_how_far_other_numbers_may_be_clamped():
    """1 % of the numbers are beyond 0: half of them in the first bin, the others spread over the rest of the range."""
    counts = np.array([99_500.0] + [40.0] * 12 + [0.0] * 3)
    assert fine_range(counts, 5.0, 0.0, 16.0) == (0.0, 1.0)
    assert fine_range(counts, 5.0, 0.0, 16.0, zeros=99_000.0) == (0.0, 13.0)
    only = np.array([0.0] * 8 + [5000.0] + [8.0] * 7)
    assert fine_range(only, 10.0, -1.0, 1.0, zeros=5000.0) == (
        -1.0,
        1.0,
    )  # nothing visible beside 0: no range around it is better known
    assert visible_zeros(np.array([3.0] * 10 + [900.0]), 10.0) == 900.0
    assert visible_zeros(np.array([3.0] * 10 + [30.0]), 10.0) == 0.0


def test_a_number_with_many_zeros_keeps_what_is_informative(tmp_path):
    """Of a count and an amount of which 96 % are 0, at most a tenth of the others is clamped, and the range is no wider than theirs."""
    rng = np.random.default_rng(7)
    zero = rng.random(40_000) < 0.96
    rows = {"count": np.where(zero, 0, 1 + rng.poisson(3, 40_000)), "paid": np.where(zero, 0.0, rng.lognormal(2, 1, 40_000))}
    count, paid = discover_domain(rows, tmp_path, columns={"count": "integer", "paid": "number"}).features
    for feature, values in ((count, rows["count"][~zero]), (paid, rows["paid"][~zero])):
        assert feature.low == 0.0
        assert (values > feature.high).mean() < 0.1
        assert feature.high < 1.5 * np.quantile(values, 0.999)


@pytest.mark.slow
def test_what_was_paid_for_is_not_lost_where_something_was_not_found(tmp_path):
    rows = {"age": np.linspace(20, 80, 4000), "code": [f"code {i}" for i in range(4000)]}
    kinds = {"age": "number", "code": "category"}
    with pytest.raises(Undeclared, match=r"code \(categorical\): values\n.*\.draft") as error:
        dpx.discover(rows, dpx.Budget(1.0, 1e-6), ledger=f"sqlite:///{tmp_path}/l", columns=kinds, noise=SeededNoise(1))
    (age,) = dpx.Domain(error.value.draft.only(["age"]).complete()).features
    assert age.low <= 25
    assert age.high >= 75
    both = dpx.Domain(error.value.draft.declare({"code": ["a", "b"]}).complete())
    assert both.columns == ("age", "code")
