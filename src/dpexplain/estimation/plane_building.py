"""The planes of a release, from what was released, its calibrated estimate and labels at public points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.calibrate import Calibrated, Normals, equations_of, plane_factors
from dpexplain.estimation.denoise import NoisySketch
from dpexplain.estimation.local_reference import MomentRaking, MomentTargets
from dpexplain.estimation.moment_planes import MomentPlanes
from dpexplain.estimation.planes import Average
from dpexplain.estimation.public_points import PublicModel
from dpexplain.estimation.reference import NUMBER_STEPS


def build_planes(
    sketch: NoisySketch, calibrated: Calibrated, solver: Solver, model: PublicModel | None, normals: Normals
) -> MomentPlanes:
    """From what was released and its estimate; `model` may be asked about public points, `normals` are for rehearsals."""
    answered = None if model is None else model.ask_about(solver)
    found, points = calibrated.found, solver.reference.points(solver.layout)
    labels = solver.reference.labels if answered is None else answered.labels[: len(points)]
    guess = None if answered is None else answered.guess
    slopes = equations_of(found, solver.layout).slopes(guess)
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
        raked=MomentRaking(points, labels, np.ones(len(points)), moment_targets(solver, slopes.values)).weights(),
        average=Average(sketch.query.centre, sketch.centre_error),
        factors=plane_factors(calibrated, sketch.query, sketch.sigma, guess, slopes, normals),
        t0_error=found.spread.t0 * sqrt(1 + found.t0**2),  # E y is a ratio of two noisy sums
        second_error=found.spread.s2,
    )


def move_to_levels(solver: Solver, levels: Sequence[int]) -> Solver:
    """The solver with ordered features of its public points moved to their nearest level: between two levels there is no record to ask about.

    `levels` has the number of levels of each attribute, 0 where it is not ordered.
    """
    codes = solver.reference.codes.copy()
    for a, count in enumerate(levels):
        if count > 1:
            steps = np.rint(codes[a] / NUMBER_STEPS * (count - 1))
            codes[a] = np.rint(steps / (count - 1) * NUMBER_STEPS).astype(np.int64)
    return replace(solver, reference=replace(solver.reference, codes=codes))


def moment_targets(solver: Solver, start: Vector) -> MomentTargets:
    """What reference records are raked to; `start` are the slopes of the plane through all rows."""
    covariance = (solver.eigenvectors * solver.eigenvalues) @ solver.eigenvectors.T
    noise = solver.noise
    return MomentTargets(solver.mean, covariance, solver.t0, solver.t1, noise.s1, noise.s2, noise.t1, start)
