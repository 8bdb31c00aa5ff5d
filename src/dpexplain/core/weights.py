"""Weights α(d): how much a record at distance d from the point of interest counts, with exact constants.

Every sensitivity is a supremum sup_d α(d)·√P(d) for a polynomial P that is non-negative and non-decreasing on d ≥ 0
(`core/sensitivity.py` lists them). Each weight finds its supremum exactly: the candidates are the kinks of α, the limits at 0 and
∞, and the positive roots of a stationarity polynomial. See `proofs/weights.md`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from math import exp, inf, isfinite, sqrt
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.polynomial import Polynomial

from dpexplain.arguments import is_finite, quote
from dpexplain.core.arrays import Vector
from dpexplain.errors import ParameterError

_ROUND_UP = 1 + 1e-12
_LARGE = 1e12  # at d = 0 a record's gradient is 0 whatever its weight: a large finite number keeps 0·α = 0
_Profile: TypeAlias = tuple[float, float, float, float]


class Weight(ABC):
    """A non-negative weight function with exact suprema."""

    kind: ClassVar[str]
    profile: _Profile | None = None
    """(height, cap, width, reach) with α(d) = min(height, cap/(2d(1+d)))·exp(-(d/width)²) for d ≤ reach, else 0; at most one of cap and width is finite.
    None where Python alone can evaluate α."""

    @abstractmethod
    def __call__(self, distance: Vector) -> Vector:
        """α(d), elementwise."""

    @abstractmethod
    def supremum(self, squared: Polynomial) -> float:
        """sup over d ≥ 0 of α(d)·√P(d), rounded up; inf when there is no bound."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A public description, read back by `from_dict`."""

    @property
    @abstractmethod
    def peak(self) -> float:
        """Where α(d)d, or for a custom weight its cap, is largest: it rises before and falls after."""

    def largest_pull(self, low: Vector, high: Vector) -> Vector:
        """sup of α(d)d over low ≤ d ≤ high, elementwise."""
        distance = np.clip(self.peak, low, high)
        return np.asarray(self(distance) * distance)

    def largest_weight(self, low: Vector) -> Vector:
        """sup of α(d) over d ≥ low, elementwise: α does not rise."""
        return np.asarray(self(low))

    def flatten(self, distance: float) -> Weight:
        """A weight that is flat within `distance` and in proportion to this one beyond it, where one is known; else this weight."""
        del distance
        return self

    @property
    def c(self) -> float:
        """The family constant for the unit ball: the smallest c with 2α(d)d(d + 1) ≤ c for all d (SPEC §4)."""
        return self.supremum(gradient_norm_squared(1.0))


@lru_cache(maxsize=1024)
def gradient_norm_squared(radius: float, label: float = 1.0) -> Polynomial:
    """(2d(kd + l))²: the square of one record's largest gradient at distance d, without its weight, for labels |y| ≤ l."""
    return Polynomial([0.0, 2.0 * label, 2.0 * radius]) ** 2


def _cap(height: float, c: float, distance: Vector) -> Vector:
    """min(height, c/(2d(1+d)))."""
    doubled = np.asarray(1 + distance)
    doubled *= distance
    doubled *= 2
    with np.errstate(divide="ignore"):
        found = np.divide(c, doubled, out=doubled)
    return np.minimum(height, found, out=found)


def _knee(height: float, c: float) -> float:
    """Where c/(2d(1+d)) falls below `height`: (√(1 + 2c/height) - 1)/2, without cancellation."""
    return c / height / (sqrt(1 + 2 * c / height) + 1)


def _largest(squared: Polynomial, alpha: Callable[[float], float], candidates: Iterable[float]) -> float:
    return max((alpha(d) * sqrt(max(float(squared(d)), 0.0)) for d in candidates), default=0.0)


def _positive_roots(polynomial: Polynomial) -> list[float]:
    trimmed = polynomial.trim()
    if trimmed.degree() < 1:
        return []
    roots = np.asarray(trimmed.roots(), dtype=np.complex128)
    real = roots[(roots.real > 0) & (np.abs(roots.imag) < 1e-6 * (1 + np.abs(roots.real)))].real
    return [float(root) for root in real]


def _supremum_under_cap(squared: Polynomial, height: float, c: float) -> float:
    """sup of min(height, c/(2d(1+d)))·√P: flat up to the knee, then the tail."""
    knee = _knee(height, c) if isfinite(height) else 0.0
    tail = Polynomial([0.0, 2.0, 2.0])  # 2d(1+d)
    stationary = squared.deriv() * tail - 2 * squared * tail.deriv()
    inside = [d for d in _positive_roots(stationary) if d > knee]
    peak = _largest(squared, lambda d: c / (2 * d * (1 + d)), [*inside, knee] if knee else inside)
    return max(peak, c * _limit_of_ratio(squared, tail, knee)) * _ROUND_UP


def _limit_of_ratio(squared: Polynomial, tail: Polynomial, knee: float) -> float:
    """The larger limit of √P/(2d(1+d)): at infinity, and at zero when there is no plateau."""
    p, q = squared.trim(), (tail * tail).trim()
    at_infinity = inf if p.degree() > q.degree() else sqrt(p.coef[-1] / q.coef[-1]) if p.degree() == q.degree() else 0.0
    if knee:
        return at_infinity
    lowest = next(i for i, v in enumerate(p.coef) if v)
    at_zero = inf if lowest < 2 else sqrt(p.coef[2]) / 2 if lowest == 2 else 0.0
    return max(at_infinity, at_zero)


def _require_positive(name: str, value: float) -> None:
    if not (is_finite(value) and value > 0):
        raise ParameterError(f"a weight's {name} must be positive and finite, got {quote(value)}")


@dataclass(frozen=True, slots=True)
class Stable(Weight):
    """The paper's stable weight (eq. alpha): 1 up to r = (√(2c+1)-1)/2, then c/(2d(1+d))."""

    kind: ClassVar[str] = "stable"
    constant: float = 1.0
    profile: _Profile = field(init=False, repr=False, compare=False)

    def __init__(self, c: float = 1.0) -> None:
        _require_positive("c", c)
        object.__setattr__(self, "constant", float(c))
        object.__setattr__(self, "profile", (1.0, float(c), inf, inf))

    def __call__(self, distance: Vector) -> Vector:
        return _cap(1.0, self.constant, distance)

    def supremum(self, squared: Polynomial) -> float:
        return _supremum_under_cap(squared, 1.0, self.constant)

    @property
    def peak(self) -> float:
        return _knee(1.0, self.constant)

    def flatten(self, distance: float) -> Weight:
        """The stable weight whose flat part ends there: c = 2d(1 + d). Beyond it, both are in proportion to 1/(d(1 + d))."""
        return Stable(2 * distance * (1 + distance)) if distance > self.peak else self

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "c": self.constant}


DEFAULT_WEIGHT = Stable()


@dataclass(frozen=True, slots=True)
class Inverse(Weight):
    """c/(2d(1+d)): the largest member of the family. It has no bound at d = 0, so moments cannot be released with it."""

    kind: ClassVar[str] = "inverse"
    constant: float = 1.0
    profile: _Profile = field(init=False, repr=False, compare=False)

    def __init__(self, c: float = 1.0) -> None:
        _require_positive("c", c)
        object.__setattr__(self, "constant", float(c))
        object.__setattr__(self, "profile", (_LARGE, float(c), inf, inf))

    def __call__(self, distance: Vector) -> Vector:
        return _cap(_LARGE, self.constant, distance)

    def supremum(self, squared: Polynomial) -> float:
        return _supremum_under_cap(squared, inf, self.constant)

    @property
    def peak(self) -> float:
        return _knee(_LARGE, self.constant)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "c": self.constant}


@dataclass(frozen=True, slots=True)
class Gaussian(Weight):
    """exp(-d²/w²). For w = 1 the constant is 1.52707, not 1 as in the paper (SPEC §9.2)."""

    kind: ClassVar[str] = "gaussian"
    width: float = 1.0
    profile: _Profile = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _require_positive("width", self.width)
        object.__setattr__(self, "profile", (1.0, inf, self.width, inf))

    def __call__(self, distance: Vector) -> Vector:
        found = np.asarray(distance / self.width)
        np.square(found, out=found)
        np.negative(found, out=found)
        return np.exp(found, out=found)

    def supremum(self, squared: Polynomial) -> float:
        # d/dd of exp(-2d²/w²)·P(d) vanishes where P' = (4d/w²)·P.
        stationary = squared.deriv() - Polynomial([0.0, 4.0 / self.width**2]) * squared
        peak = _largest(squared, lambda d: exp(-((d / self.width) ** 2)), [0.0, *_positive_roots(stationary)])
        return peak * _ROUND_UP

    @property
    def peak(self) -> float:
        return self.width / sqrt(2)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "width": self.width}


@dataclass(frozen=True, slots=True)
class Window(Weight):
    """1 within `radius`, 0 beyond: LIME's original neighbourhood."""

    kind: ClassVar[str] = "window"
    radius: float = 1.0
    profile: _Profile = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _require_positive("radius", self.radius)
        object.__setattr__(self, "profile", (1.0, inf, inf, self.radius))

    def __call__(self, distance: Vector) -> Vector:
        return (distance <= self.radius).astype(np.float64)

    def supremum(self, squared: Polynomial) -> float:
        return sqrt(float(squared(self.radius))) * _ROUND_UP

    @property
    def peak(self) -> float:
        return self.radius

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "radius": self.radius}


@dataclass(frozen=True, slots=True)
class Custom(Weight):
    """Your own α, capped into the family: min(α(d), maximum, c/(2d(1+d))). Its constant is at most c by construction."""

    kind: ClassVar[str] = "custom"
    function: Callable[[Vector], Vector]
    constant: float = 1.0
    maximum: float = 1.0

    def __init__(self, function: Callable[[Vector], Vector], c: float = 1.0, maximum: float = 1.0) -> None:
        _require_positive("c", c)
        _require_positive("maximum", maximum)
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "constant", float(c))
        object.__setattr__(self, "maximum", float(maximum))

    def __call__(self, distance: Vector) -> Vector:
        raw = np.asarray(self.function(distance), dtype=np.float64)
        if raw.shape != distance.shape:
            raise ParameterError("a custom weight must return one number for each distance. Write it with NumPy functions")
        wanted = np.clip(np.nan_to_num(raw, nan=0.0, posinf=self.maximum), 0.0, None)
        return np.minimum(wanted, _cap(self.maximum, self.constant, distance))

    def supremum(self, squared: Polynomial) -> float:
        return _supremum_under_cap(squared, self.maximum, self.constant)

    @property
    def peak(self) -> float:
        return _knee(self.maximum, self.constant)

    def largest_pull(self, low: Vector, high: Vector) -> Vector:
        distance = np.clip(self.peak, low, high)
        return np.asarray(_cap(self.maximum, self.constant, distance) * distance)

    def largest_weight(self, low: Vector) -> Vector:
        return np.asarray(_cap(self.maximum, self.constant, low))

    def to_dict(self) -> dict[str, Any]:
        raise ParameterError("a custom weight is code and cannot be stored. Use a built-in weight for releases and ledgers")


@dataclass(frozen=True, slots=True)
class Nearest(Weight):
    """A Gaussian weight whose width is chosen for each question, so that about `rows` effective rows count: (Σα)²/Σα².

    The width is chosen from released records alone, which is post-processing (`proofs/nearest.md`). It has no bound of its own, because its width is
    not known beforehand: answers that are paid for one by one need a public width.
    """

    kind: ClassVar[str] = "nearest"
    rows: float = 2000

    def __post_init__(self) -> None:
        if not (is_finite(self.rows) and self.rows >= 1):
            raise ParameterError(f"a number of nearest rows must be at least 1 and finite, got {quote(self.rows)}")

    def __call__(self, distance: Vector) -> Vector:
        raise ParameterError(_NO_WIDTH)

    def supremum(self, squared: Polynomial) -> float:
        raise ParameterError(_NO_WIDTH)

    @property
    def peak(self) -> float:
        raise ParameterError(_NO_WIDTH)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "rows": self.rows}


_NO_WIDTH = (
    "Nearest chooses its width for each question from a release, and answers that are paid for one by one need a public width. Ask "
    "release.explain(record, weight=dpx.weights.Nearest(2000)), or pass a width, such as dpx.weights.Gaussian(0.8). The answer of a release "
    "states its width in .details['width']"
)
_KINDS: dict[str, Callable[..., Weight]] = {
    "stable": Stable,
    "inverse": Inverse,
    "gaussian": Gaussian,
    "window": Window,
    "nearest": Nearest,
}


def from_dict(value: dict[str, Any]) -> Weight:
    """Read a built-in weight back from its description."""
    fields = dict(value)
    kind = fields.pop("kind", None)
    if kind not in _KINDS:
        raise ParameterError(f"the weight kind {quote(kind)} is unknown. Use one of {sorted(_KINDS)}")
    return _KINDS[kind](**fields)


def from_text(text: str) -> Weight:
    """A built-in weight as it is written on a command line: its kind, and after a colon its parameter: "stable", "gaussian:0.8", "window:1"."""
    kind, _, parameter = text.partition(":")
    try:
        return _KINDS[kind.strip().lower()](*([float(parameter)] if parameter else []))
    except (KeyError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        kinds = ", ".join(sorted(_KINDS))
        raise ParameterError(
            f"the weight {quote(text)} cannot be read. Write one of {kinds}, and a number after a colon, such as gaussian:0.8"
        ) from None
