"""The units of a model's answers: how labels in [-1, 1], which everything is computed with, are converted to the model's own units.

A probability p is the label 2p - 1, a class the label ±1, a value v in [low, high] the label (2v - low - high)/(high - low). So an answer is an
affine function of its label, and a slope is scaled by half the range. The scale is declared at registration, never read off answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dpexplain.arguments import quote
from dpexplain.core.arrays import Vector
from dpexplain.errors import ParameterError

Kind: TypeAlias = Literal["label", "probability", "class", "value"]

_RANGES: dict[Kind, tuple[float, float]] = {"label": (-1.0, 1.0), "probability": (0.0, 1.0), "class": (0.0, 1.0)}


@dataclass(frozen=True, slots=True)
class AnswerScale:
    """What an answer is, and the answers `low` and `high` that the labels -1 and +1 stand for.

    "probability": of the target class, 0 to 1. "class": 1 where the answer is the target class, else 0. "value": a number within public bounds.
    "label": a number in [-1, 1] without other units.
    """

    kind: Kind = "label"
    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ParameterError(f"the kind of answers must be one of {', '.join(get_args(Kind))}, got {quote(self.kind)}")
        low, high = _number("low", self.low), _number("high", self.high)
        if not low < high or not isfinite(high - low):
            raise ParameterError(f"bounds of answers: low={low:g} must be below high={high:g}, by a finite amount")
        if self.kind != "value" and (low, high) != _RANGES[self.kind]:
            raise ParameterError(
                f"only output='value' has bounds: a {self.kind} has its own, {_RANGES[self.kind]}. Leave bounds out"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @classmethod
    def of(cls, kind: Kind, bounds: tuple[float, float] | None = None) -> AnswerScale:
        """`bounds` are needed for "value", and for nothing else."""
        if kind == "value" and bounds is None:
            raise ParameterError("output='value' needs the public bounds of answers. Pass bounds=(low, high)")
        return cls(kind, *(bounds or _RANGES.get(kind, (0.0, 1.0))))

    @property
    def half_range(self) -> float:
        """How far an answer moves when its label moves by 1."""
        return self.high / 2 - self.low / 2

    def answers(self, labels: Any) -> Vector:
        """Labels in [-1, 1] in the answer's own units. Estimates beyond ±1 are converted alike, not cut."""
        y = np.asarray(labels, dtype=np.float64)
        return np.asarray(y if self.kind == "label" else (self.low + self.high) / 2 + y * self.half_range)

    def answer(self, label: float) -> float:
        """`answers` of one label."""
        return label if self.kind == "label" else (self.low + self.high) / 2 + label * self.half_range

    def slopes(self, values: Any) -> Vector:
        """Slopes, contributions or standard errors of labels in the answer's own units: no offset."""
        return np.asarray(np.asarray(values, dtype=np.float64) * self.half_range)

    def labels(self, answers: Any) -> Vector:
        """Answers in their own units as labels, each cut to [-1, 1] by itself; NaN becomes the middle, 0."""
        v = np.clip(np.asarray(answers, dtype=np.float64), self.low, self.high)
        return np.asarray(np.nan_to_num(np.clip((v - self.low) / self.half_range - 1, -1.0, 1.0)))

    @property
    def in_percent(self) -> bool:
        """Whether people read answers in per cent, and differences of answers in percentage points."""
        return self.kind in ("probability", "class")

    @property
    def unit(self) -> str:
        """The unit of a difference of answers as people read it; empty for a model's own numbers."""
        return "points" if self.in_percent else ""

    def format(self, value: float, signed: bool = False) -> str:
        """An answer for people ("62 %", "41,200"), or a difference of answers where it is `signed` ("+3.1 points", "-1,230")."""
        unit = self.unit if signed else "%" if self.in_percent else ""
        return f"{self.number(value, signed)} {unit}".rstrip()

    def number(self, value: float, signed: bool = False) -> str:
        """The same without its unit, for a column of a table."""
        shown = 100 * value if self.in_percent else value
        decimals = _percent_decimals(shown, signed) if self.in_percent else self._decimals(signed)
        return f"{round(shown, decimals) + 0.0:{'+' if signed else ''},.{max(decimals, 0)}f}"

    def place(self, value: float, step: float) -> str:
        """An answer on an axis whose ticks are `step` apart, with as many decimals as the step has."""
        factor = 100 if self.in_percent else 1
        decimals = max(0, -floor(log10(factor * step) + 1e-9))
        return f"{round(factor * value, decimals) + 0.0:,.{decimals}f}{' %' if self.in_percent else ''}"

    def spread(self, error: float) -> str:
        """A standard error's number, without sign and unit."""
        return self.number(abs(error), signed=True).lstrip("+")

    def format_size(self, size: float) -> str:
        """The size of a slope or an error of labels for people, in the answer's own units and without a sign."""
        return self.format(float(self.slopes(size)), signed=True).lstrip("+")

    def _decimals(self, signed: bool) -> int:
        """How many decimals a number is rounded to, negative for tens and hundreds: answers to a thousandth of their range or finer,
        differences ten times finer.
        """
        return (1 if signed else 0) - floor(log10((self.high - self.low) / 1000))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "low": self.low, "high": self.high}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> AnswerScale:
        """What `to_dict` returned; None, as in files written before there was a scale, is plain labels."""
        return cls() if data is None else cls(data["kind"], data["low"], data["high"])


def _number(name: str, value: Any) -> float:
    try:
        number = float(value) if not isinstance(value, (bool, str)) else float("nan")
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not isfinite(number):
        raise ParameterError(f"bounds of answers: {name} must be a finite number, got {quote(value)}")
    return number + 0.0  # -0.0 becomes 0.0


def _percent_decimals(percent: float, signed: bool) -> int:
    """Whole per cents in the middle of the scale, tenths near its ends; differences to a tenth of a point, tiny ones to a hundredth."""
    size = abs(percent)
    if signed:
        return 2 if 0.005 <= size < 0.095 else 1
    if 9.95 <= size <= 90.05 or size < 0.005 or abs(size - 100) < 0.005:
        return 0
    return 2 if size < 0.95 else 1
