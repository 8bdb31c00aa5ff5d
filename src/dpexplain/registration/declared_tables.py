"""Private rows in CSV and Arrow files, read into memory with types that follow from declarations, never from values.

A CSV file has no types: every entry is read as text by itself, and becomes what the domain declares for its column (a number, a whole number, a
date, text), or nothing where it does not fit. A line with more or fewer fields than the header is left out. Arrow files declare their types.
"""

from __future__ import annotations

import csv
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from dpexplain.domain import Date, Datetime, Domain, DomainLike, Numeric
from dpexplain.domain.catalogue import Feature
from dpexplain.domain.dates import instants
from dpexplain.domain.interface import format_list, hint
from dpexplain.domain.values import floats, objects
from dpexplain.errors import DataError
from dpexplain.registration.options import Where
from dpexplain.registration.tables import other_separator

CSV, ARROW = (".csv",), (".arrow", ".feather", ".ipc")
_BLOCK, _PIECE = 1 << 30, 1 << 20  # bytes of a CSV file that are parsed, and decoded, together


def declared_files(where: Where) -> list[Path] | None:
    """The CSV and Arrow files that are named, one by one or by a pattern; None where Parquet is meant."""
    places = [where] if isinstance(where, (str, Path)) else list(where)
    kinds = {Path(str(place)).suffix.lower() in (*CSV, *ARROW) for place in places}
    if kinds != {True}:
        return None
    found = [Path(path) for place in places for path in (sorted(glob(str(place))) if "*" in str(place) else [str(place)])]
    if absent := [str(path) for path in found if not path.is_file()] or ([] if found else [str(places[0])]):
        raise DataError(f"there is no file {absent[0]}. Check the name or the pattern")
    return found


def read_declared(files: Sequence[Path], domain: DomainLike, columns: Sequence[str], numbers: Sequence[str] = ()) -> pa.Table:
    """The named columns of all files. `numbers` are columns besides the domain's that hold numbers, such as labels."""
    wanted = list(dict.fromkeys(columns))
    return pa.concat_tables([_read(path, domain, wanted, numbers) for path in files])


def _read(path: Path, domain: DomainLike, wanted: list[str], numbers: Sequence[str]) -> pa.Table:
    try:
        if path.suffix.lower() in ARROW:
            return _select(_arrow(path), wanted, path)
        return _with_types(_select(_csv(path), wanted, path), domain, numbers)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot read {path.name} ({type(error).__name__}). Write it again as {path.suffix[1:]}, or as Parquet"
        ) from None


def _arrow(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()


def _csv(path: Path) -> pa.Table:
    """Every column as bytes, so that no entry decides about a type or an encoding."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        names = next(csv.reader(lines), [])
    bytes_ = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.binary()), strings_can_be_null=False)
    lenient = pyarrow.csv.ParseOptions(invalid_row_handler=lambda _: "skip", newlines_in_values=True)
    with pa.OSFile(str(path)) if _is_unicode(path) else pa.BufferReader(_in_unicode(path)) as source:
        whole = pyarrow.csv.ReadOptions(
            block_size=min(source.size() + 1, _BLOCK)
        )  # a record must fit a block, however long it is
        return pyarrow.csv.read_csv(source, whole, convert_options=bytes_, parse_options=lenient)


def _is_unicode(path: Path) -> bool:
    try:
        for _ in _texts(path, "strict"):
            pass
    except UnicodeDecodeError:
        return False
    return True


def _in_unicode(path: Path) -> bytes:
    """The file with U+FFFD for every byte that is not valid UTF-8: Arrow cannot leave out a line that has one. Other lines stay as they are."""
    return b"".join(text.encode() for text in _texts(path, "replace"))


def _texts(path: Path, errors: str) -> Iterator[str]:
    decoder = getincrementaldecoder("utf-8")(errors)
    with path.open("rb") as lines:
        while piece := lines.read(_PIECE):
            yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _select(table: pa.Table, wanted: list[str], path: Path) -> pa.Table:
    if problem := other_separator(table.column_names, wanted):
        raise DataError(f"{path.name} {problem}")
    for name in wanted:
        if name not in table.column_names:
            raise DataError(
                f"{path.name} has no column {name!r}{hint(name, table.column_names)}. It has {format_list(table.column_names)}"
            )
    return table.select(wanted)


def _with_types(table: pa.Table, domain: DomainLike, numbers: Sequence[str]) -> pa.Table:
    features = {feature.name: feature for feature in domain.features} if isinstance(domain, Domain) else {}
    typed = {name: _column(table.column(name), features.get(name), name in numbers) for name in table.column_names}
    return pa.table(typed)


def _column(column: Any, feature: Feature | None, number: bool) -> pa.Array:
    texts = [None if entry in (None, b"") else entry.decode("utf-8", "replace") for entry in column.to_pylist()]
    if number or isinstance(feature, Numeric):
        return _numbers(texts, whole=isinstance(feature, Numeric) and feature.integer)
    if isinstance(feature, (Date, Datetime)):
        seconds = instants(objects(texts))
        steps = np.where(np.isnan(seconds), 0, np.floor(seconds / feature.step)).astype(np.int64).astype(feature.numpy_type)
        return pa.array(steps, mask=np.isnan(seconds))
    values = getattr(feature, "values", None) or getattr(feature, "levels", None)
    if values and all(isinstance(value, int) for value in values):
        return _numbers(texts, whole=True)
    return pa.array(texts, pa.string())


def _numbers(texts: list[str | None], *, whole: bool) -> pa.Array:
    """float64; or int64 where whole numbers are declared, and then an entry that is not whole is missing."""
    values = floats(objects(texts))
    if not whole:
        return pa.array(values, mask=np.isnan(values))
    fits = (np.abs(values) < 2.0**53) & (values == np.floor(values))  # NaN does not
    return pa.array(np.where(fits, values, 0).astype(np.int64), mask=~fits)
