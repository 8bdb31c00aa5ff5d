"""What a page holds to explain several classes, or several models, of one release: for each, the numbers that differ from the first one's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Payload = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PageTarget:
    """One choice: the payload of its release, and of its surrogate where the page has surrogates."""

    name: str
    payload: Payload
    surrogate: Payload | None = None


@dataclass(frozen=True, slots=True)
class PageTargets:
    """The choices of a page. Classes replace the release's own answer; models are shown beside it."""

    kind: Literal["class", "model"]
    choices: tuple[PageTarget, ...]

    def to_dict(self, first: dict[str, Any], facts: Callable[[Payload], dict[str, Any]]) -> dict[str, Any]:
        """The targets in JSON's types: of each release what differs from `first`; `facts` converts a payload to what a page stores."""
        choices = [
            {"name": one.name, "release": changed_entries(first, facts(one.payload))}
            | ({} if one.surrogate is None else {"surrogate": one.surrogate})
            for one in self.choices
        ]
        return {"kind": self.kind, "choices": choices}


def changed_entries(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of `other` that are not those of `first`; of entries that have entries themselves, those that differ."""
    found: dict[str, Any] = {}
    for key, value in other.items():
        own = first.get(key)
        if own == value:
            continue
        nested = isinstance(value, Mapping) and isinstance(own, Mapping) and not _is_array(value)
        found[key] = {name: one for name, one in value.items() if own.get(name) != one} if nested and own else value
    return found


def _is_array(value: Mapping[str, Any]) -> bool:
    """Whether this is a packed array, {"f8": "…"}."""
    return len(value) == 1 and next(iter(value)) in ("f8", "u1", "u2", "u4")
