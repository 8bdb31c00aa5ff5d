"""Reference implementation of every statistic in plain NumPy. Every other backend must agree with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.baseline_shapley import ShapleySum
from dpexplain.core.expected_labels import LabelDistances
from dpexplain.core.marginals import LABEL_STEPS, Histograms, LabelTables, PairTables
from dpexplain.core.moments import LocalMoments, Moments, RawMoments, RawSums
from dpexplain.core.release_moments import SQUARES_CENTRE, SQUARES_SCALE, CentreMoments, NormalisedMoments


class OracleRows:
    """Row-major float64 rows. It makes temporaries as large as the table, so it is for tests only."""

    def __init__(self, rows: Matrix, labels: Vector) -> None:
        self._rows, self._labels = np.asarray(rows, dtype=np.float64), np.asarray(labels, dtype=np.float64)

    @property
    def width(self) -> int:
        return int(self._rows.shape[1])

    @property
    def summation_error(self) -> float:
        return (len(self._rows) + self.width + 10) * 2.0**-53

    def local(self, query: LocalMoments) -> Moments:
        sums = self.raw(RawMoments(query.point, query.weight, query.scale))
        return Moments(sums.S2, sums.t1, sums.S1, sums.S0, sums.t0)

    def local_many(self, queries: Sequence[LocalMoments]) -> list[Moments]:
        return [self.local(query) for query in queries]

    def raw(self, query: RawMoments) -> RawSums:
        v = self._rows - query.anchor
        scaled = v if query.scale is None else v * query.scale
        return self._sum_weighted(v, query.weight(np.sqrt(np.square(scaled).sum(axis=1))))

    def _sum_weighted(self, v: Matrix, w: Vector, labels: Vector | None = None) -> RawSums:
        y = self._labels if labels is None else labels
        return RawSums(float(w.sum()), w @ v, (v * w[:, None]).T @ v, float(w @ y), (w * y) @ v)

    def centre(self, query: CentreMoments) -> Vector:
        v = self._rows - query.layout.centre
        squares = (np.square(v[:, query.layout.numbers]) - SQUARES_CENTRE).sum(axis=0)
        return np.concatenate([v.sum(axis=0), SQUARES_SCALE * squares])

    def normalised(self, query: NormalisedMoments) -> RawSums:
        plane = query.plane
        labels = plane.differences(self._labels, self._rows @ plane.slopes)
        return self._sum_weighted(self._rows - query.centre, query.weights(self._rows), labels)

    def label_distances(self, query: LabelDistances) -> Vector:
        return query.count(self._labels, self._rows @ query.plane.slopes)

    def shapley(self, query: ShapleySum) -> Vector:
        return query.from_units(query.units(self._rows))

    def histograms(self, query: Histograms) -> Vector:
        parts = [np.bincount(cell.of(self._rows[:, cell.start : cell.stop]), minlength=cell.count) for cell in query.cells]
        return np.concatenate(parts).astype(np.float64)

    def pair_tables(self, query: PairTables) -> Matrix:
        return self._add_to_pairs(query, np.ones(len(self._rows)))

    def label_tables(self, query: LabelTables) -> Matrix:
        return self._add_to_pairs(query.tables, np.rint(np.clip(self._labels, -1, 1) * LABEL_STEPS)) / LABEL_STEPS

    def _add_to_pairs(self, query: PairTables, values: Vector) -> Matrix:
        """One value a row, added up in its cell of each table."""
        bins = query.bins
        places, sums = bins.of(self._rows) + bins.offsets[:-1], np.zeros((bins.total, bins.total))
        for a in range(places.shape[1]):
            for b in range(places.shape[1]):
                if a != b:
                    np.add.at(sums, (places[:, a], places[:, b]), values)
        return sums
