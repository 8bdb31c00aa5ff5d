"""Counts the private rows that do not fit a domain: values that are clamped, missing or undeclared. Each row is read by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.domain import Date, Datetime, Domain, Numeric
from dpexplain.domain.catalogue import Feature
from dpexplain.domain.columns import read_columns
from dpexplain.domain.dates import instants
from dpexplain.domain.values import Column, floats, is_missing, positions
from dpexplain.registration.options import RegistrationOptions
from dpexplain.registration.owners import keep_first, owners_of


class MisfittingRows:
    """Counts leave through a door only."""

    def __init__(self, rows: Any, domain: Domain, terms: RegistrationOptions) -> None:
        columns = read_columns(rows, list(domain.columns))
        owners = None if terms.unit is None else owners_of(rows, terms.unit)
        kept = slice(None) if owners is None else np.flatnonzero(keep_first(owners, terms.max_rows_per_unit, {}))
        self._pairs = [(feature, columns[feature.name][kept]) for feature in domain.features]

    def misfits(self) -> Vector:
        """below, above, missing, undeclared for each feature: a row counts in at most one of the four."""
        return np.concatenate([_count_misfits(feature, column) for feature, column in self._pairs])


def _count_misfits(feature: Feature, column: Column) -> Vector:
    if isinstance(feature, Numeric):
        return _is_outside(floats(column), feature.low, feature.high)
    if isinstance(feature, (Date, Datetime)):
        low, high, _ = feature.span
        return _is_outside(np.floor(instants(column) / feature.step), low, high)
    unknown = np.flatnonzero(positions(column, feature.lookup) < 0)
    missing = sum(is_missing(column[i]) for i in unknown)
    return np.array([0.0, 0.0, float(missing), float(len(unknown) - missing)])


def _is_outside(values: Vector, low: float, high: float) -> Vector:
    return np.array([(values < low).sum(), (values > high).sum(), np.isnan(values).sum(), 0], dtype=np.float64)
