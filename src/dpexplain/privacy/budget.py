"""Privacy budgets and guarantees: immutable values that print as plain sentences."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import exp, floor
from typing import Any

from dpexplain.arguments import is_number, quote
from dpexplain.errors import ParameterError, WeakBudget
from dpexplain.privacy import gdp
from dpexplain.privacy.events import QUANTUM_BITS, mu_of
from dpexplain.privacy.relation import Neighbours

_WEAK = 10.0  # ε from which a budget guarantees little


@dataclass(frozen=True, slots=True)
class Budget:
    """The largest total privacy loss of one unit: (ε, δ), equivalent to exactly `mu` of Gaussian differential privacy."""

    epsilon: float
    delta: float
    mu: float = field(init=False, repr=False, compare=False)
    quanta: int = field(init=False, repr=False, compare=False)  # the whole budget in quanta of μ², rounded down

    def __post_init__(self) -> None:
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            if not is_number(value):
                raise ParameterError(f"{name} must be a number, got {quote(value)}. Write Budget(epsilon=1.0, delta=1e-6)")
        mu = gdp.mu(self.epsilon, self.delta)  # raises ParameterError, with the remedy, for invalid values
        object.__setattr__(self, "mu", mu)
        object.__setattr__(self, "quanta", floor(Fraction(mu) ** 2 * (1 << QUANTUM_BITS)))


SEEDED_NOISE = "Its noise came from a seed: it is for tests and experiments, not for publication."
PAPER_NOISE = "Noise by the paper's formulas is part of it (calibration='paper', for reproduction); the cost stated is exact."
_UNPAID_READS = "a mechanism for offline reproduction was used on these data, which reads them without paying."
# What guarantees have to mention beside the price, as ledgers store it.
USED_SEED, USED_MODEL_ANSWERS, USED_UNPAID, USED_PAPER_NOISE = (
    "seeded noise",
    "model answers",
    "unpaid reads",
    "the paper's noise",
)
_NOTES = {USED_SEED: SEEDED_NOISE, USED_PAPER_NOISE: PAPER_NOISE}


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A differential privacy statement: μ-GDP for `neighbours`, stated as (ε, δ) at a chosen δ.

    `private` is False for the paper's own calibration with its exact, unpaid β: such a number bounds nothing, and the printed sentence states it.
    """

    mu: float
    delta: float
    neighbours: Neighbours
    subject: str = "Everything released so far"
    private: bool = True
    note: str = ""
    model_answers: bool = False  # whether the model's own answers at public points were published: matters for its training data

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise ParameterError(f"delta must lie strictly between 0 and 1, got {quote(self.delta)}")

    @classmethod
    def of_quanta(cls, quanta: int, delta: float, neighbours: Neighbours, **stated: Any) -> Guarantee:
        """The guarantee that so many quanta of μ² imply."""
        return cls(mu_of(quanta), delta, neighbours, **stated)

    def qualify(self, uses: Collection[str]) -> Guarantee:
        """The guarantee with what was used beside the price: answers of the model, and in a note noise from a seed or by the paper's formulas,
        or reads that no accounting covers."""
        published = self.model_answers or USED_MODEL_ANSWERS in uses
        if USED_UNPAID in uses:
            return replace(self, private=False, note=_UNPAID_READS, model_answers=published)
        notes = [note for use, note in _NOTES.items() if use in uses]
        return replace(self, note=" ".join(notes) or self.note, model_answers=published)

    @property
    def epsilon(self) -> float:
        return gdp.epsilon(self.mu, self.delta)

    @property
    def relation(self) -> str:
        return self.neighbours.relation.value

    @property
    def unit(self) -> str | None:
        return self.neighbours.unit

    def __str__(self) -> str:
        if not self.private:
            return f"{self.subject} is NOT differentially private: {self.note}"
        claim = f"satisfies (ε={round_up(self.epsilon)}, δ={self.delta:g})-differential privacy"
        sentence = f"{self.subject} {claim} for {self.neighbours.describe()}"
        return f"{sentence}. {self.note}" if self.note else f"{sentence}."

    @classmethod
    def from_dict(cls, value: dict[str, Any], subject: str = "Everything released so far") -> Guarantee:
        """Read back what `to_dict` wrote."""
        neighbours = Neighbours.from_dict(value)
        return cls(
            value["mu"],
            value["delta"],
            neighbours,
            subject,
            private=value["private"],
            note=value["note"],
            model_answers=value.get("model_answers", False),
        )

    def to_dict(self) -> dict[str, Any]:
        return dict(_describe(self))


@lru_cache(maxsize=1024)
def _describe(guarantee: Guarantee) -> dict[str, Any]:
    """`Guarantee.to_dict`, computed once for the guarantee that all answers of a release share."""
    return {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "mu": guarantee.mu,
        **guarantee.neighbours.to_dict(),
        "private": guarantee.private,
        "note": guarantee.note,
        **({"model_answers": True} if guarantee.model_answers else {}),
        "statement": str(guarantee),
    }


def warn_if_weak(budget: Budget, size: int) -> None:
    """Warn with WeakBudget where (ε, δ) guarantees little to the people in `size` rows, whatever is released."""
    if budget.epsilon > _WEAK:
        warnings.warn(
            f"ε={budget.epsilon:g} lets any outcome become {round_up(exp(min(budget.epsilon, 700.0)))} times as likely with one person's data: "
            "budgets from 0.1 to 1 are usual, and above 10 little is promised",
            WeakBudget,
            stacklevel=4,
        )
    if budget.delta > 1 / size:
        warnings.warn(
            f"δ={budget.delta:g} is more than one in {size:,}, the number of rows: a guarantee with such a δ allows publishing somebody's row. "
            f"Choose δ well below {round_down(1 / size, 1)}",
            WeakBudget,
            stacklevel=4,
        )


def round_up(value: float, digits: int = 3) -> str:
    """A number as text, rounded up."""
    return _round(value, digits, ROUND_CEILING)


def round_down(value: float, digits: int = 3) -> str:
    """A number as text, rounded down."""
    return _round(value, digits, ROUND_FLOOR)


def _round(value: float, digits: int, rounding: str) -> str:
    shown = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    plain = "f" if 10 <= shown < 1_000_000 else "g"  # 20, not 2e+1
    return f"{shown.normalize():{plain}}" if value else "0"
