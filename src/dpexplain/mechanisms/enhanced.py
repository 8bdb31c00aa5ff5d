"""The enhanced adaptive mechanism: descents of nearly the same quality at a lower price. By moments it is `Adaptive`.

The paper lets T' follow from β alone, T' = max(β √(ln T) T, 2), because steps below the noise level buy little. Our own rule for descents
saves by paying the share r² of the price instead of r. Everything else is `Adaptive`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpexplain.mechanisms.adaptive import Adaptive


@dataclass(frozen=True, slots=True)
class Enhanced(Adaptive):
    """Like `Adaptive`, with cheaper descents: r² of the price, or the paper's T' from β alone.

    By moments, the default, the two do not differ: an answer that pays only for what the history lacks cannot be cheaper without being less accurate.
    """

    name: ClassVar[str] = "enhanced"
    exponent: ClassVar[int] = 2
    only_beta: ClassVar[bool] = True
