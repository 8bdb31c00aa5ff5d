"""A draft from a schema: Arrow, polars, JSON Schema, pydantic or pandera. Schemas are declared, so they are public; rows are not read.

A pandas frame has no such schema: its dtypes follow from the values (one missing integer makes a column of floats).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpexplain.arguments import stat_file
from dpexplain.domain.drafts.draft import KINDS, Draft, DraftFeature
from dpexplain.domain.drafts.json_schema import draft_of_json_schema
from dpexplain.errors import DomainError

METADATA = (
    "kind",
    "low",
    "high",
    "values",
    "levels",
    "missing",
    "other",
    "optional",
    "integer",
    "scale",
    "title",
    "unit",
    "help",
)
ACCEPTED = "an Arrow or polars schema, a JSON Schema, a pydantic model, a pandera schema, or a .parquet, .arrow or .json file"


def draft_of_schema(schema: Any) -> Draft:
    """What the schema declares of each column."""
    if isinstance(schema, str) and schema.lstrip().startswith("{"):
        return draft_of_json_schema(_json_text(schema))
    if isinstance(schema, (str, Path)):
        return _from_file(Path(schema))
    if isinstance(schema, Mapping) and ("properties" in schema or "$ref" in schema or "$schema" in schema):
        return draft_of_json_schema(schema)
    if hasattr(schema, "model_json_schema"):
        kind = schema if isinstance(schema, type) else type(schema)  # of a record, its class
        return draft_of_json_schema(schema.model_json_schema(), f"the pydantic model {kind.__name__}")
    if hasattr(schema, "to_schema"):  # pandera's classes
        return draft_of_schema(schema.to_schema())
    if type(schema).__module__.startswith("pandera"):
        return _from_pandera(schema)
    if type(schema).__module__.startswith("polars") and isinstance(schema, Mapping):
        return Draft(tuple(_polars_feature(name, kind) for name, kind in schema.items()), "the polars schema")
    if type(schema).__module__.startswith("pyarrow") and hasattr(schema, "names") and hasattr(schema, "field"):
        return _from_arrow(schema, "the Arrow schema")
    if type(schema).__module__.startswith(("pyarrow", "polars")) and hasattr(schema, "schema"):  # a table: its schema is declared
        return draft_of_schema(schema.schema)
    raise DomainError(
        f"cannot read a domain from a {type(schema).__name__}. Pass {ACCEPTED}. A frame's own values are never read"
    )


def _json_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DomainError(
            f"this text is not a JSON Schema ({error}). Pass a schema, or the path of a file that has one"
        ) from None


def _from_file(path: Path) -> Draft:
    suffix = path.suffix.lower()
    try:
        stat_file(path)
        if suffix == ".json":
            return draft_of_json_schema(json.loads(path.read_text(encoding="utf-8")), f"the JSON Schema {path.name}")
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            return _from_arrow(pq.read_schema(path), f"the schema of {path.name}")
        if suffix in (".arrow", ".feather", ".ipc"):
            import pyarrow as pa

            with pa.memory_map(str(path)) as source:
                return _from_arrow(pa.ipc.open_file(source).schema, f"the schema of {path.name}")
    except (OSError, ValueError, RecursionError) as error:
        raise DomainError(f"cannot read a schema from {path} ({type(error).__name__}). Check the path and the format") from None
    raise DomainError(f"cannot read a schema from {path.name!r}. Use a .parquet, .arrow or .json file")


def _from_arrow(schema: Any, source: str) -> Draft:
    return Draft(tuple(_arrow_feature(schema.field(i)) for i in range(len(schema.names))), source)


def _arrow_feature(field: Any) -> DraftFeature:
    kind, known = _arrow_kind(field.type)
    declared = _metadata(field.name, field.metadata or {})
    if declared.get("values") is not None and kind == "ordinal":
        declared["levels"] = declared.pop("values")
    chosen = declared.pop("kind", "ordinal" if "levels" in declared else kind)
    if chosen is not None and chosen not in KINDS:
        raise DomainError(f"{field.name}: its metadata names the kind {chosen!r}. Use one of {', '.join(KINDS)}")
    return DraftFeature(field.name, chosen, {**({} if chosen != kind else known), **declared}, source="the schema")


def _arrow_kind(type_: Any) -> tuple[str | None, dict[str, Any]]:
    from pyarrow import types

    if types.is_dictionary(type_):
        return ("ordinal" if type_.ordered else "categorical"), {}
    checks: tuple[tuple[Any, str, dict[str, Any]], ...] = (
        (types.is_boolean, "binary", {}),
        (types.is_integer, "numeric", {"integer": True}),
        (types.is_floating, "numeric", {}),
        (types.is_decimal, "numeric", {}),
        (types.is_string, "categorical", {}),
        (types.is_large_string, "categorical", {}),
        (types.is_date, "date", {}),
        (types.is_timestamp, "datetime", {}),
    )
    return next(((kind, known) for check, kind, known in checks if check(type_)), (None, {}))


def _metadata(name: str, metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    """The metadata of an Arrow field: single keys, or one JSON object under "dpexplain". Values are JSON, or plain text."""
    texts = {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in metadata.items()}
    declared = {key: _read(texts[key]) for key in METADATA if key in texts}
    if "description" in texts:
        declared.setdefault("help", texts["description"])
    together = _read(texts.get("dpexplain", "{}"))
    if not isinstance(together, dict):
        raise DomainError(f'{name}: its metadata \'dpexplain\' must be a JSON object. Write {{"low": 0, "high": 1}}')
    return declared | together


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _polars_feature(name: str, kind: Any) -> DraftFeature:
    """polars' Enum declares its categories in the schema; Categorical gathers them from the rows, so those are left open."""
    word = str(getattr(kind, "base_type", lambda: kind)()).split("(")[0]
    if word == "Enum":
        return DraftFeature(name, "categorical", {"values": list(kind.categories)}, source="the schema")
    if word.startswith(("Int", "UInt")):
        return DraftFeature(name, "numeric", {"integer": True})
    found = {
        "Float16": "numeric", "Float32": "numeric", "Float64": "numeric", "Decimal": "numeric", "Boolean": "binary", "String": "categorical",
        "Utf8": "categorical", "Categorical": "categorical", "Date": "date", "Datetime": "datetime",
    }  # fmt: skip
    return DraftFeature(name, found.get(word))


def _from_pandera(schema: Any) -> Draft:
    return Draft(tuple(_pandera_feature(str(name), column) for name, column in schema.columns.items()), "the pandera schema")


def _pandera_feature(name: str, column: Any) -> DraftFeature:
    word = str(column.dtype).lower()
    known: dict[str, Any] = {}
    for check in column.checks:
        facts = dict(getattr(check, "statistics", None) or {})
        known |= {"low": facts["min_value"]} if "min_value" in facts else {}
        known |= {"high": facts["max_value"]} if "max_value" in facts else {}
        known |= {"values": list(facts["allowed_values"])} if "allowed_values" in facts else {}
    known |= {"title": column.title} if column.title else {}
    known |= {"help": column.description} if column.description else {}
    values, ordered = _pandera_categories(column.dtype)
    if values and "values" not in known:
        known |= {"levels" if ordered else "values": values}
    if "values" in known or "levels" in known:
        without = {key: one for key, one in known.items() if key not in ("low", "high")}
        return DraftFeature(name, "ordinal" if "levels" in known else "categorical", without, source="the schema")
    if "bool" in word:
        return DraftFeature(name, "binary", known)
    if "datetime" in word or "timestamp" in word or word == "date":
        return DraftFeature(name, "date" if word == "date" else "datetime", known)
    if "int" in word:
        return DraftFeature(name, "numeric", known | {"integer": True})
    return DraftFeature(name, "numeric" if "float" in word or "decimal" in word else "categorical", known)


def _pandera_categories(dtype: Any) -> tuple[list[Any], bool]:
    """The values that a categorical dtype of pandas or an Enum of polars declares, and whether they are in order."""
    inner = getattr(dtype, "type", dtype)
    found = getattr(dtype, "categories", None)
    found = getattr(inner, "categories", None) if found is None else found
    return [] if found is None else list(found), bool(getattr(dtype, "ordered", False) or getattr(inner, "ordered", False))
