"""Columns as a model is shown them: NumPy arrays and series of pandas, whose types may follow from their entries. `proofs/registration.md`.

`describe_series` says of which kind the entries are. `show_array` and `show_series` convert a column whose entries are of one kind: its type then follows from
the kind and from what is declared. A missing entry is NaN in a series, and None in an array unless it holds numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpexplain.domain import Numeric
from dpexplain.domain.catalogue import Feature
from dpexplain.domain.frames import entries
from dpexplain.domain.values import Column, floats, objects, readable
from dpexplain.registration.entry_kinds import (
    EntryKind,
    Kinds,
    category_values,
    find_kinds,
    find_missing,
    has_whole_values,
    kind_of,
    mark_missing,
)
from dpexplain.registration.nested_nulls import group_by_nulls
from dpexplain.registration.row_groups import AS_GIVEN, EntryKinds, Group, describe_column, describe_kinds

if TYPE_CHECKING:
    import pandas as pd

_UNUSUAL = len(EntryKind)  # kinds from here on: instants that a column of the usual type does not hold, by their own type


def describe_array(column: NDArray[Any], feature: Feature | None, missing: int) -> EntryKinds:
    """Of which kind the entries are. A typed array that no feature declares is shown as it is, but for integers."""
    if feature is None and _is_typed_array(column):
        return EntryKinds(AS_GIVEN)
    return describe_column(readable(column), feature, missing)


def show_array(column: Column, feature: Feature | None, kind: int, *, complete: bool) -> Column:
    """An array of entries of one kind."""
    if feature is None and _is_typed_array(column):
        return column.astype(np.float64) if column.dtype.kind in "iu" else column
    column = readable(column) if column.dtype.kind in "Sc" else column
    wanted = _numeric_type(column.dtype, feature, kind, complete=complete)
    if wanted is not None:
        return _convert(column, wanted)
    if kind == EntryKind.MISSING:
        return np.full(len(column), None, dtype=object)
    if kind != EntryKind.TEXT or column.dtype.kind == "T":
        return column
    return column if complete and column.dtype == object else _none_for_missing(column)


def _is_typed_array(column: NDArray[Any]) -> bool:
    return column.ndim != 1 or column.dtype.kind not in "OUSc"


def _numeric_type(given: Any, feature: Feature | None, kind: int, *, complete: bool) -> np.dtype[Any] | None:
    """The type of a column of numbers or booleans; None for others. Categories are whole numbers where all is complete."""
    if kind == EntryKind.TRUTH:
        return np.dtype(np.bool_)
    if kind != EntryKind.NUMBER:
        return None
    if complete and feature is not None and not isinstance(feature, Numeric):
        return np.dtype(np.int64)
    return np.dtype(np.float32 if given == np.float32 else np.float64)


def _convert(column: Column, wanted: np.dtype[Any]) -> Column:
    if column.dtype == wanted:
        return column
    return column.astype(wanted) if wanted.kind == "b" else floats(column).astype(wanted)


def _none_for_missing(column: Column) -> Column:
    found = column.astype(object)
    found[find_missing(column)] = None
    return found


def describe_series(series: pd.Series[Any], feature: Feature | None, missing: int = EntryKind.TEXT) -> EntryKinds:
    """Of which kind the entries are; `missing` is what a missing one counts as where no feature says it.

    A column that no feature declares, of a type that pandas does not choose by itself, is shown as it is, and apart where a null in it may change what
    a model makes of the others.
    """
    import pandas as pd

    if feature is None and not is_inferred(series.dtype):
        return _describe_declared_type(series)
    if isinstance(feature, Numeric) or has_whole_values(feature):
        return describe_column(read_entries(series), feature)
    if isinstance(series.dtype, pd.CategoricalDtype):
        return _describe_categories(series, feature, missing)
    return describe_kinds(_series_kinds(series), lambda: read_entries(series), feature, missing)


def _describe_declared_type(series: pd.Series[Any]) -> EntryKinds:
    """Whole numbers and booleans beside a null are converted to floats or objects, in a dictionary of Arrow too; so are those in nested values."""
    stored = _arrow_type(series.dtype)
    if stored is not None and pa.types.is_nested(stored):
        return EntryKinds(group_by_nulls(_arrow_entries(series)))
    if series.dtype.kind not in "iub" and not (stored is not None and pa.types.is_dictionary(stored)):
        return EntryKinds(AS_GIVEN)
    return EntryKinds(np.where(series.isna().to_numpy(), np.int16(AS_GIVEN + 1), np.int16(AS_GIVEN)))


def _arrow_type(dtype: Any) -> pa.DataType | None:
    import pandas as pd

    return dtype.pyarrow_dtype if isinstance(dtype, pd.ArrowDtype) else None


def _arrow_entries(series: pd.Series[Any]) -> list[Any]:
    return entries(pa.array(series.array))


def show_series(series: pd.Series[Any], feature: Feature | None, kind: int, *, complete: bool) -> pd.Series[Any]:
    """A series of entries of one kind."""
    if feature is None and not is_inferred(series.dtype):
        return series
    wanted = _numeric_type(series.dtype, feature, kind, complete=complete)
    if wanted is not None:
        return series if series.dtype == wanted else _series_like(series, _convert(read_entries(series), wanted))
    convert = _SHOWN[kind] if kind in _SHOWN else _as_instants  # noqa: SIM401  which mypy cannot follow
    return convert(series, feature)


def show_frame(frame: pd.DataFrame, features: Mapping[str, Feature], group: Group) -> pd.DataFrame:
    """Without the index, which says how many rows were before each: rows are numbered from 0 in each batch."""
    import pandas as pd

    found = frame.copy(deep=False)
    for name in frame.columns:
        given = frame[name]
        kind = group.kinds.get(name)  # a column without one is shown as it is
        shown = given if kind is None else show_series(given, features.get(name), kind, complete=group.complete)
        if shown is not given:
            found[name] = shown
    found.index = pd.RangeIndex(len(frame))
    return found


def is_inferred(dtype: Any) -> bool:
    """Whether pandas chooses a type like this by itself, by the entries of a column. All others are declared: nullable types, those of Arrow, durations."""
    import pandas as pd

    chosen = isinstance(dtype, (np.dtype, pd.CategoricalDtype, pd.DatetimeTZDtype)) or dtype == _usual_types()[0]
    return bool(chosen and dtype.kind != "m")


def read_entries(series: pd.Series[Any]) -> Column:
    """The entries as numbers where the column has a type of numbers, and as objects elsewhere."""
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biufM":
        return series.to_numpy()
    stored = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
    if isinstance(stored, np.dtype) and stored.kind == "c":
        return np.fromiter(map(_real, series.tolist()), dtype=object, count=len(series))
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
        return series.to_numpy(np.float64, na_value=np.nan)
    return _objects_of(series)


def _objects_of(series: pd.Series[Any]) -> Column:
    """The entries as objects; None for one that pandas stores and cannot return, such as text that is not valid Unicode or a date after the year 9999."""
    stored = _arrow_type(series.dtype)
    if stored is not None and pa.types.is_nested(
        stored
    ):  # as objects, pandas makes arrays of them: a null in one makes floats of all
        return objects(_arrow_entries(series))
    try:
        return series.astype(object).to_numpy()
    except Exception:
        if len(series) == 1:
            return np.full(1, None, dtype=object)
        half = len(series) // 2
        return np.concatenate([_objects_of(series.iloc[:half]), _objects_of(series.iloc[half:])])


def _real(entry: Any) -> Any:
    """One complex number makes all others of a column complex: those without an imaginary part are read as what they were."""
    return entry.real if isinstance(entry, complex) and entry.imag == 0 else entry


def _series_kinds(series: pd.Series[Any]) -> Kinds:
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.StringDtype):
        return mark_missing(EntryKind.TEXT, series.isna().to_numpy())
    if _holds_instants(dtype):
        return mark_missing(EntryKind.INSTANT if dtype == _usual_types()[1] else _UNUSUAL, series.isna().to_numpy())
    entries = read_entries(series)
    return _split_instants(find_kinds(entries), entries) if entries.dtype == object else find_kinds(entries)


def _holds_instants(dtype: Any) -> bool:
    import pandas as pd

    return dtype.kind == "M" and not isinstance(dtype, pd.ArrowDtype)


def _split_instants(kinds: Kinds, entries: Column) -> Kinds:
    """Instants of a time zone or of an unusual unit are kinds of their own, as a column holds those of one type only."""
    known: dict[Any, int] = {_usual_types()[1]: EntryKind.INSTANT, None: EntryKind.OTHER}
    found = kinds.astype(np.int64)
    for i in np.flatnonzero(kinds == EntryKind.INSTANT):
        found[i] = known.setdefault(_instant_type(entries[i]), _UNUSUAL - 2 + len(known))
    return found


def _instant_type(entry: Any) -> Any:
    """The type of a column that holds this instant; None where pandas has none for it."""
    import pandas as pd

    try:
        stamp, usual = pd.Timestamp(entry), np.datetime_data(_usual_types()[1])[0]
        unit: Any = usual if usual == "ns" or type(entry) is datetime else stamp.unit
        stamp.as_unit(unit)
        return _type_of_instants(unit, stamp.tz)
    except Exception:  # out of its range, or a time zone of somebody's own
        return None


@cache
def _type_of_instants(unit: Any, zone: Any) -> Any:
    import pandas as pd

    return pd.Series([pd.Timestamp(2000, 1, 1, tzinfo=zone).as_unit(unit)]).dtype


@cache
def _usual_types() -> tuple[Any, Any]:
    """The types that pandas gives a column of text, and one of instants."""
    import pandas as pd

    return pd.Series(["text"]).dtype, pd.Series([datetime(2000, 1, 1)]).dtype


def _describe_categories(series: pd.Series[Any], feature: Feature | None, undeclared: int) -> EntryKinds:
    """Declared texts stay categories, and so does a missing entry among them; other values are shown by their own kinds."""
    values = category_values(feature)
    declared = frozenset(values) if values and all(isinstance(value, str) for value in values) else frozenset()
    missing = EntryKind.CATEGORY if declared else EntryKind.MISSING
    kinds = [_category_kind(_real(value), declared) for value in series.cat.categories.astype(object)]
    codes = series.cat.codes.to_numpy()
    found = describe_kinds(np.array([*kinds, missing], dtype=np.int16)[codes], lambda: read_entries(series), feature, undeclared)
    return EntryKinds(found.kinds, found.complete & (codes >= 0) if declared else found.complete)


def _category_kind(value: Any, declared: frozenset[Any]) -> EntryKind:
    kind = kind_of(value)
    if kind == EntryKind.TEXT and value in declared:
        return EntryKind.CATEGORY
    return EntryKind.OTHER if kind == EntryKind.INSTANT else kind


def _as_categories(series: pd.Series[Any], feature: Feature | None) -> pd.Series[Any]:
    """With the declared values as categories: in the declared order where the column is ordered, sorted as pandas does it elsewhere.

    The column's own order would not do: where pandas has found the categories in the rows, another row decides which there are.
    """
    values, ordered = [str(value) for value in category_values(feature)], bool(series.cat.ordered)
    return series.cat.set_categories(values if ordered else sorted(values), ordered=ordered)


def _as_text(series: pd.Series[Any], _: Feature | None) -> pd.Series[Any]:
    import pandas as pd

    text = _usual_types()[0]
    if series.dtype == text and isinstance(text, pd.StringDtype):
        return series
    missing = series.isna().to_numpy()
    entries = _objects_of(series)
    return _series_like(series, np.where(missing, np.nan, entries) if missing.any() else entries).astype(text)


def _as_instants(series: pd.Series[Any], _: Feature | None) -> pd.Series[Any]:
    """Of the usual type where all are missing; else of the type of the first that is not."""
    if _holds_instants(series.dtype) and (series.dtype == _usual_types()[1] or series.notna().any()):
        return series
    entries = _objects_of(series)
    missing = find_missing(entries)
    if missing.all():
        return _series_like(series, no_instants(len(series)))
    wanted = _instant_type(entries[np.flatnonzero(~missing)[0]])
    found = _to_instants(_none_for_missing(entries), wanted)
    found.index, found.name = series.index, series.name
    return found


def _to_instants(entries: Column, wanted: Any) -> pd.Series[Any]:
    """NaT for an instant that pandas has no place for in a column of its type: some before and after the years of Python."""
    import pandas as pd

    try:
        found: pd.Series[Any] = pd.Series(entries.tolist(), dtype=wanted)
    except Exception:
        half = len(entries) // 2
        if not half:
            return pd.Series([pd.NaT], dtype=wanted)
        found = pd.concat([_to_instants(entries[:half], wanted), _to_instants(entries[half:], wanted)], ignore_index=True)
    return found


def no_instants(count: int) -> Column:
    """So many missing instants, in the type that pandas gives instants."""
    return np.full(count, "NaT", dtype=_usual_types()[1])


def _as_objects(series: pd.Series[Any], _: Feature | None) -> pd.Series[Any]:
    return series if series.dtype == object else _series_like(series, read_entries(series).astype(object))


def _series_like(series: pd.Series[Any], column: Column) -> pd.Series[Any]:
    import pandas as pd

    return pd.Series(column, index=series.index, name=series.name, dtype=column.dtype)


def _as_missing(series: pd.Series[Any], _: Feature | None) -> pd.Series[Any]:
    return _series_like(series, np.full(len(series), np.nan, dtype=object))


_SHOWN: dict[int, Callable[[Any, Feature | None], pd.Series[Any]]] = {
    EntryKind.TEXT: _as_text,
    EntryKind.CATEGORY: _as_categories,
    EntryKind.OTHER: _as_objects,
    EntryKind.MISSING: _as_missing,
}
