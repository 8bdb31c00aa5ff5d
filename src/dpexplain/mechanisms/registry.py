"""The registry of mechanisms by the names that files, commands and ledgers use. A new mechanism touches its own file and this one."""

from __future__ import annotations

from typing import Any

from dpexplain.mechanisms.adaptive import Adaptive as Adaptive
from dpexplain.mechanisms.basic import Basic as Basic
from dpexplain.mechanisms.enhanced import Enhanced as Enhanced
from dpexplain.mechanisms.influence import Influence as Influence
from dpexplain.mechanisms.shapley import Shapley as Shapley

MECHANISMS: dict[str, Any] = {
    "basic": Basic,
    "adaptive": Adaptive,
    "enhanced": Enhanced,
    "influence": Influence,
    "shapley": Shapley,
}
