"""Moments of private rows around a point, and the queries that ask for them.

The local loss (SPEC §1) is a quadratic, so a few moments around z are all a mechanism ever needs to read:

    L(φ) = (1/m̄) Σ α_i (φ·u_i - y_i)²,   A = Σ α u uᵀ,   b = Σ α y u,   ∇L(φ) = (2/m̄)(Aφ - b),   u = x - z,

and s = Σ α u, with which labels can be shifted by a public number afterwards: y - c has b - cs. A plane a + φ·u that is free at z has

    ∇_φ = 2(Aφ + as - b),   ∇_a = 2(s·φ + aS0 - t0),   S0 = Σ α,   t0 = Σ α y.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.weights import Weight


@dataclass(frozen=True, slots=True)
class LocalMoments:
    """A question to private rows: (A, b, s) around `point`. How far one record moves what is made of them: `core/sensitivity.py`."""

    point: Vector
    weight: Weight
    scale: Vector | None = None  # of each column in distances, α(‖scale·u‖); None: 1. The sums are of u itself


@dataclass(frozen=True, slots=True)
class Moments:
    """(A, b, s, S0, t0): sums over rows, not divided by m̄. Private until released."""

    A: Matrix
    b: Vector
    s: Vector
    S0: float = 0.0
    t0: float = 0.0

    def gradient(self, phi: Vector) -> Vector:
        """2(Aφ - b): m̄ times the gradient of the local loss."""
        return 2 * (self.A @ phi - self.b)

    def free_gradient(self, state: Vector, scale: Vector | None = None) -> Vector:
        """(∇_φ, ∇_a): m̄ times the gradient of the loss of a plane a + φ·u, at the state (φ, a); with a `scale`, of a + φ·(scale·u)."""
        phi, a = state[:-1] if scale is None else state[:-1] * scale, state[-1]
        gradient = np.empty_like(state)  # in place: a descent asks for a thousand gradients
        slopes = np.matmul(self.A, phi, out=gradient[:-1])
        slopes += a * self.s
        slopes -= self.b
        if scale is not None:
            slopes *= scale
        gradient[-1] = self.s @ phi + a * self.S0 - self.t0
        gradient *= 2
        return gradient

    def scale_columns(self, scale: Vector | None) -> Moments:
        """The moments of scale·u in place of u."""
        if scale is None:
            return self
        return replace(self, A=self.A * np.outer(scale, scale), b=self.b * scale, s=self.s * scale)

    def relabelled_from(self, label: float) -> Moments:
        """The moments of labels y - `label`, a public number."""
        return replace(self, b=self.b - label * self.s, t0=self.t0 - label * self.S0)


@dataclass(frozen=True, slots=True)
class RawMoments:
    """A bounded query: weighted raw moments around a public anchor."""

    anchor: Vector
    weight: Weight
    scale: Vector | None = None  # as in `LocalMoments`

    def sensitivity(self) -> float:
        shortest = 1.0 if self.scale is None else min(1.0, float(self.scale.min()))  # ‖v‖ ≤ d/shortest
        return sensitivity.raw_moments(self.weight) / shortest**2


@dataclass(frozen=True, slots=True)
class RawSums:
    """(Σw, Σwv, Σwvvᵀ, Σwy, Σwyv) with v = x - anchor. Private until released."""

    S0: float
    S1: Vector
    S2: Matrix
    t0: float
    t1: Vector

    def eliminate_intercept(self) -> Moments:
        """(A, b, 0) of a plane that is free at the anchor: the best constant for each φ is eliminated, A = S2 - S1S1ᵀ/S0, b = t1 - t0S1/S0."""
        mean = self.S1 / self.S0
        return Moments(self.S2 - np.outer(self.S1, mean), self.t1 - self.t0 * mean, np.zeros_like(mean))

    def shift(self, offset: Vector) -> Moments:
        """(A, b, s) around z, with h = anchor - z: A = S2 + S1hᵀ + hS1ᵀ + S0hhᵀ, b = t1 + t0h (SPEC §7) and s = S1 + S0h."""
        cross = np.outer(self.S1, offset)
        second = self.S2 + cross + cross.T + self.S0 * np.outer(offset, offset)
        return Moments(second, self.t1 + self.t0 * offset, self.S1 + self.S0 * offset, self.S0, self.t0)
