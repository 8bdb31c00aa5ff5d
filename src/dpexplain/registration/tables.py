"""Tables on disk. Private ones are Parquet, whose types are declared: a reader that guesses types looks at every row.

Queries are public and may be CSV; their values are read as the domain declares them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpexplain.backends.parquet import ParquetFiles
from dpexplain.domain import Binary, Domain, DomainLike, Numeric, Ordinal
from dpexplain.domain.catalogue import Feature
from dpexplain.domain.features import Categorical
from dpexplain.errors import DataError, QueryError
from dpexplain.registration.options import Where


def read_private(where: Where, columns: Iterable[str]) -> pa.Table:
    """The named columns of Parquet files: one, a folder, a pattern or several. Errors name columns and types, never values."""
    wanted = list(dict.fromkeys(columns))
    found = ParquetFiles.find(where, wanted)
    try:
        return pa.concat_tables(pq.read_table(one.path, filesystem=found.system, columns=wanted) for one in found.files)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot read the data as Parquet ({type(error).__name__}). Write the files again as Parquet") from None


def read_query_file(path: str | Path, domain: DomainLike) -> list[dict[str, Any]]:
    """Public records from .csv, .json (a list of objects), .jsonl, .parquet or .arrow."""
    reader = _READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise QueryError(f"cannot read records from {Path(path).name!r}. Use one of {', '.join(_READERS)}")
    try:
        return reader(Path(path), domain)
    except QueryError:
        raise
    except (pa.ArrowException, ValueError, csv.Error, RecursionError) as error:
        raise QueryError(f"cannot read records from {path} ({type(error).__name__}). Check the file's format") from None


def other_separator(names: Sequence[str], wanted: Iterable[str]) -> str:
    """What is wrong with a header that has several wanted names in one, and what to do; empty where nothing is."""
    wanted = set(wanted)
    for mark, called in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if any(len(wanted.intersection(name.split(mark))) > 1 for name in names):
            return f"separates its columns by {called}. Write it with commas, and a point in numbers (such as 22.5)"
    return ""


def _from_csv(path: Path, domain: DomainLike) -> list[dict[str, Any]]:
    features = {feature.name: feature for feature in domain.features} if isinstance(domain, Domain) else {}
    with path.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines)
        if rows.fieldnames is None:
            raise QueryError(f"{path} is empty. Write the names of the columns on its first line")
        if problem := other_separator(rows.fieldnames, features):
            raise QueryError(f"{path.name} {problem}")
        return [
            {
                name: _declared_types(features[name], text) if name in features else text
                for name, text in row.items()
                if name is not None
            }
            for row in rows
        ]


def _declared_types(feature: Feature, text: str) -> Any:
    """Text as the value the domain declares; an empty field is a missing value; other misfits stay text, and are refused by name."""
    if text == "":
        return None
    if isinstance(feature, Numeric):
        try:
            return float(text)
        except (TypeError, ValueError):
            return text
    declared: Iterable[Any] = ()
    if isinstance(feature, Binary):
        declared = feature.values or ()
    elif isinstance(feature, Categorical):
        declared = feature.columns
    elif isinstance(feature, Ordinal):
        declared = feature.levels
    return next((value for value in declared if str(value) == text), text)


def _from_json(path: Path, _: DomainLike) -> list[dict[str, Any]]:
    records = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(records, list):
        raise QueryError(f"{path} must hold a JSON list of records. Put the record in [ ]")
    return records


def _from_json_lines(path: Path, _: DomainLike) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _from_parquet(path: Path, _: DomainLike) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return records


def _from_arrow(path: Path, _: DomainLike) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = pa.ipc.open_file(path.read_bytes()).read_all().to_pylist()
    return records


_READERS = {
    ".csv": _from_csv,
    ".json": _from_json,
    ".jsonl": _from_json_lines,
    ".parquet": _from_parquet,
    ".arrow": _from_arrow,
    ".feather": _from_arrow,
}
