"""Who is protected: which data sets count as neighbours, and how far a neighbour can move a sum over rows.

The normaliser m̄ is a public constant under both relations, so removing a record is the same as replacing it by a null
record that contributes zero (SPEC §2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from dpexplain.arguments import quote, require_whole
from dpexplain.errors import ParameterError


class Relation(Enum):
    """What it means for two data sets to differ in one record."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

    @property
    def factor(self) -> int:
        """How many records' contributions separate neighbours: one, or the old and the new one (triangle inequality)."""
        return {Relation.ADD_REMOVE: 1, Relation.REPLACE_ONE: 2}[self]

    @classmethod
    def parse(cls, value: Relation | str) -> Relation:
        try:
            return cls(value)
        except ValueError:
            names = " or ".join(repr(r.value) for r in cls)
            raise ParameterError(f"relation must be {names}, got {quote(value)}") from None


@dataclass(frozen=True, slots=True)
class Neighbours:
    """A relation between data sets and the unit it protects: a record, or everything one person owns.

    `rows_per_unit` records at most are kept for each value of the `unit` column, so a unit moves any sum at most
    `multiplier` times as far as a single record can.
    """

    relation: Relation = Relation.ADD_REMOVE
    unit: str | None = None
    rows_per_unit: int = 1
    multiplier: int = field(init=False, repr=False, compare=False)  # one record's sensitivity times this is the unit's

    def __post_init__(self) -> None:
        require_whole("max_rows_per_unit", self.rows_per_unit, 1)
        if self.unit is None and self.rows_per_unit != 1:
            raise ParameterError(
                "max_rows_per_unit has no meaning without owners. Pass unit=, the column that says who owns a row"
            )
        object.__setattr__(self, "multiplier", self.relation.factor * self.rows_per_unit)

    def describe(self) -> str:
        """The protected change in plain words, for guarantees."""
        what = "any one record" if self.unit is None else f"all records of any one {self.unit} (at most {self.rows_per_unit})"
        return f"{what} {'added or removed' if self.relation is Relation.ADD_REMOVE else 'replaced by any other'}"

    def to_dict(self) -> dict[str, Any]:
        return {"relation": self.relation.value, "unit": self.unit, "rows_per_unit": self.rows_per_unit}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Neighbours:
        return cls(Relation.parse(value["relation"]), value["unit"], value["rows_per_unit"])
