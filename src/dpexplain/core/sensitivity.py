"""How far one record can move each statistic: the single source of every noise scale. Proofs: `proofs/sensitivity.md`.

A record at distance d from z, with u = x - z, ‖u‖ = d and |y| ≤ 1, adds to the sums over rows

    gradient      2α(φ·u - y)u          ≤ 2αd(kd + 1)        for ‖φ‖₂ ≤ k; anchored, y - f(z) for y: ≤ 2αd(kd + 1 + |f(z)|)
    free gradient (2αru, s·2αr), r = φ·u + a - y    ≤ 2α√(d² + s²)(kd + 2)   for ‖φ‖₂ ≤ k, |a| ≤ 1: `proofs/free_plane.md`
    linear  b     αyu                   ≤ αd
    quadratic A   αuuᵀ (Frobenius)      = αd²
    raw moments   w(1, v, vvᵀ, y, yv)   ≤ w√(2 + 2d² + d⁴)    with v = x - anchor, ‖v‖ = d
    centre moments, normalised moments of a release: `proofs/release_moments.md`
    histograms, tables of pairs: `proofs/marginals.md`
    Shapley values, cut to a length: `proofs/shapley.md`

All are for one record added or removed and for *sums*; `Neighbours.multiplier` and 1/m̄ come on top.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, isfinite, nextafter, sqrt

from numpy.polynomial import Polynomial

from dpexplain.arguments import is_finite
from dpexplain.core.layout import Layout
from dpexplain.core.weights import Weight, gradient_norm_squared
from dpexplain.errors import ParameterError


def gradient(weight: Weight, radius: float, label: float = 1.0) -> float:
    """sup 2α(d)d(kd + l): the gradient anywhere in the 2-ball of radius k (a 1-ball lies inside it), for labels |y| ≤ l."""
    if not (is_finite(radius) and radius >= 0):
        raise ParameterError(f"radius must be finite and not negative, got {radius}")
    return _finite_supremum(weight, gradient_norm_squared(radius, label), "the gradient")


def free_gradient(weight: Weight, radius: float, constant: float) -> float:
    """sup 2α(d)√(d² + s²)(kd + 2): the gradient (∇_φ, s∇_a) of a plane a + φ·u with ‖φ‖₂ ≤ k and |a| ≤ 1. `proofs/free_plane.md`."""
    if not (isfinite(radius) and radius >= 0 and isfinite(constant) and constant > 0):
        raise ParameterError(f"radius must be finite and not negative, and constant positive, got {radius} and {constant}")
    line, length = Polynomial([2.0, radius]), Polynomial([constant**2, 0.0, 1.0])
    return _finite_supremum(weight, 4 * line * line * length, "the gradient of a plane that is free at the query")


def free_steepness(weight: Weight, constant: float) -> float:
    """sup α(d)√((d² + s²)(d² + 1)): half of how fast one record's gradient of a free plane changes with (φ, a)."""
    squared = Polynomial([constant**2, 0.0, 1.0]) * Polynomial([1.0, 0.0, 1.0])
    return _finite_supremum(weight, squared, "the gradient of a plane that is free at the query")


def free_quadratic(weight: Weight) -> float:
    """sup α(d)(d² + 1): the matrix of a plane that is free at the query, Σ α (u, 1)(u, 1)ᵀ."""
    return _finite_supremum(weight, Polynomial([1.0, 0.0, 1.0]) ** 2, "the moments of a plane that is free at the query")


def free_pull(weight: Weight, constant: float) -> float:
    """sup α(d)√(d² + s²)."""
    return _finite_supremum(weight, Polynomial([constant**2, 0.0, 1.0]), "the gradient of a plane that is free at the query")


def linear(weight: Weight) -> float:
    """sup α(d)d: the label moment b_z."""
    return _finite_supremum(weight, Polynomial([0.0, 0.0, 1.0]), "b")


def quadratic(weight: Weight) -> float:
    """sup α(d)d²: the matrix A_z in Frobenius norm."""
    return _finite_supremum(weight, Polynomial([0.0, 0.0, 0.0, 0.0, 1.0]), "A")


def raw_moments(weight: Weight) -> float:
    """sup w(d)√(2 + 2d² + d⁴): the five raw moments around an anchor."""
    return _finite_supremum(weight, Polynomial([2.0, 0.0, 2.0, 0.0, 1.0]), "the raw moments")


def centre_moments(layout: Layout) -> float:
    """√(Σ_a reach_a + numbers/16): each attribute as far from its public centre as it can be, and |2(v² - 1/8)| ≤ 1/4."""
    return nextafter(sqrt(float(layout.reach.sum()) + len(layout.numbers) / 16) * (1 + 2.0**-40), inf)


def normalised_moments() -> float:
    """1 by construction; the margin covers the rounding of a row's own length for up to a million columns."""
    return 1 + 2.0**-30


def normalised_terms(numbers: int) -> float:
    """Σ|terms| of one record for summation error: the squares of numbers are computed as a difference of two sums."""
    return 1 + sqrt(2 * sqrt(numbers / 32)) + 2.0**-20


def label_moments() -> float:
    """|y| ≤ 1 by construction, for one label as for the probabilities of any number of classes; the margin is that of `normalised_moments`."""
    return 1 + 2.0**-30


def histograms(attributes: int) -> float:
    """√A: a record adds 1 to one cell of each of A histograms."""
    return nextafter(sqrt(attributes), inf)


def pair_tables(attributes: int) -> float:
    """√(A(A-1)/2): a record adds 1 to one cell of each pair's table."""
    return nextafter(sqrt(attributes * (attributes - 1) / 2), inf)


def clipped(length: float) -> float:
    """The length that a record's own vector was cut to; the margin covers the rounding of that cut."""
    if not (is_finite(length) and length > 0):
        raise ParameterError(f"clip must be positive and finite, got {length}")
    return length * (1 + 2.0**-40)


@lru_cache(maxsize=1024)  # half a millisecond each, and every answer of a service asks for the same few
def _supremum(weight: Weight, coefficients: tuple[float, ...]) -> float:
    return weight.supremum(Polynomial(coefficients))


def _finite_supremum(weight: Weight, squared: Polynomial, what: str) -> float:
    try:
        value = _supremum(weight, tuple(squared.coef.tolist()))
    except TypeError:  # a custom weight whose function cannot be hashed
        value = weight.supremum(squared)
    if not isfinite(value):
        raise ParameterError(f"with the {weight.kind} weight one record can move {what} without bound: use Stable or Gaussian")
    return value
