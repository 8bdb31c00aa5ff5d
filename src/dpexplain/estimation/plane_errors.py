"""Variances of planes from moments, for a whole batch of queries by matrix products. Pure post-processing.

Every variance that is wanted is that of a linear function d·φ + l·level of a plane's slopes φ and its level at the local centre: of one slope, of a
feature's contribution, of the answers at the query and for the average record. Noise has the covariance R = WWᵀ. A share k of it is left where the
points decide, and all of it in directions that they do not enter: column j of W counts k² + (1 - k²)hⱼ², hⱼ the share of direction j that is
left to the plane through all rows. Points with weights p pull the slopes by u = ρ(M - c), one row a point, and the level by 1: they add Σ p (u·d + l)².
What may be wrong about the change δ of the slopes adds a (d·δ)² + Σ vⱼdⱼ² (`estimation/local_change.py`).

Where the plane turns about an anchor by g, with h leading from the query to the local centre, d·φ becomes (d - h(g·d))·φ + (g·d)·level.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.estimation.error_parts import APART, BIAS, COMMON, NOISE, SAMPLING, SHRINKAGE, Parts, no_parts, split_posterior
from dpexplain.estimation.local_change import OWN
from dpexplain.estimation.planes import Variances, directions, dots, feature_sums

_SMALL = 1 << 14  # entries of M up to which one query is answered by whole arrays


@dataclass(frozen=True, slots=True, eq=False)
class QueryErrors:
    """What the errors of a batch of planes depend on, one row a query."""

    kept: Vector  # k
    weights: Matrix  # p
    centre: Matrix  # c
    away: Matrix  # h
    offset: Matrix  # the query less the average record
    narrow: Matrix  # ρ of each column
    change: Matrix  # δ
    usual: Matrix  # v of each column
    drawn: Vector  # the share of what points with weights p add that comes from drawing them


@dataclass(frozen=True, eq=False)
class ErrorSources:
    """What the errors of all queries share: W, h, M of some points, and the standard error of the mean label."""

    root: Matrix
    left: Vector
    moved: Matrix
    level_error: float
    layout: Layout
    noise_share: Vector | None = None  # of the square of each column of W, the rest is shrinkage; None where it is not known

    @cached_property
    def _moved_squares(self) -> Matrix:
        return np.square(self.moved)

    @cached_property
    def noise(self) -> Matrix:
        """The diagonals of R and of what is always left of it."""
        return np.stack([np.square(self.root).sum(axis=1), np.square(self.root * self.left).sum(axis=1)])

    @cached_property
    def _column_squares(self) -> Vector:
        """The squared length of each column of W."""
        return np.asarray(np.square(self.root).sum(axis=0))

    @cached_property
    def traces(self) -> Matrix:
        """Of R and of what is always left of it: mean squares over the slopes, from noise and from shrinkage, one row each."""
        squares = self._column_squares / self.layout.width
        return split_posterior(np.stack([squares, squares * np.square(self.left)]), self.noise_share)

    def _name_parts(
        self, q: QueryErrors, posterior: Matrix, usual: Vector, pulled: Vector | float, change: Vector | float
    ) -> Parts:
        """Parts, from mean squares by noise and by shrinkage, and from sums of v, of what points add, and of the squared change."""
        found, n = no_parts(len(q.kept)), self.layout.width
        found[:, COMMON, NOISE], found[:, COMMON, SHRINKAGE], found[:, COMMON, BIAS] = *posterior, usual / n
        found[:, APART, SAMPLING] = q.drawn * pulled / n
        found[:, APART, BIAS] = ((1 - q.drawn) * pulled + OWN * change) / n
        return found

    @cached_property
    def _codes(self) -> list[tuple[int, slice, Matrix, tuple[Matrix, Matrix]]]:
        """Features of several columns: (feature, columns, M of them, R of them and what is always left of it)."""
        blocks, left = [(a, self.layout.columns(a)) for a in range(self.layout.attributes)], self.root * self.left
        wide = [(a, part) for a, part in blocks if part.stop - part.start > 1]
        return [
            (a, part, self.moved[:, part].T.copy(), (self.root[part] @ self.root[part].T, left[part] @ left[part].T))
            for a, part in wide
        ]

    def _column_counts(self, q: QueryErrors) -> Matrix:
        """How much each column of W counts, one row a query."""
        kept = np.square(q.kept)[:, None]
        return np.asarray(kept + (1 - kept) * np.square(self.left))

    @cached_property
    def _moved_by_column(self) -> Matrix:
        """M with a column for each point."""
        return np.ascontiguousarray(self.moved.T)

    def fitted_variances(self, q: QueryErrors) -> Variances:
        """Variances of planes that are free at the query."""
        if len(q.kept) == 1 and self.moved.size <= _SMALL:
            return self._fitted_one(q)
        counted, kept = self._column_counts(q), np.square(q.kept)
        noise = _interpolate(kept[:, None], *self.noise)
        noise = noise + q.usual
        pulled_slopes, change = np.maximum(self._pulled_slopes(q), 0.0), np.square(q.change)
        reference = pulled_slopes + OWN * change
        added = feature_sums(np.square(q.offset) * (noise + reference), self.layout)
        for a, block, moved, covariances in self._codes:
            offset = q.offset[:, block]
            across = offset * q.narrow[:, block]
            pulled = across @ moved - dots(across, q.centre[:, block])[:, None]
            added[:, a] = dots(q.weights, np.square(pulled)) + _interpolate(
                kept, *(dots(offset @ R, offset) for R in covariances)
            )
            added[:, a] += OWN * np.square(dots(offset, q.change[:, block])) + dots(np.square(offset), q.usual[:, block])
        base, answer = (self._variance_along(q, counted, d, 1.0) + self.level_error**2 for d in (-q.away - q.offset, -q.away))
        posterior = _interpolate(kept[:, None], *self.traces).T
        parts = self._name_parts(q, posterior, q.usual.sum(axis=1), pulled_slopes.sum(axis=1), change.sum(axis=1))
        return Variances(noise, reference, np.concatenate([added, base[:, None], answer[:, None]], axis=1), parts)

    def _fitted_one(self, q: QueryErrors) -> Variances:
        """The same for one query, by a few operations on all features at once."""
        weights, centre, kept = q.weights[0], q.centre[0], np.square(q.kept)
        wanted = directions(q.offset[0], -q.away[0], self.layout)  # one column for each number: d
        across = wanted * q.narrow[0][:, None]
        pulled = across.T @ self._moved_by_column  # u·d + l, one column a point
        pulled -= (centre @ across)[:, None]
        pulled[-2:] += 1.0
        added = np.square(pulled) @ weights + np.square(wanted.T @ self.root) @ self._column_counts(q)[0]
        added[-2:] += self.level_error**2
        added += OWN * np.square(q.change[0] @ wanted) + q.usual[0] @ np.square(wanted)
        reference = np.square(self._moved_by_column - centre[:, None]) @ weights * np.square(q.narrow[0])
        sums = np.add.reduce(q.usual, axis=1), np.add.reduce(reference), q.change[0] @ q.change[0]
        reference += OWN * np.square(q.change[0])
        parts = self._name_parts(q, _interpolate(kept, *self.traces), *sums)
        return Variances((_interpolate(kept, *self.noise) + q.usual[0])[None], reference[None], added[None], parts)

    def anchored_variances(self, q: QueryErrors, turn: Matrix) -> Variances:
        """Variances of planes that go through an anchor; `turn` is g."""
        counted, kept = self._column_counts(q), np.square(q.kept)
        away = q.away * q.narrow
        excess = away @ self.moved.T - dots(away, q.centre)[:, None] - 1.0  # u·h - 1
        rotated = q.away @ self.root  # hᵀW
        across, length = (counted * rotated) @ self.root.T, dots(counted * rotated, rotated)[:, None]  # hᵀR, hᵀRh
        pulls = q.weights * excess
        crossed = q.narrow * (pulls @ self.moved - q.centre * pulls.sum(axis=1)[:, None])
        reference = self._pulled_slopes(q) + turn * (turn * dots(pulls, excess)[:, None] - 2 * crossed)
        turned_change = dots(q.away, q.change)  # h·δ
        across_usual, along_usual = q.away * q.usual, dots(np.square(q.away), q.usual)
        reference, change = np.maximum(reference, 0.0), np.square(q.change - turn * turned_change[:, None])
        pulled_slopes = reference.sum(axis=1)
        reference = reference + OWN * change
        noise = np.maximum(_interpolate(kept[:, None], *self.noise) + turn * (turn * length - 2 * across), 0.0)
        usual = q.usual + turn * (turn * along_usual[:, None] - 2 * across_usual)
        noise += usual
        added = feature_sums(np.square(q.offset) * (noise + reference), self.layout)
        for a, block, moved, covariances in self._codes:
            offset = q.offset[:, block]
            along = dots(turn[:, block], offset)
            narrowed = offset * q.narrow[:, block]
            pulled = narrowed @ moved - (dots(narrowed, q.centre[:, block])[:, None] + along[:, None] * excess)
            turned = along * (along * length[:, 0] - 2 * dots(offset, across[:, block]))
            own = _interpolate(kept, *(dots(offset @ R, offset) for R in covariances))
            added[:, a] = dots(q.weights, np.square(pulled)) + np.maximum(own + turned, 0.0)
            added[:, a] += OWN * np.square(dots(offset, q.change[:, block]) - along * turned_change)
            added[:, a] += dots(np.square(offset), q.usual[:, block])
            added[:, a] += along * (along * along_usual - 2 * dots(offset, across_usual[:, block]))
        along = dots(turn, q.offset)
        base = self._variance_along(q, counted, q.offset - along[:, None] * q.away, along) + np.square(along * self.level_error)
        added += np.square(feature_sums(turn * q.offset, self.layout) * self.level_error)
        level = np.square(turn * self.level_error)
        squares = self._column_squares + rotated * (rotated * dots(turn, turn)[:, None] - 2 * (turn @ self.root))
        posterior = split_posterior(counted * squares, self.noise_share, level.sum(axis=1)).T / self.layout.width
        parts = self._name_parts(q, posterior, usual.sum(axis=1), pulled_slopes, change.sum(axis=1))
        return Variances(noise + level, reference, np.column_stack([added, base, np.zeros_like(base)]), parts)

    def _pulled_slopes(self, q: QueryErrors) -> Matrix:
        """Σ p u²."""
        total = q.weights.sum(axis=1)[:, None]
        pulled = q.weights @ self._moved_squares + q.centre * (q.centre * total - 2 * (q.weights @ self.moved))
        return np.asarray(np.square(q.narrow) * pulled)

    def _variance_along(self, q: QueryErrors, counted: Matrix, directions: Matrix, level: Vector | float) -> Vector:
        """The variance of d·φ + l·level for one direction a query."""
        across = directions * q.narrow
        pulled = across @ self.moved.T + (level - dots(across, q.centre))[:, None]
        rotated = directions @ self.root
        bent = OWN * np.square(dots(directions, q.change)) + dots(np.square(directions), q.usual)
        return np.asarray(dots(q.weights, np.square(pulled)) + dots(counted, np.square(rotated)) + bent)


def _interpolate(share: Matrix, whole: Matrix, left: Matrix) -> Matrix:
    return np.asarray(share * whole + (1 - share) * left)
