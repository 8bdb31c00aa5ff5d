"""A draft of a domain: what is known of each feature, what is only suggested, and what still has to be declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from math import floor, isfinite, log10
from typing import Any

from dpexplain.arguments import quote
from dpexplain.domain.catalogue import FEATURES, Feature
from dpexplain.domain.description import to_toml
from dpexplain.domain.interface import format_list, hint
from dpexplain.domain.scaled import UNSCALED, require_scale
from dpexplain.errors import DomainError, Undeclared

KINDS: dict[str, type[Feature]] = {kind.kind: kind for kind in FEATURES}
EXAMPLES = {
    "numeric": "(low, high)",  # or (low, high, missing)
    "date": "('2000-01-01', '2026-12-31')",
    "datetime": "('2000-01-01', '2026-12-31')",
    "categorical": "['first value', …]",
    "ordinal": "['lowest level', …]",
    None: "a feature, such as dpx.Numeric(…)",
}


@dataclass(frozen=True, slots=True)
class DraftFeature:
    """One column. `known` holds arguments of its kind that may be used as they are, `suggested` facts that a model learnt from its
    training data: whoever accepts those makes them public. `source` names their origin.
    """

    name: str
    kind: str | None = None
    known: Mapping[str, Any] = field(default_factory=dict)
    suggested: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""

    @property
    def open(self) -> tuple[str, ...]:
        """The arguments without which there is no such feature."""
        if self.kind is None:
            return ("kind",)
        needed = [one.name for one in fields(KINDS[self.kind]) if one.init and one.default is MISSING and one.name != "name"]
        return tuple(name for name in needed if name not in self.known)

    def accept_suggestion(self) -> DraftFeature:
        """The feature with its suggestions taken as known."""
        return replace(self, known={**self.suggested, **self.known}, suggested={})

    def declare(self, given: Any) -> DraftFeature | Feature:
        """The draft with declarations: a feature, (low, high) or (low, high, missing), a list of values, or some of its arguments by name."""
        if isinstance(given, FEATURES):
            return given
        if isinstance(given, Mapping):
            kind = given.get("kind", self.kind)
            return replace(self, kind=kind, known={**self.known, **{key: one for key, one in given.items() if key != "kind"}})
        if not isinstance(given, (list, tuple)) or not given:
            raise DomainError(
                f"{self.name}: {quote(given)} is not a declaration. Declare {EXAMPLES.get(self.kind, EXAMPLES[None])}, or a feature such as "
                f"dpx.Binary({self.name!r})"
            )
        kind = self.kind or ("numeric" if isinstance(given, tuple) and len(given) == 2 else "categorical")
        if kind == "numeric" and any(isinstance(one, str) for one in given):  # a model that has only the name of a column
            return DraftFeature(self.name, "categorical").declare(given)
        keys = {"categorical": ("values",), "ordinal": ("levels",), "binary": ("values",)}.get(kind, ("low", "high"))
        if len(keys) == 2 and len(given) not in (2, 3):
            raise DomainError(f"{self.name}: bounds must be (low, high) or (low, high, missing), got {quote(given)}")
        values = (list(given),) if len(keys) == 1 else given
        return replace(self, kind=kind, known={**self.known, **dict(zip((*keys, "missing"), values, strict=False))})

    def feature(self) -> Feature:
        assert self.kind is not None  # `Draft.domain` has asked what is open
        return KINDS[self.kind](self.name, **self.known)

    def __str__(self) -> str:
        wanted = (
            f"{self.name}: {', '.join(self.open)}" if self.kind is None else f"{self.name} ({self.kind}): {', '.join(self.open)}"
        )
        found = [f"{key}={self.suggested[key]:.6g}" for key in (*self.open, "missing") if key in self.suggested]
        return wanted + (f" (suggested by {self.source}: {', '.join(found)})" if found else "")


@dataclass(frozen=True, slots=True)
class Draft:
    """Features in order. `open` lists those that are not complete; `complete()` makes the features once nothing is.

    `remedy` replaces the part of a message that explains how to pass declarations.
    """

    features: tuple[DraftFeature | Feature, ...]
    source: str = "the model"
    remedy: str = ""
    scale: float = UNSCALED  # of the whole domain

    @property
    def open(self) -> tuple[DraftFeature, ...]:
        return tuple(one for one in self.features if isinstance(one, DraftFeature) and one.open)

    def declare(self, declared: Mapping[str, Any] | None = None, *, suggested: bool = False) -> Draft:
        """The draft with these declarations, and with its suggestions accepted where `suggested` is true."""
        given = dict(declared or {})
        known = [one.name for one in self.features]
        for name in given:
            if name not in known:
                raise DomainError(
                    f"declared {name!r}{hint(name, known)} is not a column of {self.source}. Use only {format_list(known)}"
                )
        return replace(self, features=tuple(self._declare(one, given, suggested) for one in self.features))

    @staticmethod
    def _declare(one: DraftFeature | Feature, given: Mapping[str, Any], suggested: bool) -> DraftFeature | Feature:
        if not isinstance(one, DraftFeature):
            return DraftFeature(one.name, one.kind).declare(given[one.name]) if one.name in given else one
        chosen = one.accept_suggestion() if suggested else one
        return chosen.declare(given[one.name]) if one.name in given else chosen

    def only(self, columns: Iterable[str] | None) -> Draft:
        """The draft of these columns, in this order; of all where None."""
        if columns is None:
            return self
        by_name = {one.name: one for one in self.features}
        wanted = [columns] if isinstance(columns, str) else list(columns)
        for name in wanted:
            if name not in by_name:
                raise DomainError(
                    f"column {name!r}{hint(name, by_name)} is not in {self.source}. Use only {format_list(by_name)}"
                )
        return replace(self, features=tuple(by_name[name] for name in wanted))

    def complete(self) -> Sequence[Feature]:
        """The features; `Undeclared`, with the list of what is open, unless there is nothing left to declare."""
        if missing := self.open:
            lines = "".join(f"\n  {one}" for one in missing)
            raise Undeclared(
                f"{self.source} does not say everything that a domain needs. Still to be declared:{lines}\n{self._remedy()}",
                draft=self,
            )
        return [one.feature() if isinstance(one, DraftFeature) else one for one in self.features]

    def _remedy(self) -> str:
        """How to declare the first of them; the other ways only where they would help."""
        if self.remedy:
            return self.remedy
        first = self.open[0]
        ways = [f"Pass declare={{{first.name!r}: {EXAMPLES.get(first.kind, EXAMPLES[None])}, …}}"]
        if any(set(one.open) <= set(one.suggested) for one in self.open):
            ways.append("suggested=True to make the suggestions public")
        if not self.source.startswith("the model"):  # which needs all its columns
            ways.append("columns=[…] to leave columns out")
        unsure = any(one.kind == "numeric" and not one.suggested for one in self.open)
        return ", or ".join(ways) + (". A feature may be declared too: dpx.Binary(…), dpx.Categorical(…)" if unsure else "")

    def to_toml(self) -> str:
        """The draft as a domain file for a person to complete: what is open and what is suggested is written as comments."""
        head = f'# A draft from {self.source}. Complete what is marked "declare", then use it as the domain.\nkind = "tabular"\n'
        head += "" if self.scale == UNSCALED else to_toml({"scale": require_scale("a domain's ", self.scale)})
        return head + "".join(f"\n[[features]]\n{_lines(one)}" for one in self.features)

    def __str__(self) -> str:
        left = "".join(f"\n  {one}" for one in self.open)
        return f"Draft of {len(self.features)} features from {self.source}; " + (
            f"still to be declared:{left}" if left else "complete"
        )


def _lines(one: DraftFeature | Feature) -> str:
    from dpexplain.domain.description import describe_feature

    if not isinstance(one, DraftFeature):
        return to_toml(describe_feature(one))
    known = {"kind": one.kind, "name": one.name, **one.known}
    lines = [to_toml({key: _plain(value) for key, value in known.items() if value is not None})]
    notes = {key: _plain(value) for key, value in one.suggested.items() if key not in one.known}
    for key in one.open:
        found = to_toml({key: notes.pop(key)}).strip() if key in notes else f"{key} = …"
        lines.append(f"# declare: {found}{f'   # suggested by {one.source}' if key in one.suggested else ''}\n")
    lines += [f"# {to_toml({key: value}).strip()}   # suggested by {one.source}\n" for key, value in notes.items()]
    return "".join(lines)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def round_out(low: float, high: float) -> dict[str, float]:
    """Bounds at two significant digits of their distance, outwards; nothing where there is no distance."""
    if not (isfinite(low) and isfinite(high) and low < high):
        return {}
    step = 10.0 ** (floor(log10(high - low)) - 1)
    digits = max(-floor(log10(step)), 0)
    down, up = floor(low / step) * step, -floor(-high / step) * step
    return {"low": round(down, digits), "high": round(up, digits)}
