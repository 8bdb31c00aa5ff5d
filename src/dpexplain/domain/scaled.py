"""The length of a feature's whole declared range in distances between records. It is public, and nothing else depends on it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from dpexplain.arguments import quote
from dpexplain.domain.labelled import Labelled
from dpexplain.errors import DomainError

UNSCALED = 1.0
SMALLEST, LARGEST = 1e-6, 1e6  # so that squares of scales stay far from the limits of floating point


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled(Labelled):
    """`scale` is what the feature's whole range, or another category of it, adds to the distance between two records: with half of it, the
    feature contributes half as much to distances. Encoded values, slopes and contributions stay per whole range."""

    scale: float = UNSCALED


def require_scale(where: str, scale: Any) -> float:
    """The scale as a float; DomainError unless it is a positive number of a reasonable size."""
    number = isinstance(scale, (int, float)) and not isinstance(scale, bool) and isfinite(scale)
    if not number or not SMALLEST <= scale <= LARGEST:
        raise DomainError(
            f"{where}scale must be a number from {SMALLEST:g} to {LARGEST:g}, got {quote(scale)}: 1 counts the whole declared range as 1, "
            "0.5 half as much"
        )
    return UNSCALED if scale == UNSCALED else float(scale)
