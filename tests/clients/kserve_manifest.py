"""Checks a manifest against the types of KServe's and Kubernetes' own clients: run by an interpreter that has `kserve`, with the manifest's path.

Prints what is wrong with it as a JSON list: fields that the types do not have, values of another type, required fields that are missing.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kserve.models
import kubernetes.client
import yaml

PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float)}


def mistakes(value: Any, kind: str, where: str) -> Iterator[str]:
    """`kind` is written as KServe's types name those of their fields."""
    if kind in PLAIN:
        if not isinstance(value, PLAIN[kind]):
            yield f"{where}: {value!r} is no {kind}"
    elif found := re.fullmatch(r"list\[(\w+)\]|dict\(str, (\w+)\)", kind):
        inner = found[1] or found[2]
        for key, one in enumerate(value) if found[1] else value.items():
            yield from mistakes(one, inner, f"{where}.{key}")
    elif hasattr(kserve.models, kind):
        yield from mistakes_of_kserve(value, getattr(kserve.models, kind), where)
    else:
        yield from mistakes_of_kubernetes(value, getattr(kubernetes.client, kind), where)


def mistakes_of_kserve(value: dict[str, Any], model: Any, where: str) -> Iterator[str]:
    names = {written: name for name, written in model.attribute_map.items()}
    for key, one in value.items():
        if key not in names:
            yield f"{where}.{key}: there is no such field"
        else:
            yield from mistakes(one, model.openapi_types[names[key]], f"{where}.{key}")
    try:
        model(**{names[key]: one for key, one in value.items() if key in names})
    except ValueError as error:
        yield f"{where}: {error}"


def mistakes_of_kubernetes(value: dict[str, Any], model: Any, where: str) -> Iterator[str]:
    try:
        read = model.from_dict(value).model_dump(by_alias=True, exclude_none=True)
    except ValueError as error:  # pydantic's
        yield f"{where}: {error}"
    else:
        yield from unread(value, read, where)


def unread(written: Any, read: Any, where: str) -> Iterator[str]:
    """Fields that the types do not have: they are dropped while reading."""
    if isinstance(written, dict) and isinstance(read, dict):
        for key, one in written.items():
            yield from unread(one, read.get(key), f"{where}.{key}")
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for number, pair in enumerate(zip(written, read, strict=True)):
            yield from unread(*pair, f"{where}.{number}")
    elif written != read:
        yield f"{where}: {written!r} was read as {read!r}"


if __name__ == "__main__":
    manifest = yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(json.dumps(list(mistakes(manifest, "V1beta1InferenceService", "manifest"))))
