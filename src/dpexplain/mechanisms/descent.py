"""Projected gradient descent on a quadratic from noisy gradients: the loop, and step sizes chosen from public numbers.

The schedule is the same for all data: it depends on the dimension n, the ball's radius k, a public bound ℓ on the largest eigenvalue of A/m̄,
and `reach` B = k / (norm of the noise that the whole budget buys on one gradient). `docs/interactive.md` derives it and compares alternatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import cbrt, ceil

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.ball import Ball, FreeBall

_FEWEST, MOST = 50, 1000


@dataclass(frozen=True, slots=True)
class Schedule:
    """Step sizes η_1 … η_G: linear decay to zero with total length `travel`, each at most the stability limit 1/ℓ.

    Linear decay makes the last iterate as good as an average (Defazio et al. 2023), without shrinking it.
    """

    gradients: int
    travel: float
    curvature: float

    @property
    def steps(self) -> Vector:
        falling = 1 - (np.arange(self.gradients) + 0.5) / self.gradients
        return np.minimum(2 * self.travel / self.gradients * falling, 1 / self.curvature)


@dataclass(frozen=True, slots=True)
class HarmonicSchedule:
    """The paper's steps: rate/√t."""

    gradients: int
    rate: float

    @property
    def steps(self) -> Vector:
        return np.asarray(self.rate / np.sqrt(np.arange(1, self.gradients + 1)))


@dataclass(frozen=True, slots=True, eq=False)
class Guide:
    """Steps that are as long as the schedule says along one unit vector, and in the coordinates after the slopes; in all others `rest` of that."""

    direction: Vector
    slopes: int  # how many coordinates are slopes
    rest: float

    def turn(self, gradient: Vector) -> Vector:
        turned = self.rest * gradient + ((1 - self.rest) * float(self.direction @ gradient)) * self.direction
        turned[self.slopes :] = gradient[self.slopes :]
        return turned


def travel_length(reach: float, dimension: int, curvature: float, noisy_share: float = 1.0) -> float:
    """Σ η_t, the classical step for noisy gradients, shortened where it would overshoot.

    Three regimes, all measured: noise dominates (Σ η = B); noise is small and its cost, growing like Ση/B², is balanced against the bias,
    falling like 1/(Ση)², so Ση ∝ B^(2/3); and hopeless noise, where walking less than B is better. Only the factors 1/4 and 2.5 are fitted.

    Where noise dominates, only `noisy_share` of that is walked.
    """
    balanced = cbrt(reach**2 * dimension / (4 * curvature))
    return min(noisy_share * reach, balanced) * reach / (reach + 2.5 / curvature)


def free_travel_length(accuracy: float, curvature: float) -> float:
    """Σ η_t of a plane that is free at the query, from 1/(noise on one gradient that takes the whole budget): walking farther than that adds noise."""
    return accuracy * accuracy / (accuracy + 2.5 / curvature)


def schedule(travel: float, curvature: float, gradients: int | None = None, most: int = MOST) -> Schedule:
    """Steps of this total length; their number follows from it unless it is given."""
    return Schedule(gradients or min(max(ceil(2 * travel * curvature), _FEWEST), most), travel, curvature)


def descend(start: Vector, steps: Vector, gradient: Callable[[Vector], Vector], ball: Ball | FreeBall) -> Vector:
    """φ ← Proj(φ - η g(φ)) for each step; the last iterate."""
    phi = ball.project(start)
    for step in steps:
        phi = ball.project(phi - step * gradient(phi))
    return phi
