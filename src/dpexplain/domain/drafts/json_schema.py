"""A draft from a JSON Schema of one record: an object whose properties are the columns. pydantic writes such schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpexplain.domain.drafts.draft import Draft, DraftFeature
from dpexplain.errors import DomainError

FORMATS = {"date": "date", "date-time": "datetime"}


def draft_of_json_schema(schema: Any, source: str = "the JSON Schema") -> Draft:
    """One draft feature for each property; of an array of records, those of its items."""
    found = _resolve(schema, schema)
    if found.get("type") == "array" and "items" in found:
        found = _resolve(found["items"], schema)
    properties = found.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise DomainError("a JSON Schema of a record has its columns under 'properties'. Pass the schema of one record")
    return Draft(tuple(_feature(str(name), one, schema) for name, one in properties.items()), source)


def _feature(name: str, given: Any, root: Any) -> DraftFeature:
    one = _resolve(given, root)
    labels = {"title": one.get("title"), "help": one.get("description"), "unit": one.get("unit") or one.get("x-unit")}
    if labels["title"] == name.replace("_", " ").title():
        labels["title"] = None  # pydantic's own spelling of the name
    known = {key: str(value) for key, value in labels.items() if value}
    values = [value for value in one.get("enum", [one["const"]] if "const" in one else []) if value is not None]
    if values and set(map(type, values)) != {bool}:
        optional = {"optional": True} if one.get("nullable") and not _read_default(one) else {}
        return DraftFeature(
            name, "categorical", {"values": values, **_read_default(one), **optional, **known}, source="the schema"
        )
    kinds = {
        "boolean": "binary",
        "number": "numeric",
        "integer": "numeric",
        "string": FORMATS.get(one.get("format", ""), "categorical"),
    }
    kind = kinds.get(str(one.get("type")))
    if kind == "numeric":
        known |= _bounds(one) | ({"integer": True} if one["type"] == "integer" else {})
    return DraftFeature(name, kind, {**known, **_read_default(one)}, source="the schema")


def _bounds(one: Mapping[str, Any]) -> dict[str, Any]:
    """Exclusive bounds of whole numbers are one step inwards; others are treated as inclusive, because clamping maps values to them."""
    step = 1 if one["type"] == "integer" else 0
    low, high = one.get("minimum"), one.get("maximum")
    if low is None and isinstance(one.get("exclusiveMinimum"), (int, float)):
        low = one["exclusiveMinimum"] + step
    if high is None and isinstance(one.get("exclusiveMaximum"), (int, float)):
        high = one["exclusiveMaximum"] - step
    return {key: bound for key, bound in (("low", low), ("high", high)) if bound is not None}


def _read_default(one: Mapping[str, Any]) -> dict[str, Any]:
    """A default is the substitute of a value that is left out."""
    return {"missing": one["default"]} if one.get("default") is not None else {}


def _resolve(given: Any, root: Any) -> dict[str, Any]:
    """The schema itself, after references, and without the "or null" of optional values."""
    one = dict(given) if isinstance(given, Mapping) else {}
    if "$ref" in one:
        target = root
        for part in str(one.pop("$ref")).removeprefix("#/").split("/"):
            target = target.get(part, {}) if isinstance(target, Mapping) else {}
        one = _resolve(target, root) | one
    for word in ("anyOf", "oneOf"):  # a list of constants, each with a title of its own, is an enum
        parts = [_resolve(part, root) for part in one.get(word, ())]
        if len(parts) > 1 and all("const" in part for part in parts):
            del one[word]
            one["enum"] = [part["const"] for part in parts]
    for word in ("anyOf", "oneOf", "allOf"):
        others = [part for part in one.get(word, ()) if not (isinstance(part, Mapping) and part.get("type") == "null")]
        if len(others) == 1:
            nullable = {"nullable": True} if len(others) < len(one[word]) else {}
            del one[word]
            one = _resolve(others[0], root) | one | nullable
    if isinstance(one.get("type"), list):
        left = [kind for kind in one["type"] if kind != "null"]
        one |= {"type": left[0] if len(left) == 1 else None, "nullable": len(left) < len(one["type"])}
    return one
