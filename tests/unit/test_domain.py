"""The domain as a whole: structure, containers, queries, files."""

import io
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpexplain as dpx
from dpexplain.domain import Binary, Block, Categorical, Domain, DomainLike, Numeric, Ordinal
from dpexplain.errors import DataError, DomainError, QueryError

DOMAIN = Domain(
    [
        Numeric("age", 20, 100),
        Ordinal("education", levels=["none", "school", "degree"]),
        Categorical("work", values=["private", "public"], other="rest"),
        Binary("married"),
        Binary("sex", values=("F", "M")),
    ]
)
RECORDS = [
    {"age": 40, "education": "school", "work": "public", "married": True, "sex": "M"},
    {"age": None, "education": None, "work": None, "married": None, "sex": None},
    {"age": 100, "education": "degree", "work": "private", "married": False, "sex": "F"},
    {"age": 7, "education": "kindergarten", "work": "circus", "married": True, "sex": "M"},
]
EXPECTED = np.array([[0.25, 0.5, 0, 1, 0, 1, 1], [0.5, 0.5, 0, 0, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0], [0, 0.5, 0, 0, 1, 1, 1]])
COLUMNS = {name: [record[name] for record in RECORDS] for name in RECORDS[0]}
ARROW = pa.table(COLUMNS)


def test_structure_is_public_and_in_order():
    like: DomainLike = DOMAIN
    assert like.width == 7
    assert like.names == ("age", "education", "work=private", "work=public", "work=rest", "married", "sex=M")
    assert like.blocks == (
        Block(0, 1, "numeric"),
        Block(1, 2, "numeric"),
        Block(2, 5, "one-hot"),
        Block(5, 6, "binary"),
        Block(6, 7, "binary"),
    )
    assert "7 columns: age [20, 100], education (3 levels), work (3 values), married (binary)" in repr(DOMAIN)
    assert "… 88 more" in repr(Domain.encoded(100))


CONTAINERS = {
    "records": RECORDS,
    "tuple of records": tuple(RECORDS),
    "absent keys": [{k: v for k, v in r.items() if v is not None} for r in RECORDS],
    "rows that are no records": [RECORDS[0], None, *RECORDS[2:]],
    "columns": COLUMNS,
    "arrays": {name: np.array(values, dtype=object) for name, values in COLUMNS.items()},
    "series": {name: pl.Series(name, values) for name, values in COLUMNS.items()},
    "arrow arrays": {name: pa.array(values) for name, values in COLUMNS.items()},
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, objects": pd.DataFrame(COLUMNS, dtype=object),
    "pandas, nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas, arrow": ARROW.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, categorical": pd.DataFrame(COLUMNS).astype({"work": "category", "education": "category"}),
    "pandas, other index": pd.DataFrame(COLUMNS, index=[3, 3, 1, 0]),
    "polars": pl.DataFrame(COLUMNS),
    "polars, categorical": pl.DataFrame(COLUMNS, schema_overrides={"work": pl.Categorical}),
    "polars, wide types": pl.DataFrame(COLUMNS, schema_overrides={"age": pl.Int128}),
    "polars, decimal": pl.DataFrame(COLUMNS, schema_overrides={"age": pl.Decimal(10, 2)}),
    "pyarrow": ARROW,
    "pyarrow batch": ARROW.to_batches()[0],
    "pyarrow dictionary": ARROW.set_column(2, "work", ARROW["work"].dictionary_encode()),
    "with another column": pd.DataFrame(COLUMNS | {"label": [1, 2, 3, 4]}),
}


@pytest.mark.parametrize("rows", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_every_container_gives_the_same_array(rows):
    encoded = DOMAIN.encode(rows)
    assert encoded.dtype == np.float64
    assert encoded.flags.c_contiguous
    np.testing.assert_array_equal(encoded, EXPECTED)


@pytest.mark.parametrize("rows", [[], (), {name: [] for name in COLUMNS}, pl.DataFrame(COLUMNS)[:0], ARROW[:0]])
def test_no_rows_are_no_rows(rows):
    assert DOMAIN.encode(rows).shape == (0, 7)


@pytest.mark.parametrize(
    "column",
    [
        np.array(["2020-01-01"] * 2, dtype="datetime64[ns]"),
        np.array([b"forty", b"forty"]),  # bytes are read as the text they hold, which here is no number
        np.array([1j, 2j]),
        pl.Series([[40], [40]]),
        pl.Series([b"40", b"40"]),
        pl.Series([None, None]),
        pa.array([{"a": 1}, None]),
        pa.array([40, None], type=pa.timestamp("ns")),
        pd.Series(pd.to_datetime(["2020-01-01", None])),
        pd.Series([40, 40], dtype="timedelta64[ns]"),
        pd.Series(pd.period_range("2020-01", periods=2, freq="M")),
    ],
)
def test_a_column_of_a_type_that_is_never_read_is_missing(column):
    assert Domain([Numeric("age", 20, 100)]).encode({"age": column}).tolist() == [[0.5], [0.5]]


def test_sparse_pandas_columns_are_read():
    sparse = pd.DataFrame({"age": pd.arrays.SparseArray([20.0, 60.0])})
    assert Domain([Numeric("age", 20, 100)]).encode(sparse).tolist() == [[0], [0.5]]


@pytest.mark.parametrize("odd", ["oops,oops,oops,oops", ",,,", "1e999,[],nan,-1", "99999999999999999999,1.5,true,x"])
def test_one_odd_row_in_a_file_does_not_change_how_the_others_are_read(odd):
    domain = Domain([Numeric("age", 20, 100), Ordinal("level", [1, 2, 3]), Categorical("code", ["1", 2]), Binary("flag")])
    text = "age,level,code,flag\n40,1,1,True\n60,2,2,False\n80,3,7,True\n"
    plain, with_odd = (domain.encode(pd.read_csv(io.StringIO(csv))) for csv in (text, text + odd + "\n"))
    np.testing.assert_array_equal(plain, with_odd[:3])
    np.testing.assert_array_equal(plain, [[0.25, 0, 1, 0, 1], [0.5, 0.5, 0, 1, 0], [0.75, 1, 0, 0, 1]])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pd.DataFrame(COLUMNS).drop(columns="age"), "column 'age' is missing"),
        (pd.DataFrame(COLUMNS).rename(columns={"age": "aged"}), r"'age' is missing \(did you mean 'aged'\?\)"),
        ({"age": [1]}, "column 'education' is missing.*Rename or add it"),
        ([{"age": 1}], "column 'education' is missing"),
        (COLUMNS | {"age": [1]}, r"different lengths \[1, 4\]"),
        (RECORDS[0], r"age: expected a column.*pass \[record\]"),
        (COLUMNS | {"age": np.zeros((4, 2))}, r"one-dimensional, got shape \(4, 2\)"),
        (COLUMNS | {"age": np.ma.masked_array([1, 2, 3, 4])}, "age: masked arrays are not read"),
        (pl.DataFrame(COLUMNS).lazy(), "Collect a lazy frame first"),
        (pd.DataFrame([[1, 2]], columns=["age", "age"]), "repeats a column name"),
        ([[1, 2], [3, 4]], "rows must be a pandas or polars data frame.*got list"),
        (7, "got int"),
        (None, "got NoneType"),
        ("rows.csv", "got str"),
        (np.zeros((2, 5)), "not all numeric.*Pass a data frame"),
    ],
)
def test_only_structure_is_refused(rows, message):
    with pytest.raises(DataError, match=message):
        DOMAIN.encode(rows)


def test_a_query_is_a_dict_a_series_or_a_one_row_frame():
    query = RECORDS[0]
    for record in (query, pd.Series(query), pd.DataFrame([query]), pl.DataFrame([query]), pa.Table.from_pylist([query])):
        encoded = DOMAIN.encode_query(record)
        assert encoded.shape == (7,)
        np.testing.assert_array_equal(encoded, EXPECTED[0])


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({k: v for k, v in RECORDS[0].items() if k != "sex"}, "field 'sex' is missing. Give one value for each of 'age'"),
        ({}, "field 'age' is missing"),
        (RECORDS[0] | {"Age": 3}, r"unknown field 'Age' \(did you mean 'age'\?\).*Remove it"),
        (RECORDS[0] | {3: 3}, "unknown field 3"),
        (RECORDS[0] | {"age": 101}, "age: 101 is not a number from 20 to 100"),
        (RECORDS[0] | {"age": [40]}, "age:"),
        (RECORDS[1], "age: None"),
        (pl.DataFrame(RECORDS), "one record, got a frame of 4 rows"),
        (None, "must be a dict.*got NoneType"),
        ("age=3", "got str"),
        (pl.Series([1]), "got Series"),
        ([40], "needs names. Pass a dict"),
        (np.zeros(5), "needs names. Pass a dict"),
    ],
)
def test_a_query_that_does_not_fit_is_refused(record, message):
    with pytest.raises(QueryError, match=message):
        DOMAIN.encode_query(record)


def test_queries_in_a_batch_name_the_row_that_does_not_fit():
    fit = [RECORDS[0], RECORDS[2]]
    columns = {name: [r[name] for r in fit] for name in fit[0]}
    for batch in (fit, columns, pd.DataFrame(fit), pl.DataFrame(fit), pa.Table.from_pylist(fit)):
        np.testing.assert_array_equal(DOMAIN.encode_queries(batch), EXPECTED[[0, 2]])
    assert DOMAIN.encode_queries([]).shape == (0, 7)
    with pytest.raises(QueryError, match=r"^row 1: age: "):
        DOMAIN.encode_queries(RECORDS)
    with pytest.raises(QueryError, match="equally long columns"):
        DOMAIN.encode_queries(RECORDS[0])
    with pytest.raises(QueryError, match="got int"):
        DOMAIN.encode_queries(3)


def test_encoded_rows_are_taken_as_vectors():
    domain = Domain.encoded(3)
    assert domain.names == ("x0", "x1", "x2")
    rows = np.array([[0, 0.5, 1], [np.nan, -np.inf, np.inf], [-3, 7, 0.25]])
    expected = [[0, 0.5, 1], [0.5, 0, 1], [0, 1, 0.25]]
    assert domain.encode(rows).tolist() == expected
    assert domain.encode(rows.astype(object)).tolist() == expected
    assert domain.encode(pd.DataFrame(rows, columns=domain.names)).tolist() == expected
    assert domain.encode(np.array([[None, "x", [1]]], dtype=object)).tolist() == [[0.5] * 3]
    assert domain.encode(np.zeros((2, 3), dtype="datetime64[s]")).tolist() == [[0.5] * 3] * 2
    assert rows[2, 0] == -3  # what was passed is left alone


def test_encoded_bounds_are_scaled():
    assert Domain.encoded(2, bounds=(-1, 1)).encode(np.array([[-1, 0.5]])).tolist() == [[0, 0.75]]
    domain = Domain.encoded(2, bounds=([0, 10], np.array([1, 20])), names=["a", "b"])
    assert domain.encode(np.array([[0.5, 15]])).tolist() == [[0.5, 0.5]]
    assert domain.encode([{"a": 1, "b": 10}]).tolist() == [[1, 0]]


@pytest.mark.parametrize("query", [np.array([0.1, 0.9]), [0.1, 0.9], (0.1, 0.9), {"x0": 0.1, "x1": 0.9}])
def test_encoded_queries_may_be_vectors(query):
    assert Domain.encoded(2).encode_query(query).tolist() == [0.1, 0.9]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ([0.1], "must have 2 entries"),
        (np.zeros((1, 2)), "must have 2 entries"),
        ([0.1, 1.1], "x1: 1.1 is not a number from 0 to 1"),
        (np.array([np.nan, 0]), "x0: "),
        ([True, 0], "x0: True"),
        ([None, 0], "x0: None"),
        (["0", 0], "x0: '0'"),
        ([[0], 0], r"x0: \[0\]"),
    ],
)
def test_encoded_queries_are_strict(query, message):
    with pytest.raises(QueryError, match=message):
        Domain.encoded(2).encode_query(query)


def test_encoded_batches_are_strict():
    batch = np.array([[0.1, 0.2], [0.3, 0.4]])
    np.testing.assert_array_equal(Domain.encoded(2).encode_queries(batch), batch)
    with pytest.raises(QueryError, match=r"^row 1: x0: np.float64\(-1.0\)|^row 1: x0: -1.0"):
        Domain.encoded(2).encode_queries(np.array([[0.1, 0.2], [-1, 0.4]]))


@pytest.mark.parametrize("rows", [np.zeros(3), np.zeros((2, 2)), np.zeros((1, 1, 3)), np.array(3.0)])
def test_an_array_of_another_shape_is_refused(rows):
    with pytest.raises(DataError, match=r"must have shape \(m, 3\)"):
        Domain.encoded(3).encode(rows)


def test_wide_encoded_domains_are_vectorised():
    domain, rows = Domain.encoded(5000), np.linspace(0, 1, 100_000).reshape(20, 5000)
    np.testing.assert_array_equal(domain.encode(rows), rows)
    np.testing.assert_array_equal(domain.encode_queries(rows), rows)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Domain([]), "at least one feature"),
        (lambda: Domain([Binary("a"), Numeric("a", 0, 1)]), "feature name 'a' appears twice"),
        (lambda: Domain([Categorical("a", ["b"]), Binary("a=b")]), "encoded column 'a=b' appears twice"),
        (lambda: Domain(pd.DataFrame(COLUMNS)), "never inferred from rows"),
        (lambda: Domain(["age"]), "Declare what is public"),
        (lambda: Domain(None), "Declare what is public"),
        (lambda: Domain.encoded(0), "width must be"),
        (lambda: Domain.encoded(2.5), "width must be"),
        (lambda: Domain.encoded(True), "width must be"),
        (lambda: Domain.encoded(2, bounds=3), "bounds must be a pair"),
        (lambda: Domain.encoded(2, bounds=(0, [1, 2, 3])), "high must have one entry per column: 2, got 3"),
        (lambda: Domain.encoded(2, bounds=(1, 0)), "must be below high"),
        (lambda: Domain.encoded(2, names=["a"]), "names must have one entry per column"),
        (lambda: Domain.encoded(2, names=["a", "a"]), "appears twice"),
    ],
)
def test_an_inconsistent_domain_is_refused(make, message):
    with pytest.raises(DomainError, match=message):
        make()


ODD = Domain(
    [
        Numeric('quo"ted', 0.1, 1e300, missing=1 / 3),
        Ordinal("new\nline\t\\", levels=["é", "\x00\x7f\x85", "日本"], missing="é"),
        Binary("z", missing="no"),
        Categorical("c", values=["", " ", 1, 0.5, -3, "[x]", "a=b", "# no"], other="…"),
        Binary("b", values=("F", 2), missing=2),
    ]
)
VECTORS = [Domain.encoded(3), Domain.encoded(2, bounds=([0, -1.5], 2)), Domain.encoded(1, names=["π"])]


@pytest.mark.parametrize("domain", [DOMAIN, ODD, *VECTORS], ids=lambda domain: domain.names[0])
def test_descriptions_are_read_back_exactly(domain, tmp_path):
    back = [Domain.from_dict(domain.to_dict()), Domain.from_json(domain.to_json()), Domain.from_toml(domain.to_toml())]
    for suffix in (".json", ".toml"):
        domain.save(tmp_path / f"domain{suffix}")
        back.append(Domain.load(str(tmp_path / f"domain{suffix}")))
    for copy in [*back, pickle.loads(pickle.dumps(domain))]:
        assert copy == domain
        assert hash(copy) == hash(domain)
        assert copy.fingerprint == domain.fingerprint
        assert (copy.names, copy.blocks, repr(copy)) == (domain.names, domain.blocks, repr(domain))


def test_different_domains_have_different_fingerprints():
    assert len({d.fingerprint for d in (DOMAIN, ODD, *VECTORS)}) == 5
    assert DOMAIN != ODD
    assert Domain([Numeric("a", 0, 1)]).fingerprint == Domain([Numeric("a", -0.0, 1.0)]).fingerprint
    assert Domain([Binary("a"), Binary("b")]) != Domain([Binary("b"), Binary("a")])


def test_a_fingerprint_never_changes():
    """It is stored in ledgers and releases: a change here orphans them."""
    assert DOMAIN.fingerprint == "faaebfa336a168211d178f78298e158277a20429b1ed8ccb1a40dc34de4fd5de"


def test_toml_is_written_for_people():
    text = Domain([Numeric("age", 17, 97), Binary("married")]).to_toml()
    assert text.splitlines() == [
        'kind = "tabular"', "", "[[features]]", 'kind = "numeric"', 'name = "age"', "low = 17.0", "high = 97.0",
        "", "[[features]]", 'kind = "binary"', 'name = "married"',
    ]  # fmt: skip
    assert Domain.from_toml('[[features]]\nname = "age"\nkind = "numeric"\nlow = 17\nhigh = 97') == Domain(
        [Numeric("age", 17, 97)]
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "kind must be one of 'tabular', 'encoded'.*, got None"),
        ([], "Pass what to_dict"),
        ({}, "without 'features' declares nothing"),
        ({"kind": "speech"}, "got 'speech'"),
        ({"features": []}, "at least one feature"),
        ({"features": {}, "kind": "tabular"}, "must be a list"),
        ({"features": [], "extra": 1}, "unknown key 'extra'"),
        ({"features": [3]}, "feature's kind must be one of 'numeric', 'ordinal'"),
        ({"features": [{"kind": "numerical", "name": "a"}]}, r"got 'numerical' \(did you mean 'numeric'\?\)"),
        ({"features": [{"kind": ["numeric"], "name": "a"}]}, "feature's kind must be one of"),
        ({"features": [{"kind": "numeric", "name": "a", "low": 0, "hi": 1}]}, r"'a' has unknown key 'hi'.*'high'"),
        ({"features": [{"kind": "numeric", "name": "a", "low": 0}]}, "numeric feature 'a' lacks 'high'"),
        ({"features": [{"kind": "binary"}]}, "lacks 'name'"),
        ({"features": [{"kind": "numeric", "name": "a", "low": "0", "high": 1}]}, "low must be a finite number"),
        ({"kind": "encoded"}, "width must be"),
        ({"kind": "encoded", "width": "3"}, "width must be"),
        ({"kind": "encoded", "width": 2, "bound": 1}, "unknown key 'bound'"),
    ],
)
def test_a_description_with_anything_unknown_is_refused(data, message):
    with pytest.raises(DomainError, match=message):
        Domain.from_dict(data)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(DomainError, match="not valid JSON"):
        Domain.from_json("{")
    with pytest.raises(DomainError, match="not valid TOML"):
        Domain.from_toml("= 3")
    with pytest.raises(DomainError, match=r"ends in \.json or \.toml, got 'domain.yaml'"):
        DOMAIN.save(tmp_path / "domain.yaml")
    with pytest.raises(DomainError, match="Check the path"):
        Domain.load(tmp_path / "absent.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(DomainError, match="cannot read the domain"):
        Domain.load(tmp_path / "latin.toml")


SCALED = dpx.Domain(
    [
        dpx.Numeric("age", 17, 97, scale=0.5),
        dpx.Ordinal("education", levels=["none", "school"], scale=2),
        dpx.Categorical("work", values=["private", "public"], scale=0.25),
        dpx.Binary("married", scale=3.0),
        dpx.Date("opened", "2000-01-01", "2020-01-01", scale=0.1),
        dpx.Datetime("seen", "2020-01-01", "2020-01-02"),
    ],
    scale=0.3,
)


def test_a_scale_is_of_the_whole_domain_times_the_feature_s_own():
    assert [block.scale for block in SCALED.blocks] == pytest.approx([0.15, 0.6, 0.075, 0.9, 0.03, 0.3])
    assert [block.scale for block in dpx.Domain.encoded(2, scale=0.3).blocks] == [0.3, 0.3]
    assert [block.scale for block in dpx.TextDomain(["a", "b"], scale=0.2).blocks] == [0.2, 0.2]
    assert [block.scale for block in dpx.ImageDomain((2, 2), scale=0.2).blocks] == [0.2] * 4
    plain = dpx.Domain([dpx.Numeric("age", 17, 97)])
    assert plain.encode([{"age": 57}]) == dpx.Domain([dpx.Numeric("age", 17, 97, scale=0.5)], scale=0.1).encode([{"age": 57}])


@pytest.mark.parametrize(
    "domain",
    [SCALED, dpx.Domain.encoded(3, scale=0.3), dpx.TextDomain(["a", "b"], scale=0.2), dpx.ImageDomain((4, 4), (2, 2), scale=5)],
    ids=lambda domain: type(domain).__name__,
)
def test_scales_are_part_of_descriptions_and_fingerprints(domain):
    assert dpx.Domain.from_json(domain.to_json()) == domain == dpx.Domain.from_toml(domain.to_toml())
    assert domain.fingerprint != replace(domain, scale=1).fingerprint
    assert "scale" not in replace(domain, scale=1.0).to_dict()
    assert dpx.Domain.from_dict(replace(domain, scale=1).to_dict()).scale == 1  # as files from before there were scales


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), True, "0.3", 1e-9, None])
def test_a_scale_is_a_positive_number(scale):
    for make in (
        lambda: dpx.Domain([dpx.Binary("a")], scale=scale),
        lambda: dpx.Binary("a", scale=scale),
        lambda: dpx.TextDomain(["a"], scale=scale),
        lambda: dpx.ImageDomain((2, 2), scale=scale),
    ):
        with pytest.raises(DomainError, match="scale must be a number from"):
            make()
