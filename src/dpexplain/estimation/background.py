"""A weighted subsample of the reference records, with standard errors of averages over it. Pure post-processing.

Averages over the whole reference of what is cheap to compute for every record (its label, bins of its features) are known exactly. So a subsample gets
weights by which it has these averages itself (calibration: Deville & Särndal 1992), and an average of anything else over it errs only by what such
features c(x) do not explain: with φ = β·c(x) + e, by an average of e. The label being among them, Σ w f(x) is the reference's average answer.

The variance of an average of φ adds up
- drawing the subsample: Σ w² e², and the reference itself: Var φ / N;
- noise of the released counts and moments: what the changes of log weights in K rehearsals (`estimation/response.py`) do to β·c over all records, r, and
  to e over the subsample, s. With changes δ of independent records, s² is Σ w² δ² e² on average even where noise moves no average of e. So the variance
  is the mean of (r + s)² less that sum, and at least that of r²;
- the bias of the model of the records: τ² Var φ, τ² in proportion to that of `estimation/local_reference.py`;
- of a Shapley value, the unknown distribution of numbers within bins (`estimation/records_from_bins.py`), of the feature's own and of those that interact
  with it: with π the share of a bin, u the standardised number within it and e the largest error of its mean, half of
  Σ π² e² (E[φu]² + E[φ(u² - 1)]²/2), less what these squares would be by drawing the subsample alone;
- of a Shapley value, an effect that is too rare to be in the subsample: with c its typical size, where it is not 0, and B effective records, a share 1/B
  of all could have it, (c/B)². Where the model is known to ignore the feature there is no such effect;
- codes that noise may have hidden (`estimation/hidden_codes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import BlockLike
from dpexplain.estimation.hidden_codes import Alternatives

Positions = NDArray[np.intp]

_BINS = 8  # of a number
_FEWEST = 16  # records of the subsample that a bin must have to be calibrated
_SLACK = 1e-4  # of a feature's variance, by which its average may be missed: limits the weights
_TOGETHER = 1 << 14  # records whose features are in memory at once
_POSITIONS = 0.5  # of the variance that errors of positions can cause: they are given as the largest
_COMMON = 8.0  # rehearsals' worth of evidence for what all columns have in common


@dataclass(frozen=True, slots=True, eq=False)
class WeightedRecords:
    """All reference records: encoded, with weights that sum to one, and the changes of log weights under other noise, (K, N)."""

    encoded: Matrix
    weights: Vector
    changes: Matrix
    bias: float  # τ²
    position_errors: Matrix | None = None

    def average(self, values: Vector) -> float:
        return float(self.weights @ values)


@dataclass(frozen=True, slots=True, eq=False)
class NoiseShifts:
    """How far other noise would move averages, in each of K rehearsals."""

    explained: Matrix  # (K, columns): r
    rest: Matrix  # (K, columns): s
    drawn: Vector  # the mean of s² that drawing the subsample alone would cause

    def variance(self, spread: Vector) -> Vector:
        """The variance of averages of columns with these variances: each column's own, pooled with what is typical for columns of its spread."""
        if not len(self.rest):
            return np.zeros(len(spread))
        own = np.square(self.explained + self.rest).mean(axis=0) - self.drawn
        own = np.maximum(own, np.square(self.explained).mean(axis=0))
        moving = spread > 1e-12 * max(float(spread.max(initial=0.0)), 1e-300)
        typical = float(np.median(own[moving] / spread[moving])) if moving.any() else 0.0
        evidence = len(self.rest) / (len(self.rest) + _COMMON)
        return np.asarray(evidence * own + (1 - evidence) * typical * spread)

    def with_queries(self, changes: Matrix, sizes: Matrix) -> NoiseShifts:
        """A copy that knows what other noise does to the average of `sizes`, (queries, columns).

        The queries' log weights have these changes, (K, queries).
        """
        pulls = (changes - changes.mean(axis=1, keepdims=True)) / sizes.shape[0]
        drawn = np.square(pulls) @ np.square(sizes - sizes.mean(axis=0))
        return replace(self, rest=self.rest + pulls @ sizes, drawn=self.drawn + drawn.sum(axis=0) / max(len(pulls), 1))


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """The subsample at `positions`, with its calibrated weights."""

    positions: Positions
    weights: Vector
    features: Matrix  # c(x), (B, p)
    responses: Matrix  # (K, p): what other noise does to the averages of c over all records
    changes: Matrix  # (K, B), around their average
    bias: float
    records: float  # effective number of all records
    tilts: tuple[Matrix | None, ...] = ()  # of each feature: by what errors of its bins multiply the weights, (errors, B)
    alternatives: Alternatives | None = None

    def with_alternatives(self, alternatives: Alternatives) -> Background:
        """The same; values then have further rows, one for each alternative."""
        return replace(self, alternatives=alternatives if len(alternatives) else None)

    def average(self, values: Matrix) -> tuple[Vector, Vector]:
        """(averages, standard errors) of the columns of `values`, one row for each record of the subsample, then one for each alternative."""
        found, spread = self._moments(values)
        hidden = np.square(self.hidden_shifts(values)).sum(axis=0)
        return found, np.sqrt(self.drawing_variance(values) + self.shifts(values).variance(spread) + hidden)

    def drawing_variance(self, values: Matrix) -> Vector:
        """The variance of averages of the columns from drawing the subsample and the reference, and to the bias of its model."""
        left, (_, spread) = self._regress(values)[1], self._moments(values)
        spare = max(len(left) - self.features.shape[1], 1) / len(left)
        return np.asarray(np.square(self.weights) @ np.square(left) / spare + (self.bias + 1 / self.records) * spread)

    def _moments(self, values: Matrix) -> tuple[Vector, Vector]:
        """(averages, variances) of the columns."""
        own = values[: len(self.weights)]
        found = self.weights @ own
        return found, np.maximum(self.weights @ np.square(own) - np.square(found), 0.0)

    def average_one(self, values: Vector) -> tuple[float, float]:
        """(average, standard error) of one number a record."""
        average, error = self.average(values[:, None])
        return float(average[0]), float(error[0])

    def average_by_feature(self, values: Matrix, *, ignored: bool = True) -> tuple[Vector, Vector]:
        """`average` of Shapley values, one column for each feature, with the error of the unknown distribution of numbers within their bins.

        `ignored`: whether the model is known to ignore features that are 0 for every record; else their errors are those of an effect
        that no record of the subsample shows.
        """
        found, error = self.average(values)
        inside = self.position_variance(values) + self.unseen_variance(values, ignored=ignored)
        return found, np.sqrt(np.square(error) + inside)

    def position_variance(self, values: Matrix) -> Vector:
        """The variance of averages of the columns from the unknown distribution of numbers within their bins."""
        centred, total = values[: len(self.weights)] - self._moments(values)[0], np.zeros(values.shape[1])
        for tilt in self.tilts:
            if tilt is not None:
                moved = np.square(tilt @ centred) - np.square(tilt) @ np.square(centred)
                total += np.maximum(moved.sum(axis=0), 0.0)
        return _POSITIONS * total

    def unseen_variance(self, values: Matrix, *, ignored: bool) -> Vector:
        """The variance of averages from effects that are too rare to be in the subsample."""
        return unseen_variance(values[: len(self.weights)], self.weights, ignored=ignored)

    def hidden_shifts(self, values: Matrix) -> Matrix:
        """(hidden codes, columns): by how much they may move the averages of `values`."""
        return np.zeros((0, values.shape[1])) if self.alternatives is None else self.alternatives.shifts(values)

    def shifts(self, values: Matrix) -> NoiseShifts:
        """How far other noise would move the averages of `values`."""
        slopes, left = self._regress(values)
        pulls = self.changes * self.weights
        drawn = np.square(pulls) @ np.square(left)
        return NoiseShifts(self.responses @ slopes, pulls @ left, drawn.sum(axis=0) / max(len(pulls), 1))

    def _regress(self, values: Matrix) -> tuple[Matrix, Matrix]:
        """(β, e): the regression of the subsample's values on the features."""
        values = values[: len(self.weights)]
        weighted = self.features * np.abs(self.weights)[:, None]
        gram = weighted.T @ self.features
        slopes = scipy.linalg.solve(gram + _penalty(gram), weighted.T @ values, assume_a="pos")
        return slopes, values - self.features @ slopes


def unseen_variance(values: Matrix, weights: Vector, *, ignored: bool) -> Vector:
    """The variance of averages of the columns that a share 1/B of the records would cause, if each of them had an effect of typical size and none were drawn.

    The typical size is that of the column's own values other than 0, and one value of the size that is typical for all columns.
    """
    counts, sums = np.count_nonzero(values, axis=0), np.square(values).sum(axis=0)
    typical = (sums + float(sums.sum()) / max(int(counts.sum()), 1)) / (counts + 1)
    return np.asarray(typical * float(np.square(weights).sum()) ** 2 * ((counts > 0) | (not ignored)))


def positions_of(records: int, count: int) -> Positions:
    """At most `count` of the records, at equal distances."""
    step = max(records // count, 1)
    return np.arange(step // 2, records, step)[:count]


def choose_background(everyone: WeightedRecords, labels: Vector | None, blocks: Sequence[BlockLike], count: int) -> Background:
    """About `count` records at equal distances, calibrated to the bins of all features and to `labels`, where every record's is known."""
    positions = positions_of(len(everyone.encoded), count)
    features = _Features.worth_asking(everyone.encoded, blocks, positions)
    changes = everyone.changes - (everyone.changes @ everyone.weights)[:, None]
    sums = np.zeros((1 + len(changes), 1 + (labels is not None) + features.count))
    for start in range(0, len(everyone.encoded), _TOGETHER):  # never all features of all records in memory
        part = slice(start, start + _TOGETHER)
        found = features.of(everyone.encoded[part], None if labels is None else labels[part])
        sums += np.vstack([np.ones(len(found)), changes[:, part]]) * everyone.weights[part] @ found
    chosen = features.of(everyone.encoded[positions], None if labels is None else labels[positions])
    chosen[:, 1:] -= sums[0, 1:]
    share = everyone.weights[positions] / everyone.weights[positions].sum()
    return Background(
        positions,
        _calibrate_weights(share, chosen),
        chosen,
        sums[1:],
        changes[:, positions],
        everyone.bias,
        1 / float(np.square(everyone.weights).sum()),
        tuple(_tilts(everyone, block, positions, share) for block in blocks),
    )


def _tilts(everyone: WeightedRecords, block: BlockLike, positions: Positions, share: Vector) -> Matrix | None:
    """What one standard error of each bin's mean, and of its spread, does to the weights of the subsample; None where there are no bins."""
    known = everyone.position_errors
    bins = known[known[:, 0] == block.start] if known is not None and block.kind == "numeric" else np.empty((0, 3))
    if not len(bins):
        return None
    numbers = everyone.encoded[positions, block.start]
    owner, found = np.minimum(np.searchsorted(bins[:, 1], numbers), len(bins) - 1), np.zeros((2 * len(bins), len(positions)))
    for b, error in enumerate(bins[:, 2]):
        inside = np.flatnonzero(owner == b)
        if len(inside) > 1 and (spread := float(numbers[inside].std())) > 0:
            u = (numbers[inside] - numbers[inside].mean()) / spread
            found[2 * b, inside], found[2 * b + 1, inside] = (
                error * share[inside] * u,
                error * share[inside] * (u * u - 1) / sqrt(2),
            )
    return found


def _calibrate_weights(share: Vector, features: Matrix) -> Vector:
    """Weights near to `share` for which centred features average to 0, w = s(1 + c·λ), label and sum exactly."""
    gram = (features * share[:, None]).T @ features
    tilt = scipy.linalg.solve(gram + _penalty(gram), _target(features) - share @ features, assume_a="pos")
    weights = share * np.maximum(1 + features @ tilt, 0.0)
    first = features[:, :2]
    for _ in range(3):  # constant and label alone, without slack
        left = np.linalg.lstsq((first * weights[:, None]).T @ first, _target(first) - weights @ first, rcond=1e-12)[0]
        weights = weights * (1 + first @ left)
    return np.asarray(weights)


def _target(features: Matrix) -> Vector:
    return np.asarray(np.arange(features.shape[1]) == 0, dtype=np.float64)


def _penalty(gram: Matrix) -> Matrix:
    return np.diag(_SLACK * np.diag(gram) * (np.arange(len(gram)) > 0) + 1e-12)


@dataclass(frozen=True, slots=True)
class _Features:
    """c(x): 1, the label where it is known, encoded columns, and bins of numbers."""

    columns: Positions
    bins: tuple[tuple[int, Vector, Positions], ...]  # column, edges, which of the bins between them

    @classmethod
    def worth_asking(cls, encoded: Matrix, blocks: Sequence[BlockLike], positions: Positions) -> _Features:
        """Columns and bins that the subsample has often enough to be weighted by, and not too many of them."""
        chosen, most = encoded[positions], max(len(positions) // 8, 2)
        often = np.count_nonzero(chosen, axis=0) >= _FEWEST
        columns, bins = np.flatnonzero(often & (np.ptp(chosen, axis=0) > 0))[:most], []
        left = most - len(columns)
        for block in blocks:
            if block.kind == "numeric":
                edges = np.unique(np.quantile(chosen[:, block.start], np.arange(1, _BINS) / _BINS))
                counts = np.bincount(np.searchsorted(edges, chosen[:, block.start]), minlength=len(edges) + 1)
                used = np.flatnonzero(counts >= _FEWEST)[1:][: max(left, 0)]
                bins.append((block.start, edges, used))
                left -= len(used)
        return cls(columns, tuple(bins))

    @property
    def count(self) -> int:
        return len(self.columns) + sum(len(used) for _, _, used in self.bins)

    def of(self, encoded: Matrix, labels: Vector | None) -> Matrix:
        first = [np.ones((len(encoded), 1))] + ([] if labels is None else [labels[:, None]])
        binned = [np.searchsorted(edges, encoded[:, j])[:, None] == used for j, edges, used in self.bins]
        return np.column_stack([*first, encoded[:, self.columns], *binned])
