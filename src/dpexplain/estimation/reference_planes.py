"""Fitted and anchored planes from many labelled reference records. Pure post-processing, for any weight and any query.

As `estimation/moment_planes.py`, with the records' own second moments instead of the moments' inverse: with s ∝ αg, u = x - Σ s x and the residuals
r = y - t₀ - φ₀·(x - μ) of the plane through all rows,

    (A + A₀/n)δ = Σ s r u + b₀/n - βc,    A = Σ s u uᵀ,    φ = φ₀ + δ,    n = (Σs)²/Σs²,    β = (n/N)²,

(A₀, b₀) are the same sums with equal weights. c is that sum with the weights that the moments give to rows: a control variate, as in that module.
Directions that hardly any record near z determines follow the plane through all rows. φ is 0 along the sum of a code's columns where every
record has the code, because no record differs from another there.

The errors have these parts.

- Drawing the records: V = Σ q²r²uuᵀ, with q = s minus β times the record's share in c.
- Drawing the private rows: nV/m', with m' of them near z. m' is reduced where it hardly exceeds the number of columns; below that number, a
  slope may be wrong by as much as slopes are long.
- Records that are wrong by a share τ of their residuals: nτ²V; and changes that cannot be seen (`estimation/local_change.py`).
- Noise of the tables that the records were drawn from: by rehearsed changes of the records' weights.
- Noise and shrinkage of φ₀: its posterior, as far as φ follows φ₀, and in directions in which the released covariance does not determine
  whether rows vary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import FINE
from dpexplain.core.release_moments import SMALLEST_VARIANCE, NormalisedMoments
from dpexplain.core.weights import Weight
from dpexplain.estimation.error_parts import APART, BIAS, COMMON, NOISE, SHRINKAGE, no_parts, split_posterior, split_records
from dpexplain.estimation.global_slopes import PRECISION, Slopes, spread_of
from dpexplain.estimation.local_change import LocalChange
from dpexplain.estimation.planes import Average, FittedPlanes, Planes, Variances, assemble, directions, hold_in_ball
from dpexplain.estimation.raked_records import RakedRecords

if TYPE_CHECKING:
    from dpexplain.estimation.coded_rows import CodedRows, Positions

_PRIOR_ROWS = 1.0  # how many rows' worth of evidence the plane through all rows has against the local ones
_DRAWN, _TABLES = 3.0, 2.5  # factors of variances, as measured: of drawing records and rows, and of the noise of tables
_WRONG = 0.05  # … and of residuals that are wrong by a share τ
_WITHIN = 1 / (12 * FINE**2)  # variance of a number within its cell
_OPEN = 1.0  # factor of the errors of φ₀ in open directions
_CROWDED = 0.05  # least share of the private rows' freedom that is left after fitting them
_PER_COLUMN, _FEWEST = 128, 1 << 13  # records that A and errors are computed from: those of the most weight, some of the others
_REFINEMENTS, _CLOSE = 3, 0.01


@dataclass(frozen=True, slots=True, eq=False)
class ThinnedRecords:
    """A subsample that represents all records; each of its records represents `times` records."""

    positions: Positions
    rows: CodedRows
    share: Vector  # s
    times: Vector

    def covariance(self) -> Matrix:
        """A."""
        share = self.share * self.times
        share = share / share.sum()
        centre = self.rows.sums(share)
        return self.rows.products(share) - np.outer(centre, centre)


@dataclass(frozen=True, slots=True, eq=False)
class RecordErrors:
    """The errors that records cause: of (Σ s r u, Σ s r) at first, then of (slopes, level), or of slopes that turn with the level."""

    covariance: Matrix
    tables: Matrix  # T, with TᵀT the part of it that the noise of tables causes
    drawn: float  # the share of the rest that drawing records and rows causes; what is left comes from records that are wrong
    undecided: Vector | float = 0.0  # what is added to slopes' variances because private rows are few

    def of_slopes(self, K: Matrix, undecided: Vector) -> RecordErrors:
        V, tables = self.covariance.copy(), self.tables.copy()
        V[:-1] = K @ V[:-1]
        V[:, :-1] = V[:, :-1] @ K
        V[np.diag_indices(len(undecided))] += undecided
        tables[:, :-1] = tables[:, :-1] @ K
        return RecordErrors(V, tables, self.drawn, undecided)

    def turn(self, by: Matrix) -> RecordErrors:
        undecided = np.square(by[:, :-1]) @ self.undecided
        return RecordErrors(np.pad(by @ self.covariance @ by.T, (0, 1)), self.tables @ by.T, self.drawn, undecided)

    @property
    def variances(self) -> Vector:
        """Of the slopes."""
        return np.diag(self.covariance)[:-1].clip(min=0.0)

    @property
    def parts(self) -> Vector:
        """Sums over the slopes."""
        slopes = self.tables[:, : len(self.covariance) - 1]
        return split_records(float(self.variances.sum()), slopes, float(np.sum(self.undecided)), self.drawn)


def _sum_pulls(records: CodedRows, pulls: Matrix, centre: Vector) -> Matrix:
    """Σ pull (u, 1) for each column of pulls."""
    totals = np.ones(len(pulls)) @ pulls  # faster than a sum along so long an axis
    return np.column_stack([records.sums_of_each(pulls) - np.outer(totals, centre), totals])


@dataclass(frozen=True, eq=False)
class ReferencePlanes(RakedRecords):
    """Labelled records with weights g and the plane through all rows."""

    mean: Vector
    t0: float
    slopes: Slopes
    eigenvalues: Vector
    eigenvectors: Matrix
    factors: Vector
    average: Average
    second_error: float  # of the released covariance's entries
    rows: int  # private ones, as far as that is public

    @cached_property
    def _residuals(self) -> Vector:
        return np.asarray(self.labels - self.t0 - (self.points - self.mean) @ self.slopes.values)

    @cached_property
    def _root(self) -> Matrix:
        return self.factors[:, None] * self.slopes.root(self.eigenvectors)

    @cached_property
    def _doubtful_root(self) -> Matrix:
        return np.asarray(self._open_directions @ self._root)

    @cached_property
    def _idle(self) -> Matrix:
        """The projection onto sums of codes that every record has."""
        found = np.zeros((self.layout.width, self.layout.width))
        for a in self.layout.codes:
            block = self.layout.columns(a)
            if block.stop - block.start > 1 and (self.points[:, block].sum(axis=1) == 1).all():
                found[block, block] = 1 / (block.stop - block.start)
        return found

    @cached_property
    def _open_directions(self) -> Matrix:
        """H = (A₀ + D)⁻¹D: how much of each direction the private rows may vary less in than the records, whose slopes then carry no information.

        In the eigenbasis of the released covariance D = s²/λ + a(a - λ')/λ', s by how much noise moves eigenvalues and a the records' variance: the first
        is what the released covariance does not determine, the second where records are known to vary more, as where numbers nearly determine
        each other. λ' = λ + s, and the second is 0 for a ≤ λ'.
        """
        noise, A0 = spread_of(self.second_error, len(self.eigenvalues)), self._all_records_moments[0]
        varied = np.einsum("ij,ik,kj->j", self.eigenvectors, A0, self.eigenvectors)
        tiny = PRECISION * float(np.trace(A0))
        known = np.maximum(self.eigenvalues + noise, tiny)
        doubtful = noise**2 / self.eigenvalues + varied * np.maximum(varied - known, 0.0) / known
        open_ = (self.eigenvectors * doubtful) @ self.eigenvectors.T
        return np.asarray(np.linalg.solve(A0 + open_ + tiny * np.eye(len(open_)), open_))

    @cached_property
    def _unresolved(self) -> Matrix:
        """H = (A₀ + W)⁻¹W, with W = w²/(a - w) for numbers of variance a and 0 for codes: how much of each slope the cells of numbers hide.

        Within a cell numbers are drawn evenly, a variance of w. A number that hardly varies from cell to cell has only that, in the wrong places.
        """
        numbers, A0 = self.layout.numbers, self._all_records_moments[0]
        between = np.maximum(np.diag(A0)[numbers] - _WITHIN, PRECISION * _WITHIN)
        hidden = np.zeros_like(A0)
        hidden[numbers, numbers] = _WITHIN**2 / between
        return np.asarray(np.linalg.solve(A0 + hidden + PRECISION * float(np.trace(A0)) * np.eye(len(A0)), hidden))

    @cached_property
    def _local_change(self) -> LocalChange:
        left = np.einsum("ij,ik,kj->j", self.eigenvectors, self._open_directions, self.eigenvectors)
        residual = float(self.weights @ np.square(self._residuals)) / len(self.labels)
        return LocalChange.of((self.eigenvalues, self.eigenvectors), left.clip(0.0, 1.0), self.layout, residual, asked=True)

    @cached_property
    def _global_residuals(self) -> tuple[Vector, float, Vector]:
        """(records' shares as the moments weigh rows, r̄, Σ (r - r̄)(x - μ)): what would be 0 if the records had the released moments."""
        variance = np.maximum(np.square(self.eigenvectors) @ self.eigenvalues, SMALLEST_VARIANCE)
        share = self.weights * NormalisedMoments(self.layout, self.average.values, variance).weights(self.points)
        share = share / share.sum()
        level = float(share @ self._residuals)
        return share, level, (share * (self._residuals - level)) @ (self.points - self.mean)

    @cached_property
    def _all_records_moments(self) -> tuple[Matrix, Vector]:
        """(A₀, b₀)."""
        share = self.weights / self.weights.sum()
        centre, pulled = self._packed.sums(share, self._residuals)
        A0 = self._records.products(share) - np.outer(centre, centre)
        return A0, pulled - centre * float(share @ self._residuals)

    def fit(self, queries: Matrix, weight: Weight, anchors: Vector | None = None, radius: float | None = None) -> Planes:
        """The planes at encoded queries, (q, n); through `anchors`, one a query, where they are given; in a ball where a radius is given."""
        return self.fit_near(queries, weight, anchors, radius)[0]

    def fit_near(self, queries: Matrix, weight: Weight, anchors: Vector | None, radius: float | None) -> tuple[Planes, Matrix]:
        """The planes, and the variance of each column near each query."""
        found = [
            self._solve_query(z, weight, None if anchors is None else float(anchors[i]), radius) for i, z in enumerate(queries)
        ]
        values = np.array([one[0] for one in found]).reshape(queries.shape)
        answer, share, capped = (np.array([one[i] for one in found]) for i in (1, 2, 3))
        variances = Variances.empty(len(queries), self.layout)
        for i, one in enumerate(found):
            variances.fill(np.array([i]), one[4])
        fitted = FittedPlanes(values, answer, share, capped.astype(bool))
        near = np.array([one[5] for one in found]).reshape(queries.shape)
        return assemble(queries, fitted, variances, self.average, self.layout), near

    def _solve_query(
        self, query: Vector, weight: Weight, anchor: float | None, radius: float | None
    ) -> tuple[Vector, float, float, bool, Variances, Vector]:
        s, r = self._local_shares(query, weight), self._residuals
        few = float(s @ s)  # 1/n
        (centre, pulled), level1 = self._packed.sums(s, r), float(s @ r)
        away = centre - query  # h
        A0, b0 = self._all_records_moments
        some = self._thin(s, centre)
        A, rest = some.covariance(), _PRIOR_ROWS * few * A0 + self._idle
        rest = rest + PRECISION * float(np.trace(A)) * np.eye(len(A))
        K = np.asarray(np.linalg.inv(A + rest), dtype=np.float64)
        share = min(1 / (few * len(self.labels)), 1.0)
        beta = share**2
        _, level0, slope0 = self._global_residuals
        pull = pulled - centre * level1 + _PRIOR_ROWS * few * b0 - beta * slope0
        delta = self._solve(s, centre, rest, K, pull)
        delta = delta - self._unresolved @ delta
        held, capped = hold_in_ball((self.slopes.values + delta)[None], self.eigenvalues, self.eigenvectors, radius)
        values = held[0]
        level = self.t0 + float((centre - self.mean) @ self.slopes.values) + level1 - beta * level0
        answer, turn = level - float(away @ values), None
        if anchor is not None:
            turn = K @ away / (1 + float(away @ K @ away))
            values, answer = values + turn * (answer - anchor), anchor
        wrong = r.take(some.positions) - some.rows.times(delta) + float(centre @ delta)
        rows = self.rows * min(1 / few / len(self.labels), 1.0)  # private ones that count
        fitted = float(np.einsum("ij,ji->", K, A))
        spread = self._spread(centre, some, wrong, few, 1 / (rows * max(1 - fitted / rows, _CROWDED)))
        unseen = self._local_change.unseen_variances(np.array([share]))[0]
        undecided = max(1 - rows / len(values), 0.0)  # fewer private rows than columns leave slopes open
        spread = spread.of_slopes(K, undecided * (np.square(values) + np.square(self.slopes.values).mean()))
        follows = K @ (rest + beta * A0)
        root = follows @ self._root + _OPEN * (self._doubtful_root - follows @ self._doubtful_root)
        return values, answer, share, bool(capped[0]), self._variances(query, (away, turn), spread, root, unseen), np.diag(A)

    def _thin(self, s: Vector, centre: Vector) -> ThinnedRecords:
        """Records that represent all, for quantities that are needed to a few per cent only."""
        positions, times = self._packed.thin(s, centre, max(_PER_COLUMN * self.layout.width, _FEWEST))
        return ThinnedRecords(positions, self._records.take(positions), s.take(positions), times)

    def _solve(self, s: Vector, centre: Vector, rest: Matrix, K: Matrix, pull: Vector) -> Vector:
        """(A + rest)⁻¹ pull with the A of all records: K is the inverse for some of them, and what it leaves is solved for again."""
        delta, wanted = K @ pull, float(pull @ K @ pull)
        for _ in range(_REFINEMENTS):
            left = pull - self._packed.bend(s, delta) + centre * float(centre @ delta) - rest @ delta
            step = K @ left
            if not float(left @ step) < wanted:  # not where K is nearly the inverse: the result would not improve
                break
            delta = delta + step
            if float(left @ step) < _CLOSE * wanted:
                break
            wanted = float(left @ step)
        return np.asarray(delta)

    def _spread(self, centre: Vector, some: ThinnedRecords, wrong: Vector, few: float, few_private: float) -> RecordErrors:
        """The errors of (Σ s r u, Σ s r) that the reference causes."""
        share, records = min(1 / (few * len(self.labels)), 1.0), some.rows
        pull = some.times * np.square((some.share - share**2 * self._global_residuals[0].take(some.positions)) * wrong)
        total, first = float(pull.sum()), records.sums(pull)
        between = first - total * centre
        V = np.empty((len(first) + 1, len(first) + 1))
        V[:-1, :-1] = records.products(pull) - np.outer(centre, first) - np.outer(between, centre)
        V[-1, :-1], V[:-1, -1], V[-1, -1] = between, between, total
        moved = _sum_pulls(
            records, self._changes.take(some.positions, axis=0) * (some.times * some.share * wrong)[:, None], centre
        )
        doubt = self.slopes.doubt / sqrt(share)
        drawn = _DRAWN * (1 + few_private / few)
        own = drawn + _WRONG * doubt / few
        rehearsals = max(len(moved), 1)
        covariance = np.asarray(own * V + _TABLES * (moved.T @ moved) / rehearsals)
        return RecordErrors(covariance, sqrt(_TABLES / rehearsals) * moved, drawn / own)

    def _variances(
        self, query: Vector, place: tuple[Vector, Vector | None], spread: RecordErrors, root: Matrix, unseen: Vector
    ) -> Variances:
        (away, turn), n, offset = place, len(query), query - self.average.values
        across, open_ = np.zeros((n + 1, self.layout.attributes + 2)), np.diag(np.sqrt(unseen))
        towards = np.zeros(n) if turn is not None else -away
        across[:n] = directions(offset, towards, self.layout)
        if turn is None:
            across[n, -2:] = 1.0
        else:  # slopes turn with the level that they are held against
            by = np.column_stack([np.eye(n) - np.outer(turn, away), turn])
            spread, root = spread.turn(by), root - np.outer(turn, away @ root)
            open_ = by[:, :n] @ open_
        parts = no_parts(1)
        parts[0, COMMON, [NOISE, SHRINKAGE]] = split_posterior(np.square(root).sum(axis=0)[None], self.slopes.noise_share)[0]
        parts[0, COMMON, BIAS] = np.square(open_).sum()
        parts[0, APART] = spread.parts
        root = np.column_stack([root, open_])
        added = np.einsum("ij,ik,kj->j", across, spread.covariance, across) + np.square(across[:n].T @ root).sum(axis=1)
        return Variances(np.square(root).sum(axis=1)[None], spread.variances[None], added.clip(min=0.0)[None], parts / n)
