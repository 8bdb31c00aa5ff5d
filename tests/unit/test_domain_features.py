"""Each feature's two rules: total for private values, strict for queries."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpexplain.domain import Binary, Categorical, Domain, Numeric, Ordinal
from dpexplain.errors import DomainError, QueryError

NAN, INF = float("nan"), float("inf")


def encode(feature, values):
    return Domain([feature]).encode({feature.name: values})


def column(feature, values):
    return encode(feature, values)[:, 0].tolist()


def test_numeric_is_scaled_to_the_unit_interval():
    assert column(Numeric("age", 20, 100), [20, 60, 100, 40.0]) == [0, 0.5, 1, 0.25]


def test_numeric_clamps_what_is_out_of_range_however_far():
    assert column(Numeric("age", 20, 100), [19, 101, INF, -INF, 10**400, -(10**400), "1e999"]) == [0, 1, 1, 0, 1, 0, 1]


def test_numeric_missing_is_the_midpoint_or_the_declared_value():
    garbage = [None, NAN, "old", b"12", [3], {}, 1j, np.datetime64("2020-01-01"), np.timedelta64(3, "D"), Decimal("sNaN")]
    assert set(column(Numeric("age", 20, 100), garbage)) == {0.5}
    assert set(column(Numeric("age", 20, 100, missing=40), garbage)) == {0.25}


def test_numeric_reads_numbers_of_any_type():
    same = [40, 40.0, "40", " 40 ", "4e1", np.int8(40), np.float32(40), Decimal(40), Fraction(40)]
    assert set(column(Numeric("age", 20, 100), same)) == {0.25}
    assert column(Numeric("flag", 0, 2), [True, False, "True", "FALSE", np.True_]) == [0.5, 0, 0.5, 0, 0.5]


def test_numeric_stays_in_the_unit_interval_at_the_edge_of_floating_point():
    assert column(Numeric("x", 0.1, 0.1 + 2e-17 + 1.4e-17), [0.1, 1]) == [0, 1]
    assert column(Numeric("x", 0, 5e-324), [0, 5e-324, 1]) == [0, 1, 1]


def test_ordinal_levels_are_evenly_spaced():
    education = Ordinal("education", levels=["none", "school", "college", "degree"])
    assert column(education, ["none", "school", "college", "degree"]) == [0, pytest.approx(1 / 3), pytest.approx(2 / 3), 1]


def test_ordinal_missing_is_the_middle_or_the_declared_level():
    assert column(Ordinal("e", ["a", "b", "c"]), [None, "z", NAN, [1]]) == [0.5] * 4
    assert column(Ordinal("e", ["a", "b", "c"], missing="a"), [None, "z"]) == [0, 0]


def test_categorical_is_one_hot_and_unknown_is_all_zeros():
    work = Categorical("work", values=["private", "public"])
    assert encode(work, ["public", "private", None, "circus"]).tolist() == [[0, 1], [1, 0], [0, 0], [0, 0]]


def test_categorical_other_takes_everything_undeclared():
    work = Categorical("work", values=["private", "public"], other="rest")
    assert Domain([work]).names == ("work=private", "work=public", "work=rest")
    assert encode(work, ["public", None, "circus", "rest"]).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize("values", [[1, 2], ["1", "2"], [1.0, 2.0], ["01", "02"]])
def test_categorical_codes_match_as_numbers_or_text(values):
    codes = Categorical("code", values=values)
    for rows in ([1, 2], [1.0, 2.0], ["1", "2"], ["1.0", "2.0"], np.array([1, 2]), np.array(["1", "2"])):
        assert encode(codes, rows).tolist() == [[1, 0], [0, 1]]


def test_binary_understands_the_usual_words():
    assert column(Binary("m"), [True, 1, "yes", "true", "Yes", "TRUE", 1.0, "1", np.True_]) == [1] * 9
    assert column(Binary("m"), [False, 0, "no", "false", "No", "FALSE", 0.0, "0", np.False_]) == [0] * 9


def test_binary_missing_is_zero_or_the_declared_value():
    garbage = [None, NAN, 2, 0.5, "maybe", [True]]
    assert column(Binary("m"), garbage) == [0] * 6
    assert column(Binary("m", missing=True), garbage) == [1] * 6
    assert column(Binary("m", missing="yes"), garbage) == [1] * 6


def test_binary_with_two_declared_values():
    sex = Binary("sex", values=("F", "M"), missing="M")
    assert Domain([sex]).names == ("sex=M",)
    assert column(sex, ["F", "M", None, "yes"]) == [0, 1, 1, 1]


def test_features_are_values():
    assert Categorical("w", ["a", 1.0]) == Categorical("w", ("a", np.int64(1)))
    assert len({Numeric("a", 0, 1), Numeric("a", -0.0, 1.0), Binary("a"), Binary("a")}) == 2
    with pytest.raises(AttributeError):
        Numeric("a", 0, 1).low = 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Numeric("a", 1, 1), "must be below high"),
        (lambda: Numeric("a", 2, 1), "must be below high"),
        (lambda: Numeric("a", -1.7e308, 1.7e308), "by a finite amount"),
        (lambda: Numeric("a", NAN, 1), "low must be a finite number"),
        (lambda: Numeric("a", 0, INF), "high must be a finite number"),
        (lambda: Numeric("a", 0, 10**400), "high must be a finite number"),
        (lambda: Numeric("a", "0", 1), "Declare a public bound"),
        (lambda: Numeric("a", 0, True), "Declare a public bound"),
        (lambda: Numeric("a", None, 1), "Declare a public bound"),
        (lambda: Numeric("a", 0, 1, missing=2), r"must lie within \[0, 1\]"),
        (lambda: Numeric("a", 0, 1, missing=NAN), "missing must be a finite number"),
        (lambda: Numeric("", 0, 1), "name must be non-empty text"),
        (lambda: Numeric(3, 0, 1), "name must be non-empty text"),
        (lambda: Numeric("\ud800", 0, 1), "not valid Unicode"),
        (lambda: Ordinal("a", []), "at least two"),
        (lambda: Ordinal("a", ["x"]), "at least two"),
        (lambda: Ordinal("a", "low"), "Pass a list"),
        (lambda: Ordinal("a", {"x", "y"}), "in a fixed order"),
        (lambda: Ordinal("a", ["x", "x"]), "repeats 'x'"),
        (lambda: Ordinal("a", ["x", "y"], missing="z"), "must be one of 'x', 'y'"),
        (lambda: Categorical("a", []), "List every public value"),
        (lambda: Categorical("a", ["x", "y", "x"]), "List each value once"),
        (lambda: Categorical("a", [1, "1"]), "count as the same"),
        (lambda: Categorical("a", [True, False]), r"Binary\('a'\)"),
        (lambda: Categorical("a", [None]), "Use strings, or finite numbers"),
        (lambda: Categorical("a", [NAN]), "Use strings, or finite numbers"),
        (lambda: Categorical("a", [2**53]), "longer codes as strings"),
        (lambda: Categorical("a", [10**400]), "longer codes as strings"),
        (lambda: Categorical("a", ["\udfff"]), "Remove the lone surrogates"),
        (lambda: Categorical("a", 7), "Pass a list"),
        (lambda: Categorical("a", ["x"], other="x"), "not one of the values"),
        (lambda: Categorical("a", ["x"], other=3), "must be text"),
        (lambda: Binary("a", values=["x"]), "values must be two"),
        (lambda: Binary("a", values=["x", "x"]), "repeats"),
        (lambda: Binary("a", values=["x", "y"], missing="z"), "must be one of"),
        (lambda: Binary("a", missing="perhaps"), "must be one of"),
    ],
)
def test_an_inconsistent_declaration_is_refused_with_its_remedy(make, message):
    with pytest.raises(DomainError, match=message):
        make()


QUERY_MISFITS = [
    (Numeric("age", 17, 97), [16.999, 97.001, NAN, INF, -INF, None, "40", True, [40], 10**400, np.timedelta64(40, "s")]),
    (Ordinal("education", ["a", "b"]), ["c", None, NAN, ["a"], b"a"]),
    (Categorical("work", ["a", "b"]), ["c", None, NAN, {"a": 1}, 3]),
    (Categorical("work", ["a", "b"], other="rest"), [{"a": 1}, b"a"]),
    (Binary("married"), ["maybe", None, NAN, 2, 0.5, []]),
    (Binary("sex", values=("F", "M")), ["yes", True, None, "f"]),
]


@pytest.mark.parametrize(("feature", "value"), [(f, v) for f, values in QUERY_MISFITS for v in values])
def test_a_query_outside_the_declaration_is_refused_not_repaired(feature, value):
    remedy = "Ask about a value|Give a value, or let the owner declare what stands for a missing one|Write it as a number"
    with pytest.raises(QueryError, match=f"^{feature.name}: .*({remedy})"):
        Domain([feature]).encode_query({feature.name: value})


@pytest.mark.parametrize(
    ("feature", "accepted"),
    [
        (Numeric("age", 17, 97), "a number from 17 to 97"),
        (Ordinal("e", ["a", "b"]), "one of the declared levels 'a', 'b'"),
        (Categorical("w", ["a", "b"]), "one of the declared values 'a', 'b'"),
        (Categorical("w", range(100)), r"10, 11, … \(100 in all\)"),
        (Binary("m"), "one of True, False, 1, 0, 'yes', 'no'"),
        (Binary("s", values=("F", "M")), "one of 'F', 'M'"),
    ],
)
def test_the_refusal_says_what_is_accepted(feature, accepted):
    with pytest.raises(QueryError, match=accepted):
        Domain([feature]).encode_query({feature.name: "x" * 1000})


def test_queries_on_the_bounds_are_accepted():
    age = Domain([Numeric("age", 17, 97)])
    assert [age.encode_query({"age": value})[0] for value in (17, 97, np.float32(57), Decimal(37))] == [0, 1, 0.5, 0.25]


@pytest.mark.parametrize("feature", [Categorical("work", ["private", "public"]), Ordinal("work", ["private", "public"])])
def test_a_value_in_another_spelling_is_suggested(feature):
    with pytest.raises(QueryError, match=r"'Private' is not one of .* \(did you mean 'private'\?\)"):
        Domain([feature]).encode_query({"work": "Private"})
