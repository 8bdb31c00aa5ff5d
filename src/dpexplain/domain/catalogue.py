"""Every kind of feature there is."""

from __future__ import annotations

from typing import TypeAlias

from dpexplain.domain.dates import Date, Datetime
from dpexplain.domain.features import Binary, Categorical, Numeric, Ordinal

Feature: TypeAlias = Numeric | Ordinal | Categorical | Binary | Date | Datetime
FEATURES: tuple[type[Feature], ...] = (Numeric, Ordinal, Categorical, Binary, Date, Datetime)
