"""The planes of a release: built from its noisy moments and a model's answers at public points, stored in its file, restored from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.core.weights import Weight
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.calibrate import slopes_of
from dpexplain.estimation.counted_variances import counted_columns
from dpexplain.estimation.denoise import Estimate
from dpexplain.estimation.global_slopes import Guess, NoisyEquations, Slopes, guessed_slopes
from dpexplain.estimation.local_reference import LocalReference
from dpexplain.estimation.mixed_planes import MixedPlanes
from dpexplain.estimation.moment_planes import MomentPlanes
from dpexplain.estimation.noisy_directions import NoisyDirections
from dpexplain.estimation.planes import Average, Planes, plain_planes
from dpexplain.estimation.reference_planes import ReferencePlanes
from dpexplain.release.reference_data import CHANGE_STEPS, LARGEST_NUMBER, ReferenceData, restore_noise

_ARRAYS = ("slopes", "spread", "factors", "labels", "raked", "average")


def reference_slopes(points: Matrix, labels: Vector, base: Vector, found: Estimate, layout: Layout) -> Slopes:
    """The slopes of the plane through all rows, with labelled records for a guess; `base` weighs them as the moments weigh rows."""
    guess: Guess = guessed_slopes(points, labels, base, idle=counted_columns(found.margins, layout.numbers))
    return slopes_of(found, layout, guess)


def reference_planes(reference: ReferenceData, moments: MomentPlanes, rows: int) -> MixedPlanes | None:
    """Planes from labelled records and from moments; None where records have no labels."""
    if reference.labels is None or reference.weights is None or reference.changes is None:
        return None
    slopes = reference.slopes or replace(moments.slopes, doubt=max(reference.bias, moments.slopes.doubt))
    slopes = _no_surer(slopes, moments)
    records = ReferencePlanes(
        points=reference.encoded,
        labels=reference.labels,
        weights=reference.weights,
        changes=(reference.changes / CHANGE_STEPS).astype(np.float32),
        mean=moments.mean,
        t0=moments.t0,
        slopes=slopes,
        eigenvalues=moments.eigenvalues,
        eigenvectors=moments.eigenvectors,
        factors=moments.factors,
        average=moments.average,
        layout=moments.layout,
        second_error=moments.second_error,
        rows=rows,
    )
    return MixedPlanes(moments, records)


def _no_surer(slopes: Slopes, moments: MomentPlanes) -> Slopes:
    """Slopes from records, no surer than those of the moments along numbers that determine each other: the records' tables have more noise."""
    directions = NoisyDirections(moments.eigenvalues, moments.eigenvectors, moments.second_error, moments.layout.numbers)
    return replace(slopes, spread=np.maximum(slopes.spread, np.sqrt(directions.collinearity) * moments.slopes.spread))


def stored_arrays(planes: MomentPlanes) -> dict[str, Any]:
    """The arrays that a release file stores beside the solver's."""
    slopes = planes.slopes
    parts = (slopes.values, slopes.spread, planes.factors, planes.labels, planes.raked, planes.average.values)
    known = {} if slopes.noise is None else {"plane_noise": slopes.noise}
    return {f"plane_{name}": array for name, array in zip(_ARRAYS, parts, strict=True)} | known


def stored_numbers(planes: MomentPlanes) -> dict[str, float]:
    return {"doubt": planes.slopes.doubt, "t0_error": planes.t0_error, "average_error": planes.average.error}


def restore_planes(numbers: dict[str, Any] | None, arrays: dict[str, Any], solver: Solver) -> MomentPlanes:
    """What `stored_arrays` and `stored_numbers` stored; ValueError unless it makes sense.

    Files from before there were planes have neither: the moments that they hold give the fitted plane, with errors that are not rehearsed.
    """
    if numbers is None:
        return _planes_of_old_file(solver)
    n, points = solver.layout.width, len(solver.reference.labels)
    noise = restore_noise(arrays.pop("plane_noise", None), n)
    shapes = dict.fromkeys(("slopes", "spread", "factors", "average"), (n,)) | dict.fromkeys(("labels", "raked"), (points,))
    if {name: array.shape for name, array in arrays.items()} != {f"plane_{name}": shape for name, shape in shapes.items()}:
        raise ValueError("shapes of planes")
    slopes, spread, factors, labels, raked, average = (arrays[f"plane_{name}"] for name in _ARRAYS)
    levels = [float(numbers[name]) for name in ("doubt", "t0_error", "average_error")]
    sound = (spread >= 0).all() and (factors >= 0).all() and (raked > 0).all() and (np.abs(labels) <= 1).all()
    sizes = np.abs(np.concatenate([slopes, spread, factors, raked, average, levels]))
    if not (sound and (sizes <= LARGEST_NUMBER).all() and min(levels) >= 0):  # NaN is not
        raise ValueError("ranges of planes")
    doubt, t0_error, average_error = levels
    posterior = Slopes(slopes, spread, doubt, noise=noise)
    return _planes(solver, posterior, labels, raked, Average(average, average_error), factors, t0_error)


def _planes_of_old_file(solver: Solver) -> MomentPlanes:
    noise, reference = solver.noise, solver.reference
    slopes = NoisyEquations(
        solver.eigenvalues, solver.eigenvectors, solver.t1, noise.t1, noise.s2, solver.layout.numbers
    ).slopes()
    points, weights = reference.points(solver.layout), reference.inverse_weight
    average = Average(weights @ points / weights.sum(), noise.s1)
    return _planes(solver, slopes, reference.labels, np.ones(len(points)), average, np.ones(solver.layout.width), solver.t0_error)


def _planes(
    solver: Solver, slopes: Slopes, labels: Vector, raked: Vector, average: Average, factors: Vector, t0_error: float
) -> MomentPlanes:
    return MomentPlanes(
        mean=solver.mean,
        t0=solver.t0,
        slopes=slopes,
        eigenvalues=solver.eigenvalues,
        eigenvectors=solver.eigenvectors,
        layout=solver.layout,
        points=solver.reference.points(solver.layout),
        labels=labels,
        inverse_weight=solver.reference.inverse_weight,
        raked=raked,
        average=average,
        factors=factors,
        t0_error=t0_error,
        second_error=solver.noise.s2,
    )


class BallPlanes:
    """Planes with slopes constrained to a ball: the paper's, through 0, and anchored ones where a radius is given."""

    def __init__(self, solver: Solver | LocalReference, radius: float, average: Average, layout: Layout) -> None:
        self._solver = solver if solver.radius == radius else replace(solver, radius=radius)
        self._radius, self._average, self._layout = radius, average, layout

    def fit(self, queries: Matrix, weight: Any, anchors: Vector | None = None, radius: float | None = None) -> Planes:
        del radius
        found = self._solver.answer(queries, weight, anchors)
        answer = np.zeros(len(queries)) if anchors is None else anchors
        return plain_planes(queries, found, answer, self._radius, self._average, self._layout)


class PlaneSource(Protocol):
    """Fits planes at encoded queries, (q, n): through `anchors`, one a query, where they are given; in a ball where a radius is given."""

    def fit(self, queries: Matrix, weight: Weight, anchors: Vector | None = None, radius: float | None = None) -> Planes: ...
