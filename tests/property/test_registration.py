"""Registration with and without any one record: everybody else's rows, labels, orders, shards and owners are the same to the last bit.

`proofs/registration.md`. For each way in, a base table is registered, and then again with one more record of any kind a file can hold, somewhere among
the others. What is compared is what sums see: the encoded rows and labels, as multisets; and what decides about a row besides them.
"""

import sys
from collections import Counter
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import dpexplain as dpx
from dpexplain.core.baseline_shapley import ShapleySum, row_wise, walk_orders
from dpexplain.core.row_hash import hash_rows
from dpexplain.domain.columns import read_columns
from dpexplain.registration.owners import owner_name, owners_of
from hypothesis_support import examples
from rows_support import ray_session

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 0, 100),
        dpx.Categorical("code", values=[1, 2, 3]),
        dpx.Categorical("work", values=["a", "b"], other="else"),
        dpx.Ordinal("school", levels=["low", "middle", "high"]),
        dpx.Binary("married"),
    ]
)
COLUMNS = [*DOMAIN.columns, "person"]
DOMAIN_PLAYERS = np.repeat(np.arange(5), [block.stop - block.start for block in DOMAIN.blocks])
BASE = [
    {"age": 20, "code": 3, "work": "a", "school": "low", "married": True, "person": 7},
    {"age": 41, "code": 1, "work": "b", "school": "high", "married": False, "person": 8},
    {"age": 63, "code": 2, "work": "c", "school": "middle", "married": True, "person": 7},
    {"age": 63, "code": 2, "work": "c", "school": "middle", "married": True, "person": 12},
    {"age": 35, "code": 3, "work": "b", "school": "low", "married": False, "person": 9},
]
ODD = [
    None, float("nan"), float("inf"), float("-inf"), 2**70, -(2**63), 10**400, 0, 1, 2.5, -0.0, True, False, "", "abc", "7", "7.0", "nan", "3", "é\ud800",
    b"7", b"\xff", date(2020, 1, 1), datetime(2020, 1, 1, 12), Decimal("1.5"), Decimal("NaN"), 1 + 2j, (1, 2), [1], {"a": 1}, np.float32(0.1), np.int8(3),
    np.datetime64("NaT", "s"), pd.NaT, pd.NA, object,
]  # fmt: skip
FILED = [None, float("nan"), float("inf"), 2**62, 0, 3, 2.5, True, "", "abc", "7", "é", b"7", date(2020, 1, 1), Decimal("1.5")]
odd = st.sampled_from(ODD) | st.floats() | st.integers() | st.text(max_size=5) | st.binary(max_size=3)
records = st.fixed_dictionaries({}, optional=dict.fromkeys(COLUMNS, odd))
places = st.integers(0, len(BASE))


def insert(record, place):
    return [*BASE[:place], record, *BASE[place:]]


def contents(data):
    """What sums see of each registered row: its entries and its label, as a multiset."""
    return Counter(tuple(row) for part in data._rows.labelled_pieces() for row in part)


def added_rows(registered, base):
    """What the further record added; nothing of the base may be gone or changed."""
    assert not base - registered
    return registered - base


def obeys(rows, domain=DOMAIN):
    """Whether encoded rows, each followed by its label, lie where the domain says."""
    for row in rows:
        *entries, label = row
        assert -1 <= label <= 1
        for block in domain.blocks:
            part = np.array(entries[block.start : block.stop])
            assert (part >= 0).all()
            assert (part <= 1).all()
            assert block.kind == "numeric" or (set(part) <= {0.0, 1.0} and part.sum() <= 1)


# --- Dates: a column of one type of instants becomes one of objects beside any other entry.

DATES = dpx.Domain([dpx.Date("day", "1990-01-01", "2035-01-01"), dpx.Datetime("time", "1990-01-01", "2035-01-01")])
instants = st.builds(
    lambda whole, fraction, zone: pd.Timestamp(whole, tz=zone) + pd.Timedelta(fraction, "ns"),
    st.datetimes(datetime(1980, 1, 1), datetime(2040, 1, 1)).map(lambda one: one.replace(microsecond=0)),
    st.sampled_from([0, 1, 999_999_000, 999_999_500, 999_999_999]) | st.integers(0, 10**9 - 1),
    st.sampled_from([None, "UTC", "Asia/Tokyo"]),
)


@settings(deadline=None)
@given(when=st.lists(instants, min_size=1, max_size=3), entry=odd)
@example(when=[pd.Timestamp("2024-01-31 23:59:59.999999999")], entry="?")
@example(when=[pd.Timestamp("1999-12-31 23:59:59.999999999", tz="Asia/Tokyo")], entry=None)
@example(when=[datetime(9999, 12, 31, 23, 59, 59, 999_999)], entry="?")
def test_an_instant_is_encoded_alike_in_a_column_of_objects(when, entry):
    assume(len({str(one.tzinfo) for one in when}) == 1)
    alone, more = ({"day": pd.Series(column), "time": pd.Series(column)} for column in (when, [*when, entry]))
    assert DATES.encode(more)[: len(when)].tolist() == DATES.encode(alone).tolist()
    names = [[owner_name(one) for one in read_columns(table, ["day"])["day"][: len(when)]] for table in (alone, more)]
    assert names[0] == names[1]
    assert owners_of(more, "day")[: len(when)] == owners_of(alone, "day") == names[0]


# --- Ways in: each makes a table of records, or says that its library cannot.


def arrow(rows):
    """The schema is declared; what does not fit it cannot be in such a table."""
    schema = pa.schema(
        {
            "age": pa.float64(),
            "code": pa.int64(),
            "work": pa.string(),
            "school": pa.string(),
            "married": pa.bool_(),
            "person": pa.int64(),
        }
    )
    return pa.Table.from_pylist([{name: row.get(name) for name in COLUMNS} for row in rows], schema=schema)


def columns_of(rows):
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


def arrays_of(rows):
    """Numbers as NumPy stores them together; columns that are not all numbers as objects."""
    guessed = {name: np.array(column) for name, column in columns_of(rows).items()}
    return {name: array if array.dtype.kind in "biuf" else objects_of(rows)[name] for name, array in guessed.items()}


def objects_of(rows):
    return {name: np.fromiter(column, dtype=object, count=len(column)) for name, column in columns_of(rows).items()}


def series_of(rows):
    return {name: pd.Series(column) for name, column in columns_of(rows).items()}


POLARS = {"age": pl.Float64, "code": pl.Int64, "work": pl.String, "school": pl.String, "married": pl.Boolean, "person": pl.Int64}
TABLES = {
    "pandas": lambda rows: pd.DataFrame(columns_of(rows)),
    "pandas objects": lambda rows: pd.DataFrame(objects_of(rows), dtype=object),
    "pandas nullable": lambda rows: pd.DataFrame(columns_of(rows)).convert_dtypes(),
    "polars": lambda rows: pl.DataFrame(columns_of(rows), schema=POLARS, strict=False),
    "polars objects": lambda rows: pl.DataFrame(
        {name: pl.Series(name, column, dtype=pl.Object) for name, column in columns_of(rows).items()}
    ),
    "pyarrow": arrow,
    "records": list,
    "columns": columns_of,
    "arrays": arrays_of,
    "object arrays": objects_of,
    "series": series_of,
}


def make(kind, rows):
    try:
        return TABLES[kind](rows)
    except (Exception, pl.exceptions.PanicException):  # the library has no such table
        assume(False)


# --- Models: each answers a row by what it is shown of it, in one of the forms that models answer in.


def cells(table, name):
    """One column of what a model is shown, as Python values."""
    if isinstance(table, list):
        return [row.get(name) for row in table]
    column = table[name]
    return (
        column.to_pylist() if hasattr(column, "to_pylist") else column.to_list() if hasattr(column, "to_list") else list(column)
    )


def write(cell):
    """True and 1 are equal in Python and NumPy, and written alike here."""
    return str(int(cell)) if isinstance(cell, (bool, np.bool_)) else str(cell)


def score_spelling(table):
    """A number in [0, 1) from how the cells of each row are written: 3 and 3.0 are not the same to it."""
    written = zip(*(map(write, cells(table, name)) for name in DOMAIN.columns), strict=True)
    return [sum(map(ord, "|".join(row))) % 97 / 97 for row in written]


def score_types(table):
    """The same from the types of the columns too: a model that refuses columns of objects, say, is one of these."""
    types = [] if isinstance(table, list) else [str(getattr(table[name], "dtype", "")) for name in DOMAIN.columns]
    shift = sum(map(ord, "|".join(types).lower().replace("bool", "int64").replace("int64ean", "int64")))
    return [(p + shift / 97) % 1 for p in score_spelling(table)]


def fragile(table):
    """It cannot answer a batch with something odd in it."""
    if any(not isinstance(age, (int, float)) or age > 100 for age in cells(table, "age")):
        raise ValueError("secret")
    return score_spelling(table)


class PanicException(BaseException):
    """What a library in Rust raises where it fails: no Exception."""


def panic(table):
    """It fails in Rust about a batch with something odd in it."""
    try:
        return fragile(table)
    except ValueError:
        raise PanicException("secret") from None


def pair_scores(table):
    return zip(cells(table, "age"), score_spelling(table), strict=True)


def with_gaps(table):
    """None where it has no answer: as a list that is."""
    return [None if p < 0.1 else p for p in score_spelling(table)]


MODELS = {
    "probabilities": (lambda table: np.array(score_spelling(table)), {"output": "probability"}),
    "list with gaps": (with_gaps, {"output": "probability"}),
    "object array": (lambda table: np.array(with_gaps(table), dtype=object), {"output": "probability"}),
    "mixed types": (
        lambda table: [p if p < 0.5 else str(p) if p < 0.8 else p > 0.9 for p in score_spelling(table)],
        {"output": "probability"},
    ),
    "one for each class": (lambda table: np.array([[1 - p, p] for p in score_spelling(table)]), {}),
    "ragged": (lambda table: [[1 - p, p] if p < 0.7 else [p] if p < 0.8 else None for p in score_spelling(table)], {}),
    "dicts": (lambda table: [{0: 1 - p, 1: p} if p < 0.8 else {} for p in score_spelling(table)], {}),
    "yes and no": (
        lambda table: np.where(np.array(score_spelling(table)) > 0.5, "yes", "no"),
        {"output": "class", "target": "yes"},
    ),
    "classes with gaps": (lambda table: [None if p < 0.1 else int(p > 0.5) for p in score_spelling(table)], {"output": "class"}),
    "values": (
        lambda table: [1000 * p if p < 0.9 else float("nan") for p in score_spelling(table)],
        {"output": "value", "bounds": (0, 1000)},
    ),
    "a series": (lambda table: pd.Series(with_gaps(table)), {"output": "probability"}),
    "labels": (lambda table: [2 * p - 1 for p in score_spelling(table)], {}),
    "one complex": (
        lambda table: np.array([p if isinstance(age, (int, float)) and age < 99 else 1j for age, p in pair_scores(table)]),
        {"output": "probability"},
    ),
    "fragile": (fragile, {"output": "probability"}),
    "panic": (panic, {"output": "probability"}),
    "types": (score_types, {"output": "probability"}),
}
SLOW = [HealthCheck.filter_too_much, HealthCheck.too_slow]


def squeeze_scores(columns):
    """Probabilities as a network's outputs often come: without axes of length one. It answers a row that is alone by fewer axes."""

    def model(table):
        if any(isinstance(age, float) and age > 100 for age in cells(table, "age")):
            raise ValueError("secret")
        p = np.array([score_spelling(table)]).T
        return np.squeeze(p if columns == 1 else np.hstack([1 - p, p]))

    return model


MODELS |= {"one axis": (squeeze_scores(1), {"output": "probability"}), "two axes": (squeeze_scores(2), {})}


@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=examples(25), deadline=None, suppress_health_check=SLOW)
@given(record=records, place=places, name=st.sampled_from(sorted(MODELS)))
@example(record={"age": 20, "code": None, "work": "a", "school": "low", "married": None}, place=0, name="probabilities")
@example(record={}, place=2, name="list with gaps")
@example(record={**BASE[0], "married": "?"}, place=2, name="types")
@example(record={**BASE[0], "work": 3.5, "code": "x"}, place=1, name="types")
@example(record={**BASE[0], "school": "\ud800"}, place=1, name="types")
@example(record={**BASE[0], "age": 1e9}, place=1, name="panic")
@example(record={**BASE[0], "age": None}, place=1, name="one axis")
@example(record={**BASE[0], "age": 1e9}, place=1, name="one axis")
@example(record={**BASE[0], "age": 1e9}, place=1, name="two axes")
def test_one_more_record_changes_nobody_elses_row_or_label(kind, record, place, name):
    model, declared = MODELS[name]

    def register(rows):
        return contents(dpx.PrivateData(make(kind, rows), DOMAIN, model=model, **declared))

    base = contents(dpx.PrivateData(TABLES[kind](BASE), DOMAIN, model=model, **declared))
    obeys(added_rows(register(insert(record, place)), base))


@pytest.mark.parametrize("name", ["one axis", "two axes"])
@pytest.mark.parametrize("kind", TABLES)
def test_company_does_not_decide_how_the_answer_about_an_incomplete_row_is_read(kind, name):
    model, declared = MODELS[name]
    missing = [*BASE, {**BASE[0], "age": None}]
    alone, with_company = (
        contents(dpx.PrivateData(TABLES[kind](rows), DOMAIN, model=model, **declared))
        for rows in (missing, [*missing, {**BASE[1], "age": None}])
    )
    assert not alone - with_company


@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=examples(15), deadline=None, suppress_health_check=SLOW)
@given(record=records, place=places, label=odd, as_array=st.booleans())
@example(record={}, place=1, label=None, as_array=True)
@example(record={}, place=1, label=True, as_array=False)
def test_one_more_label_changes_nobody_elses(kind, record, place, label, as_array):
    given_labels = [0.8, -0.3, 0.25, 0.25, -1]
    more = [*given_labels[:place], label, *given_labels[place:]]
    base = contents(dpx.PrivateData(TABLES[kind](BASE), DOMAIN, labels=given_labels))
    labels = np.fromiter(more, dtype=object, count=len(more)) if as_array else more
    obeys(added_rows(contents(dpx.PrivateData(make(kind, insert(record, place)), DOMAIN, labels=labels)), base))


@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=examples(15), deadline=None, suppress_health_check=SLOW)
@given(record=records, place=places, most=st.integers(1, 2))
@example(record={"person": None}, place=0, most=1)
@example(record={"person": 7.0}, place=len(BASE), most=1)
@example(record={"person": "7"}, place=len(BASE), most=1)
def test_one_more_owner_changes_nobody_elses_rows_or_shard(kind, record, place, most):
    """A record of an owner who is there already is another matter: there the neighbour is this owner's rows together."""
    labels = np.linspace(-1, 1, len(BASE))
    more = np.insert(labels, place, 0.125)

    def shards(rows, labels):
        options = {"unit": "person", "max_rows_per_unit": most, "size": len(BASE)}
        data = dpx.PrivateData(make(kind, rows), DOMAIN, labels=labels, **options)
        keys = data._keys()
        return contents(data), Counter(
            zip(keys.tolist(), [tuple(r) for part in data._rows.labelled_pieces() for r in part], strict=True)
        )

    known = {"7", "8", "9", "12"}
    base, owned = shards(BASE, labels)
    with_more, owned_with_more = shards(insert(record, place), more)
    person = record.get("person")
    if owner_name(person) in known:  # one owner, whatever the type
        owner = [row["person"] for row in BASE].count(7)
        assert sum(with_more.values()) <= sum(base.values()) + max(most - owner, 0) + 1
        return
    added = added_rows(with_more, base)
    added_rows(owned_with_more, owned)
    assert sum(added.values()) <= 1
    obeys(added)


@settings(max_examples=examples(60), deadline=None)
@given(record=records, place=places, shards=st.integers(2, 3), copies=st.integers(0, 3))
def test_one_more_record_changes_one_shard_by_one_row_and_nobodys_order(record, place, shards, copies):
    """Without a unit. The record may be equal to others: then one of them is too much, and it does not matter which."""
    rows = [*BASE, *BASE[:3] * 4]
    further = BASE[copies] if copies < 3 else record
    more = [*rows[:place], further, *rows[place:]]

    def split(table):
        data = dpx.PrivateData(table, DOMAIN, labels=np.full(len(table), 0.5), size=len(rows))
        return data, [
            contents(shard) for shard in dpx.PrivateData(table, DOMAIN, labels=np.full(len(table), 0.5), size=60).split(shards)
        ]

    (one, before), (other, after) = split(rows), split(more)
    added = [added_rows(b, a) for a, b in zip(before, after, strict=True)]
    assert sum(sum(shard.values()) for shard in added) == 1
    query = ShapleySum(
        np.full(DOMAIN.width, 0.5), lambda x: np.tanh(x @ np.arange(DOMAIN.width)), np.arange(DOMAIN.width), 2.0, 0.6
    )
    (new,) = [np.array([row[:-1]]) for shard in added for row in shard]
    assert (other._rows.shapley(query) - one._rows.shapley(query) == query.from_units(query.units(new))).all()


IMAGES = dpx.ImageDomain((128, 128))  # so wide that 256 rows are encoded at a time
TEXTS = dpx.TextDomain([f"w{i}" for i in range(20_000)], column="text")


@pytest.mark.parametrize("place", [0, 256])
@pytest.mark.parametrize(
    ("domain", "row", "odd"),
    [
        (IMAGES, np.full((128, 128), 9, dtype=np.uint8), np.zeros((2, 2), dtype=np.uint8)),
        (IMAGES, np.full((128, 128), 9, dtype=np.uint8), None),
        (TEXTS, {"text": "w1 w7"}, {"other": "w1"}),
        (TEXTS, {"text": "w1 w7"}, {}),
    ],
)
def test_the_only_row_of_a_slice_stops_registration_no_more_than_another_row(domain, row, odd, place):
    """Rows are encoded a slice at a time, and which rows share a slice follows from how many there are."""
    rows, labels = [row] * 256, np.full(256, 0.25)
    base = contents(dpx.PrivateData(rows, domain, labels=labels))
    more = [*rows[:place], odd, *rows[place:]]
    added = added_rows(contents(dpx.PrivateData(more, domain, labels=np.insert(labels, place, 0.5))), base)
    assert sum(added.values()) == 1


def test_orders_follow_the_row_and_not_its_place():
    rows = np.random.default_rng(0).random((50, 7))
    orders, order = walk_orders(rows, 7), np.random.default_rng(1).permutation(50)
    assert (walk_orders(rows[order], 7) == orders[order]).all()
    assert (walk_orders(rows[1:], 7) == orders[1:]).all()
    assert (hash_rows(rows.astype(np.float32), 1) == hash_rows(rows, 1)).all()


@pytest.mark.parametrize(
    "same", [7, 7.0, "7", "7.0", b"7", np.int64(7), np.float32(7), np.str_("7"), Decimal(7), Decimal("7.0"), 7 + 0j]
)
def test_one_owner_has_one_name_whatever_its_type(same):
    assert owner_name(same) == "7"
    rows = [{**BASE[0], "person": 7}, {**BASE[1], "person": same}]
    assert dpx.PrivateData(rows, DOMAIN, labels=[1, -1], unit="person").size == 1


@pytest.mark.parametrize(
    ("dtype", "owner"),
    [(pl.Int128, 2**60 + 1), (pl.Int128, 2**100), (pl.UInt64, 2**63 + 1), (pl.Decimal(30, 0), Decimal(2**60 + 1))],
)
def test_a_row_without_an_owner_changes_no_name_in_a_column_of_wide_numbers(dtype, owner):
    alone, more = (owners_of(pl.DataFrame({"f": pl.Series(entries, dtype=dtype)}), "f") for entries in ([owner], [owner, None]))
    assert alone == [str(int(owner))]
    assert more == [*alone, ""]


@pytest.mark.parametrize(
    "nobody", [None, float("nan"), float("inf"), "", "nan", "None", pd.NaT, pd.NA, np.datetime64("NaT", "s"), [7], {}, object()]
)
def test_rows_that_nobody_owns_are_left_out(nobody):
    rows = [{**BASE[0], "person": nobody}, BASE[1], {**BASE[2], "person": nobody}]
    data = dpx.PrivateData(rows, DOMAIN, labels=[1, -1, 1], unit="person")
    assert data.size == 1
    assert [name for name in ("007", "07", "7 ", "x7") if owner_name(name) == "7"] == []  # other people


def test_a_panic_of_the_model_about_a_row_ends_no_question():
    """It would tell, after the price was paid, that there is such a row."""

    def model(table):
        if any(age == 63 for age in cells(table, "age")):
            raise PanicException("secret")
        return score_spelling(table)

    data = dpx.PrivateData(TABLES["pandas"](BASE), DOMAIN, model=model, output="probability")
    rows = DOMAIN.encode(BASE)
    asked = row_wise(data.column_model)
    apart = [asked(rows[[i]])[0] for i in range(len(rows))]
    assert asked(rows).tolist() == apart
    assert [label == 0 for label in apart] == [False, False, True, True, False]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "records", "columns", "arrays"])
def test_an_undeclared_category_changes_nobody_elses_shapley_values(kind):
    """Rows are decoded for the model when a question is asked: one without a category used to turn everybody's integers into floats."""
    data = dpx.PrivateData(TABLES[kind](BASE), DOMAIN, model=lambda table: score_spelling(table), output="probability")
    ask = data.column_model
    rows = DOMAIN.encode([{**BASE[i % 5], "code": [1, 2, 3, 99][i % 4], "work": ["a", None][i % 2]} for i in range(12)])
    together = ask(rows)
    assert [ask(rows[[i]])[0] for i in range(12)] == together.tolist()
    point = DOMAIN.encode(BASE[:1])[0]
    query = ShapleySum(point, ask, DOMAIN_PLAYERS, 2.0)
    whole = query.units(rows)
    for gone in range(12):
        assert (whole - query.units(np.delete(rows, gone, axis=0)) == query.units(rows[[gone]])).all()


# --- Files: the schema is the file's, and one null is enough to make pandas turn a column into floats.

filed = st.fixed_dictionaries(
    {
        "age": st.sampled_from([None, float("nan"), float("inf"), 1e300, 20.0]),
        "code": st.sampled_from([None, 3, 2**62, -1]),
        "work": st.sampled_from([None, "a", "", "é"]),
        "school": st.sampled_from([None, "low", "?"]),
        "married": st.sampled_from([None, True]),
        "person": st.sampled_from([None, 100]),
        "y": st.sampled_from([None, float("nan"), 0.5, 7.0]),
        "k": st.sampled_from([None, 1, 2**62]),
        "t": st.sampled_from([None, "yes", "?"]),
    }
)
FILE_BASE = [{**row, "y": 0.1 * i - 0.2, "k": i % 2, "t": "yes" if i % 2 else "no"} for i, row in enumerate(BASE)]
FILE_SCHEMA = pa.schema(
    {
        "age": pa.float64(), "code": pa.int64(), "work": pa.string(), "school": pa.string(), "married": pa.bool_(), "person": pa.int64(),
        "y": pa.float64(), "k": pa.int64(), "t": pa.dictionary(pa.int32(), pa.string()),
    }
)  # fmt: skip


class Fitted:
    """An estimator that was fitted on a data frame: it is shown one, with its own columns, and reads how a cell is written."""

    feature_names_in_ = np.array([*DOMAIN.columns, "k"])
    classes_ = np.array([0, 1])

    def predict_proba(self, frame):
        p = np.array([sum(map(ord, "|".join(map(str, row)))) % 97 / 97 for row in frame.itertuples(index=False)])
        return np.column_stack([1 - p, p])


LABELLED = {
    "floats": {"label": "y"},
    "classes": {"label": "k"},
    "text": {"label": "t", "target": "yes"},
    "values": {"label": "y", "output": "value", "bounds": (-1, 3)},
    "probabilities": {"label": "y", "output": "probability"},
    "estimator": {"model": Fitted()},
    "table": {"model": lambda table: score_spelling(table), "output": "probability"},
    "frame": {"model": lambda table: score_spelling(table.to_pandas()), "output": "probability"},
    "gaps": {"model": with_gaps, "output": "probability"},
}


def streamed_rows(folder, rows, **options):
    """Everything that a scan reads of the rows, part by part."""
    path = folder / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=FILE_SCHEMA), path, row_group_size=3)
    data = dpx.PrivateData.scan(path, DOMAIN, progress=False, size=len(BASE), **options)
    return Counter(tuple(row) for part in data._rows._parts() for piece in part.labelled_pieces() for row in piece)


@pytest.mark.parametrize("how", LABELLED)
@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, *SLOW])
@given(record=filed, place=places, unit=st.booleans())
@example(record=dict.fromkeys(FILE_SCHEMA.names), place=0, unit=False)
def test_one_more_row_in_a_file_changes_nobody_elses(how, record, place, unit, tmp_path):
    options = LABELLED[how] | ({"unit": "person"} if unit else {})
    base = streamed_rows(tmp_path, FILE_BASE, **options)
    added = added_rows(streamed_rows(tmp_path, [*FILE_BASE[:place], record, *FILE_BASE[place:]], **options), base)
    assert sum(added.values()) == (0 if unit and record["person"] is None else 1)
    obeys(added)


def test_a_row_that_is_all_of_a_row_group_and_has_no_answer_stops_nothing(tmp_path):
    """Files are read in parts: one that holds a single odd row is no reason to say that the model answers nothing."""
    rows = [*FILE_BASE, {**FILE_BASE[0], "age": 1e300}]
    found = streamed_rows(tmp_path, [*rows[:3], *rows[3:5], rows[1], rows[-1]], model=fragile, output="probability")
    assert sorted(row[-1] for row in found if row[0] == 1.0) == [0.0]
    with pytest.raises(dpx.DpexplainError, match=r"can be read|raised ValueError"):
        streamed_rows(tmp_path, [rows[-1]] * 7, model=fragile, output="probability")


@pytest.mark.slow
def test_one_more_row_changes_nobody_elses_sums_on_a_cluster(tmp_path):
    """Each worker labels and encodes its own rows; what it adds to an exact sum shows what they are."""
    ray_session().cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not have this file
    query = ShapleySum(np.full(DOMAIN.width, 0.5), lambda x: np.tanh(x @ np.arange(DOMAIN.width)), np.arange(DOMAIN.width), 2.0)
    found = []
    for rows in (FILE_BASE, [dict.fromkeys(FILE_SCHEMA.names), *FILE_BASE]):
        path = tmp_path / f"{len(rows)}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=FILE_SCHEMA), path, row_group_size=2)
        data = dpx.PrivateData.cluster(path, DOMAIN, model=Fitted(), workers=2, size=len(BASE))
        found.append(data._rows.shapley(query))
        data.close()
    (null,) = contents(dpx.PrivateData([dict.fromkeys(COLUMNS)], DOMAIN, labels=[0.0]))
    assert (found[1] - found[0] == query.from_units(query.units(np.array([null[:-1]])))).all()


# --- Entries that a file can hold and Python cannot: text that is not Unicode, dates after the year 9999.


def texts_of_bytes(items):
    """Arrow does not look at the bytes of a text."""
    array = pa.array(items, pa.binary())
    return pa.StringArray.from_buffers(len(items), array.buffers()[1], array.buffers()[2], array.buffers()[0])


def make_instants(kind, odd):
    """Four instants, the third of which is odd."""
    return pa.array([10**9, 2 * 10**9, odd, None], pa.int64()).view(kind)


FAR = 2**62
UNREADABLE = {
    "text": (texts_of_bytes([b"a", b"b", b"caf\xe9", None]), dpx.Categorical("f", values=["a", "b"], other="else")),
    "large text": (texts_of_bytes([b"a", b"b", b"\xff", None]).cast(pa.large_string()), dpx.Ordinal("f", levels=["a", "b"])),
    "texts by number": (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), texts_of_bytes([b"a", b"b", b"\xff"])),
        dpx.Categorical("f", values=["a", "b"]),
    ),
    "infinite day": (
        pa.array([18000, 18001, 2**31 - 1, None], pa.int32()).view(pa.date32()),
        dpx.Date("f", "2000-01-01", "2030-01-01"),
    ),
    "day of milliseconds": (make_instants(pa.date64(), 86_400_000 * 10**10), dpx.Date("f", "1970-01-01", "2030-01-01")),
    **{
        f"{unit} {zone} {odd}": (make_instants(pa.timestamp(unit, zone), odd), dpx.Datetime("f", "1970-01-01", "2030-01-01"))
        for unit in ("s", "ms", "us")
        for zone in (None, "UTC", "Europe/Berlin")
        for odd in (FAR, -FAR)
    },
    "duration": (make_instants(pa.duration("s"), FAR), dpx.Numeric("f", 0, 1)),
    "time": (make_instants(pa.time64("us"), FAR), dpx.Numeric("f", 0, 1)),
}
READ = {
    "arrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "pandas with types of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
}


def registered_with(table, domain, folder, how, **options):
    """The rows as sums see them; None where the file or the frame cannot be made."""
    if how == "file":
        try:
            pq.write_table(table, folder / "odd.parquet")
        except pa.ArrowException:
            return None
        if pa.types.is_dictionary(table["f"].type):  # which Arrow does not read: the owner is told, and nobody who asks
            with pytest.raises(dpx.DpexplainError, match="cannot be read"):
                dpx.PrivateData.scan(folder / "odd.parquet", domain, progress=False, size=4, **options)
            return None
        data = dpx.PrivateData.scan(folder / "odd.parquet", domain, progress=False, size=4, **options)
        return Counter(tuple(row) for part in data._rows._parts() for piece in part.labelled_pieces() for row in piece)
    try:
        rows = READ[how](table)
    except Exception:
        return None
    if "label" in options:
        options["labels"] = table[options.pop("label")].to_numpy()
    return contents(dpx.PrivateData(rows, domain, size=4, **options))


@pytest.mark.parametrize("how", [*READ, "file"])
@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.filterwarnings("ignore")
def test_an_entry_that_python_cannot_hold_stops_nothing_and_changes_nobody_elses_row(name, how, tmp_path):
    column, feature = UNREADABLE[name]
    table = pa.table({"f": column, "x": [0.1, 0.2, 0.3, 0.4], "y": [0.5, -0.5, 0.25, 0.75]})
    both, other = dpx.Domain([feature, dpx.Numeric("x", 0, 1)]), dpx.Domain([dpx.Numeric("x", 0, 1)])
    ways = [
        (both, {"label": "y"}),
        (both, {"model": lambda rows: np.array(cells(rows, "x")), "output": "probability"}),
        (other, {"label": "y", "unit": "f"}),
    ][: 2 if pa.types.is_duration(column.type) else 3]  # a duration names no owner
    for domain, options in ways:
        more, base = (registered_with(one, domain, tmp_path, how, **options) for one in (table, table.take([0, 1, 3])))
        if more is None or base is None:
            continue
        assert not base - more, options
        assert sum((more - base).values()) <= 1


def test_text_that_is_not_unicode_stops_no_label_and_no_question(tmp_path):
    column, feature = UNREADABLE["text"]
    table = pa.table({"f": column, "x": [0.1, 0.2, 0.3, 0.4], "y": [0.5, -0.5, 0.25, 0.75]})
    domain, labelled = dpx.Domain([dpx.Numeric("x", 0, 1)]), {"label": "f", "target": "a"}
    base, more = (registered_with(one, domain, tmp_path, "file", **labelled) for one in (table.take([0, 1, 3]), table))
    assert not base - more
    for labels in (table["f"], table["f"].combine_chunks(), table.to_pandas()["f"]):
        given = {"labels": labels, "output": "class", "target": "a"}
        found = [tuple(row) for piece in dpx.PrivateData(table, domain, **given)._rows.labelled_pieces() for row in piece]
        assert [row[-1] for row in found] == [1.0, -1.0, 0.0, 0.0]
    asked = dpx.Domain([feature, dpx.Numeric("x", 0, 1)])
    data = dpx.PrivateData.scan(tmp_path / "odd.parquet", asked, label="y", progress=False, size=4)
    assert dpx.Explainer(data, dpx.Budget(5.0, 1e-6)).explain({"f": "a", "x": 0.5}).values.shape == (4,)


def test_labels_beside_a_word_are_read_as_without_it():
    """A reader that finds a word in a column of booleans stores all of them as text."""
    rows = BASE[:3]
    alone = contents(dpx.PrivateData(rows, DOMAIN, labels=np.array([True, False, True])))
    assert not alone - contents(dpx.PrivateData([*rows, BASE[4]], DOMAIN, labels=["True", "False", "True", "?"]))


# --- Arrays, texts, images, and a domain that is not ours.


@settings(max_examples=examples(60), deadline=None)
@given(row=st.lists(odd, min_size=3, max_size=3), place=st.integers(0, 4), name=st.sampled_from(["probabilities", "fragile"]))
def test_one_more_row_of_an_array_changes_nobody_elses(row, place, name):
    base, domain = [[0.25, 0.5, 1], [0, 1, 0.125], [1, 1, 1], [0.5, 0, 0]], dpx.Domain.encoded(3)

    def model(X):
        if name == "fragile" and not (np.abs(X) <= 1).all():
            raise ValueError("secret")
        return [sum(map(ord, str(x))) % 97 / 97 for x in X.tolist()]

    def register(rows):
        try:
            array = np.array(rows, dtype=object) if rows is not base else np.array(rows)
            assert array.shape == (len(rows), 3)
        except (ValueError, AssertionError):
            assume(False)
        return contents(dpx.PrivateData(array, domain, model=model, output="probability"))

    obeys(added_rows(register([*base[:place], row, *base[place:]]), register(base)), domain)


TEXTS = ["a good film", "bad, bad plot", "good", "nothing of it", "good"]


@pytest.mark.parametrize("kind", ["list", "array", "series", "polars", "records", "frame"])
@settings(max_examples=examples(15), deadline=None, suppress_health_check=SLOW)
@given(text=odd, place=places)
@example(text=None, place=0)
@example(text={"text": "good"}, place=0)
def test_one_more_text_changes_nobody_elses(kind, text, place):
    kinds = {
        "list": lambda texts: texts,
        "array": lambda texts: np.fromiter(texts, dtype=object, count=len(texts)),
        "series": pd.Series,
        "polars": lambda texts: pl.Series(texts, dtype=pl.String, strict=False),
        "records": lambda texts: [{"text": one} if one is not None else None for one in texts],
        "frame": lambda texts: pd.DataFrame({"text": texts}),
    }
    domain = dpx.TextDomain(["good", "bad", "film", "plot"], column="text" if kind in ("records", "frame") else None)

    def model(texts):
        texts = texts["text"] if kind == "frame" else texts
        return [None if not isinstance(one, (str, dict)) else sum(map(ord, str(one))) % 97 / 97 for one in texts]

    def register(texts):
        try:
            rows = kinds[kind](texts)
        except (Exception, pl.exceptions.PanicException):
            assume(False)
        return contents(dpx.PrivateData(rows, domain, model=model, output="probability"))

    obeys(added_rows(register([*TEXTS[:place], text, *TEXTS[place:]]), register(TEXTS)), domain)


def bright(images):
    """How many pixels are as bright as the brightest, in sevenths; None for what is no image."""
    return [None if type(one) is not np.ndarray else float(np.nansum(one == one.max()) % 7) / 7 for one in images]


@settings(max_examples=examples(40), deadline=None)
@given(
    image=odd
    | st.sampled_from([np.zeros((2, 2)), np.full((4, 4), np.nan), np.zeros((4, 4), dtype="U1"), np.full((4, 4), np.inf)]),
    place=places,
)
def test_one_more_image_changes_nobody_elses(image, place):
    images = list(np.random.default_rng(0).integers(0, 256, (5, 4, 4), dtype=np.uint8))
    for bounds in (None, (0, 255)):
        domain = dpx.ImageDomain((4, 4), (2, 2), bounds=bounds)
        base, more = (
            contents(dpx.PrivateData(given, domain, model=bright, output="probability"))
            for given in (images, [*images[:place], image, *images[place:]])
        )
        obeys(added_rows(more, base), domain)


class Foreign:
    """A domain that encodes as it likes."""

    width, names, columns, fingerprint = 5, tuple("abcde"), ("x",), "foreign"
    blocks = (
        *(dpx.Domain.encoded(1).blocks),
        *(type(dpx.Domain.encoded(1).blocks[0])(a, b, k) for a, b, k in ((1, 2, "binary"), (2, 5, "one-hot"))),
    )

    def encode(self, rows):
        return np.array(rows["x"], dtype=float).reshape(-1, 5)

    def encode_query(self, record):
        return np.array(record, dtype=float)


@settings(max_examples=examples(100), deadline=None)
@given(row=st.lists(st.floats(), min_size=5, max_size=5), place=st.integers(0, 2))
def test_rows_of_another_domain_obey_its_blocks_each_by_itself(row, place):
    base = [[0.5, 1, 0, 1, 0], [0, 0, 0, 0, 0]]

    def register(rows):
        return contents(dpx.PrivateData({"x": rows}, Foreign(), labels=np.zeros(len(rows))))

    assert set(register(base)) == {(*entries, 0) for entries in base}
    obeys(added_rows(register([*base[:place], row, *base[place:]]), register(base)), Foreign)


def test_what_is_asserted_here_notices_what_it_is_for():
    """The same comparison on frames that are read as a whole, as a model would see them without a declaration."""
    base, more = (score_spelling(pd.DataFrame(rows)) for rows in (BASE, [*BASE, {**BASE[0], "code": None}]))
    assert base != more[: len(base)]
