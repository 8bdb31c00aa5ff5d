"""`MomentPlanes` by compiled loops, for a process that answers many questions one by one: a third of the time of a single question.

Loading the compiler takes longer than a few questions do, so a release uses NumPy unless a service chooses compiled planes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.weights import Weight
from dpexplain.estimation import _distance_kernels as distances
from dpexplain.estimation import _plane_kernels as kernels
from dpexplain.estimation.moment_planes import BROAD, EVERY, MomentPlanes
from dpexplain.estimation.plane_errors import ErrorSources
from dpexplain.estimation.planes import Planes, Variances

LARGEST = 1 << 18  # entries of the points, beyond which
MANY = 12  # … and questions at a time, from which NumPy's matrix products are faster
NARROW, MANY_NARROW = 30, 64  # columns up to which that takes so many questions


def is_many(queries: Matrix) -> bool:
    return len(queries) > (MANY_NARROW if queries.shape[1] <= NARROW else MANY)


@dataclass(frozen=True, eq=False)
class CompiledPlanes:
    """The planes of `given`, equal up to rounding."""

    given: MomentPlanes

    def fit(self, queries: Matrix, weight: Weight, anchors: Vector | None = None, radius: float | None = None) -> Planes:
        """Fit planes as `MomentPlanes.fit` does; anchors, balls and large batches are left to it."""
        if anchors is not None or radius is not None or self.given.points.size > LARGEST or is_many(queries):
            return self.given.fit(queries, weight, anchors, radius)
        points, metric, lengths, about, alike, constants = self._fitting
        distance = np.empty((len(queries), points.shape[1]))
        distances.measure(queries, points, metric, lengths, distance)
        local = _weigh(weight, distance)
        found = _empty(queries, 2), _empty(queries, 2), _empty(queries, 1), _empty(queries, 1)
        kernels.fit_planes(local, queries, points, about, alike, constants, self.given.dense_inverse, found)
        return self._finish(queries, found, self._variances(queries, local, found))

    @cached_property
    def _fitting(self) -> tuple[Any, ...]:
        """The arguments of the kernels beside queries."""
        given = self.given
        (everyone, unraked), (level0, right0) = given.weighing, given.offsets
        metric = np.broadcast_to(given.layout.metric, given.mean.shape).copy()
        about, alike = (given.residuals, everyone, unraked), (given.slopes.values, given.mean, right0)
        constants = (float(given.t0), level0, given.ridge)
        return _pad_columns(given.points), metric, given.lengths, about, alike, constants

    def _finish(self, queries: Matrix, found: tuple[Matrix, Matrix, Vector, Vector], variances: Variances) -> Planes:
        slopes, _, answer, share = found
        noise, errors, rest = given = variances.noise, variances.reference, variances.added
        average, layout = self.given.average, self.given.layout
        added, numbers = np.empty((len(queries), layout.attributes)), np.empty((3, len(queries)))
        offsets = queries - average.values
        kernels.finish_planes(
            offsets, float(average.error), layout.owner, layout.sizes == 1, (slopes, answer), given, added, numbers
        )
        return Planes(
            values=slopes,
            errors=errors,
            noise_errors=noise,
            answer=answer,
            answer_error=rest[:, -1],
            base=numbers[0],
            base_error=rest[:, -2],
            added=added,
            added_errors=rest[:, :-2],
            share=share,
            capped=np.zeros(len(queries), dtype=bool),
            common=numbers[1],
            own=numbers[2],
            parts=variances.parts,
        )

    def _variances(self, queries: Matrix, local: Matrix, solved: tuple[Matrix, Matrix, Vector, Vector]) -> Variances:
        given, layout = self.given, self.given.layout
        slopes, middle, _, share = solved
        found = Variances.empty(len(queries), layout)
        into = found.noise, found.reference, found.added, found.parts
        planes, (about, spread, constants) = (middle, share, queries, given.average.values, slopes), self._about
        wrong, narrow = given.local_change, share < BROAD
        changes = given.slopes.values, wrong.shares, wrong.usual, wrong.unseen
        for every, chosen in ((1, narrow.nonzero()[0]), (EVERY, (~narrow).nonzero()[0])):
            if len(chosen):
                sources = self._narrow if every == 1 else self._broad
                kernels.plane_variances(
                    chosen,
                    every,
                    local,
                    planes,
                    about,
                    spread,
                    sources,
                    constants,
                    changes,
                    (given.mean, given.dense_inverse, layout.owner),
                    into,
                )
        return found

    @cached_property
    def _about(self) -> tuple[tuple[Any, ...], ...]:
        """The kernel's arguments about points, columns and constants."""
        given = self.given
        spread = given.variances, given.layout.numbers, np.ascontiguousarray(given.number_squares.T)
        return (given.raked, given.squares), spread, (given.doubt, given.mean_square, float(given.t0_error) ** 2, given.drawn)

    @cached_property
    def _broad(self) -> kernels.Sources:
        return _sources(self.given.error_sources(EVERY))

    @cached_property
    def _narrow(self) -> kernels.Sources:
        return _sources(self.given.error_sources(1))


def _weigh(weight: Weight, distance: Matrix) -> Matrix:
    """α of each distance, which is overwritten where α is one of the paper's family without more."""
    height, cap, *rest = weight.profile or (1.0, np.inf)
    if cap == np.inf or rest != [np.inf, np.inf]:
        return np.ascontiguousarray(weight(distance))
    distances.cap_distances(distance, height, cap)
    return distance


def _pad_columns(points: Matrix) -> kernels.Points:
    """The points as the kernels read them."""
    count, columns = points.shape
    rows = np.zeros((-(-columns // kernels.TOGETHER) * kernels.TOGETHER, count), dtype=np.float32)
    rows[:columns] = points.T
    return rows


def _sources(errors: ErrorSources) -> kernels.Sources:
    return np.ascontiguousarray(errors.moved.T), np.ascontiguousarray(errors.root), errors.left, errors.noise, errors.traces


def _empty(queries: Matrix, dimensions: int) -> Matrix:
    return np.empty(queries.shape[:dimensions])
