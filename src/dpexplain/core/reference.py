"""A small public stand-in for the private rows: fixed points and labels that reproduce the released moments. Pure post-processing.

Codes follow a Chow-Liu tree over the estimated pairwise margins; numbers follow a linear-Gaussian regression on the codes, mapped to Beta
margins; labels are the maximum-entropy ones, tanh(β₀ + β·(x - μ)), fitted to the label moments. Points are a Sobol' sequence pushed through
these conditionals, so the same moments always give the same reference. It serves to estimate how much *localising* the weight changes the
answer, not the answer itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.denoise import Estimate
from dpexplain.core.layout import Layout
from dpexplain.core.sketch import NormalisedMoments

POINTS = 4096
NUMBER_STEPS = 4096  # numbers lie on a grid of 1/4096: exact in every format
LABEL_STEPS, WEIGHT_STEPS = 2.0**15, 2.0**16
_FLOOR = 2e-3  # smallest ridge of the regressions below
_GOLDEN = 0.6180339887498949

Codes = NDArray[np.int64]
Tree = tuple[tuple[int, int | None], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """`codes[a]`: attribute a of each point, as a column offset (its size: all zeros) or as a multiple of 1/4096."""

    codes: Codes
    labels: Vector
    inverse_weight: Vector

    def points(self, layout: Layout) -> Matrix:
        """The points as encoded rows, (N, n)."""
        rows = np.zeros((self.codes.shape[1], layout.width))
        everyone = np.arange(len(rows))
        for a, code in enumerate(self.codes):
            block = layout.columns(a)
            if layout.is_number[a]:
                rows[:, block.start] = code / NUMBER_STEPS
            else:
                known = code < block.stop - block.start
                rows[everyone[known], block.start + code[known]] = 1.0
        return rows


@lru_cache(maxsize=2)
def sobol(dimensions: int, points: int) -> Matrix:
    """The first `points` of a Sobol' sequence in (0, 1), rotated by multiples of the golden ratio; (dimensions, points)."""
    from scipy.stats import qmc  # a third of the library's import time, and needed once a release

    plain = qmc.Sobol(dimensions, scramble=False).random(points)
    rotated = (plain + _GOLDEN * np.arange(1, dimensions + 1)) % 1.0
    uniforms = np.ascontiguousarray(np.clip(rotated, 1e-6, 1 - 1e-6).T)
    uniforms.setflags(write=False)  # shared by every caller
    return uniforms


def draw(estimate: Estimate, layout: Layout, tree: Tree, points: int = POINTS) -> Codes:
    """Reference codes for every attribute: first the codes along the tree, then the numbers given them."""
    uniforms = sobol(layout.attributes, points)
    codes = np.zeros((layout.attributes, points), dtype=np.int64)
    covariance = estimate.covariance
    for child, parent in tree:
        margin, uniform = _margin(child, estimate, layout), uniforms[child]
        if parent is None:
            codes[child] = np.minimum(np.searchsorted(np.cumsum(margin), uniform), len(margin) - 1)
        else:
            table = np.cumsum(_conditional(parent, child, covariance, estimate, layout), axis=1)
            codes[child] = np.minimum((uniform[:, None] > table[codes[parent]]).sum(axis=1), len(margin) - 1)
    if layout.numbers.size:
        rows = Reference(codes, np.empty(0), np.empty(0)).points(layout)
        numbers = _numbers(rows, uniforms[layout.owner[layout.numbers]], covariance, estimate, layout)
        codes[layout.owner[layout.numbers]] = np.rint(numbers.T * NUMBER_STEPS).astype(np.int64)
    return codes


def find_tree(estimate: Estimate, layout: Layout) -> Tree:
    """(attribute, parent) in an order that has parents first: the maximum spanning tree of χ² dependence (Prim)."""
    codes = np.array(layout.codes, dtype=np.int64)
    if not codes.size:
        return ()
    strength = _dependence(estimate.covariance, estimate, layout)[np.ix_(codes, codes)]
    np.fill_diagonal(strength, -1.0)
    root = int(np.argmax(strength.sum(axis=1)))
    order: list[tuple[int, int | None]] = [(int(codes[root]), None)]
    parent, best = np.full(len(codes), root), strength[root].copy()
    waiting = np.ones(len(codes), dtype=bool)
    waiting[root] = False
    while waiting.any():
        new = int(np.argmax(np.where(waiting, best, -2.0)))
        order.append((int(codes[new]), int(codes[parent[new]])))
        waiting[new] = False
        closer = strength[new] > best
        best, parent = np.where(closer, strength[new], best), np.where(closer, new, parent)
    return tuple(order)


def _dependence(covariance: Matrix, estimate: Estimate, layout: Layout) -> Matrix:
    """Σ C²/(μμ') over each pair of codes: Pearson's φ² of their table."""
    mean = np.maximum(estimate.mean, 1e-4)
    alone = np.array([stop - start == 1 for start, stop in zip(layout.starts, layout.stops, strict=True)])[layout.owner]
    rarity = 1 / np.where(alone, mean * np.maximum(1 - mean, 1e-4), mean)
    return layout.per_attribute(layout.per_attribute(np.square(covariance) * np.outer(rarity, rarity)).T)


def _margin(attribute: int, estimate: Estimate, layout: Layout) -> Vector:
    """Probabilities of a code's values, and of "all zeros" at the end where that occurs."""
    known = estimate.mean[layout.columns(attribute)]
    missing = estimate.missing[attribute]
    margin = np.append(known, missing) if missing else known
    return np.asarray(margin / margin.sum())


def _conditional(parent: int, child: int, covariance: Matrix, estimate: Estimate, layout: Layout) -> Matrix:
    """P(child | parent), a row for each value of the parent."""
    rows, columns = layout.columns(parent), layout.columns(child)
    first, second = estimate.mean[rows], estimate.mean[columns]
    joint = covariance[rows, columns] + np.outer(first, second)
    if estimate.missing[child]:
        joint = np.column_stack([joint, first - joint.sum(axis=1)])
    margin = _margin(child, estimate, layout)
    if estimate.missing[parent]:
        joint = np.vstack([joint, margin - joint.sum(axis=0)])
    joint = np.maximum(joint, 0.0)
    weight = joint.sum(axis=1, keepdims=True)
    return np.where(weight > 1e-12, joint / np.maximum(weight, 1e-12), margin)


def _numbers(rows: Matrix, uniforms: Matrix, covariance: Matrix, estimate: Estimate, layout: Layout) -> Matrix:
    """(N, numbers): regression on the codes plus correlated Gaussian noise, then each margin turned into a Beta."""
    numbers = layout.numbers
    others = np.setdiff1d(np.arange(layout.width), numbers)
    residual = covariance[np.ix_(numbers, numbers)]
    centre = np.zeros((len(rows), len(numbers)))
    if others.size:
        ridge = max(float(np.sqrt(np.square(_column_noise(estimate, layout)).mean())), _FLOOR)
        gram = covariance[np.ix_(others, others)] + ridge * np.eye(len(others))
        slope = linalg.solve(gram, covariance[np.ix_(others, numbers)], assume_a="pos")
        residual = residual - slope.T @ (gram + ridge * np.eye(len(others))) @ slope
        centre = (rows[:, others] - estimate.mean[others]) @ slope
    values, vectors = linalg.eigh((residual + residual.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T  # the symmetric one: it moves little when the moments do
    gaussian = centre + special.ndtri(uniforms.T) @ root
    standard = (gaussian - gaussian.mean(axis=0)) / np.maximum(gaussian.std(axis=0), 1e-9)
    variances = np.diag(covariance)[numbers]
    return np.column_stack(
        [_as_beta(standard[:, j], *pair) for j, pair in enumerate(zip(estimate.mean[numbers], variances, strict=True))]
    )


def _column_noise(estimate: Estimate, layout: Layout) -> Vector:
    """Norm of the noise in each column of the released covariance."""
    return np.asarray(estimate.spread.s2 * np.sqrt((~layout.same()).sum(axis=1)))


def _as_beta(standard: Vector, mean: float, variance: float) -> Vector:
    """Standard normal numbers turned into Beta numbers of this mean and variance."""
    middle = min(max(mean, 1e-3), 1 - 1e-3)
    most = middle * (1 - middle)
    concentration = most / min(max(variance, 1e-5), 0.98 * most) - 1
    grid = np.linspace(-4.5, 4.5, 91)
    quantiles = special.betaincinv(middle * concentration, (1 - middle) * concentration, special.ndtr(grid))
    return np.clip(np.interp(standard, grid, quantiles), 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What a reference was built on: the tree, and the labels' coefficients. A similar reference can start from it.

    Without a tree, one is found.
    """

    tree: Tree | None
    coefficients: Vector


def fit_labels(points: Matrix, estimate: Estimate, start: Vector | None = None) -> tuple[Vector, Vector]:
    """y = tanh(β₀ + β·(x - μ)) with E y = t0 and E y(x - μ) = t1 up to a ridge at the noise level; Newton's method.

    Of all labels in [-1, 1] with these moments they have the largest entropy. Returns (labels, coefficients).
    """
    Z = np.column_stack([np.ones(len(points)), points - estimate.mean])
    target = np.append(np.clip(estimate.t0, -0.999, 0.999), estimate.t1)
    ridge = np.append(1e-6, np.full(Z.shape[1] - 1, max(2 * estimate.spread.t1, _FLOOR)))
    beta = np.zeros(Z.shape[1]) if start is None else start

    def objective(beta: Vector) -> float:
        eta = Z @ beta
        return float(np.logaddexp(eta, -eta).mean() - target @ beta + (ridge * beta * beta).sum() / 2)

    value = objective(beta)
    for _ in range(30):
        y = np.tanh(Z @ beta)
        gradient = Z.T @ y / len(Z) - target + ridge * beta
        hessian = (Z * (1 - y * y)[:, None]).T @ Z / len(Z) + np.diag(ridge)
        step = linalg.solve(hessian, gradient, assume_a="pos")
        size, decrease = 1.0, float(gradient @ step)
        while (following := objective(beta - size * step)) > value - 1e-4 * size * decrease and size > 1e-3:
            size /= 2
        beta, value = beta - size * step, following
        if decrease < 1e-9:
            break
    return np.tanh(Z @ beta), beta


def build(estimate: Estimate, query: NormalisedMoments, like: Fit | None = None, points: int = POINTS) -> tuple[Reference, Fit]:
    """The reference of an estimate, rounded to what a file stores exactly; `like` keeps another's tree.

    The estimate describes rows weighted by w(x); 1/w(x) leads back to rows that count alike.
    """
    tree = like.tree if like and like.tree is not None else find_tree(estimate, query.layout)
    codes = draw(estimate, query.layout, tree, points)
    rows = Reference(codes, np.empty(0), np.empty(0)).points(query.layout)
    labels, coefficients = fit_labels(rows, estimate, like.coefficients if like else None)
    inverse = 1 / query.weights(rows)
    steps = np.maximum(np.rint(inverse / inverse.max() * WEIGHT_STEPS), 1.0)
    return Reference(codes, np.rint(labels * LABEL_STEPS) / LABEL_STEPS, steps / WEIGHT_STEPS), Fit(tree, coefficients)
