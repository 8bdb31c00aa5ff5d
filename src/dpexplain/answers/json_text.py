"""Answers as JSON text, from and to the plain values that each answer defines."""

from __future__ import annotations

import json
from typing import Any, Self

from dpexplain.errors import DpexplainError, InputError


class JsonText:
    """Adds JSON text to a class with `to_dict` and `from_dict`."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        raise NotImplementedError

    def to_json(self, indent: int | None = None) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        try:
            return cls.from_dict(json.loads(text))
        except DpexplainError:
            raise
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            raise InputError(f"this is not the text of a stored {cls.__name__}. Pass what to_json() returned") from None
