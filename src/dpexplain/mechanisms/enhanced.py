"""The enhanced adaptive mechanism: answers of nearly the same quality at a lower price.

The paper lets T' follow from β alone, T' = max(β √(ln T) T, 2), because steps below the noise level buy little. Our own rule
saves by paying the share r² of the price instead of r. Everything else is `Adaptive`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpexplain.mechanisms.adaptive import Adaptive


@dataclass(frozen=True, slots=True)
class Enhanced(Adaptive):
    """Like `Adaptive`, unrestricted: the cheapest answers the history allows, at most (ε, δ) a query."""

    name: ClassVar[str] = "enhanced"
    exponent: ClassVar[int] = 2
    only_beta: ClassVar[bool] = True
