"""Several models, or classes of one model, in one file. Each stores only what differs from the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

Contents = tuple[dict[str, Any], dict[str, Any]]
"""(header, arrays) of a release."""


def store_named(first: Contents, others: Mapping[str, Contents]) -> Contents:
    """(more of the header, more arrays): under "named", for each name, what is not the first one's."""
    listed: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    for i, (name, (header, own)) in enumerate(others.items()):
        changed = {key: value for key, value in header.items() if first[0].get(key) != value}
        listed.append({"name": name, "header": changed})
        arrays |= {f"named{i}_{key}": array for key, array in own.items() if not _are_equal(first[1].get(key), array)}
    return ({"named": listed} if listed else {}), arrays


def restore_named(header: dict[str, Any], arrays: dict[str, Any]) -> tuple[Contents, Iterator[tuple[str, Contents]]]:
    """The first one's contents, and those of each name. ValueError unless they make sense."""
    listed = header.get("named", [])
    own = {key: array for key, array in arrays.items() if not key.startswith("named")}
    first = {key: value for key, value in header.items() if key != "named"}
    if len({one["name"] for one in listed}) < len(listed) or not all(isinstance(one["name"], str) for one in listed):
        raise ValueError("names")

    def restore_others() -> Iterator[tuple[str, Contents]]:
        for i, one in enumerate(listed):
            start = f"named{i}_"
            changed = {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}
            yield one["name"], (first | one["header"], own | changed)

    return (first, own), restore_others()


def _are_equal(first: Any, other: Any) -> bool:
    return first is other or (first is not None and first.dtype == other.dtype and np.array_equal(first, other))


def find_class(model: Any, name: Any) -> Any:
    """The class of a model whose name this is, as the model has it (a number, say); None where it has no such class."""
    classes = getattr(model, "classes_", None)
    return None if classes is None else next((one for one in np.asarray(classes).tolist() if str(one) == str(name)), None)
