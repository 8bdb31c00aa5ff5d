"""Gaussian differential privacy (GDP) and its exact translation to (ε, δ), both ways.

A release is μ-GDP when telling neighbours apart from it is no easier than telling N(0, 1) from N(μ, 1). The Gaussian
mechanism with sensitivity Δ and noise σ is exactly (Δ/σ)-GDP, and μ-GDP is exactly (ε, δ)-DP for every ε ≥ 0 with

    δ(ε) = Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2)                     (Dong, Roth & Su 2022, Cor. 2.13)

The two terms almost cancel when μ is small. With R(x) = Φ(-x)/φ(x), the Mills ratio, and x = ε/μ - μ/2, both sides share
the factor φ(x), because φ(x) = e^ε φ(x + μ), and the difference becomes an integral of a positive function:

    δ(ε) = φ(x) [R(x) - R(x + μ)] = φ(x) ∫₀^μ h(x + s) ds,       h(t) = -R'(t) = 1 - t R(t) > 0.

Results are rounded to the safe side by a relative 1e-11, a hundred times the numerical error: δ and ε up, μ down.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, expm1, inf, log, log1p, pi, sqrt

import numpy as np
import scipy

from dpexplain.arguments import is_finite, quote
from dpexplain.core.arrays import Vector
from dpexplain.errors import ParameterError

_SAFE = 1e-11
_MOST_EPSILON = 1e9  # beyond any use; larger values leave the range in which μ is searched
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(48)
_remembered = lru_cache(maxsize=4096)  # pure and milliseconds long; a service asks for the same few numbers with every answer
_LARGE = 6.0  # beyond this, 1 - tR(t) cancels and the continued fraction converges fast


def delta(mu: float, epsilon: float) -> float:
    """The smallest δ for which μ-GDP implies (ε, δ)-DP, rounded up."""
    _require_mu(mu)
    if not (is_finite(epsilon) and epsilon >= 0):
        raise ParameterError(f"epsilon must be finite and not negative, got {quote(epsilon)}")
    if mu == 0:
        return 0.0
    value = exp(_log_delta(mu, epsilon)) * (1 + _SAFE)
    return min(max(value, 5e-324), 1.0)


def part(mu: float, share: float) -> float:
    """μ√share, rounded down far enough that parts whose shares add up to 1 never cost more than `mu` together."""
    return mu * sqrt(share) * (1 - 2.0**-50)  # share, root and product are each off by at most 2⁻⁵³


def epsilon(mu: float, delta: float) -> float:
    """The smallest ε for which μ-GDP implies (ε, δ)-DP, rounded up; inf when none below 1e9 does."""
    _require_mu(mu)
    _require_delta(delta)
    return _epsilon(mu, delta)


@_remembered
def _epsilon(mu: float, delta: float) -> float:
    """`epsilon` of valid parameters."""
    target = log(delta) - _SAFE
    if mu == 0 or _log_delta(mu, 0.0) <= target:
        return 0.0
    high = mu * mu / 2 + mu * sqrt(2 * -target) + mu  # δ(ε) ≤ Φ(-(ε/μ - μ/2)) ≤ exp(-(ε/μ - μ/2)²/2)
    least = 4 * target  # far below the root: keeps an infinite logarithm out of the interpolation
    root = float(scipy.optimize.brentq(lambda e: max(_log_delta(mu, e), least) - target, 0.0, high, xtol=1e-300, rtol=1e-14))
    while _log_delta(mu, root) > target:  # verify the side of the root that was solved for
        root *= 1 + 1e-14
    return root * (1 + _SAFE)


def mu(epsilon: float, delta: float) -> float:
    """The largest μ for which μ-GDP implies (ε, δ)-DP, rounded down: what an (ε, δ) budget is worth."""
    if not (is_finite(epsilon) and epsilon > 0):
        raise ParameterError(f"epsilon must be positive and finite, got {quote(epsilon)}. Try 0.1 to 1 in total")
    if epsilon > _MOST_EPSILON:
        raise ParameterError(
            f"epsilon must be at most {_MOST_EPSILON:g}, got {quote(epsilon)}, which protects nobody. Try 0.1 to 1 in total"
        )
    _require_delta(delta)
    return _mu(epsilon, delta)


@_remembered
def _mu(epsilon: float, delta: float) -> float:
    """`mu` of valid parameters."""
    target = log(delta) - _SAFE
    log_mu = scipy.optimize.brentq(lambda v: _log_delta(exp(v), epsilon) - target, log(1e-30), log(1e8), xtol=1e-14)
    root = exp(float(log_mu)) * (1 - _SAFE)
    while _log_delta(root, epsilon) > target:  # verify the side of the root that was solved for
        root *= 1 - _SAFE
    return root


def mu_of_pure(epsilon: float) -> float:
    """The smallest μ such that every ε-DP mechanism is μ-GDP: -2 Φ⁻¹(1/(1+e^ε)), rounded up (≈ 1.2533 ε)."""
    if not (is_finite(epsilon) and epsilon > 0):
        raise ParameterError(f"epsilon must be positive and finite, got {quote(epsilon)}")
    # Φ(μ/2) - 1/2 = tanh(ε/2)/2, so μ/√8 = erfinv(tanh(ε/2)): no cancellation for small ε; for large ε use the tail.
    tail = -log1p(exp(epsilon)) if epsilon < 700 else -epsilon
    exact = (
        -2 * float(scipy.special.ndtri_exp(tail)) if epsilon > 1 else sqrt(8) * float(scipy.special.erfinv(np.tanh(epsilon / 2)))
    )
    return exact * (1 + _SAFE)


def _require_mu(mu: float) -> None:
    if not (is_finite(mu) and mu >= 0):
        raise ParameterError(f"mu must be finite and not negative, got {quote(mu)}")


def _require_delta(delta: float) -> None:
    if not (is_finite(delta) and 0 < delta < 1):
        raise ParameterError(
            f"delta must lie strictly between 0 and 1, got {quote(delta)}. Try 1e-6, below one over the row count"
        )


def _log_delta(mu: float, epsilon: float) -> float:
    """log δ(ε) of μ-GDP for μ > 0."""
    x = epsilon / mu - mu / 2
    if mu > 1:
        return _log_delta_direct(mu, epsilon)
    points = x + mu / 2 * (_NODES + 1)
    integral = float(mu / 2 * _NODE_WEIGHTS @ _mills_slope(points))
    if integral <= 0:  # h ≈ 1/t² underflowed: t > 1e154
        return -inf
    return -x * x / 2 - log(2 * pi) / 2 + log(integral)


def _log_delta_direct(mu: float, epsilon: float) -> float:
    """The textbook formula in logarithms; accurate for μ > 1, where the two terms differ by a fair factor."""
    first = float(scipy.special.log_ndtr(-epsilon / mu + mu / 2))
    second = epsilon + float(scipy.special.log_ndtr(-epsilon / mu - mu / 2))
    if second >= first:
        return -inf
    return first + log(-expm1(second - first))


def _mills_slope(t: Vector) -> Vector:
    """h(t) = 1 - t R(t), where R is the Mills ratio."""
    small = np.minimum(t, _LARGE)
    direct = np.asarray(1 - small * sqrt(pi / 2) * scipy.special.erfcx(small / sqrt(2)))
    if t.max() < _LARGE:
        return direct
    large = np.maximum(t, _LARGE)
    rest = np.zeros_like(t)  # R = 1/(t + K), K = 1/(t + 2/(t + 3/(t + …)))
    for k in range(80, 0, -1):
        rest = k / (large + rest)
    return np.asarray(np.where(t < _LARGE, direct, rest / (large + rest)))
