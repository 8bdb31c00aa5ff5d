"""Privacy events: what was released, with which sensitivity and noise. The meaning of a stored event never changes.

Costs are counted in whole quanta of μ² = 2⁻¹²⁸. Each event is converted exactly (rational arithmetic) and rounded up once, so
adding a million tiny costs is integer addition and never gives less than the true sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, isfinite, nextafter, sqrt
from typing import Any, ClassVar, Protocol

from dpexplain.errors import IntegrityError, ParameterError
from dpexplain.privacy import gdp

QUANTUM_BITS = 128


def quanta_up(mu_squared: Fraction) -> int:
    """The smallest whole number of quanta that is at least μ²."""
    return ceil(mu_squared * (1 << QUANTUM_BITS))


def mu_of(quanta: int) -> float:
    """The μ of so many quanta, rounded up."""
    return nextafter(sqrt(quanta / (1 << QUANTUM_BITS)), float("inf")) if quanta else 0.0


@lru_cache(maxsize=4096)  # exact and slow; the answers of one service have the same few prices
def _gaussian_quanta(sensitivity: float, sigma: float, count: int) -> int:
    return quanta_up(count * (Fraction(sensitivity) / Fraction(sigma)) ** 2)


class PrivacyEvent(Protocol):
    """One access to private rows and its exact price."""

    kind: ClassVar[str]

    @property
    def what(self) -> str:
        """What was released, in a word or two."""
        ...

    @property
    def quanta(self) -> int:
        """The price in quanta of μ², rounded up."""
        ...

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """`count` releases of statistics with L2 sensitivity Δ, each with noise N(0, σ²I): μ² = count · (Δ/σ)²."""

    kind: ClassVar[str] = "gaussian"
    what: str
    sensitivity: float
    sigma: float
    count: int = 1

    def __post_init__(self) -> None:
        for name, value in (("sensitivity", self.sensitivity), ("sigma", self.sigma)):
            if not (isfinite(value) and value > 0):
                raise ParameterError(
                    f"{name} must be positive and finite, got {value}. Add noise: a release without noise has no finite price"
                )
        if self.count < 0:
            raise ParameterError(f"count must not be negative, got {self.count}")

    @property
    def quanta(self) -> int:
        return _gaussian_quanta(self.sensitivity, self.sigma, self.count)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "what": self.what,
            "sensitivity": self.sensitivity,
            "sigma": self.sigma,
            "count": self.count,
        }


@dataclass(frozen=True, slots=True)
class PureEvent:
    """An ε-DP selection (exponential mechanism), charged as the μ-GDP that implies it (SPEC §5)."""

    kind: ClassVar[str] = "pure"
    what: str
    epsilon: float

    def __post_init__(self) -> None:
        if not (isfinite(self.epsilon) and self.epsilon > 0):
            raise ParameterError(f"epsilon must be positive and finite, got {self.epsilon}")

    @property
    def quanta(self) -> int:
        return quanta_up(Fraction(gdp.mu_of_pure(self.epsilon)) ** 2)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "what": self.what, "epsilon": self.epsilon}


KNOWN_EVENTS: dict[str, type[GaussianEvent] | type[PureEvent]] = {"gaussian": GaussianEvent, "pure": PureEvent}


def event_from_dict(value: dict[str, Any]) -> PrivacyEvent:
    """Read an event back; an unknown kind is refused, because its price is unknown."""
    fields = dict(value)
    kind = fields.pop("kind", None)
    if kind not in KNOWN_EVENTS:
        raise IntegrityError(
            f"the kind of privacy event {kind!r} is unknown: another version of dpexplain wrote it. Upgrade dpexplain"
        )
    return KNOWN_EVENTS[kind](**fields)


def price(events: tuple[PrivacyEvent, ...]) -> int:
    """What these events cost together, in quanta: GDP composes by adding μ², also adaptively (SPEC §5)."""
    for event in events:
        if type(event) not in KNOWN_EVENTS.values():
            raise ParameterError(f"the price of a {type(event).__name__} is unknown. Use one of the kinds {sorted(KNOWN_EVENTS)}")
    return sum(event.quanta for event in events)
