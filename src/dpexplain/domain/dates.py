"""Dates and times as public features: numbers between two declared instants.

An instant without a time zone is read as UTC, and one with a time zone is converted. Text is read as ISO 8601 ("2026-03-01",
"2026-03-01T12:30:00+01:00"). Numbers are not instants, because their unit and origin are unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from math import floor, isnan, nan
from typing import ClassVar

import numpy as np

from dpexplain.arguments import quote
from dpexplain.domain.features import refuse, require_name, set_field, to_unit
from dpexplain.domain.interface import FloatArray, Kind
from dpexplain.domain.scaled import Scaled
from dpexplain.domain.values import Column
from dpexplain.errors import DomainError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(value: object) -> float:
    """Seconds since 1970 in UTC; NaN for what is not a date or time. Never raises.

    Times are cut to microseconds before they are divided, as `instants` does it: an instant is the same number in a column of objects.
    """
    try:
        if hasattr(value, "to_datetime64"):  # of pandas: up to nanoseconds, and years that Python has not
            value = value.to_datetime64()
        if isinstance(value, np.datetime64):
            return float(value.astype("datetime64[us]").astype(np.int64)) / 1e6 if not np.isnat(value) else nan
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        if isinstance(value, datetime):
            aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value
            return float((aware - _EPOCH) // timedelta(microseconds=1)) / 1e6
        return float((value - _EPOCH.date()).days * 86400) if isinstance(value, date) else nan
    except Exception:  # pandas' NaT, text that is not a date, a year outside datetime's range
        return nan


def instants(column: Column) -> FloatArray:
    """`instant` of every entry, at NumPy's speed where the column has a type for dates."""
    if column.dtype.kind == "M":
        seconds = column.astype("datetime64[us]").astype(np.int64) / 1e6
        return np.where(np.isnat(column), nan, seconds)
    return np.fromiter(map(instant, column.tolist()), np.float64, count=len(column))


@dataclass(frozen=True, slots=True)
class Datetime(Scaled):
    """A date with a time of day between two declared instants, encoded as (t - low)/(high - low) ∈ [0, 1].

    Private rows: instants outside the bounds are clamped; whatever is not a date or time becomes `missing`, by default the middle.
    Queries: a `datetime`, `date` or ISO 8601 text within the bounds, or a missing one where `missing` is declared.
    """

    name: str
    low: str | date
    high: str | date
    missing: str | date | None = None
    span: tuple[float, float, float] = field(init=False, repr=False, compare=False)  # low, high, missing; in `step`s since 1970

    kind: ClassVar[str] = "datetime"
    block: ClassVar[Kind] = "numeric"
    width: ClassVar[int] = 1
    step: ClassVar[int] = 1  # seconds
    numpy_type: ClassVar[str] = "datetime64[s]"

    def __post_init__(self) -> None:
        require_name(self)
        low, high = self._parse_bound("low"), self._parse_bound("high")
        if not low < high:
            raise DomainError(f"{self.name}: low={self.low} must be before high={self.high}")
        missing = low + (high - low) / 2 if self.missing is None else self._parse_bound("missing")
        if not low <= missing <= high:
            raise DomainError(f"{self.name}: missing={self.missing} must lie between {self.low} and {self.high}")
        set_field(self, "span", (low, high, missing))

    def _parse_bound(self, bound: str) -> float:
        """The bound as a number; the field becomes its ISO text."""
        steps = self._steps(instant(getattr(self, bound)))
        if isnan(steps):
            raise DomainError(
                f"{self.name}: {bound} must be a date or ISO text such as '2026-03-01', got {quote(getattr(self, bound))}. Declare it so"
            )
        set_field(self, bound, self._text(steps))
        return steps

    def _steps(self, seconds: float) -> float:
        return seconds if isnan(seconds) else float(floor(seconds / self.step))

    def _text(self, steps: float) -> str:
        return str(np.array(int(steps), dtype=np.int64).astype(self.numpy_type))

    @property
    def substitute(self) -> str | None:
        return None if self.missing is None else str(self.missing)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def fill(self, column: Column, out: FloatArray) -> None:
        low, high, missing = self.span
        out[:, 0] = to_unit(np.floor(instants(column) / self.step), low, high, missing)

    def read(self, encoded: FloatArray) -> Column:
        """Dates again, to the day or second; a missing one is returned as its substitute."""
        low, high, _ = self.span
        return np.rint(np.clip(low + encoded[:, 0] * (high - low), low, high)).astype(np.int64).astype(self.numpy_type)

    def place(self, value: object) -> tuple[int, float]:
        low, high, _ = self.span
        steps = self._steps(instant(value))
        if not low <= steps <= high:
            refuse(self, value, f"a {self.kind} from {self.low} to {self.high} (the declared bounds)")
        return 0, (steps - low) / (high - low)

    def clip(self, value: object) -> object:
        """The nearer bound for an instant outside of them; any other value as it is."""
        steps, (low, high, _) = self._steps(instant(value)), self.span
        return value if isnan(steps) else self._text(min(max(steps, low), high))

    def __str__(self) -> str:
        return f"{self.name} [{self.low}, {self.high}]"


@dataclass(frozen=True, slots=True)
class Date(Datetime):
    """A calendar day between two declared ones, encoded as days since the first over the days between. Times of day are cut off."""

    kind: ClassVar[str] = "date"
    step: ClassVar[int] = 86400
    numpy_type: ClassVar[str] = "datetime64[D]"
