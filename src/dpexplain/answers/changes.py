"""What would change the answer: a plane's slopes as changes of one record's values, in words and in the answer's own units.

A category or a yes/no changes from the record's own value to another one, a number goes from the lowest to the highest end of its range, a word is
added or taken out. `web/changes.js` does the same for pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from dpexplain.core.arrays import Vector
from dpexplain.domain import Domain, DomainLike, TextDomain
from dpexplain.domain.features import Binary, Categorical, Ordinal
from dpexplain.plots.steps import format_value


class Change(NamedTuple):
    """One change of one value: what it adds to the answer, and an upper bound on its standard error, None where errors are unknown."""

    name: str
    before: str
    after: str
    value: float
    error: float | None

    @property
    def text(self) -> str:
        """ "work: private → public"; a word is "added" or "taken out"."""
        return f"{self.name}: {self.before} → {self.after}" if self.before else f"{self.name}: {self.after}"

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "from": self.before, "to": self.after, "value": self.value, "error": self.error}


class _Move(NamedTuple):
    """A change as a combination of slopes: `sign` times that of `column`, less that of the column that is left, if any."""

    name: str
    before: str
    after: str
    column: int
    sign: int = 1
    leaving: int = -1  # the place after all columns, where what is taken away is 0


def changes_of(domain: DomainLike, point: Vector, values: Vector, error: Vector | None, most: int | None = None) -> list[Change]:
    """Changes at an encoded record, the largest first and at most so many, from slopes and their errors in the answer's own units.

    The error of a difference of two slopes is at most the sum of theirs, and is stated so.
    """
    errors = None if error is None else error.tolist()
    return [
        Change(name, before, after, value, error)
        for (name, before, after, *_), value, error in _largest(domain, point.tolist(), values.tolist(), errors, most)
    ]


def change_dicts(
    domain: DomainLike, entries: list[float], slopes: list[float], errors: list[float] | None, most: int | None = None
) -> list[dict[str, Any]]:
    """`Change.to_dict` of each of `changes_of`, from lists."""
    return [
        {"name": move[0], "from": move[1], "to": move[2], "value": value, "error": error}
        for move, value, error in _largest(domain, entries, slopes, errors, most)
    ]


def _largest(
    domain: DomainLike, entries: list[float], slopes: list[float], errors: list[float] | None, most: int | None
) -> Iterable[tuple[_Move, float, float | None]]:
    """The moves with the largest values, these values and their errors."""
    moves, padded = _moves(domain, entries), [*slopes, 0.0]
    values = [sign * padded[column] - padded[leaving] for _, _, _, column, sign, leaving in moves]
    sizes = [-abs(value) for value in values]
    order = sorted(range(len(moves)), key=sizes.__getitem__)[:most]
    if errors is None:
        return [(moves[i], values[i], None) for i in order]
    spread = [*errors, 0.0]
    return [(moves[i], values[i], spread[moves[i][3]] + spread[moves[i][5]]) for i in order]


def _moves(domain: DomainLike, entries: list[float]) -> list[_Move]:
    if isinstance(domain, Domain):
        memory, found = domain.memory, list[_Move]()
        for i, block in enumerate(domain.blocks):
            own = () if block.kind == "numeric" else entries[block.start : block.stop]  # that of a number does not matter
            key = ("moves", i, *own)
            found += memory.get(key) or domain.remember(key, _moves_of(domain, i, entries))
        return found
    titled = enumerate(zip(domain.titles, entries, strict=True))
    if not isinstance(domain, TextDomain):
        return [_Move(name, "0", "1", j) for j, (name, _) in titled]
    return [_Move(name, "", *(("taken out", j, -1) if entry > 0.5 else ("added", j, 1))) for j, (name, entry) in titled]


def _moves_of(domain: Domain, index: int, entries: list[float]) -> tuple[_Move, ...]:
    """The changes of one feature: the same for every record with this value."""
    feature, start, own = domain.features[index], domain.blocks[index].start, domain.decode_entries(entries)[index]
    title = feature.label_of(feature.name)
    if isinstance(feature, Categorical):
        leaving = start + feature.columns.index(own) if own in feature.columns else -1
        others = ((start + j, value) for j, value in enumerate(feature.columns) if start + j != leaving)
        before = "none of them" if own is None else format_value(own)
        return tuple(_Move(title, before, format_value(value), column, 1, leaving) for column, value in others)
    low, high = _ends(feature)
    if isinstance(feature, Binary) and own == high:
        return (_Move(title, format_value(high), format_value(low), start, -1),)
    return (_Move(title, format_value(low), format_value(high), start),)


def _ends(feature: Any) -> tuple[Any, Any]:
    if isinstance(feature, Ordinal):
        return feature.levels[0], feature.levels[-1]
    if isinstance(feature, Binary):
        return (False, True) if feature.values is None else (feature.values[0], feature.values[1])
    return feature.low, feature.high
