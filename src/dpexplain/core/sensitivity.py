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

Where the domain bounds how far a record can be from the query, suprema are over 0 ≤ d ≤ `within` (`proofs/scale.md`).
All are for one record added or removed and for *sums*; `Neighbours.multiplier` and 1/m̄ come on top.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, isfinite, nextafter, sqrt

import numpy as np
from numpy.polynomial import Polynomial

from dpexplain.arguments import is_finite
from dpexplain.core.layout import Layout
from dpexplain.core.weights import Weight, gradient_norm_squared
from dpexplain.errors import ParameterError

_CELLS, _RATIO = 4000, 1.002  # of distances up to a domain's diameter
_QUADRATIC = Polynomial([0.0, 0.0, 0.0, 0.0, 1.0])
_FREE = "the gradient of a plane that is free at the query"


def gradient(weight: Weight, radius: float, label: float = 1.0, within: float = inf) -> float:
    """sup 2α(d)d(kd + l): the gradient anywhere in the 2-ball of radius k (a 1-ball lies inside it), for labels |y| ≤ l."""
    if not (is_finite(radius) and radius >= 0):
        raise ParameterError(f"radius must be finite and not negative, got {radius}")
    return _finite_supremum(weight, gradient_norm_squared(radius, label), "the gradient", within)


def free_gradient(weight: Weight, radius: float, constant: float, within: float = inf) -> float:
    """sup 2α(d)√(d² + s²)(kd + 2): the gradient (∇_φ, s∇_a) of a plane a + φ·u with ‖φ‖₂ ≤ k and |a| ≤ 1. `proofs/free_plane.md`."""
    if not (isfinite(radius) and radius >= 0 and isfinite(constant) and constant > 0):
        raise ParameterError(f"radius must be finite and not negative, and constant positive, got {radius} and {constant}")
    return _finite_supremum(weight, _free_gradient_squared(radius, constant), _FREE, within)


@lru_cache(maxsize=1024)  # as those below: products of polynomials take longer than looking up their supremum
def _free_gradient_squared(radius: float, constant: float) -> Polynomial:
    line = Polynomial([2.0, radius])
    return 4 * line * line * _plus_square(constant)


@lru_cache(maxsize=1024)
def _plus_square(constant: float) -> Polynomial:
    """d² + s²."""
    return Polynomial([constant**2, 0.0, 1.0])


@lru_cache(maxsize=1024)
def _product(constant: float, unit: float) -> Polynomial:
    """(d² + s²)(d² + t²)."""
    return _plus_square(constant) * _plus_square(unit)


def free_steepness(weight: Weight, constant: float, unit: float, within: float) -> float:
    """sup α(d)√((d² + s²)(d² + t²)): half of how fast one record's gradient of a free plane changes with (φ, a/t)."""
    return _finite_supremum(weight, _product(constant, unit), _FREE, within)


def free_quadratic(weight: Weight, unit: float, within: float) -> float:
    """sup α(d)(d² + t²): the matrix of a plane that is free at the query and has a/t for its last coordinate, Σ α (u, t)(u, t)ᵀ."""
    return _finite_supremum(weight, _product(unit, unit), _FREE, within)


def free_pull(weight: Weight, constant: float, within: float = inf) -> float:
    """sup α(d)√(d² + s²)."""
    return _finite_supremum(weight, _plus_square(constant), _FREE, within)


def linear(weight: Weight) -> float:
    """sup α(d)d: the label moment b_z."""
    return _finite_supremum(weight, Polynomial([0.0, 0.0, 1.0]), "b")


def quadratic(weight: Weight, within: float = inf) -> float:
    """sup α(d)d²: the matrix A_z in Frobenius norm."""
    return _finite_supremum(weight, _QUADRATIC, "A", within)


def raw_moments(weight: Weight) -> float:
    """sup w(d)√(2 + 2d² + d⁴): the five raw moments around an anchor."""
    return _finite_supremum(weight, Polynomial([2.0, 0.0, 2.0, 0.0, 1.0]), "the raw moments")


def centre_moments(layout: Layout) -> float:
    """√(Σ_a reach_a + numbers/16): each attribute as far from its public centre as it can be, and |2(v² - 1/8)| ≤ 1/4."""
    return nextafter(sqrt(float(layout.reach.sum()) + len(layout.numbers) / 16) * (1 + 2.0**-40), inf)


def normalised_moments() -> float:
    """1 by construction; the margin covers the rounding of a row's own length for up to a million columns."""
    return 1 + 2.0**-30


def normalised_terms(numbers: int, absent: float) -> float:
    """Σ|terms| of one record for summation error: the squares of numbers and missing values are computed as differences of sums.

    `absent` is g₅ times the number of codes of several columns.
    """
    return 1 + sqrt(2 * sqrt(numbers / 32)) + 3 * sqrt(absent / 2) + 2.0**-20


def label_moments() -> float:
    """|y| ≤ 1 by construction, for one label as for the probabilities of any number of classes; the margin is that of `normalised_moments`."""
    return 1 + 2.0**-30


def histograms(attributes: int) -> float:
    """√A: a record adds 1 to one cell of each of A histograms."""
    return nextafter(sqrt(attributes), inf)


def pair_tables(attributes: int) -> float:
    """√(A(A-1)/2): a record adds 1 to one cell of each pair's table."""
    return nextafter(sqrt(attributes * (attributes - 1) / 2), inf)


def label_tables(attributes: int) -> float:
    """The same: a record adds its label, at most 1 in size, to one cell of each pair's table."""
    return pair_tables(attributes)


def label_distances() -> float:
    """A record adds 1 to one bin."""
    return 1.0


def clipping_bound(length: float) -> float:
    """The length that a record's own vector was cut to; the margin covers the rounding of that cut."""
    if not (is_finite(length) and length > 0):
        raise ParameterError(f"clip must be positive and finite, got {length}")
    return length * (1 + 2.0**-40)


@lru_cache(maxsize=1024)  # half a millisecond each, and every answer of a service asks for the same few
def _supremum(weight: Weight, coefficients: tuple[float, ...], within: float) -> float:
    return _supremum_within(weight, Polynomial(coefficients), within)


def _supremum_within(weight: Weight, squared: Polynomial, within: float) -> float:
    """The exact supremum over all d ≥ 0, or what cells of [0, within] bound if that is less: α does not rise, and P does not fall."""
    anywhere = weight.supremum(squared)
    if within == inf or not isfinite(anywhere):
        return anywhere
    edges = within * _RATIO ** -np.arange(_CELLS + 1.0)
    low = np.append(edges[1:], 0.0)
    inside = weight.largest_weight(low) * np.sqrt(np.maximum(squared(edges), 0.0))
    return min(anywhere, float(inside.max()) * (1 + 1e-12))


def _finite_supremum(weight: Weight, squared: Polynomial, what: str, within: float = inf) -> float:
    try:
        value = _supremum(weight, tuple(squared.coef.tolist()), within)
    except TypeError:  # a custom weight whose function cannot be hashed
        value = _supremum_within(weight, squared, within)
    if not isfinite(value):
        raise ParameterError(f"with the {weight.kind} weight one record can move {what} without bound. Use Stable or Gaussian")
    return value
