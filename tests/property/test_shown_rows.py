"""What a model is shown of a row follows from that row: `proofs/registration.md`, "What the model is shown".

A table is registered with and without one more record, with a model whose answer about a row is a digest of everything it can see of it: the kind of table, the
names, order and types of the columns, the categories of a category, the index, and the type and spelling of every entry. Half of the rows have missing entries.
"""

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import dpexplain as dpx
from dpexplain.registration.nested_nulls import group_by_nulls
from dpexplain.registration.presentation import present
from hypothesis_support import examples

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 0, 100),
        dpx.Categorical("code", values=[1, 2, 3]),
        dpx.Categorical("work", values=["a", "b"], other="else"),
        dpx.Ordinal("school", levels=["low", "middle", "high"]),
        dpx.Ordinal("half", levels=[0.5, 1, 1.5]),
        dpx.Binary("married"),
        dpx.Datetime("seen", "2000-01-01", "2030-01-01"),
    ]
)
OTHERS = [  # columns that the domain does not declare
    {"note": "x", "more": 1.5, "when": datetime(2022, 1, 1), "paid": True, "count": 3},
    {"note": "y", "more": 2.0, "when": datetime(2023, 1, 1), "paid": False, "count": 4},
    {"note": "x", "more": 2.5, "when": datetime(2022, 1, 1), "paid": True, "count": 5},
]
FULL = [
    {"age": 20, "code": 3, "work": "a", "school": "low", "half": 0.5, "married": True, "seen": datetime(2020, 1, 1), **OTHERS[0]},
    {"age": 41, "code": 1, "work": "b", "school": "high", "half": 1.5, "married": False, "seen": datetime(2021, 1, 1), **OTHERS[1]},
    {"age": 63, "code": 2, "work": "c", "school": "middle", "half": 1, "married": True, "seen": datetime(2020, 1, 1), **OTHERS[2]},
]  # fmt: skip
BASE = [
    *FULL,
    *({**FULL[i % 3], name: None} for i, name in enumerate(DOMAIN.columns)),
    {**FULL[0], "work": None, "married": None},
    {**FULL[1], "seen": None, "age": None, "code": None},
    {**OTHERS[0], "note": "z", "more": 0.5} | dict.fromkeys(DOMAIN.columns),
    *({**FULL[i % 3], name: None} for i, name in enumerate(OTHERS[0])),
    {**FULL[2], "more": float("nan"), "note": None, "when": None},
]
NAMES = list(FULL[0])
ODD = [
    None, float("nan"), float("inf"), 2**70, 10**400, 0, 1, 2.5, True, "", "abc", "7", "nan", "3", "é\ud800", b"7", date(2020, 1, 1), datetime(2020, 1, 1, 12),
    datetime(9999, 12, 31), datetime(2020, 1, 1, tzinfo=UTC), pd.Timestamp("2020-01-01", tz="Europe/Berlin"), Decimal("1.5"), Decimal("NaN"), 1 + 2j, (1, 2),
    [1], {"a": 1}, np.int8(3), np.timedelta64(1, "s"), pd.Timedelta(3, "h"), pd.NaT, pd.NA, object,
]  # fmt: skip
odd = st.sampled_from(ODD) | st.floats() | st.integers() | st.text(max_size=5)
records = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, odd))


# --- Ways in. The schema of a typed table is declared; the types of the others follow from their entries.


def columns_of(rows):
    return {name: [row.get(name) for row in rows] for name in NAMES}


def arrays_of(rows):
    """Typed where NumPy finds one type of numbers, text or times, as objects elsewhere."""
    objects = {name: np.fromiter(column, dtype=object, count=len(column)) for name, column in columns_of(rows).items()}
    return {name: _as_numpy_would(column) for name, column in objects.items()}


def _as_numpy_would(column):
    kinds = {type(entry) for entry in column}
    if kinds <= {int, float} or kinds <= {bool} or kinds <= {str}:
        return np.array(column.tolist())
    return column


SCHEMA = pa.schema(
    {
        "age": pa.float64(), "code": pa.int64(), "work": pa.string(), "school": pa.dictionary(pa.int32(), pa.string()), "half": pa.float64(),
        "married": pa.bool_(), "seen": pa.timestamp("us"), "note": pa.string(), "more": pa.float64(), "when": pa.timestamp("us"), "paid": pa.bool_(),
        "count": pa.int64(),
    }
)  # fmt: skip
POLARS = {
    "age": pl.Float64, "code": pl.Int64, "work": pl.Categorical, "school": pl.String, "half": pl.Float64, "married": pl.Boolean, "seen": pl.Datetime("us")
}  # fmt: skip


def categories(rows):
    frame = pd.DataFrame(columns_of(rows))
    return frame.astype(dict.fromkeys(["work", "school", "code", "note"], "category"))


def ordered_categories(rows):
    """Ordered by pandas, which finds the categories in the rows."""
    frame = categories(rows)
    return frame.assign(school=frame["school"].cat.as_ordered())


def numbered_oddly(rows):
    """An index of strings, some twice."""
    frame = pd.DataFrame(columns_of(rows))
    return frame.set_axis([f"row {i // 2}" for i in range(len(rows))])


TABLES = {
    "pandas": lambda rows: pd.DataFrame(columns_of(rows)),
    "pandas from records": lambda rows: pd.DataFrame(rows, columns=NAMES),
    "pandas objects": lambda rows: pd.DataFrame(columns_of(rows), dtype=object),
    "pandas categories": categories,
    "pandas ordered categories": ordered_categories,
    "pandas with an index": numbered_oddly,
    "pandas nullable": lambda rows: pd.DataFrame(columns_of(rows)).convert_dtypes()[list(DOMAIN.columns)],
    "pandas pyarrow": lambda rows: pd.DataFrame(columns_of(rows)).convert_dtypes(dtype_backend="pyarrow")[list(DOMAIN.columns)],
    "polars": lambda rows: pl.DataFrame(
        {name: column for name, column in columns_of(rows).items() if name in POLARS}, schema=POLARS, strict=False
    ),
    "pyarrow": lambda rows: pa.Table.from_pylist([{name: row.get(name) for name in NAMES} for row in rows], schema=SCHEMA),
    "records": list,
    "columns": columns_of,
    "arrays": arrays_of,
    "series": lambda rows: {name: pd.Series(column) for name, column in columns_of(rows).items()},
}


def make(kind, rows):
    try:
        return TABLES[kind](rows)
    except (Exception, pl.exceptions.PanicException):  # the library has no such table
        assume(False)


# --- The model that sees everything.


def see(table):
    """For each row of a batch, all that a model can tell about it without looking at the others."""
    if isinstance(table, list):
        return [repr({key: spell(entry) for key, entry in row.items()}) for row in table]
    if isinstance(table, np.ndarray):
        return [f"{table.dtype.kind}{[spell(entry) for entry in row]}" for row in table]
    index = f"{table.index}" if isinstance(table, pd.DataFrame) and not same_index(table) else ""
    names = (
        list(table)
        if isinstance(table, (dict, pd.DataFrame))
        else table.columns
        if isinstance(table, pl.DataFrame)
        else table.column_names
    )
    parts = [[f"{type(table)}{index}{names}"] * len(entries_of(table[names[0]]))]
    parts += [[f"{type_of(table[name])}={spell(entry)}" for entry in entries_of(table[name])] for name in names]
    return ["|".join(row) for row in zip(*parts, strict=True)]


def same_index(table):
    return type(table.index) is pd.RangeIndex and table.index.equals(pd.RangeIndex(len(table)))


def entries_of(column):
    if isinstance(column, pa.ChunkedArray):
        return column.to_pylist()
    if isinstance(column, pl.Series) and column.dtype.is_temporal():  # Python has no year 0
        return column.cast(pl.Int64).to_list()
    return column.to_list() if hasattr(column, "to_list") else list(column)


def type_of(column):
    if isinstance(column, list):
        return "list"
    if isinstance(column, pd.Series):
        assert same_index(column)
        return f"{column.dtype!r}{column.cat.categories.tolist() if isinstance(column.dtype, pd.CategoricalDtype) else ''}"
    return str(column.type if isinstance(column, pa.ChunkedArray) else column.dtype)


def spell(entry):
    """True and 1 are the same to NumPy, which stores True beside NaN as 1.0: here, too."""
    number = entry.item() if isinstance(entry, (np.bool_, np.integer, np.floating)) else entry
    return f"{type(number).__name__} {number!r}"


def digest(text):
    return int.from_bytes(sha256(text.encode("utf-8", "backslashreplace")).digest()[:4], "big") / 2**32


def show_rows(table, count, domain=DOMAIN):
    """What the model is shown of each row, in the rows' order."""
    found = [None] * count
    for batch in present(table, domain, count):
        for position, text in zip(batch.positions.tolist(), see(batch.rows), strict=True):
            found[position] = text
    return found


SETTINGS = settings(
    max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


@pytest.mark.parametrize("kind", TABLES)
@SETTINGS
@given(record=records, place=st.integers(0, len(BASE)))
@example(record={**FULL[0], "work": 3.5, "married": "?", "seen": "?", "half": "x", "code": "x"}, place=3)
@example(record={**FULL[0], "note": 1, "age": "old"}, place=0)
@example(record={**FULL[0], "more": "?", "when": "?", "note": 0.5, "paid": "?", "count": "?"}, place=0)
@example(
    record={**FULL[0], "more": 1 + 2j, "when": datetime(2020, 1, 1, tzinfo=UTC), "note": object, "paid": 3, "count": None},
    place=0,
)
@example(record={**FULL[0], "work": None, "school": float("nan"), "seen": pd.NaT}, place=3)
@example(record={**FULL[0], "work": "rare", "school": "rare"}, place=3)
@example(record={**FULL[0], "code": 1 + 2j}, place=0)
@example(record={**FULL[0], "seen": datetime(2020, 1, 1, tzinfo=UTC)}, place=3)
def test_what_is_shown_of_a_row_follows_from_the_row(kind, record, place):
    base = show_rows(TABLES[kind](BASE), len(BASE))
    more = show_rows(make(kind, [*BASE[:place], record, *BASE[place:]]), len(BASE) + 1)
    assert [*more[:place], *more[place + 1 :]] == base


@pytest.mark.parametrize("kind", TABLES)
def test_what_is_shown_of_a_row_is_the_same_when_it_is_alone(kind):
    together = show_rows(TABLES[kind](BASE), len(BASE))
    for position in range(len(BASE)):
        assert show_rows(TABLES[kind](BASE[position : position + 1]), 1) == [together[position]], position


# --- Rows in files, arrays, texts, and rows that a domain decodes.


class Seeing:
    """An estimator that was fitted on a data frame of pandas, and that sees everything."""

    classes_ = np.array([0, 1])

    def __init__(self, names):
        self.feature_names_in_ = np.array(names)

    def predict_proba(self, frame):
        assert isinstance(frame, pd.DataFrame)
        p = np.array([digest(text) for text in see(frame)])
        return np.column_stack([1 - p, p])


FILED = pa.schema([*SCHEMA, pa.field("flag", pa.bool_()), pa.field("number", pa.int32()), pa.field("day", pa.date32())])
FILE_BASE = [{**row, "flag": i % 2 == 0, "number": i, "day": date(2020, 1, 1)} for i, row in enumerate(BASE)]


def labels_of_file(path, rows):
    pq.write_table(pa.Table.from_pylist(rows, schema=FILED), path)
    data = dpx.PrivateData.scan(path, DOMAIN, model=Seeing(FILED.names), progress=False, size=len(BASE))
    return Counter(row[-1] for part in data._rows._parts() for piece in part.labelled_pieces() for row in piece)


@pytest.mark.parametrize("name", [*FILED.names, "all"])
def test_a_null_in_a_file_changes_nothing_that_an_estimator_is_shown_of_other_rows(name, tmp_path):
    base = labels_of_file(tmp_path / "base.parquet", FILE_BASE)
    record = dict.fromkeys(FILED.names) if name == "all" else {**FILE_BASE[0], name: None}
    more = labels_of_file(tmp_path / "more.parquet", [*FILE_BASE[:2], record, *FILE_BASE[2:]])
    assert not base - more


NESTED = pa.schema(
    {"age": pa.float64(), "tags": pa.list_(pa.int64()), "place": pa.struct({"x": pa.int64(), "y": pa.list_(pa.int64())})}
)
NESTED_BASE = [
    {"age": 20.0, "tags": [1, 2], "place": {"x": 1, "y": [2]}},
    {"age": 30.0, "tags": [None, 4], "place": {"x": 2, "y": [3]}},
    {"age": 40.0, "tags": [], "place": {"x": None, "y": [5, 6]}},
    {"age": 50.0, "tags": None, "place": {"x": 7, "y": None}},
    {"age": 60.0, "tags": [3], "place": None},
]


@pytest.mark.parametrize(
    "record",
    [
        {"tags": [None], "place": {"x": None, "y": [None]}},
        {"tags": [None, 1], "place": {"x": 1, "y": [None, 2]}},
        {"tags": [1], "place": {"x": None, "y": None}},
        {},
    ],
)
def test_a_null_inside_a_nested_value_changes_nothing_that_is_shown_of_other_rows(record, tmp_path):
    domain, found = dpx.Domain([dpx.Numeric("age", 0, 100)]), []
    for rows in (NESTED_BASE, [record, *NESTED_BASE]):
        pq.write_table(pa.Table.from_pylist(rows, schema=NESTED), tmp_path / "rows.parquet")
        data = dpx.PrivateData.scan(tmp_path / "rows.parquet", domain, model=Seeing(NESTED.names), progress=False, size=5)
        found.append(Counter(row[-1] for part in data._rows._parts() for piece in part.labelled_pieces() for row in piece))
    assert not found[0] - found[1]


def array_of(images):
    return np.fromiter(images, dtype=object, count=len(images))


@pytest.mark.parametrize(
    "container", [list, tuple, array_of, lambda images: {"image": images}, lambda images: {"image": array_of(images)}]
)
@pytest.mark.parametrize("other", [np.zeros((4, 4)), np.zeros((4, 4), dtype=np.float32), np.zeros((2, 2), dtype=np.uint8), None])
def test_a_model_that_stacks_images_sees_them_in_their_own_type(other, container):
    images = list(np.random.default_rng(0).integers(0, 256, (3, 4, 4), dtype=np.uint8))

    def model(given):
        stacked = np.stack(list(given["image"] if isinstance(given, dict) else given))
        return stacked.mean(axis=(1, 2)) / (255 if stacked.dtype == np.uint8 else 510)

    domain = dpx.ImageDomain((4, 4), bounds=(0, 255))
    alone, more = (
        dpx.PrivateData(container(rows), domain, model=model, output="probability") for rows in (images, [*images, other])
    )
    labels = [np.concatenate([piece[:, -1] for piece in data._rows.labelled_pieces()]) for data in (alone, more)]
    assert labels[1][:3].tolist() == labels[0].tolist()


def test_types_that_pandas_noted_in_a_file_are_not_shown(tmp_path):
    """Many encoders refuse pandas' nullable types, and a file's own types say enough."""
    frame = (
        pd.DataFrame(columns_of(BASE))
        .astype({"married": "boolean", "code": "Int64"})
        .set_axis([f"{i}" for i in range(len(BASE))])
    )
    frame.to_parquet(tmp_path / "noted.parquet")
    pq.write_table(pa.Table.from_pylist(BASE, schema=SCHEMA), tmp_path / "plain.parquet")
    noted, plain = (
        dpx.PrivateData.scan(tmp_path / f"{name}.parquet", DOMAIN, model=Seeing(DOMAIN.columns), progress=False)
        for name in ("noted", "plain")
    )
    labels = [
        [row[-1] for part in data._rows._parts() for piece in part.labelled_pieces() for row in piece] for data in (noted, plain)
    ]
    assert labels[0] == labels[1]


@pytest.mark.parametrize("kind", [kind for kind in TABLES if kind != "pandas from records"])
def test_a_decoded_row_is_shown_as_it_is_alone(kind):
    """Decoded rows are put to the model when a question is asked: in any company."""
    seen = []

    def model(table):
        texts = see(table)
        seen.extend(texts)
        return [digest(text) for text in texts]

    data = dpx.PrivateData(TABLES[kind](BASE), DOMAIN, model=model, output="probability")
    rows = DOMAIN.encode(
        columns_of([{**row, "code": [1, 99][i % 2], "work": ["a", None, "z"][i % 3]} for i, row in enumerate(BASE)])
    )
    together = data.column_model(rows)
    assert [data.column_model(rows[[i]])[0] for i in range(len(rows))] == together.tolist()
    assert len(set(seen)) > len(DOMAIN.columns)


@pytest.mark.parametrize(
    "features",
    [[dpx.Numeric("x", 0, 9), dpx.Binary("y")], [dpx.Categorical("x", values=[1, 2]), dpx.Ordinal("y", levels=[0.5, 1])]],
)
@SETTINGS
@given(row=st.tuples(odd, odd), place=st.integers(0, 3))
@example(row=(None, 1), place=0)
@example(row=("x", 1), place=3)
def test_what_is_shown_of_a_row_of_numbers_follows_from_the_row(features, row, place):
    domain, base = dpx.Domain(features), [(1, 0.5), (2, 1), (1, 1)]
    try:
        table = np.array([*base[:place], row, *base[place:]])
    except (ValueError, OverflowError, TypeError):
        assume(False)
    assume(table.shape == (4, 2))
    more = show_rows(table, 4, domain)
    assert [*more[:place], *more[place + 1 :]] == show_rows(np.array(base), 3, domain)


@pytest.mark.parametrize(
    "container", [pd.Series, lambda texts: pd.DataFrame({"text": texts}), lambda texts: np.array(texts, dtype=object)]
)
@SETTINGS
@given(text=odd, place=st.integers(0, 4))
def test_what_is_shown_of_a_text_follows_from_the_text(container, text, place):
    texts, domain = ["a good film", None, "bad", "good"], dpx.TextDomain(["good", "bad"], column="text")

    def register(given):
        seen = {}
        for batch in present(container(given), domain, len(given)):
            column = batch.rows["text"] if isinstance(batch.rows, pd.DataFrame) else batch.rows
            seen |= {
                i: f"{type_of(column)}{spell(one)}" for i, one in zip(batch.positions.tolist(), entries_of(column), strict=True)
            }
        return [seen[i] for i in range(len(given))]

    more = register([*texts[:place], text, *texts[place:]])
    assert [*more[:place], *more[place + 1 :]] == register(texts)


# --- Typed columns: what a null among other entries makes of a whole number, also after the conversions that models begin with.

WHOLE, YES_NO, NUMBERS_IN_LISTS = [1, 2, None], [True, False, None], [[1], [2, None], None]


def dictionary(entries, kind):
    return pa.chunked_array([pa.array(entries, kind).dictionary_encode()])


def bool8(entries):
    return pa.chunked_array([pa.ExtensionArray.from_storage(pa.bool8(), pa.array(entries, pa.bool_()).cast(pa.int8()))])


def arrow_series(array):
    return pd.Series(pd.arrays.ArrowExtensionArray(array))


TYPED = {
    "pyarrow dictionary of numbers": (lambda entries: dictionary(entries, pa.int64()), WHOLE),
    "pyarrow dictionary of booleans": (lambda entries: dictionary(entries, pa.bool_()), YES_NO),
    "pyarrow dictionary of texts": (lambda entries: dictionary(entries, pa.string()), ["a", "b", None]),
    "pyarrow bool8": (bool8, YES_NO),
    "pyarrow uint8": (lambda entries: pa.chunked_array([pa.array(entries, pa.uint8())]), WHOLE),
    "polars list": (lambda entries: pl.Series("f", entries, dtype=pl.List(pl.Int64)), NUMBERS_IN_LISTS),
    "polars enum": (lambda entries: pl.Series("f", entries, dtype=pl.Enum(["a", "b"])), ["a", "b", None]),
    "pandas Int64": (lambda entries: pd.Series(entries, dtype="Int64"), WHOLE),
    "pandas boolean": (lambda entries: pd.Series(entries, dtype="boolean"), YES_NO),
    "pandas int64[pyarrow]": (lambda entries: pd.Series(entries, dtype="int64[pyarrow]"), WHOLE),
    "pandas bool[pyarrow]": (lambda entries: pd.Series(entries, dtype="bool[pyarrow]"), YES_NO),
    "pandas dictionary": (lambda entries: arrow_series(dictionary(entries, pa.int64())), WHOLE),
    "pandas list[pyarrow]": (lambda entries: arrow_series(pa.chunked_array([pa.array(entries)])), NUMBERS_IN_LISTS),
}
FEATURES = {
    "undeclared": None,
    "numbers": dpx.Numeric("f", 0, 9),
    "codes": dpx.Categorical("f", [1, 2]),
    "texts": dpx.Categorical("f", ["a", "1"]),
    "yes and no": dpx.Binary("f"),
    "dates": dpx.Date("f", "2000-01-01", "2030-01-01"),
}


def typed_table(series, numbers):
    if isinstance(series, pd.Series):
        return pd.DataFrame({"g": np.array(numbers, dtype=float), "f": series})
    if isinstance(series, pl.Series):
        return pl.DataFrame({"g": pl.Series(numbers, dtype=pl.Float64), "f": series})
    return pa.table({"g": pa.array(numbers, pa.float64()), "f": series})


def convert(table):
    """Each row after a conversion to pandas and to NumPy."""
    frame = table if isinstance(table, pd.DataFrame) else table.to_pandas()
    arrays = [frame[name].to_numpy() for name in frame.columns]
    types = [f"{one.dtype}" for one in arrays]
    return [f"{types}{[spell(one[i]) for one in arrays]}" for i in range(len(frame))]


@pytest.mark.parametrize("declared", FEATURES)
@pytest.mark.parametrize("kind", TYPED)
def test_a_null_changes_nothing_that_a_model_makes_of_other_entries_of_a_type(kind, declared):
    series, entries = TYPED[kind]
    feature = FEATURES[declared]
    domain = dpx.Domain([dpx.Numeric("g", 0, 1), *([] if feature is None else [feature])])
    cells = [(entry, number) for entry in entries for number in (0.5, None)]  # complete rows, and others

    def show(chosen):
        table = typed_table(series([entry for entry, _ in chosen]), [number for _, number in chosen])
        found = [None] * len(chosen)
        for batch in present(table, domain, len(chosen)):
            for position, text in zip(batch.positions.tolist(), convert(batch.rows), strict=True):
                found[position] = text
        return found

    together = show(cells)
    assert [show([cell])[0] for cell in cells] == together


def test_there_may_be_as_many_patterns_of_nulls_as_rows():
    """More than a short integer holds: that used to raise an error for everybody."""
    values = [{f"x{bit}": None if number >> bit & 1 else 1 for bit in range(16)} for number in range(33_000)]
    kinds = group_by_nulls(values)
    assert len(set(kinds.tolist())) == len(values)


@pytest.mark.parametrize(
    "container",
    [
        lambda rows: pl.DataFrame(rows, schema={"text": pl.String, "stars": pl.Int64}),
        lambda rows: pa.table(rows, schema=pa.schema({"text": pa.string(), "stars": pa.int64()})),
        pd.DataFrame,
    ],
)
@pytest.mark.parametrize("stars", [None, 3])
def test_a_null_beside_a_text_changes_nothing_that_a_model_makes_of_other_rows(container, stars):
    """The model may use columns besides the text."""
    domain, rows = dpx.TextDomain(["good", "bad"], column="text"), {"text": ["good", "bad", None], "stars": [1, 2, 3]}
    more = {"text": [*rows["text"], "good"], "stars": [*rows["stars"], stars]}

    def show(table, count):
        found = [None] * count
        for batch in present(container(table), domain, count):
            for position, text in zip(batch.positions.tolist(), convert(batch.rows), strict=True):
                found[position] = text
        return found

    assert show(more, 4)[:3] == show(rows, 3)
    assert show({name: column[2:] for name, column in rows.items()}, 1) == show(rows, 3)[2:]
