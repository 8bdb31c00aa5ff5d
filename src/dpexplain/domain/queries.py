"""Public queries as records, and how each is read: strictly, except for what the domain declares or the caller allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from dpexplain.arguments import quote
from dpexplain.domain.catalogue import Feature
from dpexplain.domain.features import Categorical
from dpexplain.domain.interface import FloatArray, format_list, hint
from dpexplain.domain.values import NUMBERS_AND_TEXT, is_missing
from dpexplain.errors import ParameterError, QueryError

Extra: TypeAlias = Literal["refuse", "ignore"]
OnError: TypeAlias = Literal["raise", "skip"]
Notes: TypeAlias = dict[str, str]  # feature → how its value was read, where not as it was given


@dataclass(frozen=True, slots=True)
class QueryRules:
    """How queries are read.

    `extra` is what happens to fields the domain does not declare: "refuse" or "ignore"; `known_extra` are never refused. `clip` asks about
    the nearest value within the bounds in place of one outside. `on_error` is what happens to a record of a batch that cannot be asked
    about: "raise" or "skip".
    """

    extra: Extra = "refuse"
    clip: bool = False
    on_error: OnError = "raise"
    known_extra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require_choice("extra", self.extra, ("refuse", "ignore"))
        _require_choice("on_error", self.on_error, ("raise", "skip"))
        if not isinstance(self.clip, bool):
            raise ParameterError(f"clip must be True or False, got {quote(self.clip)}")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record of a batch that was left out: its place, counted from 0, and why."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Records that can be asked about, as given and as points; `rows` are their places in the batch, `skipped` the others."""

    points: FloatArray
    records: tuple[Any, ...]
    notes: tuple[Notes, ...]
    rows: tuple[int, ...]
    skipped: tuple[Skipped, ...] = ()


Read: TypeAlias = tuple[FloatArray, Notes]


def read_each(records: Sequence[Any], read: Callable[[Any], Read], width: int, rules: QueryRules) -> Queries:
    """`read` of every record; one that cannot be asked about raises with its place, counted from 0, or is skipped."""
    found: list[tuple[int, Any, FloatArray, Notes]] = []
    skipped: list[Skipped] = []
    for row, record in enumerate(records):
        try:
            found.append((row, record, *read(record)))
        except QueryError as error:
            if rules.on_error == "raise":
                raise QueryError(f"row {row}: {error}") from None
            skipped.append(Skipped(row, str(error)))
    rows, kept, points, notes = zip(*found, strict=True) if found else ((), (), (), ())
    return Queries(np.array(points).reshape(-1, width), kept, notes, rows, tuple(skipped))


def record_of(record: Any) -> Mapping[Any, Any]:
    """One record: a mapping, a one-row data frame, or anything with keys, such as a pandas Series."""
    if isinstance(record, Mapping):
        return record
    frame = _frame_records(record)
    if frame is None and hasattr(record, "keys"):
        return {key: record[key] for key in record.keys()}  # noqa: SIM118 (a Series iterates over its values)
    if frame is None:
        raise QueryError(f"a query must be a dict with one value per feature, got {type(record).__name__}. Pass a dict")
    if len(frame) != 1:
        raise QueryError(
            f"a query is one record, got a frame of {len(frame)} rows. Pass several records to explain_many or shapley_many"
        )
    return frame[0]


def records_of(rows: Any) -> list[Mapping[Any, Any]]:
    """Several records: a data frame or a dict of columns."""
    if isinstance(rows, Mapping):
        return _mapping_records(rows)
    records = _frame_records(rows)
    if records is None:
        raise QueryError(f"queries must be a data frame or a list of dicts, got {type(rows).__name__}. Pass one of them")
    return records


class _Placements(dict[tuple[type, Any], tuple[int, float]]):
    """`Feature.place` of each value once; 1, 1.0 and True are equal and yet different values."""

    def __init__(self, feature: Feature) -> None:
        super().__init__()
        self.feature = feature

    def __missing__(self, key: tuple[type, Any]) -> tuple[int, float]:
        found = self[key] = self.feature.place(key[1])
        return found


def place_queries(features: Sequence[Feature], records: Sequence[Any]) -> list[list[tuple[int, float]]] | None:
    """Where each value is encoded, feature by feature; None unless all records are plain and as the domain declares, without any remedy."""
    if not all(isinstance(record, Mapping) and len(record) == len(features) for record in records):
        return None
    try:
        return [_place_column(feature, records) for feature in features]
    except Exception:
        # a misfit, or its own comparison failed: each record is then read by itself, so that the error names the record
        return None


def _place_column(feature: Feature, records: Sequence[Mapping[Any, Any]]) -> list[tuple[int, float]]:
    if len(records) == 1:
        return [feature.place(records[0][feature.name])]
    name, placements = feature.name, _Placements(feature)
    return [placements[type(value), value] for value in [record[name] for record in records]]


def place_query(
    features: Sequence[Feature], record: Mapping[Any, Any], rules: QueryRules
) -> tuple[list[tuple[int, float]], Notes]:
    """Where each value is encoded (`Feature.place`), and how values were read that were not taken as given."""
    if len(record) != len(features) or not all(feature.name in record for feature in features):
        _require_fields(features, record, rules)
    placed, notes = [], Notes()
    for feature in features:
        value = record.get(feature.name)
        try:
            placed.append(feature.place(value))
        except QueryError:
            read, how = substitute(feature, value, rules.clip)
            placed.append(feature.place(read))
            notes[feature.name] = how
    return placed, notes


def substitute(feature: Feature, value: Any, clip: bool) -> tuple[Any, str]:
    """The substitute of a value that cannot be placed, and a description of it; the value itself where nothing is declared or allowed."""
    stand_in = feature.substitute
    if is_missing(value):
        return (value, "") if stand_in is None else (stand_in, f"missing, read as {stand_in}")
    if isinstance(feature, Categorical) and feature.other is not None and isinstance(value, NUMBERS_AND_TEXT):
        return feature.other, f"{value!r:.80} is not a declared value, read as {feature.other!r}"
    clipped = feature.clip(value) if clip else value
    return clipped, f"{value!r:.80} is outside the declared bounds, read as {clipped}"


def _require_fields(features: Sequence[Feature], record: Mapping[Any, Any], rules: QueryRules) -> None:
    """Raise QueryError for undeclared fields unless they may be ignored, and for absent ones unless they have a substitute.

    An undeclared field that looks like a misspelt absent one is always refused: ignoring it would silently ask about another record.
    """
    names = [feature.name for feature in features]
    absent = [name for name in names if name not in record]
    for field in record:
        if field in names or field in rules.known_extra:
            continue
        if rules.extra == "refuse":
            remedy = 'Remove it, or pass extra="ignore"'
            raise QueryError(f"unknown field {field!r}{hint(field, names)}. The domain declares {format_list(names)}. {remedy}")
        if meant := hint(field, absent):
            raise QueryError(f"unknown field {field!r}{meant}, and that one is missing. Rename or remove it")
    for feature in features:
        if feature.name in absent and feature.substitute is None:
            raise QueryError(f"field {feature.name!r} is missing. Give one value for each of {format_list(names)}")


def read_vector(features: Sequence[Feature], vector: Any, low: Any, high: Any, rules: QueryRules) -> tuple[Any, Notes]:
    """A record given as bare numbers, with substitutes for those that are not as the domain declares; only misfits are visited."""
    within = vector.dtype.kind in "iuf"
    suspects = np.flatnonzero(~((vector >= low) & (vector <= high))) if within else np.arange(len(vector))  # NaN is never within
    notes = Notes()
    read = vector if not len(suspects) else vector.astype(object)
    for j in suspects.tolist():
        try:
            features[j].place(read[j])
        except QueryError:
            value, how = substitute(features[j], read[j], rules.clip)
            features[j].place(value)
            read[j], notes[features[j].name] = value, how
    return read, notes


def _require_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ParameterError(f"{name} must be {' or '.join(map(repr, known))}, got {quote(value)}{hint(value, known)}")


def _frame_records(rows: Any) -> list[Mapping[Any, Any]] | None:
    from dpexplain.domain import frames  # as in `tables.py`, only where there is a data frame

    try:
        return list(frames.open_frame(rows).rows(named=True))
    except (TypeError, ValueError):
        return None


def _mapping_records(columns: Mapping[Any, Any]) -> list[Mapping[Any, Any]]:
    try:
        entries = [list(column) for column in columns.values() if not isinstance(column, (str, bytes))]
    except TypeError:
        entries = []
    if len(entries) < len(columns) or len({len(entry) for entry in entries}) > 1:
        raise QueryError("a dict of queries needs equally long columns. Pass a single record to explain or shapley")
    return [dict(zip(columns, values, strict=True)) for values in zip(*entries, strict=True)]
