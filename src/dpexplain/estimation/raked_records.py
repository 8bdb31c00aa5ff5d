"""Labelled records with weights, in the form that loops over many of them read, and which of them are near a query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.core.weights import Weight

if TYPE_CHECKING:
    from dpexplain.estimation.coded_rows import CodedRows, PackedRows

_NEGLIGIBLE = 1e-9  # weights below this share of the largest are left out

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class RakedRecords:
    """Encoded records, their labels, and weights of mean one."""

    points: Matrix
    labels: Vector
    weights: Vector
    changes: Floats  # (K, N): of the records' log weights, under other noise
    layout: Layout

    @cached_property
    def _records(self) -> CodedRows:
        from dpexplain.estimation.coded_rows import CodedRows  # which compiles its loops

        return CodedRows.of(self.points, self.layout)

    @cached_property
    def _packed(self) -> PackedRows:
        from dpexplain.estimation.coded_rows import PackedRows

        return PackedRows.of(self._records)

    @cached_property
    def _norms(self) -> Vector:
        return np.asarray((np.square(self.points) * self.layout.metric).sum(axis=1))

    @cached_property
    def _changes(self) -> Floats:
        """(N, K): so that those of a record are together."""
        return np.ascontiguousarray(self.changes.T)

    def _local_shares(self, query: Vector, weight: Weight) -> Vector:
        """The share of each record in the neighbourhood of an encoded query."""
        measured = self.layout.metric * query
        distance = self._packed.measure(self._norms, -2 * measured, float(query @ measured))
        return self._packed.localise(weight(distance), self.weights, _NEGLIGIBLE)
