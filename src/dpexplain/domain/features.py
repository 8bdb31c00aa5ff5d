"""Numbers, levels, categories and yes/no as public features, each with a total rule for private values and a strict one for queries.

A feature maps one raw column to `width` encoded columns. `fill` is for private rows: it never raises, whatever they hold.
`place` is for queries: it raises QueryError unless `fill` would represent the value exactly, and returns the one encoded column
that is not zero, and its entry: what `fill` would have written. `substitute` is the declared value that replaces a missing one, or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan
from typing import Any, ClassVar, NoReturn

import numpy as np

from dpexplain.arguments import quote
from dpexplain.domain.interface import FloatArray, Kind, format_list, hint
from dpexplain.domain.labelled import Labelled
from dpexplain.domain.scaled import Scaled, require_scale
from dpexplain.domain.values import (
    NUMBERS,
    Column,
    Value,
    declared_column,
    declared_values,
    find,
    floats,
    is_missing,
    lookup_table,
    number,
    positions,
    unicode_text,
)
from dpexplain.errors import DomainError, QueryError

YES_NO = {
    False: 0, "no": 0, "No": 0, "NO": 0, "false": 0, "False": 0, "FALSE": 0, "0": 0,
    True: 1, "yes": 1, "Yes": 1, "YES": 1, "true": 1, "True": 1, "TRUE": 1, "1": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Numeric(Scaled):
    """A number within declared public bounds, encoded as (x - low)/(high - low) ∈ [0, 1].

    Private rows: numbers outside the bounds, ±inf included, are clamped to the nearer one; text is read as a number where it is
    one; everything else (None, NaN, other text, other types) becomes `missing`, by default the midpoint of the bounds.
    Queries: a finite number within the bounds, which are inclusive, or a missing one where `missing` is declared; anything else is refused.
    `integer=True` makes numbers that are drawn or decoded whole; it changes nothing about how records are read.
    """

    name: str
    low: float
    high: float
    missing: float | None = None
    integer: bool = False

    kind: ClassVar[str] = "numeric"
    block: ClassVar[Kind] = "numeric"
    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        require_name(self)
        for bound in ("low", "high"):
            set_field(self, bound, _finite(self.name, bound, getattr(self, bound)))
        if not self.low < self.high or not isfinite(self.high - self.low):
            raise DomainError(f"{self.name}: low={self.low:g} must be below high={self.high:g}, by a finite amount")
        if self.missing is not None:
            set_field(self, "missing", _finite(self.name, "missing", self.missing))
        if not self.low <= self.default <= self.high:
            raise DomainError(f"{self.name}: missing={self.missing} must lie within [{self.low:g}, {self.high:g}]")
        if not isinstance(self.integer, bool) or (self.integer and (self.low % 1 or self.high % 1)):
            raise DomainError(f"{self.name}: integer must be True or False, and with True both bounds whole numbers")

    @property
    def default(self) -> float:
        """The substitute of a missing value, in raw units."""
        return self.low + (self.high - self.low) / 2 if self.missing is None else self.missing

    @property
    def substitute(self) -> float | None:
        return self.missing

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def fill(self, column: Column, out: FloatArray) -> None:
        out[:, 0] = to_unit(floats(column), self.low, self.high, self.default)

    def read(self, encoded: FloatArray) -> Column:
        """Raw numbers again; a missing one is returned as its substitute."""
        raw = np.clip(self.low + encoded[:, 0] * (self.high - self.low), self.low, self.high)
        return np.rint(raw).astype(np.int64) if self.integer else raw

    def place(self, value: object) -> tuple[int, float]:
        if not (type(value) is float or type(value) is int) or not self.low <= value <= self.high:
            self._require(value)
        return 0, (number(value) - self.low) / (self.high - self.low)

    def _require(self, value: object) -> None:
        accepted = f"a number from {self.low:g} to {self.high:g}"
        if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, NUMBERS):
            refuse(self, value, accepted)
        if not self.low <= number(value) <= self.high:
            refuse(self, value, f"{accepted} (the declared bounds)")

    def clip(self, value: object) -> object:
        """The nearer bound for a number outside of them; any other value as it is."""
        if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, NUMBERS) or isnan(number(value)):
            return value
        return min(max(number(value), self.low), self.high)

    def __str__(self) -> str:
        return f"{self.name} [{self.low:g}, {self.high:g}]"


@dataclass(frozen=True, slots=True)
class Ordinal(Scaled):
    """One of k ≥ 2 ordered public levels; level i (from 0) is encoded as i/(k - 1) ∈ [0, 1].

    Private rows: a missing or undeclared level becomes `missing` (one of the levels), by default the middle, 1/2.
    Queries: a declared level, or a missing one where `missing` is declared; anything else is refused.
    """

    name: str
    levels: Sequence[Value]
    missing: Value | None = None
    lookup: dict[Any, int] = field(init=False, repr=False, compare=False)

    kind: ClassVar[str] = "ordinal"
    block: ClassVar[Kind] = "numeric"
    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        require_name(self)
        set_field(self, "levels", declared_values(self.name, "levels", self.levels))
        if len(self.levels) < 2:
            raise DomainError(f"{self.name}: levels must be at least two, lowest first, got {len(self.levels)}")
        set_field(self, "lookup", lookup_table(self.levels))
        _declared_missing(self, self.levels)

    @property
    def substitute(self) -> Value | None:
        return self.missing

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def fill(self, column: Column, out: FloatArray) -> None:
        scale = np.linspace(0.0, 1.0, len(self.levels))
        default = 0.5 if self.missing is None else scale[self.levels.index(self.missing)]
        out[:, 0] = np.append(scale, default)[positions(column, self.lookup)]  # position -1 is the default

    def read(self, encoded: FloatArray) -> Column:
        """The nearest levels; None for the middle where it is not a level and encodes a missing value."""
        place = encoded[:, 0] * (len(self.levels) - 1)
        found = np.rint(place).astype(np.intp)
        between = (np.abs(place - found) > 0.25) & (self.missing is None)
        return declared_column(self.levels, np.where(between, len(self.levels), found))

    def place(self, value: object) -> tuple[int, float]:
        if (found := find(self.lookup, value)) < 0:
            refuse(self, value, f"one of the declared levels {format_list(self.levels)}")
        last = len(self.levels) - 1
        return 0, 1.0 if found == last else found * (1 / last)  # to the bit as by linspace in `fill`

    def __str__(self) -> str:
        return f"{self.name} ({len(self.levels)} levels)"


class NoneOfThem:
    """What an optional category is read as where it is missing."""

    def __str__(self) -> str:
        return "none of the values"


NONE_OF_THEM = NoneOfThem()


@dataclass(frozen=True, slots=True)
class Categorical(Scaled):
    """One of k public values, encoded one-hot: v ∈ {0, 1}^k with Σv ≤ 1.

    Private rows: a missing or undeclared value becomes all zeros; with `other="…"` declared it falls into one further column of
    that name instead, and then Σv = 1; with `missing` (one of the values, or `other`) declared, a missing one counts as that value.
    Queries: a declared value, `other` by its name; any undeclared value where there is an `other`, and a missing one where `missing` or
    `other` is declared, or where `optional=True` says that none of the values, all zeros, is an answer too. Anything else is refused.
    """

    name: str
    values: Sequence[Value]
    other: str | None = None
    missing: Value | None = None
    optional: bool = False
    lookup: dict[Any, int] = field(init=False, repr=False, compare=False)

    kind: ClassVar[str] = "categorical"
    block: ClassVar[Kind] = "one-hot"

    def __post_init__(self) -> None:
        require_name(self)
        set_field(self, "values", declared_values(self.name, "values", self.values))
        if not self.values:
            raise DomainError(f"{self.name}: values is empty. List every public value")
        if self.other is not None and (not isinstance(self.other, str) or self.other in map(str, self.values)):
            raise DomainError(f"{self.name}: other={quote(self.other)} must be text that is not one of the values")
        declared_values(self.name, "other", self.columns)
        set_field(self, "lookup", lookup_table(self.columns))
        _declared_missing(self, self.columns)
        if not isinstance(self.optional, bool):
            raise DomainError(f"{self.name}: optional must be True or False, got {quote(self.optional)}")

    @property
    def substitute(self) -> Value | NoneOfThem | None:
        declared = self.other if self.missing is None else self.missing
        return NONE_OF_THEM if declared is None and self.optional else declared

    @property
    def columns(self) -> tuple[Value, ...]:
        """The value that each encoded column represents."""
        return (*self.values, *(() if self.other is None else (self.other,)))

    @property
    def width(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={value}" for value in self.columns)

    def fill(self, column: Column, out: FloatArray) -> None:
        found = positions(column, self.lookup)
        if self.missing is not None:
            unknown = np.flatnonzero(found < 0)
            absent = [i for i in unknown if is_missing(column[i])]
            found[absent] = find(self.lookup, self.missing)
        if self.other is not None:
            found[found < 0] = len(self.values)
        rows = np.flatnonzero(found >= 0)
        out[...] = 0.0
        out[rows, found[rows]] = 1.0

    def read(self, encoded: FloatArray) -> Column:
        """Values again; None where all columns are zero."""
        known = encoded.max(axis=1) > 0.5
        return declared_column(self.columns, np.where(known, encoded.argmax(axis=1), self.width))

    def place(self, value: object) -> tuple[int, float]:
        if (found := find(self.lookup, value)) < 0:
            if value is NONE_OF_THEM:
                return 0, 0.0
            refuse(self, value, f"one of the declared values {format_list(self.columns)}")
        return found, 1.0

    def __str__(self) -> str:
        return f"{self.name} ({len(self.columns)} values)"


@dataclass(frozen=True, slots=True)
class Binary(Scaled):
    """One of two public values, encoded as 0 or 1.

    Without `values`: False, 0, "no", "false" are 0 and True, 1, "yes", "true" are 1 (also Capitalised or UPPER CASE). With
    `values=("F", "M")` the first is 0 and the second 1, and no other value is accepted. Private rows: a missing or unknown value
    becomes `missing` (one of the accepted values), by default the 0 one. Queries: an accepted value, or a missing one where `missing` is
    declared; anything else is refused.
    """

    name: str
    values: Sequence[Value] | None = None
    missing: Value | None = None
    lookup: dict[Any, int] = field(init=False, repr=False, compare=False)  # accepted value → 0 or 1

    kind: ClassVar[str] = "binary"
    block: ClassVar[Kind] = "binary"
    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        require_name(self)
        set_field(self, "lookup", YES_NO)
        if self.values is not None:
            set_field(self, "values", declared_values(self.name, "values", self.values))
            if len(self.values) != 2:
                raise DomainError(f"{self.name}: values must be two, the one encoded as 0 first, got {len(self.values)}")
            set_field(self, "lookup", lookup_table(self.values))
            _declared_missing(self, self.values)
        elif self.missing is not None:
            self._plain_missing()

    def _plain_missing(self) -> None:
        if (position := find(YES_NO, self.missing)) < 0:
            raise DomainError(f"{self.name}: missing={quote(self.missing)} must be one of {format_list(YES_NO)}")
        set_field(self, "missing", bool(position))

    @property
    def substitute(self) -> Value | None:
        return self.missing

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name if self.values is None else f"{self.name}={self.values[1]}",)

    def fill(self, column: Column, out: FloatArray) -> None:
        default = 0 if self.missing is None else find(self.lookup, self.missing)
        out[:, 0] = np.array([0.0, 1.0, default])[positions(column, self.lookup)]  # position -1 is the default

    def read(self, encoded: FloatArray) -> Column:
        """Values again, or booleans where none were declared; a missing one is returned as its substitute."""
        ones = encoded[:, 0] > 0.5
        return ones if self.values is None else declared_column(self.values, ones.astype(np.intp))

    def place(self, value: object) -> tuple[int, float]:
        if (found := find(self.lookup, value)) < 0:
            words = "True, False, 1, 0, 'yes', 'no', 'true', 'false'"
            refuse(self, value, f"one of {words if self.values is None else format_list(self.values)}")
        return 0, float(found)

    def __str__(self) -> str:
        return f"{self.name} (binary)"


def to_unit(values: FloatArray, low: Any, high: Any, missing: Any) -> FloatArray:
    """Clamp to [low, high] with NaN → missing, then map affinely to [0, 1]; in place, since (m, n) may be large.

    Rounding is monotone: low ≤ x ≤ high gives 0 ≤ x - low ≤ high - low in floating point too, so the quotient is in [0, 1].
    """
    np.copyto(values, missing, where=np.isnan(values))
    np.clip(values, low, high, out=values)
    values -= low
    values /= high - low
    return values


def set_field(feature: Labelled, field: str, value: object) -> None:
    object.__setattr__(feature, field, value)


def require_name(feature: Any) -> None:
    if not isinstance(feature.name, str) or not feature.name:
        raise DomainError(f"a feature's name must be non-empty text, got {quote(feature.name)}. Pass its column's name")
    unicode_text("name", feature.name)
    feature.require_text(feature.name)
    set_field(feature, "scale", require_scale(f"{feature.name}: ", feature.scale))


def _finite(name: str, field: str, value: object) -> float:
    as_float = float("nan") if isinstance(value, (bool, str)) else number(value)
    if isnan(as_float) or not isfinite(as_float):
        raise DomainError(f"{name}: {field} must be a finite number, got {quote(value)}. Declare a public bound")
    return as_float + 0.0  # -0.0 becomes 0.0: equal bounds are written alike


def _declared_missing(feature: Ordinal | Categorical | Binary, values: Sequence[Value]) -> None:
    if feature.missing is None:
        return
    if (position := find(lookup_table(values), feature.missing)) < 0:
        raise DomainError(f"{feature.name}: missing={quote(feature.missing)} must be one of {format_list(values)}")
    set_field(feature, "missing", values[position])


_WRITTEN = {"numeric": "a number, without quotes", "date": "2026-12-31", "datetime": "2026-12-31T23:59:00"}


def refuse(feature: Any, value: object, accepted: str) -> NoReturn:
    """QueryError that quotes the value of a query, which is public, and what could be asked instead."""
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    if is_missing(value):
        owner = "other" if feature.kind == "categorical" else "missing"
        remedy = f"Give a value, or let the owner declare what stands for a missing one ({owner}=… in the domain)"
    elif feature.clip(value) is not value:
        remedy = "Ask about a value within them, or pass clip=True to ask about the nearest one instead. The answer will say so"
    elif isinstance(value, str) and feature.kind in _WRITTEN:
        remedy = f"Write it as {_WRITTEN[feature.kind]}"
    else:
        remedy = (
            "Ask about a value that the domain declares. Nothing is clamped or filled in for you, because another point would "
            "get another explanation"
        )
    declared = getattr(feature, "values", None) or getattr(feature, "levels", None) or ()
    raise QueryError(f"{feature.name}: {shown} is not {accepted}{hint(value, declared)}. {remedy}")
