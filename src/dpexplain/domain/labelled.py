"""Display labels of a feature. Labels change how an answer is shown, never how a record is encoded."""

from __future__ import annotations

from dataclasses import dataclass, fields

from dpexplain.arguments import quote
from dpexplain.domain.values import unicode_text
from dpexplain.errors import DomainError


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Optional display texts: `title` in place of the column's name, the `unit` of numbers, a sentence of `help`."""

    title: str | None = None
    unit: str | None = None
    help: str | None = None

    def label_of(self, name: str) -> str:
        """The title, or else the name, with the unit in brackets."""
        shown = name if self.title is None else self.title
        return shown if self.unit is None else f"{shown} ({self.unit})"

    def clip(self, value: object) -> object:
        """The nearest value within declared bounds; kinds without bounds have none, so the value as it is."""
        return value

    def require_text(self, name: str) -> None:
        """DomainError unless every label is text."""
        for word in LABELS:
            value = getattr(self, word)
            if value is None:
                continue
            if not isinstance(value, str) or not value.strip():
                raise DomainError(f"{name}: {word} must be non-empty text, got {quote(value)}. Leave it out where there is none")
            unicode_text(f"{name}: {word}", value)


LABELS = tuple(field.name for field in fields(Labelled))
