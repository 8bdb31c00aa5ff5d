"""Records as they come: values missing, categories nobody declared, columns too many, dates; what is read how is said."""

from datetime import UTC, date, datetime

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpexplain as dpx
from dpexplain import domain as domains
from dpexplain.domain import QueryRules, read_queries
from dpexplain.errors import DomainError, ParameterError, QueryError
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("income", 0, 100, missing=30, title="Income", unit="k€"),
        dpx.Numeric("age", 18, 98, integer=True),
        dpx.Ordinal("school", ["none", "some", "degree"], missing="some"),
        dpx.Categorical("work", ["private", "public"], other="else"),
        dpx.Categorical("home", ["rent", "own", "unknown"], missing="unknown", help="Where the person lives."),
        dpx.Binary("married", missing=False),
    ]
)
WHOLE = {"income": 10, "age": 38, "school": "degree", "work": "public", "home": "own", "married": True}
STRICT, LENIENT = QueryRules(), QueryRules(extra="ignore", clip=True)


def read_query(domain, record, rules):
    return domains.read_query(domain, record, rules.known_extra, rules.extra, rules.clip)


@pytest.mark.parametrize("nothing", [None, float("nan"), pd.NA, pd.NaT, np.float32("nan"), np.datetime64("NaT", "s")])
@pytest.mark.parametrize("name", ["income", "school", "work", "home", "married"])
def test_a_missing_value_is_read_as_the_domain_declares_and_the_notes_say_so(name, nothing):
    point, notes = read_query(DOMAIN, WHOLE | {name: nothing}, STRICT)
    assert list(notes) == [name]
    stand_in = next(feature for feature in DOMAIN.features if feature.name == name).substitute
    assert notes[name] == f"missing, read as {stand_in}"
    assert np.array_equal(point, DOMAIN.encode_query(WHOLE | {name: stand_in}))
    left_out, said = read_query(DOMAIN, {key: value for key, value in WHOLE.items() if key != name}, STRICT)
    assert np.array_equal(left_out, point)
    assert said == notes


def test_private_rows_and_queries_read_missing_values_alike():
    rows = [WHOLE | {name: None} for name in ("income", "school", "work", "home", "married")]
    assert np.array_equal(DOMAIN.encode(rows), DOMAIN.encode_queries(rows))


def test_nothing_stands_for_a_missing_value_that_was_not_declared():
    with pytest.raises(QueryError, match=r"age: None is not .* let the owner declare what stands for a missing one \(missing=…"):
        DOMAIN.encode_query(WHOLE | {"age": None})
    bare = dpx.Domain([dpx.Categorical("work", ["a"])])
    with pytest.raises(QueryError, match=r"\(other=… in the domain\)"):
        bare.encode_query({"work": None})


def test_an_optional_category_may_be_none_of_its_values():
    domain = dpx.Domain([dpx.Categorical("work", ["a", "b"], optional=True), dpx.Binary("married")])
    point, notes = read_query(domain, {"work": None, "married": True}, STRICT)
    assert point.tolist() == [0.0, 0.0, 1.0]
    assert notes == {"work": "missing, read as none of the values"}
    assert np.array_equal(domain.encode([{"work": None, "married": True}])[0], point)
    assert dpx.Domain.from_dict(domain.to_dict()) == domain
    with pytest.raises(QueryError, match="'c' is not one of the declared values"):
        domain.encode_query({"work": "c", "married": True})
    with pytest.raises(DomainError, match="optional must be True or False"):
        dpx.Categorical("work", ["a"], optional="yes")


def test_an_undeclared_category_is_read_as_other():
    point, notes = read_query(DOMAIN, WHOLE | {"work": "circus"}, STRICT)
    assert notes == {"work": "'circus' is not a declared value, read as 'else'"}
    assert np.array_equal(point, DOMAIN.encode_query(WHOLE | {"work": "else"}))


def test_out_of_bounds_is_refused_with_an_offer_and_clipped_when_allowed():
    with pytest.raises(QueryError, match="pass clip=True to ask about the nearest one instead"):
        DOMAIN.encode_query(WHOLE | {"income": 500})
    point, notes = read_query(DOMAIN, WHOLE | {"income": 500}, LENIENT)
    assert point[0] == 1.0
    assert notes == {"income": "500 is outside the declared bounds, read as 100.0"}
    with pytest.raises(QueryError, match="income: 'much' is not a number"):
        read_query(DOMAIN, WHOLE | {"income": "much"}, LENIENT)


def test_extra_fields_are_ignored_on_request_but_a_misspelt_one_is_not():
    assert read_query(DOMAIN, WHOLE | {"id": 7}, LENIENT)[1] == {}
    assert read_query(DOMAIN, WHOLE | {"id": 7}, QueryRules(known_extra=("id",)))[1] == {}
    with pytest.raises(QueryError, match=r"unknown field 'id'.*Remove it, or pass extra=.ignore."):
        DOMAIN.encode_query(WHOLE | {"id": 7})
    misspelt = {"incomes": 10} | {key: value for key, value in WHOLE.items() if key != "income"}
    with pytest.raises(QueryError, match=r"'incomes' \(did you mean 'income'\?\), and that one is missing"):
        read_query(DOMAIN, misspelt, LENIENT)


def test_skipped_records_are_named_with_the_reason():
    frame = pl.DataFrame([WHOLE, WHOLE | {"age": 7}, WHOLE | {"work": "circus"}, WHOLE | {"age": None}])
    read = read_queries(DOMAIN, frame, QueryRules(on_error="skip"))
    assert read.rows == (0, 2)
    assert [one.row for one in read.skipped] == [1, 3]
    assert "18 to 98" in read.skipped[0].reason
    assert read.points.shape == (2, DOMAIN.width)
    with pytest.raises(QueryError, match=r"^row 1: age: 7"):
        DOMAIN.encode_queries(frame)


def test_numeric_arrays_follow_the_same_rules():
    domain = dpx.Domain([dpx.Numeric("a", 0, 1, missing=0.25), dpx.Numeric("b", 0, 1)])
    rows = np.array([[0.5, 0.5], [np.nan, 0.5], [0.5, 3.0], [0.5, np.nan]])
    read = read_queries(domain, rows, QueryRules(clip=True, on_error="skip"))
    assert read.points.tolist() == [[0.5, 0.5], [0.25, 0.5], [0.5, 1.0]]
    assert [list(notes) for notes in read.notes] == [[], ["a"], ["b"]]
    assert [one.row for one in read.skipped] == [3]


@pytest.mark.parametrize("options", [{"extra": "drop"}, {"on_error": "ignore"}, {"clip": "yes"}])
def test_rules_that_mean_nothing_are_refused(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        QueryRules(**options)


def test_clip_means_nothing_for_texts():
    with pytest.raises(ParameterError, match="clip=True is for tables"):
        read_query(dpx.TextDomain(["a"]), "a b", LENIENT)


DATES = dpx.Domain(
    [
        dpx.Date("opened", "2000-01-01", date(2020, 1, 1)),
        dpx.Datetime("seen", "2020-01-01", "2020-01-02", missing="2020-01-01T06:00"),
    ]
)


@pytest.mark.parametrize(
    "day", ["2010-01-01", date(2010, 1, 1), datetime(2010, 1, 1, 23, 59), np.datetime64("2010-01-01"), pd.Timestamp(2010, 1, 1)]
)
def test_dates_are_read_from_whatever_holds_one(day):
    expected = (date(2010, 1, 1) - date(2000, 1, 1)).days / (date(2020, 1, 1) - date(2000, 1, 1)).days
    point = DATES.encode_query({"opened": day, "seen": "2020-01-01T12:00:00"})
    assert point.tolist() == [expected, 0.5]
    assert DATES.encode([{"opened": day, "seen": None}])[0].tolist() == [expected, 0.25]


def test_columns_of_dates_are_read_alike_in_every_library():
    days, times = ["1999-01-01", "2010-06-01", None], ["2020-01-01T06:00:00", None, "2020-01-03T00:00:00"]
    columns = {"opened": days, "seen": times}
    expected = DATES.encode(columns)
    frame = pd.DataFrame({name: pd.to_datetime(column) for name, column in columns.items()})
    arrow = pa.table({"opened": pa.array([d and date.fromisoformat(d) for d in days]), "seen": pa.array(frame["seen"])})
    aware = frame.assign(seen=frame["seen"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))
    for table in (frame, arrow, pl.from_pandas(frame), aware):
        assert np.array_equal(DATES.encode(table), expected)
    assert dpx.Domain([dpx.Numeric("opened", 0, 1)]).encode(frame).tolist() == [[0.5]] * 3  # a date is no number


def test_dates_are_decoded_to_the_day_and_stored_as_text():
    decoded = DATES.decode(DATES.encode([{"opened": "2010-06-01", "seen": "2020-01-01T06:00:01"}]))
    assert decoded["opened"].tolist() == [date(2010, 6, 1)]
    assert decoded["seen"].tolist() == [datetime(2020, 1, 1, 6, 0, 1)]
    assert dpx.Domain.from_dict(DATES.to_dict()) == DATES
    assert dpx.Domain.from_toml(DATES.to_toml()) == DATES


def test_dates_outside_are_refused_or_clipped_and_odd_bounds_are_refused():
    with pytest.raises(QueryError, match=r"a date from 2000-01-01 to 2020-01-01.*clip=True"):
        DATES.encode_query({"opened": "2021-01-01", "seen": "2020-01-01"})
    assert read_query(DATES, {"opened": "2021-01-01", "seen": None}, LENIENT)[0].tolist() == [1.0, 0.25]
    with pytest.raises(QueryError, match="opened: 7 is not a date"):
        DATES.encode_query({"opened": 7, "seen": "2020-01-01"})
    for low, high, missing in (
        ("x", "2020-01-01", None),
        ("2020-01-01", "2020-01-01", None),
        (3, 4, None),
        ("2020", "2021-01-01", None),
    ):
        with pytest.raises(DomainError):
            dpx.Date("d", low, high, missing)
    with pytest.raises(DomainError, match="must lie between"):
        dpx.Date("d", "2020-01-01", "2021-01-01", "2022-01-01")


@given(
    st.one_of(
        st.none(),
        st.text(),
        st.floats(),
        st.integers(),
        st.dates(),
        st.datetimes(),
        st.datetimes(timezones=st.just(UTC)),
        st.binary(),
    )
)
def test_a_private_value_never_decides_whether_a_date_column_raises(value):
    encoded = DATES.encode([{"opened": value, "seen": value}, {"opened": "2010-01-01", "seen": "2020-01-01"}])
    assert ((encoded >= 0) & (encoded <= 1)).all()
    assert np.array_equal(encoded[1], DATES.encode([{"opened": "2010-01-01", "seen": "2020-01-01"}])[0])


def test_whole_numbers_are_decoded_whole():
    ages = DOMAIN.decode(DOMAIN.encode([WHOLE] * 2))["age"]
    assert ages.dtype == np.int64
    with pytest.raises(DomainError, match="both bounds whole"):
        dpx.Numeric("x", 0, 1.5, integer=True)


def test_labels_for_people_are_stored_and_change_no_fingerprint():
    assert DOMAIN.titles[0] == "Income (k€)"
    assert DOMAIN.titles[3] == "work=private"
    assert dpx.Domain.from_dict(DOMAIN.to_dict()) == DOMAIN
    plain = dpx.Domain([dpx.Numeric("x0", 0, 1)])
    titled = dpx.Domain([dpx.Numeric("x0", 0, 1, title="Share", unit="%", help="Of all.")])
    assert plain.fingerprint == titled.fingerprint
    assert plain.to_dict() != titled.to_dict()
    assert dpx.Domain.from_toml(titled.to_toml()).features[0].help == "Of all."
    with pytest.raises(DomainError, match="title must be non-empty text"):
        dpx.Numeric("x", 0, 1, title=3)


@pytest.fixture(scope="module")
def release():
    rows = [WHOLE | {"income": float(i % 100), "person": i, "label": i % 2 == 0} for i in range(400)]
    private = dpx.PrivateData(rows, DOMAIN, labels=[1.0 if i % 100 > 50 else -1.0 for i in range(400)], unit="person")
    return dpx.release(private, dpx.Budget(5.0, 1e-4), noise=SeededNoise(1))


def test_the_answer_says_what_was_read_how_and_takes_the_unit_column(release, tmp_path):
    release.save(tmp_path / "r.dpx")
    for one in (release, dpx.load(tmp_path / "r.dpx")):
        answer = one.explain(WHOLE | {"income": None, "person": 3})
        assert answer.notes == {"income": "missing, read as 30.0"}
        assert "income: missing, read as 30.0." in answer._repr_html_()
        assert "Income (k€)" in answer._repr_html_()
    frame = pd.DataFrame([WHOLE, WHOLE | {"income": None}, WHOLE | {"age": 3}]).assign(person=[1, 2, 3])
    answers = release.explain_many(frame, on_error="skip")
    assert answers.rows == (0, 1)
    assert [one.row for one in answers.skipped] == [2]
    assert "1 records skipped" in repr(answers)
    assert answers[1].notes == {"income": "missing, read as 30.0"}
    assert answers[1:][0].notes == answers[1].notes
    assert not answers[0].notes


def test_an_explainer_reads_records_by_the_same_rules_and_can_be_called():
    rows = [WHOLE | {"income": float(i % 100), "person": i} for i in range(200)]
    private = dpx.PrivateData(rows, DOMAIN, labels=[0.5] * 200, unit="person")
    explainer = dpx.Explainer(private, dpx.Budget(1.0, 1e-4), mechanism=dpx.Basic(0.1, 1e-6, steps=5), noise=SeededNoise(1))
    answer = explainer.explain(WHOLE | {"income": 500, "person": 1}, clip=True)
    assert answer.notes == {"income": "500 is outside the declared bounds, read as 100.0"}
    answers = explainer([WHOLE, WHOLE | {"age": 3}, WHOLE | {"x": 1}], on_error="skip")
    assert len(answers) == 1
    assert [one.row for one in answers.skipped] == [1, 2]


def test_every_kind_of_answer_says_what_was_read_how(release):
    asked = WHOLE | {"income": None}
    assert release.influence(asked).notes == {"income": "missing, read as 30.0"}
    rows = [WHOLE | {"income": float(i % 100)} for i in range(200)]
    private = dpx.PrivateData(rows, DOMAIN, labels=[0.5] * 200)
    explainer = dpx.Explainer(private, dpx.Budget(1.0, 1e-4), mechanism=dpx.Basic(0.1, 1e-6, steps=5), noise=SeededNoise(1))
    explainer.explain(WHOLE)
    later = dpx.NonInteractive(explainer.history)
    assert later.explain(asked).notes == {"income": "missing, read as 30.0"}
    assert later.explain_many([WHOLE, asked])[1].notes == {"income": "missing, read as 30.0"}


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_model_that_reads_times_can_be_asked_about_synthetic_records_of_every_library(backend):
    """polars has no times in seconds, which is what a domain decodes."""
    domain = dpx.Domain([dpx.Datetime("opened", "2020-01-01T00:00:00", "2026-01-01T00:00:00"), dpx.Numeric("x", 0, 1)])
    times = np.datetime64("2021-03-01T12:00:00", "us") + np.arange(40) * np.timedelta64(1, "D")
    frame = nw.from_dict({"opened": times, "x": np.linspace(0, 1, 40)}, backend=backend).to_native()

    def year(rows):
        return (nw.from_native(rows, eager_only=True)["opened"].dt.year().to_numpy() - 2020) / 6

    data = dpx.PrivateData(frame, domain, model=year, output="probability")
    assert data.column_model(domain.encode(frame)) == pytest.approx([2 * (1 / 6) - 1] * 40)
