"""Slopes of the plane through all rows, from noisy moments: a Bayesian estimate for each eigenvector of the covariance. Pure post-processing.

With equal weights the fitted plane has Cφ = t₁, C the covariance and t₁ = E y(x - μ); the constant separates. Both are noisy: in C's
eigenbasis τ = λφ + e with e ~ N(0, s²), s² = s_t² + s_C²‖φ‖². With a prior φ ~ N(c, v) in each direction,

    φ̂ = c + vλ(τ - λc)/(vλ² + s²),    Var(φ | τ) = vs²/(vλ² + s²):

where vλ² ≫ s² the estimate is τ/λ; where vλ² ≪ s² it is the prior's centre with the prior's standard deviation.
Noise moves φ̂ by vλe/(vλ² + s²), so that s²v²λ²/(vλ² + s²)² of the variance is noise. The rest is shrinkage, as is all that priors are widened by below.
There are two priors. The first is for labels that no model gave; where a model answers, it needs a likelihood that is _ODDS times larger, and so with the
covariances taken for exact: denoised ones are quieter than s_C says, which would favour slopes of 0.

- c = 0, v = ρf: slopes of any sign, all of about one size, times what is usual in the direction;
- c = the slopes of the model's answers at public points, v = 1/(1/(ν/λ + ηm) + 1/(ρf)) + u: as far off as the slopes of a sample with residual variance
  ν would be that is drawn from another population, and never further than slopes of the usual size, or these ones themselves, are from 0.
  ν is a share τ² + 1/N of r²: N rows are a sample themselves, and r² are the points' squared residuals, averaged for each column over the points that
  differ from the mean there: a category with large answers has larger residuals than others where few answers are large. m is what other margins of
  numbers would add: on some tables it hardly matters, on others fully, by a share η.

u has two parts. Directions that hardly a point takes have their guess drawn to 0 by a share h, and add h^1.5 ρf: h²ρf for what this hides, and more
because points with rare values are themselves only estimated to be typical. And numbers that nearly determine each other or follow from codes, as total =
rate x time, a number and its square, or a rate and its grade, have a direction in which they hardly vary. What is left of them there is a curved relation
among the rows, which public points do not have. A slope in this direction may explain a share of what the plane leaves unexplained, so that it adds k⁴ times
a part of r²/λ, whatever size slopes have otherwise: k says how nearly they determine each other, and λ is not taken for smaller than a part of its own
noise. Where noise hides whether there is any variance at all, half of the model's slope is expected: where there is none, the exact slope is 0.

Following noise costs more than following the model, therefore k⁴. Errors of the estimate are those under a prior with k in the place of k⁴. But noise
may have made all of λ (`estimation/noisy_directions.py`). Then τ says nothing about the slope, however sure τ/λ looks, and the whole of it is the error:
its mean square is k²(a part of r²/√K + e)/λ'. K is how many such directions there are: together they cannot explain more than what is left. λ' is a
small part of s√n, because what noise hides may be far smaller than noise, and at most a share of what the direction's columns would add if they were
uncorrelated: more noise makes no direction surer. e is what the model's slopes at public points explain along such directions, on average: a model that
follows differences of prices there follows them among the rows too, whatever size these have. All this holds whichever prior the labels prefer.
Rehearsals cannot tell how long this part should be, because they assume it, and do not change it.

A number that hardly varies usually has larger slopes than one that varies much, because models respond to variation among the records, not to units:
f averages (v̄/variance)^γ over a direction's numbers, v̄ the columns' mean variance, and 1 over its codes. γ is 0, 1/2 or 1. ρ or τ² and η, and γ, are
averaged over their likelihood: every order of magnitude of ρ is equally likely beforehand, and τ² what it was on other tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Indices
from dpexplain.estimation.counted_variances import IDLE
from dpexplain.estimation.margin_doubt import margin_variances
from dpexplain.estimation.noisy_directions import NoisyDirections
from dpexplain.estimation.reference import POINTS

_SIZES = np.geomspace(1e-6, 1e3, 91)  # values of ρ that are tried
_DOUBTS = np.geomspace(1e-5, 1.0, 26)  # values of τ² that are tried
_USUAL_DOUBT, _DECADES = 5e-4, 0.7  # what τ² is on other tables: its median, and the spread of its logarithm
_ODDS = 1e3  # of the second prior against the first beforehand: answers of the model itself seldom mislead, few noisy moments often do
_POWERS = (0.0, 0.5, 1.0)  # values of γ that are tried
_HIDDEN = 1.5  # power of the share of a guess that shrinkage hides
_TIED = 0.06  # share of the residuals that a direction of numbers that determine each other may explain
_SURELY = 4  # power of how nearly they do, for the estimate; for its error it is 1
_LEAST = 0.1  # of what noise moves eigenvalues by: the smallest one that such a direction is taken to have
_FARTHEST = 0.01  # … λ' of its error
_CLOSEST = 0.005  # the largest λ', as a share of what its columns would add to it if they were uncorrelated
_MISLED = 0.5  # how much of the model's slope at public points is not expected where noise hides whether numbers vary at all
_MARGINS = (0.05, 1.0)  # values of η that are tried
_TOGETHER = 1 << 10  # points that are summed together: they stay in the processor's cache
_ROUNDS = 5  # s² depends on ‖φ‖², which depends on s²
_FEW = 1 / POINTS  # least `few` of numbers: however many points there are, relations among numbers are not known better
_IDLE = 1e-12  # of the largest variance: sums over points are exact to about 1e-16 of it
PRECISION = 1e-6  # of the largest eigenvalue: sums are known to about 1e-7 of it, so that directions of smaller eigenvalues are rounding errors
DOUBT_WITHOUT_MODEL = 5e-3  # τ² of labels that no model gave


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """Slopes of the model's answers at public points, and by column their squared residuals and one over the number of effective points."""

    values: Vector
    residual: Vector | float
    few: Vector | float = 0.0
    margins: Vector | float = 0.0  # variance of each slope from margins that are not known (`estimation/margin_doubt.py`)


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """φ̂, and its posterior standard deviation in each direction of the covariance's eigenbasis. Those of several estimates have one more axis."""

    values: Vector
    spread: Vector
    doubt: float  # τ²: how wrong the public points' residuals are, as a share of their variance; of several estimates, that of the first
    hidden: Vector | float = 0.0  # the part of `spread` where noise may have made the eigenvalue; 0 after a release was stored
    noise: Vector | None = None  # the part of `spread` that noise causes, the rest is shrinkage; None in older files

    @property
    def asked(self) -> bool:
        """Whether a model was asked; an estimate of τ², which needs one, is never exactly the constant for labels alone."""
        return self.doubt != DOUBT_WITHOUT_MODEL

    @property
    def seen(self) -> Slopes:
        """The same without the hidden part of the spread."""
        return replace(self, spread=np.sqrt(np.maximum(np.square(self.spread) - np.square(self.hidden), 0.0)), hidden=0.0)

    def root(self, vectors: Matrix) -> Matrix:
        """W with WWᵀ the posterior covariance of φ̂."""
        return np.asarray(vectors * self.spread)

    @property
    def noise_share(self) -> Vector | None:
        """The share of each direction's posterior variance that noise causes; None where it is not known."""
        if self.noise is None:
            return None
        return np.asarray(np.minimum(np.square(self.noise) / np.maximum(np.square(self.spread), 1e-300), 1.0))

    def errors(self, vectors: Matrix) -> Vector:
        """Posterior standard deviation of each column's slope."""
        return np.asarray(np.sqrt(_apply(np.square(vectors), np.square(self.spread))))


@dataclass(frozen=True, slots=True, eq=False)
class NoisyEquations:
    """τ = λφ + e in the eigenbasis `vectors` of the covariance; the standard errors of t₁ and of the covariance's entries.

    Equations of several estimates have one more axis, the first.
    """

    eigenvalues: Vector
    vectors: Matrix
    t1: Vector
    label_error: Vector | float
    second_error: Vector | float
    numbers: Indices  # which columns are numbers
    expected: Vector | float = 0.0  # slopes that labels were compared with before noise was added
    rows: Vector | float = (
        np.inf
    )  # that the exact slopes are of, at least so many: a sample of the population that public points are drawn from

    def slopes(self, guess: Guess | None = None) -> Slopes:
        """φ̂ under the likelier prior."""
        n, usual = self.t1.shape[-1], np.stack(self._usual_sizes, axis=-1)
        flat = np.zeros(usual.shape[-1] * len(_SIZES))
        likelihood, plain = self._posterior(np.zeros_like(self.t1), (usual, _SIZES), flat, flat)
        if guess is None:
            return replace(plain, doubt=DOUBT_WITHOUT_MODEL)
        few, directions = np.broadcast_to(guess.few, (n,)), self._directions
        nearly = directions.collinearity
        residual = np.maximum(np.broadcast_to(guess.residual, guess.values.shape) @ np.square(self.vectors), 1e-12)
        tied = _TIED * residual / np.maximum(self._wide, _LEAST * directions.largest_shift)
        priors = self._priors_around(guess, few @ np.square(self.vectors), residual, nearly**_SURELY * tied)
        times = priors.shape[-2] // len(_DOUBTS)
        doubts = np.tile(_DOUBTS + float(few.max()), times)  # plus the error of a sample this large
        before = np.tile(-0.5 * np.square(np.log10(_DOUBTS / _USUAL_DOUBT) / _DECADES), times)
        centre = self._expected_slopes(guess, directions, tied)
        guessed_likelihood, guessed = self._posterior(centre, (priors.swapaxes(-2, -1), np.ones(1)), doubts, before)
        hidden = self._hidden_slopes(guess, directions, residual)
        plain, guessed = (self._widen(one, directions, nearly * tied, hidden) for one in (plain, guessed))
        kept = np.asarray(guessed_likelihood + log(_ODDS) >= likelihood)
        if not kept.all():  # denoised covariances are quieter than their noise, as if slopes were 0
            exact = replace(self, second_error=np.zeros_like(self.second_error))
            likelier = exact._posterior(centre, (priors.swapaxes(-2, -1), np.ones(1)), doubts, before)[0]
            kept |= likelier + log(_ODDS) >= likelihood
        values, spread, hidden, noise = (
            np.where(kept[..., None], getattr(guessed, name), getattr(plain, name))
            for name in ("values", "spread", "hidden", "noise")
        )
        return Slopes(values, spread, guessed.doubt, hidden, noise)

    def _priors_around(self, guess: Guess, few: Vector, residual: Vector, tied: Vector) -> Matrix:
        """v of each direction: one row for each γ, η and doubt. `few` is one over the number of points in each direction, `residual` r²."""
        towards, squared = np.square(guess.values @ self.vectors), np.square(self.vectors)
        felt = np.square(guess.values) @ squared  # a column with a large slope may share it otherwise with another
        usual = [f * np.maximum((towards / f).mean(axis=-1, keepdims=True), 1e-12) + felt for f in self._usual_sizes]
        unseen = (few / (self.eigenvalues + few + 1e-300)) ** _HIDDEN
        drawn = few + 1 / np.asarray(self.rows)[..., None]  # points and rows alike are samples
        sampled = (_DOUBTS[:, None] + drawn[..., None, :]) * (residual / self._wide)[..., None, :]
        margins = np.broadcast_to(guess.margins, guess.values.shape) @ squared
        off = np.concatenate([sampled + (share * margins)[..., None, :] for share in _MARGINS], axis=-2)
        return np.concatenate([1 / (1 / off + 1 / f[..., None, :]) + (unseen * f + tied)[..., None, :] for f in usual], axis=-2)

    @property
    def _wide(self) -> Vector:
        """Eigenvalues, where they are more than rounding errors."""
        return np.asarray(np.maximum(self.eigenvalues, PRECISION * self.eigenvalues.max(axis=-1, keepdims=True)))

    @property
    def _directions(self) -> NoisyDirections:
        return NoisyDirections(self.eigenvalues, self.vectors, self.second_error, self.numbers)

    def _hidden_slopes(self, guess: Guess, directions: NoisyDirections, residual: Vector) -> Vector:
        """The mean square of each direction's slope where noise made its eigenvalue."""
        nearly, explained = directions.collinearity, self.eigenvalues * np.square(guess.values @ self.vectors)
        surely = np.square(nearly)
        used = (surely * explained).sum(axis=-1, keepdims=True) / np.maximum(surely.sum(axis=-1, keepdims=True), 1e-300)
        least = np.minimum(_FARTHEST * directions.largest_shift, _CLOSEST * directions.uncorrelated_variance[0])
        least = np.maximum(least, PRECISION * self.eigenvalues.max(axis=-1, keepdims=True))
        several = np.sqrt(np.maximum((nearly * directions.probability).sum(axis=-1, keepdims=True), 1.0))
        return np.asarray(surely * (_TIED * residual / several + used) / least)

    def _expected_slopes(self, guess: Guess, directions: NoisyDirections, tied: Vector) -> Vector:
        """The model's slopes at public points in each direction; less where noise hides whether numbers vary at all, and the model bends."""
        slopes, most = np.asarray(guess.values @ self.vectors), directions.largest_shift
        surely = directions.collinearity**_SURELY
        hidden, bent = surely * most / (most + self.eigenvalues), surely * tied
        return np.asarray(slopes * (1 - _MISLED * hidden * bent / (bent + np.square(slopes) + 1e-300)))

    def _widen(self, found: Slopes, directions: NoisyDirections, tied: Vector, hidden: Vector) -> Slopes:
        """Slopes with the errors that they have if priors were wider by `tied`, of which the moments take back as much as of the priors themselves.

        Of `hidden`, which counts as far as noise may have made the eigenvalue, they take back nothing.
        """
        noise = self._noise_around(found.values)
        left = np.clip(1 - np.square(self.eigenvalues * found.spread) / np.maximum(noise, 1e-300), 0.0, 1.0)
        hidden = directions.counted_share * hidden
        spread = np.square(found.spread) + (1 - directions.probability) * np.square(left) * tied + hidden
        return replace(found, spread=np.sqrt(spread), hidden=np.sqrt(hidden))

    def _noise_around(self, values: Vector) -> Vector:
        """s², with one more axis, for slopes of these values."""
        length = np.square(values - self.expected).sum(axis=-1, keepdims=True)
        return np.asarray(
            np.square(np.asarray(self.label_error)[..., None]) + np.square(np.asarray(self.second_error)[..., None]) * length
        )

    @property
    def _usual_sizes(self) -> list[Vector]:
        """f of each direction, for each γ; γ = 0 alone where no column is a number."""
        squared, numbers = np.square(self.vectors), self.numbers
        variance = _apply(squared, self.eigenvalues)
        ratio = np.ones_like(variance)
        ratio[..., numbers] = np.maximum(variance.mean(axis=-1, keepdims=True) / variance[..., numbers], 1.0)
        return [_apply(squared.swapaxes(-2, -1), ratio**power) for power in (_POWERS if numbers.size else (0.0,))]

    def _posterior(self, middle: Vector, priors: tuple[Matrix, Vector], doubts: Vector, before: Vector) -> tuple[Vector, Slopes]:
        """(log likelihood, posterior) under prior variances, (columns, kinds), times each of some factors, with the prior log probabilities `before`."""
        from dpexplain.estimation._slope_kernels import find_posterior  # numba takes long to load

        shape, n = self.t1.shape, self.t1.shape[-1]
        across = self.vectors.swapaxes(-2, -1)
        eigenvalues = self.eigenvalues
        target = _apply(across, self.t1) - eigenvalues * middle
        smallest = 1e-18 + PRECISION**2 * np.square(target).sum(axis=-1)
        errors = [np.square(self.label_error), np.square(self.second_error), smallest, np.full(shape[:-1], float(_ROUNDS))]
        expected = np.broadcast_to(self.expected, shape)
        apart = middle - _apply(across, expected)  # noise in the covariance counts by how far slopes are from what was expected
        equations = [np.ascontiguousarray(one.reshape(-1, n)) for one in (eigenvalues, target, apart)]
        count = len(equations[0])
        found, weights = np.empty((count, 2, n)), np.tile(before - np.log(np.exp(before).sum()), (count, 1))
        kinds, factors = np.ascontiguousarray(priors[0]).reshape(count, n, -1), priors[1]
        each = zip(
            *equations, ((one, factors) for one in kinds), np.stack(errors, axis=-1).reshape(-1, 4), weights, found, strict=True
        )
        likelihood = np.array([find_posterior(*one) for one in each]).reshape(shape[:-1])
        values = _apply(self.vectors, middle + found[:, 0].reshape(shape))
        noise = self._moved_by_noise(values, (kinds, factors), weights)
        return likelihood, Slopes(values, np.sqrt(found[:, 1].reshape(shape)), float(weights[0] @ doubts), noise=noise)

    def _moved_by_noise(self, values: Vector, priors: tuple[Matrix, Vector], weights: Matrix) -> Vector:
        """By how much noise moves φ̂ in each direction: s vλ/(vλ² + s²), averaged over the priors with these weights."""
        kinds, factors = priors
        v = (kinds[..., None] * factors).reshape(*kinds.shape[:2], -1)
        noise = np.maximum(self._noise_around(values), 1e-300)
        squares = np.square(self.eigenvalues).reshape(len(v), -1, 1) * v + noise.reshape(len(v), 1, 1)
        gain = (v / squares @ weights[..., None])[..., 0].reshape(self.t1.shape)
        return np.asarray(np.abs(self.eigenvalues) * np.sqrt(noise) * gain)


def _apply(matrix: Matrix, vector: Vector) -> Vector:
    """The product of each matrix with its vector."""
    return np.asarray((matrix @ vector[..., None])[..., 0])


def guessed_slopes(
    points: Matrix, labels: Vector, weights: Vector, numbers: Indices | None = None, idle: Indices | None = None
) -> Guess:
    """Least squares over labelled points; columns that hardly a point has are shrunk to 0, as one more point would shrink them.

    Along directions in which no point differs from another, such as the sum of a code's columns, slopes are 0. `numbers` are the columns of which
    two moments are known, and neither margins nor curved relations. `idle` ones are known to use little of their ranges: one more point is as far off as
    they vary.
    """
    share = weights / weights.sum()
    level = labels - float(share @ labels)
    sums = _PointSums.of(points, share, share * level)
    centre, second = sums.centre, sums.second - np.outer(sums.centre, sums.centre)
    few = _one_over_effective(sums, share, np.diag(second))
    if numbers is not None:
        few[numbers] = np.maximum(few[numbers], _FEW)
    if idle is not None:
        few[idle] *= np.minimum(np.diag(second)[idle] / IDLE, 1.0)
    drawn = np.linalg.solve(second + np.diag(few), sums.labels)
    barely = np.maximum(_IDLE * float(np.diag(second).max()), 1e-300) * np.eye(len(few))
    values = np.asarray(np.linalg.solve(second + barely, second @ drawn), dtype=np.float64)
    residuals = level - (points @ values - float(centre @ values))
    margins = 0.0 if numbers is None else margin_variances(points, residuals, share, numbers)
    return Guess(values, _squared_residuals(points, share * np.square(residuals), centre, np.diag(second)), few, margins)


def _squared_residuals(points: Matrix, squared: Vector, centre: Vector, variance: Vector) -> Vector:
    """Σ share r² v²/Σ share v² of each column, v = x - centre; `squared` is share r². Columns without variance have the mean of all."""
    total, first, second = float(squared.sum()), squared @ points, np.zeros(points.shape[1])
    for start in range(0, len(points), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        second += squared[part] @ np.square(points[part])
    above = np.maximum(second - 2 * centre * first + total * np.square(centre), 0.0)
    return np.where(variance > _IDLE * float(variance.max()), above / np.maximum(variance, 1e-300), total)


@dataclass(frozen=True, slots=True, eq=False)
class _PointSums:
    """Sums over points x with shares w: Σwx, Σwxxᵀ, Σwyx, Σw²x and Σw²x² of each column."""

    centre: Vector
    second: Matrix
    labels: Vector
    squared: Vector
    squares: Vector

    @classmethod
    def of(cls, points: Matrix, share: Vector, labels: Vector) -> _PointSums:
        """In one pass, some points at a time, so that no temporary is as large as the points. `labels` is wy."""
        factors, roots = np.stack([share, labels, np.square(share)]), np.sqrt(share)
        sums, second, squares = np.zeros((3, points.shape[1])), np.zeros((points.shape[1],) * 2), np.zeros(points.shape[1])
        for start in range(0, len(points), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            some = points[part]
            sums += factors[:, part] @ some
            squares += factors[2, part] @ np.square(some)
            rooted = some * roots[part, None]
            second += rooted.T @ rooted  # of a matrix with itself: half the operations
        return cls(sums[0], second, sums[1], sums[2], squares)


def _one_over_effective(sums: _PointSums, share: Vector, variance: Vector) -> Vector:
    """Σ share² v²/Σ share v² of each column, v = x - centre: one over the number of points where all have the same weight."""
    every = float(np.square(share).sum())
    if float(np.ptp(share)) <= 1e-12 * float(share.max()):
        return np.full(len(variance), every)
    above = sums.squares - 2 * sums.centre * sums.squared + every * np.square(sums.centre)
    return np.where(variance > _IDLE * float(variance.max()), above / np.maximum(variance, 1e-300), every)


def typical_ridge(eigenvalues: Vector) -> float:
    """κ of local problems: a fiftieth of the columns' mean variance."""
    return 0.02 * float(eigenvalues.mean())


def spread_of(error: float, count: int) -> float:
    """How far noise of this size in each entry moves the eigenvalues of a symmetric matrix of `count` columns."""
    return error * sqrt(count)
