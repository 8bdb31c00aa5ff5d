"""Gaussian noise on a grid of integers: how much a bounded query gets, and how it is added. `door.py` is where it is drawn.

Plain `x + σN` in floating point is not private: which floats it can return depends on x (Mironov 2012). Here statistic and
noise are rounded to multiples of one power of two and added as integers. With k the rounded statistic and Y real Gaussian
noise, both in grid units,

    k + rint(Y) = rint(k + Y)        because k is an integer,

so the release is post-processing of the Gaussian mechanism on an integer-valued query, and GDP exactly, if Δ is given what
rounding can move two neighbours apart. The proof, and that of the float argument below, is `proofs/gaussian_mechanism.md`.

What remains is that a computer's N is not a real number: float64 keeps 53 bits of it, so σ/grid must stay well below 2⁵³ or
the noise itself would leave integers out. Already at σ/grid = 2³⁵ only 2¹⁸ floats share an integer, and their uneven number
would leak a little. So the noise is a sum of Gaussians of falling scale, each masking the rounding error of the one before
(adding independent noise is post-processing and costs nothing). What float64 can still leak is then at most
`precision_cost` = √n·2⁻³¹ in μ, and it is paid for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor, frexp, inf, isfinite, ldexp, nextafter, sqrt
from typing import Generic, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from dpexplain.core.arrays import Vector
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.ports import BoundedQuery, Noise
from dpexplain.privacy.events import GaussianEvent

_LARGEST_UNITS = 2.0**60  # statistics are clamped here, in grid units: room for the noise in int64
_STEP = 2.0**10  # each Gaussian of the ladder is this much finer than the one before …
_FINEST = 2.0**6  # … down to this many grid units, where float64 has 2⁴⁷ numbers per integer
_FEW = 2048  # numbers
_SMALLEST, _LARGEST = 1e-150, 1e150  # far from where float64 loses bits or overflows


Query = TypeVar("Query", bound=BoundedQuery)


@dataclass(frozen=True, slots=True)
class GaussianMechanism(Generic[Query]):
    """Releases a bounded query at the price of `mu`-GDP. The bound is part of the query and cannot be passed separately.

    A release is charged as (`rounded_sensitivity`, `sigma`), whose ratio is at most `mu`.
    """

    query: Query
    mu: float

    def __post_init__(self) -> None:
        if not isinstance(self.query, BoundedQuery):
            raise ParameterError(
                f"a Gaussian mechanism needs a bounded query, got {self.query!r}. Pass the statistic together with its bound"
            )
        _require_scale("sensitivity", self.sensitivity, "Use the bound of the weight in use, or rescale the statistic")
        _require_scale("mu", self.mu, "Convert the (ε, δ) you can spend to μ")
        if not (isinstance(self.dimension, int | np.integer) and self.dimension >= 1):
            raise ParameterError(
                f"dimension must be a whole number ≥ 1, got {self.dimension!r}. Pass how many numbers are released"
            )
        if not self.mu >= 2 * self.precision_cost:
            raise ParameterError(
                f"mu = {self.mu} is too small for float64 noise on {self.dimension} numbers. "
                f"Spend at least {2 * self.precision_cost:.3g} on this release, or release fewer numbers"
            )

    @property
    def sensitivity(self) -> float:
        return self.query.sensitivity

    @property
    def dimension(self) -> int:
        return self.query.dimension

    @property
    def grid(self) -> float:
        """Largest power of two ≤ max(Δ·2⁻²⁰/√n, (Δ/μ)·2⁻⁴⁰): costs a millionth of Δ, or keeps σ/grid ≤ 2⁴³."""
        return _grid(self.sensitivity, self.dimension, self.mu)

    @property
    def precision_cost(self) -> float:
        """What float64 draws can reveal beyond real Gaussians, in μ: at most √n·2⁻³¹ (`proofs/gaussian_mechanism.md`)."""
        return _precision_cost(self.dimension)

    @property
    def rounded_sensitivity(self) -> float:
        """(Δ + √n·grid)·μ/(μ - `precision_cost`), rounded up.

        Each coordinate of each neighbour moves by at most half a grid step; the factor leaves room in μ for the draws' precision.
        """
        return _exact_scale(self.sensitivity, self.dimension, self.mu)[0]

    @property
    def sigma(self) -> float:
        """Standard deviation of each coordinate's noise: `rounded_sensitivity`/μ, rounded up."""
        return _exact_scale(self.sensitivity, self.dimension, self.mu)[1]

    def event(self, count: int = 1) -> GaussianEvent:
        """What `count` releases cost."""
        return GaussianEvent(self.query.what, self.rounded_sensitivity, self.sigma, count)

    def draw(self, noise: Noise, count: int) -> NDArray[np.int64]:
        """(count, dimension): noise for `count` releases, in grid units. Only a `Door` calls it, once they are paid for."""
        return rounded_gaussian(self.sigma / self.grid, count * self.dimension, noise).reshape(count, self.dimension)

    def perturb(self, value: NDArray[np.float64], drawn: NDArray[np.int64]) -> NDArray[np.float64]:
        """grid · (rint(value/grid) + noise), in the shape of `value`. Never fails, warns or branches on what `value` holds."""
        if value.size != self.dimension:
            raise ParameterError(f"this mechanism pays for {self.dimension} numbers, got {value.size}. Plan the right dimension")
        grid = self.grid
        units = quantise(value.ravel(), grid) + drawn
        released: NDArray[np.float64] = units.astype(np.float64) * grid
        return released.reshape(value.shape)


@lru_cache(maxsize=1024)
def _grid(sensitivity: float, dimension: int, mu: float) -> float:
    _, exponent = frexp(max(sensitivity * 2.0**-20 / sqrt(dimension), sensitivity / mu * 2.0**-40))
    return ldexp(1.0, exponent - 1)


def _precision_cost(dimension: int) -> float:
    return _root_up(dimension) * 2.0**-31


@lru_cache(maxsize=1024)  # exact arithmetic takes a tenth of a millisecond, and one answer asks for the same numbers ten times
def _exact_scale(sensitivity: float, dimension: int, mu: float) -> tuple[float, float]:
    """(`rounded_sensitivity`, `sigma`)."""
    exact = Fraction(mu)
    apart = Fraction(sensitivity) + Fraction(_root_up(dimension)) * Fraction(_grid(sensitivity, dimension, mu))
    reach = _round_up(apart * exact / (exact - Fraction(_precision_cost(dimension))))
    return reach, _round_up(Fraction(reach) / exact)


def quantise(value: NDArray[np.float64], grid: float) -> NDArray[np.int64]:
    """`value` in whole grid units, clamped to ±2⁶⁰, which moves no two values apart. NaN, a breach of contract, becomes 0."""
    with np.errstate(all="ignore"):
        units = np.divide(value, grid, dtype=np.float64)
        np.rint(units, out=units)
    units[np.isnan(units)] = 0.0
    np.maximum(units, -_LARGEST_UNITS, out=units)
    np.minimum(units, _LARGEST_UNITS, out=units)
    return units.astype(np.int64)


def rounded_gaussian(scale: float, size: int, noise: Noise) -> NDArray[np.int64]:
    """rint(Y), Y Gaussian with standard deviation `scale`; the ladder's finer steps add less than 2⁻¹⁶ to σ² at any μ ≤ 50.

    The whole part of each step goes to an exact integer sum, its fraction is carried to the next and finer step: no bit is lost.
    """
    total, carry, steps = np.zeros(size, dtype=np.int64), np.zeros(size), ladder(scale)
    for step, drawn in zip(steps, _draw_rows(len(steps), size, noise), strict=True):
        exact = carry + step * drawn
        whole = np.rint(exact)
        total += whole.astype(np.int64)
        carry = exact - whole
    return total


def _draw_rows(count: int, size: int, noise: Noise) -> Iterable[Vector]:
    """`count` times `size` standard normal numbers; by one call where they are few, because a call takes longer than it draws some hundred."""
    if size > _FEW:
        return (noise.standard_normal(size) for _ in range(count))
    return noise.standard_normal(count * size).reshape(count, size)


def rounded_scale(scale: float) -> float:
    """The exact standard deviation of the sum that `rounded_gaussian` rounds: a sum of independent Gaussians is one."""
    return sqrt(sum(step * step for step in ladder(scale)))


@dataclass(frozen=True, slots=True)
class Cut:
    """Where noisy counts are cut: half way between two grid points, so that the chance of an empty cell to pass is known exactly."""

    grid: float
    scale: float  # standard deviation of the noise, in grid units

    def limit_at(self, deviations: float) -> float:
        """The limit next to so many standard deviations of noise."""
        return (floor(self.scale * deviations) + 0.5) * self.grid

    def chance(self, limit: float) -> float:
        """P(noise > limit) = P(Y > limit) for the Gaussian Y before it was rounded to the grid."""
        return float(scipy.special.ndtr(-limit / (self.scale * self.grid)))


def ladder(scale: float) -> tuple[float, ...]:
    """`scale`, `scale`/2¹⁰, `scale`/2²⁰, … and at last 64: no step is more than 2¹⁰ times its successor."""
    steps = [scale]
    while steps[-1] > _STEP * _FINEST:
        steps.append(steps[-1] / _STEP)
    return (*steps, _FINEST)


def _require_scale(name: str, value: float, remedy: str) -> None:
    if not (isfinite(value) and _SMALLEST <= value <= _LARGEST):
        raise ParameterError(f"{name} must be positive and finite ({_SMALLEST:g} to {_LARGEST:g}), got {value}. {remedy}")


def _root_up(n: int) -> float:
    """The smallest float64 that is at least √n, or one above it."""
    root = sqrt(n)
    return root if Fraction(root) ** 2 >= n else nextafter(root, inf)


def _round_up(exact: Fraction) -> float:
    """The smallest float64 that is at least `exact`."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else nextafter(nearest, inf)
