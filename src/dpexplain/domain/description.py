"""A domain's description as a dict, JSON and TOML, each read back exactly.

    {"kind": "tabular", "features": [{"kind": "numeric", "name": "age", "low": 17.0, "high": 97.0}, …]}
    {"kind": "encoded", "width": 12, "low": 0.0, "high": 1.0}     low and high: one number, or one per column

Either may have a "scale" for the whole domain, beside those of single features (`domain/scaled.py`).
A feature's other keys are the arguments of its class; keys left out take their defaults; an unknown key or kind is refused.
"""

from __future__ import annotations

import json
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from dpexplain.arguments import quote, stat_file
from dpexplain.domain.catalogue import FEATURES, Feature
from dpexplain.domain.features import Numeric
from dpexplain.domain.interface import format_list, hint, require_width
from dpexplain.domain.labelled import LABELS
from dpexplain.domain.scaled import UNSCALED
from dpexplain.errors import DomainError

KINDS: dict[str, type[Feature]] = {feature.kind: feature for feature in FEATURES}
FORMATS = (".json", ".toml")


class DomainDescription(ABC):
    """Description, fingerprint and files of a domain, all derived from its `to_dict`."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The description in JSON's types."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the canonical description. Public."""
        return sha256(canonical_json(self.to_dict())).hexdigest()

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    def to_toml(self) -> str:
        return to_toml(self.to_dict())

    def save(self, path: str | Path) -> None:
        """Write the description to a .json or .toml file; `Domain.load` reads it."""
        write(path, self.to_dict())


def column_names(width: int) -> list[str]:
    """x0 … x(n-1): names for columns that have none."""
    return [f"x{i}" for i in range(width)]


def describe(features: Sequence[Feature], scale: float = UNSCALED) -> dict[str, Any]:
    """The canonical description; bare numeric columns under default names are written in their short form."""
    whole = {} if scale == UNSCALED else {"scale": scale}
    numeric = [f for f in features if isinstance(f, Numeric) and f == Numeric(f.name, f.low, f.high)]
    if [f.name for f in numeric] == column_names(len(features)):
        low, high = _collapse_equal([f.low for f in numeric]), _collapse_equal([f.high for f in numeric])
        return {"kind": "encoded", "width": len(features), "low": low, "high": high} | whole
    return {"kind": "tabular"} | whole | {"features": [describe_feature(feature) for feature in features]}


def parse(data: Mapping[str, Any]) -> list[Feature]:
    """The features that a description of kind "encoded", or else "tabular", declares."""
    if data.get("kind") == "encoded":
        require_known(data, {"kind", "width", "low", "high", "names", "scale"}, "an encoded domain")
        bounds = data.get("low", 0.0), data.get("high", 1.0)
        return vector_features(data.get("width"), bounds, data.get("names"))
    require_known(data, {"kind", "features", "scale"}, "a tabular domain")
    return [_parse_feature(feature) for feature in _list(data, "features")]


def vector_features(width: Any, bounds: Any, names: Any) -> list[Feature]:
    """One numeric feature per column of a vector."""
    if isinstance(width, bool) or not hasattr(width, "__index__") or width < 1:
        raise DomainError(f"width must be a whole number of columns, at least 1, got {quote(width)}")
    require_width(width)
    names = column_names(width) if names is None else _per_column("names", names, width)
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise DomainError(f"bounds must be a pair (low, high), got {quote(bounds)}") from None
    lows, highs = _per_column("low", low, width), _per_column("high", high, width)
    return [Numeric(*column) for column in zip(names, lows, highs, strict=True)]


def canonical_json(data: Mapping[str, Any]) -> bytes:
    """The canonical text of a description, from which the fingerprint is computed."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DomainError(f"the domain is not valid JSON ({error}). Pass what to_json() returned") from None


def from_toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DomainError(f"the domain is not valid TOML ({error}). Pass what to_toml() returned") from None


def to_toml(data: Mapping[str, Any]) -> str:
    """Keys with plain values, then one [[table]] per entry of each list of dicts. Enough for domains, and no more."""
    plain = {key: value for key, value in data.items() if not _is_tables(value)}
    tables = [(key, table) for key, value in data.items() if _is_tables(value) for table in value]
    return _toml_lines(plain) + "".join(f"\n[[{key}]]\n{_toml_lines(table)}" for key, table in tables)


def read(path: str | Path) -> Any:
    """The description in a .json or .toml file, as plain values."""
    path = _path(path)
    try:
        stat_file(path)
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise DomainError(f"cannot read the domain from {path}: it is not UTF-8 text. Save it as UTF-8") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise DomainError(f"cannot read the domain from {path}: {getattr(error, 'strerror', error)}. Check the path") from None
    return from_json(text) if path.suffix.lower() == ".json" else from_toml(text)


def write(path: str | Path, data: Mapping[str, Any]) -> None:
    """Write a description as JSON or TOML, by the file's ending."""
    path = _path(path)
    text = json.dumps(data, indent=2) + "\n" if path.suffix.lower() == ".json" else to_toml(data)
    try:
        path.write_bytes(text.encode("utf-8"))
    except OSError as error:
        raise DomainError(f"cannot write the domain to {path}: {error.strerror}. Check the folder and its permissions") from None


def _path(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise DomainError(f"a domain file ends in {' or '.join(FORMATS)}, got {path.name!r}. Rename it")
    return path


def describe_feature(feature: Feature) -> dict[str, Any]:
    """A feature's kind, name and the arguments that are not their defaults; labels for people last."""
    given = {one.name: getattr(feature, one.name) for one in fields(feature) if one.init}
    defaults = {one.name: one.default for one in fields(feature)}
    values = {key: value for key, value in given.items() if value is not defaults[key] and value is not None}
    ordered = {key: values[key] for key in [*(key for key in values if key not in LABELS), *LABELS] if key in values}
    return {"kind": feature.kind} | {key: list(value) if isinstance(value, tuple) else value for key, value in ordered.items()}


def _parse_feature(data: Any) -> Feature:
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise DomainError(
            f"a feature's kind must be one of {format_list(KINDS)}, got {quote(kind)}{hint(kind, KINDS)}. Correct it"
        )
    where, known = f"{kind} feature {data.get('name')!r}", [field for field in fields(KINDS[kind]) if field.init]
    require_known(data, {"kind", *(field.name for field in known)}, where)
    for field in known:
        if field.name not in data and field.default is MISSING:
            raise DomainError(f"{where} lacks {field.name!r}. Declare it")
    return KINDS[kind](**{key: value for key, value in data.items() if key != "kind"})


def require_known(data: Mapping[Any, Any], known: set[str], where: str) -> None:
    """Raise DomainError for an unknown key, because a misspelt one would be ignored silently."""
    for key in data:
        if key not in known:
            raise DomainError(f"{where} has unknown key {key!r}{hint(key, known)}. Use only {format_list(sorted(known))}")


def _list(data: Mapping[Any, Any], key: str) -> list[Any]:
    if key not in data:
        raise DomainError(f"a domain without {key!r} declares nothing. List one entry per feature")
    if not isinstance(value := data[key], list):
        raise DomainError(f"a domain's {key!r} must be a list, got {type(value).__name__}. List one entry per feature")
    return value


def _collapse_equal(values: list[float]) -> float | list[float]:
    return values[0] if len(set(values)) == 1 else values


def _per_column(what: str, value: Any, width: int) -> list[Any]:
    """A single value for every column, or one each."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [value] * width
    entries = list(value)
    if len(entries) != width:
        raise DomainError(f"{what} must have one entry per column: {width}, got {len(entries)}")
    return entries


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def _toml_lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_toml_value(value)}\n" for key, value in table.items())


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(map(_toml_character, value)) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return repr(value)  # an int, or a finite float in its shortest exact form


def _toml_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character >= " " and character != "\x7f" else f"\\u{ord(character):04x}"
