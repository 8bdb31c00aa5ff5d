"""Expected quality of answers before anything is spent, from public numbers alone. It is a rule of thumb.

Everything follows from one ratio: the reach B = k·m̄·μ / (Δ·√n), the ball's radius over the norm of the noise that the whole budget of an
answer would put on one gradient (`core/descent.py` chooses its steps from the same number). For Basic the relative excess loss is then about
1/(1 + (B/40)²) and the cosine to the exact optimum about B/√(B² + 60²): the cosine of a vector with an error at right angles to it. A
release spends everything at once on moments that all answers share, so the same curves hold with 17 and 25, down to an excess of 0.001 that
its synthetic reference keeps whatever is spent (0.0007 to 0.003 in our data).

The four constants are fitted to made-up census records (2,000 to 200,000 rows, 20 columns, ε from 0.01 to 3) and agree with all that was
measured on ACS Income and Adult (README) within a factor of 2.5 in excess and 0.05 in cosine. Strongly correlated columns, or labels that
no linear function follows, do worse; where noise is hopeless (B below 5) a release can be worse than no explanation, which the rule caps at 1.
`tests/unit/test_expected_quality.py` holds these claims to the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt

from dpexplain.core import sensitivity
from dpexplain.core.weights import Stable
from dpexplain.errors import ParameterError
from dpexplain.privacy.budget import Budget

EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_BASIC, _RELEASE = (40.0, 60.0), (17.0, 25.0)
_FLOOR = 0.001


@dataclass(frozen=True, slots=True)
class ExpectedQuality:
    """Quality to expect of one answer: `relative_excess` is 0 for the exact optimum and 1 for no explanation at all."""

    relative_excess: float
    cosine: float

    @property
    def verdict(self) -> str:
        grades = ((0.98, "near exact"), (0.9, "good"), (0.7, "fair"), (0.4, "rough"))
        return next((words for least, words in grades if self.cosine >= least), "mostly noise")


@dataclass(frozen=True, slots=True)
class Offer:
    """What one price a query buys: how many answers the budget affords, and how good they are."""

    epsilon: float
    queries: int
    expected: ExpectedQuality


def reach(rows: int, features: int, budget: Budget, multiplier: int = 1) -> float:
    """B, for the default weight and radius; `multiplier` is how many records' worth neighbours differ by."""
    for what, value in (("rows", rows), ("features", features), ("rows per unit", multiplier)):
        if value < 1:
            raise ParameterError(f"{what} must be at least 1, got {value}")
    return rows * budget.mu / (multiplier * sensitivity.gradient(Stable(), 1.0) * sqrt(features))


def basic(reached: float) -> ExpectedQuality:
    excess, turn = _BASIC
    return ExpectedQuality(1 / (1 + (reached / excess) ** 2), reached / hypot(reached, turn))


def release(reached: float) -> ExpectedQuality:
    excess, turn = _RELEASE
    return ExpectedQuality(min(_FLOOR + 1 / (1 + (reached / excess) ** 2), 1.0), (1 - _FLOOR) * reached / hypot(reached, turn))


def offers(rows: int, features: int, budget: Budget, multiplier: int = 1) -> list[Offer]:
    """One for each usual ε a query that the budget can pay at all."""
    found = []
    for epsilon in EPSILONS:
        one = Budget(epsilon, budget.delta)
        if queries := budget.quanta // one.quanta:
            found.append(Offer(epsilon, queries, basic(reach(rows, features, one, multiplier))))
    return found
