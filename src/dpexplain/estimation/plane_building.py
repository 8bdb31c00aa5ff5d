"""The planes of a release, from what was released, its calibrated estimate and labels at public points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.layout import Layout
from dpexplain.core.weights import Weight
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.calibrate import Calibrated, Normals, plane_factors, rehearse_moments, slopes_of
from dpexplain.estimation.denoise import Estimate, NoisySketch, restore_clipped
from dpexplain.estimation.error_parts import name_parts
from dpexplain.estimation.global_slopes import Guess
from dpexplain.estimation.local_reference import MomentRaking, MomentTargets
from dpexplain.estimation.moment_planes import MomentPlanes
from dpexplain.estimation.planes import Average, Planes
from dpexplain.estimation.public_points import PublicModel, PublicPoints
from dpexplain.estimation.reference import POINTS
from dpexplain.estimation.related import RelatedPair

GUESSED = 1 << 15  # points that a model's slopes come from where planes serve many questions
_MOST_CELLS = 1 << 22  # of points times columns


def build_planes(
    sketch: NoisySketch, calibrated: Calibrated, model: PublicModel | None, normals: Normals, guessed: int = POINTS
) -> MomentPlanes:
    """Build planes from what was released and its estimate; `normals` are for rehearsals, and `model` may be asked about public points.

    The slopes of its answers come from `guessed` points: hard answers at few of them say little about rare values. What clipping cut off of rare
    labels is restored as far as it is cut off of these answers: without it labels would say that slopes are 0.
    """
    solver = calibrated.solver
    answered = None if model is None else model.ask_about(solver)
    found, points = calibrated.found, solver.reference.points(solver.layout)
    labels = solver.reference.labels if answered is None else answered.labels[: len(points)]
    guess = None if model is None or answered is None else _guess_slopes(calibrated, model, answered, guessed)
    if answered is not None and sketch.query.expected is not None:
        found = restore_clipped(found, sketch.query.expected, answered.points, answered.labels, answered.weights)
    slopes = slopes_of(found, solver.layout, guess)
    return MomentPlanes(
        mean=found.mean,
        t0=found.t0,
        slopes=slopes,
        eigenvalues=found.values,
        eigenvectors=found.vectors,
        layout=solver.layout,
        points=points,
        labels=labels,
        inverse_weight=solver.reference.inverse_weight,
        raked=MomentRaking(points, labels, np.ones(len(points)), moment_targets(solver, slopes.values, found)).weights(),
        average=Average(sketch.query.centre if sketch.average is None else sketch.average, sketch.centre_error),
        factors=_alike_where_incomplete(
            plane_factors(calibrated, sketch.query, sketch.sigma, guess, slopes, normals), found, solver.layout
        ),
        t0_error=found.spread.t0 * sqrt(1 + found.t0**2),  # E y is a ratio of two noisy sums
        second_error=found.spread.s2,
    )


def _alike_where_incomplete(factors: Vector, found: Estimate, layout: Layout) -> Vector:
    """One factor for all columns of a code with unknown values: its slopes have a part in common that is uncertain, and cancels in contributions."""
    alike = np.sqrt(layout.per_attribute(np.square(factors)) / layout.sizes)
    return np.where((found.doubtful | (found.missing > 0))[layout.owner], alike[layout.owner], factors)


def _guess_slopes(calibrated: Calibrated, model: PublicModel, answered: PublicPoints, count: int) -> Guess:
    """The slopes of the model's answers, from `count` points as far as these fit into memory, or else from those that it answered."""
    most = max(_MOST_CELLS // calibrated.solver.layout.width, 1)
    count = min(count, 1 << most.bit_length() - 1)  # a Sobol' sequence is even in powers of two
    more = model.ask_about(calibrated.solver_with(count)) if count > POINTS else None
    return (more or answered).guess(calibrated.found.margins)


@dataclass(frozen=True, slots=True, eq=False)
class PlaneQuestion:
    """A plane at one encoded point: through `anchor` where there is one, in a ball where there is a radius. `levels` are of `move_to_levels`.

    Contributions are compared with `baseline`, an encoded public record, or with the released average where it is None.
    """

    point: Vector
    weight: Weight
    anchor: float | None = None
    radius: float | None = None
    levels: tuple[int, ...] = ()
    baseline: Vector | None = None


class FoundPlane(NamedTuple):
    """The plane that answers one question, the features that go together in it, and the parts of its slopes' errors by name."""

    planes: Planes
    related: tuple[RelatedPair, ...]
    error_parts: dict[str, float]


def fit_one_plane(sketch: NoisySketch, asked: PlaneQuestion, model: PublicModel | None, normals: Normals) -> FoundPlane:
    """The plane that answers one question, from what was released for it.

    Where no model answers about them, points serve this question alone: no more of them are made than noise lets matter.
    """
    calibrated = rehearse_moments(sketch, asked.levels, normals, fewer=model is None)
    return plane_at(_compare_with_baseline(build_planes(sketch, calibrated, model, normals), asked), asked)


def build_planes_for(
    sketch: NoisySketch, asked: PlaneQuestion, model: PublicModel | None, normals: Normals, guessed: int
) -> MomentPlanes:
    """Planes that answer a question, and all others with the same levels and baseline."""
    return _compare_with_baseline(
        build_planes(sketch, rehearse_moments(sketch, asked.levels, normals), model, normals, guessed), asked
    )


def _compare_with_baseline(planes: MomentPlanes, asked: PlaneQuestion) -> MomentPlanes:
    """The planes with contributions that are compared with the question's baseline."""
    return planes if asked.baseline is None else replace(planes, average=Average(asked.baseline, error=0.0))


def plane_at(planes: MomentPlanes, asked: PlaneQuestion) -> FoundPlane:
    """The plane that answers one question."""
    anchors = None if asked.anchor is None else np.array([asked.anchor])
    found = planes.fit(asked.point[None], asked.weight, anchors, asked.radius)
    return FoundPlane(found, planes.related, name_parts(found.parts[0]))


def moment_targets(solver: Solver, start: Vector, found: Estimate | None = None) -> MomentTargets:
    """What reference records are raked to; `start` are the slopes of the plane through all rows. Label moments are those of an estimate, if there is one."""
    covariance, noise = (solver.eigenvectors * solver.eigenvalues) @ solver.eigenvectors.T, solver.noise
    known = MomentTargets(solver.mean, covariance, solver.t0, solver.t1, noise.s1, noise.s2, noise.t1, start)
    if found is None:
        return known
    return replace(known, t0=float(found.t0), t1=found.t1, label_error=float(found.centred_error), expected=found.expected)
