"""Reference points: a small synthetic data set with labels that reproduces the released moments. Pure post-processing.

Each code is drawn with probabilities from its linear regression on the codes before it; numbers follow a linear-Gaussian regression on the
codes, mapped to their margins (`estimation/margins.py`); labels are the maximum-entropy ones, tanh(β₀ + β·(x - μ)), fitted to the label
moments. Points are a Sobol' sequence pushed through these conditionals. No tree and no order by strength is selected, so that the reference changes
continuously with the moments, which error bars rely on. It serves to estimate how much *localising* the weight changes the answer, not the answer itself.

Where noise hides whether numbers differ along a direction, points differ there by a little: a model's slope along it could not be asked for otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Indices, Layout
from dpexplain.core.marginals import NumberCounts
from dpexplain.core.release_moments import NormalisedMoments
from dpexplain.estimation.denoise import WIDE, Estimate
from dpexplain.estimation.label_newton import LabelNewton, ReusedLabelNewton
from dpexplain.estimation.margins import cell_shares, place_as_beta, place_in_cells
from dpexplain.estimation.sobol import sobol_points

POINTS = 4096
NUMBER_STEPS = 4096  # numbers lie on a grid of 1/4096: exact in every format
LABEL_STEPS, WEIGHT_STEPS = 2.0**15, 2.0**16
PANEL = 64  # columns of codes that are drawn before their effect on the others is summed up
_FLOOR = 2e-3  # smallest ridge of the regressions below
_MANY = 2048  # points from which on labels are fitted to a part of them first
_GOLDEN = 0.6180339887498949

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """`codes[a]`: attribute a of each point, as a column offset (its size: all zeros) or as a multiple of 1/4096."""

    codes: Codes
    labels: Vector
    inverse_weight: Vector

    @classmethod
    def without_labels(cls, codes: Codes) -> Reference:
        """Points of equal weight that a model is yet to be asked about."""
        return cls(codes, np.zeros(codes.shape[1]), np.ones(codes.shape[1]))

    def points(self, layout: Layout) -> Matrix:
        """The points as encoded rows, (N, n)."""
        return np.ascontiguousarray(self.columns(layout).T)

    def columns(self, layout: Layout) -> Matrix:
        """The same, column after column, (n, N)."""
        columns = np.zeros((layout.width, self.codes.shape[1]))
        for a, code in enumerate(self.codes):
            block = layout.columns(a)
            if layout.is_number[a]:
                np.divide(code, NUMBER_STEPS, out=columns[block.start])
            else:
                for value, column in enumerate(columns[block]):
                    column[:] = code == value  # of one column: as a matrix this takes three times as long
        return columns


@lru_cache(maxsize=2)
def sobol(dimensions: int, points: int) -> Matrix:
    """The first `points` of a Sobol' sequence in (0, 1), rotated by multiples of the golden ratio; (dimensions, points)."""
    rotated = (sobol_points(dimensions, points) + _GOLDEN * np.arange(1, dimensions + 1)) % 1.0
    uniforms = np.ascontiguousarray(np.clip(rotated, 1e-6, 1 - 1e-6).T)
    uniforms.setflags(write=False)  # shared by every caller
    return uniforms


@lru_cache(maxsize=2)
def _sobol_normals(dimensions: int, points: int, chosen: tuple[int, ...]) -> Matrix:
    """Standard normal numbers in place of the uniform ones of some dimensions, (chosen, points)."""
    normals = np.asarray(scipy.special.ndtri(sobol(dimensions, points)[list(chosen)]))
    normals.setflags(write=False)
    return normals


def draw(estimate: Estimate, layout: Layout, points: int = POINTS) -> Codes:
    """Reference codes for every attribute: first the codes, one after another, then the numbers given them."""
    codes = _draw_codes(sobol(layout.attributes, points), estimate, layout)
    if layout.numbers.size:
        owners = layout.owner[layout.numbers]
        normals = _sobol_normals(layout.attributes, points, tuple(owners.tolist()))
        numbers = _numbers(Reference(codes, np.empty(0), np.empty(0)).columns(layout), normals, estimate, layout)
        codes[owners] = np.rint(numbers * NUMBER_STEPS).astype(np.int64)
    return codes


def sample_public_points(estimate: Estimate, layout: Layout, count: int) -> Matrix:
    """Sample encoded rows from the reference's model, other than its own points, as queries for calibration.

    A point of the reference itself has a neighbour at distance 0 there, which no real query has; among many columns that matters.
    """
    chosen = slice(POINTS, POINTS + count)
    if layout.width > WIDE and not layout.numbers.size:  # codes do not depend on other points, as the margins of numbers do
        codes = _draw_codes(sobol(layout.attributes, 2 * POINTS)[:, chosen], estimate, layout)
    else:
        codes = draw(estimate, layout, 2 * POINTS)[:, chosen]
    return Reference(codes, np.empty(0), np.empty(0)).points(layout)


def _draw_codes(uniforms: Matrix, estimate: Estimate, layout: Layout) -> Codes:
    """Each code by regression on those before it, at points with these uniform numbers, (attributes, N); numbers are left 0.

    With LLᵀ the covariance of all codes' columns and e = L⁻¹(x - μ), the regression of block a on what precedes it is
    μ_a + Σ_{b<a} L_ab e_b, so one factorisation gives every regression.
    """
    from dpexplain.estimation._code_kernels import draw_panel  # numba takes long to load

    codes, columns = np.zeros(uniforms.shape, dtype=np.int64), layout.code_columns
    if not columns.size:
        return codes
    ridge = noise_ridge(estimate.spread.s2, layout) * np.eye(len(columns))
    lower = np.asarray(np.linalg.cholesky(estimate.covariance[np.ix_(columns, columns)] + ridge), dtype=np.float64)
    residuals, start = np.zeros((len(columns), uniforms.shape[1])), 0
    for panel in _panels(layout):
        ends = np.cumsum([0, *(layout.sizes[a] for a in panel)])
        here = slice(start, start + int(ends[-1]))
        expected = lower[here, :start] @ residuals[:start]  # the effect of earlier panels on this one, in one product
        expected += estimate.mean[columns[here]][:, None]
        drawn = codes[panel]
        draw_panel(ends, estimate.missing[panel] > 0, lower[here, here], expected, uniforms[panel], drawn, residuals[here])
        codes[panel], start = drawn, here.stop
    return codes


def _panels(layout: Layout) -> list[list[int]]:
    """Codes in groups of at most PANEL columns (or one code): products with a group's columns stay in the cache."""
    panels: list[list[int]] = []
    filled = PANEL
    for a in layout.codes:
        size = layout.stops[a] - layout.starts[a]
        if filled + size > PANEL:
            panels.append([])
            filled = 0
        panels[-1].append(a)
        filled += size
    return panels


def _numbers(columns: Matrix, normals: Matrix, estimate: Estimate, layout: Layout) -> Matrix:
    """(numbers, N): regression on the codes plus correlated Gaussian noise, then each margin turned into the number's own."""
    numbers, covariance = layout.numbers, estimate.covariance
    others = layout.code_columns
    residual = covariance[np.ix_(numbers, numbers)]
    centre: Matrix | float = 0.0
    if others.size:
        ridge = noise_ridge(estimate.spread.s2, layout)
        gram = covariance[np.ix_(others, others)] + ridge * np.eye(len(others))
        slope = np.linalg.solve(gram, covariance[np.ix_(others, numbers)])
        residual = residual - slope.T @ (gram + ridge * np.eye(len(others))) @ slope
        centre = slope.T @ columns[others] - (slope.T @ estimate.mean[others])[:, None]
    values, vectors = np.linalg.eigh((residual + residual.T) / 2)
    least = float(estimate.spread.s2) / sqrt(len(values))  # of the variance along a direction, which noise would hide
    root = (vectors * np.sqrt(np.maximum(values, least))) @ vectors.T  # the symmetric one: it moves little when the moments do
    gaussian = centre + root @ normals
    gaussian -= gaussian.mean(axis=1, keepdims=True)
    gaussian /= np.maximum(np.sqrt(np.square(gaussian).mean(axis=1, keepdims=True)), 1e-9)
    if (counted := estimate.margins) is None:
        return np.stack([place_as_beta(one, *known) for one, known in zip(gaussian, _moments(estimate, numbers), strict=True)])
    each = zip(gaussian, counted.cells, number_shares(estimate, counted, layout), strict=True)
    return np.stack([place_in_cells(one, cell, shares) for one, cell, shares in each])


def number_shares(estimate: Estimate, counted: NumberCounts, layout: Layout, *, within_bins: bool = False) -> list[Vector]:
    """The share of each cell of each number; `within_bins` as for `cell_shares`."""
    errors = float(estimate.spread.s1), float(estimate.spread.squares)
    each = zip(counted.cells, counted.shares, _moments(estimate, layout.numbers), strict=True)
    return [cell_shares(cell, shares, counted.sigma, known, errors, within_bins=within_bins) for cell, shares, known in each]


def _moments(estimate: Estimate, numbers: Indices) -> list[tuple[float, float]]:
    """The mean and variance of each number."""
    return list(zip(estimate.mean[numbers].tolist(), np.diag(estimate.covariance)[numbers].tolist(), strict=True))


def noise_ridge(second_error: float, layout: Layout) -> float:
    """The typical norm of the noise in a column of the released covariance."""
    noise = second_error * float(np.sqrt((~layout.same_attribute()).sum(axis=1).mean()))
    return max(noise, _FLOOR)


def fit_labels(points: Matrix, estimate: Estimate, start: Vector | None = None) -> tuple[Vector, Vector]:
    """y = tanh(β₀ + β·(x - μ)) with E y = t0 and E y(x - μ) = t1 up to a ridge at the noise level; Newton's method.

    Of all labels in [-1, 1] with these moments they have the largest entropy. Returns (labels, coefficients).
    """
    Z = np.vstack([np.ones(len(points)), points.T - estimate.mean[:, None]]).T  # column after column, as its products read it
    target = np.append(np.clip(estimate.t0, -0.999, 0.999), estimate.t1)
    ridge = np.append(1e-6, np.full(Z.shape[1] - 1, max(2 * estimate.spread.t1, _FLOOR)))
    beta = _start_labels(points, estimate) if start is None else start

    def objective(beta: Vector) -> tuple[float, Vector]:
        """The value, and the labels at `beta`: 2 cosh η = exp|η| (1 + q) and tanh|η| = (1 - q)/(1 + q) with q = exp(-2|η|)."""
        eta = Z @ beta
        size = np.abs(eta)
        q = np.exp(-2 * size)
        value = float((size + np.log1p(q)).mean() - target @ beta + (ridge * beta * beta).sum() / 2)
        return value, np.copysign((1 - q) / (1 + q), eta)

    newton: LabelNewton = LabelNewton(Z, ridge) if len(estimate.t1) <= WIDE else ReusedLabelNewton(Z, ridge)
    value, y = objective(beta)
    for _ in range(newton.most_steps):
        gradient = y @ Z / len(Z) - target + ridge * beta
        step = newton.step(y, gradient)
        size, decrease = 1.0, float(gradient @ step)
        following, y = objective(beta - size * step)
        while following > value - 1e-4 * size * decrease and size > 1e-3:
            size /= 2
            following, y = objective(beta - size * step)
        beta, value = beta - size * step, following
        if decrease < newton.close:
            break
    return y, beta


def _start_labels(points: Matrix, estimate: Estimate) -> Vector:
    """Coefficients to start from: those of the first quarter of many points, which are spread as all are, or 0."""
    if len(points) < _MANY or len(estimate.t1) > WIDE:  # with many columns the solution is nearer to 0
        return np.zeros(points.shape[1] + 1)
    return fit_labels(points[: len(points) // 4], estimate)[1]


def build(
    estimate: Estimate, query: NormalisedMoments, start: Vector | None = None, points: int = POINTS
) -> tuple[Reference, Vector]:
    """The reference of an estimate, rounded to what a file stores exactly, and its labels' coefficients; `start` guesses those.

    The estimate describes rows weighted by w(x); 1/w(x) converts it to rows of equal weight.
    """
    codes = draw(estimate, query.layout, points)
    rows = Reference(codes, np.empty(0), np.empty(0)).columns(query.layout).T
    labels, coefficients = fit_labels(rows, estimate, start)
    inverse = 1 / query.weights(rows)
    steps = np.maximum(np.rint(inverse / inverse.max() * WEIGHT_STEPS), 1.0)
    return Reference(codes, np.rint(labels * LABEL_STEPS) / LABEL_STEPS, steps / WEIGHT_STEPS), coefficients
