"""Balls ‖φ‖_p ≤ k: projection onto them, and the exact minimiser of a quadratic over the 2-ball."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy

from dpexplain.arguments import is_finite, quote
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.errors import ParameterError

_CLEARLY = 1 - 2.0**-30  # of the radius: φ this far inside stays inside, however its length is rounded


@dataclass(frozen=True, slots=True)
class Ball:
    """C = {φ : ‖φ‖_norm ≤ radius}, the feasible explanations."""

    radius: float = 1.0
    norm: int = 2

    def __post_init__(self) -> None:
        if not (is_finite(self.radius) and self.radius > 0):
            raise ParameterError(f"radius must be positive and finite, got {quote(self.radius)}")
        if not (isinstance(self.norm, int) and self.norm in (1, 2)):
            raise ParameterError(f"norm must be 1 or 2, got {quote(self.norm)}")

    def project(self, phi: Vector) -> Vector:
        """The nearest point of the ball; inside it in floating point too, because sensitivities rely on ‖φ‖₂ ≤ radius."""
        if sqrt(float(phi @ phi)) <= self.radius * _CLEARLY and self.norm == 2:
            return phi
        inside = project_2(phi, self.radius) if self.norm == 2 else project_1(phi, self.radius)
        excess = float(np.linalg.norm(inside, self.norm)) / self.radius
        return inside if excess <= 1 else inside * ((1 - len(phi) * 2.0**-50) / excess)  # rounding put it just outside

    def minimise(self, A: Matrix, b: Vector) -> Vector:
        """argmin over the ball of φᵀAφ - 2b·φ, A positive semidefinite."""
        return minimise_2(A, b, self.radius) if self.norm == 2 else minimise_1(A, b, self.radius)


@dataclass(frozen=True, slots=True)
class FreeBall:
    """States (φ, a) of a plane that is free at the query: φ in a ball, and its answer a there a label, |a| ≤ 1."""

    ball: Ball

    @property
    def radius(self) -> float:
        return self.ball.radius

    def project(self, state: Vector) -> Vector:
        projected = np.empty_like(state)
        projected[:-1], projected[-1] = self.ball.project(state[:-1]), min(max(float(state[-1]), -1.0), 1.0)
        return projected


def project_2(phi: Vector, radius: float) -> Vector:
    """Scale back to the sphere when outside."""
    length = float(np.linalg.norm(phi))
    return phi if length <= radius else phi * (radius / length)


def project_1(phi: Vector, radius: float) -> Vector:
    """Soft-threshold to the 1-ball by sorting (Duchi et al. 2008, fig. 1)."""
    if np.abs(phi).sum() <= radius:
        return phi
    sizes = np.sort(np.abs(phi))[::-1]
    excess = (np.cumsum(sizes) - radius) / np.arange(1, len(sizes) + 1)
    threshold = excess[np.nonzero(sizes > excess)[0][-1]]
    return np.asarray(np.sign(phi) * np.maximum(np.abs(phi) - threshold, 0.0))


def minimise_2(A: Matrix, b: Vector, radius: float, cut: float = 0.0) -> Vector:
    """The trust-region subproblem: (A + λI)φ = b with the smallest λ ≥ 0 that brings ‖φ‖ ≤ radius.

    By eigendecomposition and one scalar root. For semidefinite A the hard case is b orthogonal to the null space: then the
    least-norm solution is taken, which is feasible or has λ > 0. Directions below the rounding level of A count as null. With `cut`, directions
    with less than that share of the largest eigenvalue are left out altogether: for A and b that were summed in single precision.
    """
    values, vectors = scipy.linalg.eigh((A + A.T) / 2)
    scale = max(float(values[-1]), float(np.linalg.norm(b)) / radius)
    if scale <= 0:
        return np.zeros_like(b)
    values = np.maximum(values, 0.0)
    target = np.where(values >= cut * values[-1], vectors.T @ b, 0.0)
    keep = values > scale * len(b) * np.finfo(float).eps
    null_pull = float(np.linalg.norm(target[~keep])) > 1e-10 * float(np.linalg.norm(target))
    free = np.divide(target, values, out=np.zeros_like(target), where=keep)
    if not null_pull and np.linalg.norm(free) <= radius:
        return np.asarray(vectors @ free)
    return np.asarray(vectors @ _on_the_sphere(values, target, radius))


_GAP, _MOST_STEPS = 1e-10, 20_000
DETERMINED = 1e-6  # of the largest eigenvalue: sums of rows are known to about 1e-7 of it


def minimise_free(A: Matrix, b: Vector) -> Vector:
    """The least-norm minimiser of φᵀAφ - 2b·φ where no ball holds φ. Directions with less than DETERMINED of the largest eigenvalue count as null."""
    values, vectors = scipy.linalg.eigh((A + A.T) / 2)
    keep = values > DETERMINED * max(float(values[-1]), 0.0)
    return np.asarray(vectors[:, keep] @ ((vectors[:, keep].T @ b) / values[keep]))


def _on_the_sphere(values: Vector, target: Vector, radius: float) -> Vector:
    """target/(values + λ) for the λ > 0 that puts it on the sphere. 1/‖·‖ is nearly linear in λ, so few steps find the root."""

    def gap(multiplier: float) -> float:
        return 1 / radius - 1 / float(np.linalg.norm(target / (values + multiplier)))

    high = float(np.linalg.norm(target)) / radius  # ‖target/(values+λ)‖ ≤ ‖target‖/λ
    low = high * 1e-18
    while gap(low) < 0:  # the root lies below: the free solution is on the sphere up to rounding
        low /= 1e6
        if low < 1e-290:
            break
    multiplier = scipy.optimize.brentq(gap, low, high, xtol=1e-300, rtol=1e-15) if gap(low) > 0 > gap(high) else high
    return np.asarray(target / (values + multiplier))


def minimise_1(A: Matrix, b: Vector, radius: float) -> Vector:
    """Accelerated projected gradient with restarts until the duality gap is below _GAP times the scale of b."""
    step = 1 / max(2 * float(scipy.linalg.eigh((A + A.T) / 2, eigvals_only=True)[-1]), 1e-300)
    phi = ahead = np.zeros_like(b)
    momentum = 1.0
    for _ in range(_MOST_STEPS):
        gradient = 2 * (A @ phi - b)
        if float(gradient @ phi) + radius * float(np.abs(gradient).max()) <= _GAP * (1e-300 + float(np.abs(b).max())):
            break
        following = project_1(ahead - step * 2 * (A @ ahead - b), radius)
        if float((ahead - following) @ (following - phi)) > 0:  # adaptive restart (O'Donoghue & Candès 2015)
            momentum = 1.0
        growth = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = following + (momentum - 1) / growth * (following - phi)
        phi, momentum = following, growth
    return phi
