"""What is known about a plane at a query: slopes, answer, average, contributions of features, each with its standard error."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.estimation.answer import PlaneAnswers
from dpexplain.estimation.error_parts import Parts, no_parts, only_noise_and_shrinkage
from dpexplain.estimation.local_solve import solve_one

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Planes:
    """One row for each query; `added` and its errors have one column for each feature. base + Σ added = answer."""

    values: Matrix
    errors: Matrix
    noise_errors: Matrix  # the part of `errors` that all sources of planes have in common: mostly from noise and shrinkage
    answer: Vector
    answer_error: Vector
    base: Vector
    base_error: Vector
    added: Matrix
    added_errors: Matrix  # NaN where they are unknown
    share: Vector  # effective rows, as a share of all rows
    capped: Flags  # whether the ball that was asked for holds the slopes
    common: Vector  # root mean square of `noise_errors`
    own: Vector  # … and of the rest, a source's own
    parts: Parts  # of the slopes' errors (`estimation/error_parts.py`)

    def __getitem__(self, part: slice | NDArray[np.intp]) -> Planes:
        return Planes(*(getattr(self, one.name)[part] for one in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Variances:
    """One row for each query: of slopes, in common and a source's own; contributions with base and answer last; the parts of both."""

    noise: Matrix
    reference: Matrix
    added: Matrix
    parts: Parts

    @classmethod
    def empty(cls, queries: int, layout: Layout) -> Variances:
        """Variances of so many queries, which are yet to be filled in."""
        columns, features = (queries, layout.width), (queries, layout.attributes + 2)
        return cls(np.empty(columns), np.empty(columns), np.empty(features), no_parts(queries))

    def fill(self, rows: NDArray[np.intp], found: Variances) -> None:
        """Fill in those of some queries."""
        for one in fields(self):
            getattr(self, one.name)[rows] = getattr(found, one.name)


@dataclass(frozen=True, slots=True, eq=False)
class Average:
    """The unweighted mean of the rows, which contributions are compared with, and the standard error of each of its numbers."""

    values: Vector
    error: float


def join_planes(parts: list[Planes]) -> Planes:
    """Several batches as one."""
    return Planes(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Planes)))


def dots(a: Matrix, b: Matrix) -> Vector:
    """The scalar product of each row of `a` with the same row of `b`."""
    return np.asarray(np.vecdot(a, b))


def feature_sums(columns: Matrix, layout: Layout) -> Matrix:
    """Sums over the columns of each feature, along the last axis."""
    return np.asarray(np.add.reduceat(columns, layout.first, axis=-1))


def directions(offset: Vector, towards: Vector, layout: Layout) -> Matrix:
    """(n, features + 2): what contributions, base and answer multiply the slopes with.

    `offset` is the query minus the average; `towards` leads from where the plane's level is known to the query.
    """
    found = np.zeros((len(offset), layout.attributes + 2))
    found[np.arange(len(offset)), layout.owner] = offset
    found[:, -1] = towards
    found[:, -2] = towards - offset
    return found


def hold_in_ball(values: Matrix, eigenvalues: Vector, vectors: Matrix, radius: float | None) -> tuple[Matrix, Flags]:
    """Slopes in the ball, nearest to the given ones in what they predict for rows of equal weight; and where that moved them."""
    capped = np.zeros(len(values), dtype=bool)
    if radius is None:
        return values, capped
    held, still = values.copy(), np.zeros_like(eigenvalues)
    for i in np.flatnonzero(np.linalg.norm(values, axis=1) > radius):
        target = eigenvalues * (values[i] @ vectors)
        held[i], capped[i] = vectors @ solve_one(eigenvalues, still, target, radius)[0], True
    return held, capped


class FittedPlanes(NamedTuple):
    """Slopes and the answer at each query, the share of rows that counted, and whether a ball held the slopes."""

    values: Matrix
    answer: Vector
    share: Vector
    capped: Flags


def assemble(queries: Matrix, fitted: FittedPlanes, variances: Variances, average: Average, layout: Layout) -> Planes:
    """Planes from slopes, answers and variances.

    A contribution is a product of two numbers with errors, a slope and the distance from the average: variances multiply too, where a feature has one
    column. Errors of a code's slopes are mostly one amount for all its columns, of which averages that sum to one see nothing.
    """
    values, answer, share, capped = fitted
    noise, reference, rest = variances.noise, variances.reference, variances.added
    added = feature_sums(values * (queries - average.values), layout)
    shifted = average.error**2 * (np.square(values) + (layout.sizes == 1)[layout.owner] * (noise + reference))
    return Planes(
        values=values,
        errors=np.sqrt(noise + reference),
        noise_errors=np.sqrt(noise),
        answer=answer,
        answer_error=np.sqrt(rest[:, -1]),
        base=answer - added.sum(axis=1),
        base_error=np.sqrt(rest[:, -2] + shifted.sum(axis=1)),
        added=added,
        added_errors=np.sqrt(rest[:, :-2] + feature_sums(shifted, layout)),
        share=share,
        capped=capped,
        common=np.sqrt(np.add.reduce(noise, axis=1) / layout.width),
        own=np.sqrt(np.add.reduce(reference, axis=1) / layout.width),
        parts=variances.parts,
    )


def plain_planes(queries: Matrix, found: PlaneAnswers, answer: Vector, radius: float, average: Average, layout: Layout) -> Planes:
    """Planes of which only the slopes' errors are known: those that a ball holds."""
    values, errors = found.values, found.errors
    added = feature_sums(values * (queries - average.values), layout)
    unknown, rms = np.full(len(queries), np.nan), np.sqrt(np.square(errors).mean(axis=1))
    return Planes(
        values=values,
        errors=errors,
        noise_errors=errors,
        answer=answer,
        answer_error=np.zeros(len(queries)),  # it is given: 0, or the model's own
        base=answer - added.sum(axis=1),
        base_error=unknown,
        added=added,
        added_errors=np.full_like(added, np.nan),
        share=unknown,
        capped=np.linalg.norm(values, axis=1) >= radius * (1 - 1e-9),
        common=rms,
        own=np.zeros(len(queries)),
        parts=only_noise_and_shrinkage(errors) if found.parts is None else found.parts,
    )
