"""Expected quality of answers before anything is spent, from public numbers alone: a rule of thumb with an interval.

Everything follows from one ratio: the reach B = k·m̄·μ / (Δ·√n), the ball's radius over the norm of the noise that the whole budget of an
answer would put on one gradient (`mechanisms/descent.py` chooses its steps from the same number). For the fitted plane, relative excess and the
tangent of the angle to the exact optimum fall as powers of B, and three facts shift them where they are public: whether the model is
registered (a release asks it at public points; labels alone do worse), whether positive answers are rare, and whether answers are hard. A fact
that is not given widens the interval by what it could change.

The constants are fitted to 32 made-up tables (3,100 to 54,100 rows, 11 to 65 columns, linear models and forests, 5 to 50 % positives, five ε
from 0.03 to 3, five questions each; `experiments/plan_calibration.py`), the interval being 90 % of how far each table lay from the curve of
the others. On 16 tables that chose nothing it held

- with no fact given: for releases 98 % of excesses and 90 % of cosines, for Basic 90 % and 94 %; 15, 13, 15 and 14 of the 16 tables had at
  least four of their five ε inside;
- with all facts given: 94 % and 84 %, 81 % and 90 %; 15, 12, 12 and 14 of the 16. These narrower intervals promise somewhat too much.

Of real tables, Adult (48,842 x 49) lies inside. ACS (1.4 million rows, far from what was measured) misses by up to a factor of 2: a release
with all facts given is worse than the interval (excess 0.0028, at most 0.0016 expected), Basic is better than it. The paper's plane has the older
rule: excess 1/(1 + (B/40)²) and cosine B/√(B² + 60²) for Basic, 17 and 25 for a release with a floor of 0.001; fitted to one family of made-up
census records, within a factor of 2.5 on ACS and Adult, wrong by a factor of 140 on a table of 152 columns, so it has no interval.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import exp, hypot, log, sqrt

from dpexplain.core import sensitivity
from dpexplain.core.plane import Plane, require_plane
from dpexplain.core.weights import Stable
from dpexplain.errors import ParameterError
from dpexplain.privacy.budget import Budget

EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
RARE, COMMON = 0.1, 0.2  # shares of positive answers; between them the rule does not know
LEAST_REACH, MEASURED_ROWS, MEASURED_COLUMNS = 5.5, (3_100, 54_100), (11, 65)
_PAPER_BASIC, _PAPER_RELEASE, _PAPER_FLOOR = (40.0, 60.0), (17.0, 25.0), 0.001

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Facts:
    """What may be public about the answers; None where it is not known."""

    model: bool | None = None
    rare: bool | None = None
    hard: bool | None = None


@dataclass(frozen=True, slots=True)
class ExpectedQuality:
    """Quality to expect of one answer: `relative_excess` is 0 for the exact optimum and 1 for the best constant (the paper's plane: for 0).

    The intervals held 5 to 95 % of what was measured; None where there is no such measurement.
    """

    relative_excess: float
    cosine: float
    excess_interval: Interval | None = None
    cosine_interval: Interval | None = None

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


@dataclass(frozen=True, slots=True)
class Curve:
    """log y = constant - power·log B ± effect / 2 for each fact; `low` and `high` bound what was left over."""

    constant: float
    power: float
    effects: dict[str, float]
    low: float
    high: float

    def at(self, reached: float, facts: Facts) -> tuple[float, float, float]:
        """The middle and both ends."""
        middle, unknown = self.constant - self.power * log(reached), 0.0
        for name, effect in self.effects.items():
            fact = getattr(facts, name)
            if fact is None:
                unknown += abs(effect) / 2
            else:
                middle += effect / 2 if fact else -effect / 2
        return exp(middle), exp(middle + self.low - unknown), exp(middle + self.high + unknown)


_RELEASE = (
    Curve(2.15, 1.03, {"model": -1.59, "rare": 1.28, "hard": 0.1}, -1.85, 1.56),
    Curve(2.61, 0.66, {"model": -1.33, "rare": 0.78, "hard": 0.14}, -1.35, 1.33),
)
_BASIC = (
    Curve(2.33, 0.62, {"rare": 1.13, "hard": -0.14}, -1.2, 1.06),
    Curve(3.85, 0.64, {"rare": 1.2, "hard": -0.35}, -1.11, 1.13),
)  # relative excess, then the tangent of the angle: printed by experiments/plan_calibration.py


def reach(rows: int, features: int, budget: Budget, multiplier: int = 1) -> float:
    """B, for the default weight and radius; `multiplier` is how many records' worth neighbours differ by."""
    for what, value in (("rows", rows), ("features", features), ("rows per unit", multiplier)):
        if value < 1:
            raise ParameterError(f"{what} must be at least 1, got {value}")
    return reach_of(rows, features, budget.mu, multiplier)


def reach_of(rows: int, features: int, mu: float, multiplier: int = 1) -> float:
    """B of an answer that costs `mu`."""
    return rows * mu / (multiplier * sensitivity.gradient(Stable(), 1.0) * sqrt(features))


def basic(reached: float, facts: Facts | None = None, *, plane: Plane = "fitted") -> ExpectedQuality:
    """Of one answer of `Basic`."""
    if _fitted(plane):
        return _expected(_BASIC, reached, facts or Facts())
    excess, turn = _PAPER_BASIC
    return ExpectedQuality(1 / (1 + (reached / excess) ** 2), reached / hypot(reached, turn))


def release(reached: float, facts: Facts | None = None, *, plane: Plane = "fitted") -> ExpectedQuality:
    """Of each answer of a release without reference records."""
    if _fitted(plane):
        return _expected(_RELEASE, reached, facts or Facts())
    excess, turn = _PAPER_RELEASE
    best = 1 - _PAPER_FLOOR
    return ExpectedQuality(min(_PAPER_FLOOR + 1 / (1 + (reached / excess) ** 2), 1.0), best * reached / hypot(reached, turn))


def offers(
    rows: int, features: int, budget: Budget, multiplier: int = 1, facts: Facts | None = None, *, plane: Plane = "fitted"
) -> list[Offer]:
    """One for each usual ε a query that the budget can pay at all."""
    found = []
    for epsilon in EPSILONS:
        one = Budget(epsilon, budget.delta)
        if queries := budget.quanta // one.quanta:
            found.append(Offer(epsilon, queries, basic(reach(rows, features, one, multiplier), facts, plane=plane)))
    return found


def rarity(positives: float | None) -> bool | None:
    """Whether a share of positive answers counts as rare; None between what was measured. The rarer class counts."""
    if positives is None:
        return None
    if not 0 < positives < 1:
        raise ParameterError(f"positives must be a share between 0 and 1, got {positives}")
    share = min(positives, 1 - positives)
    return True if share <= RARE else False if share >= COMMON else None


def unknowns(rows: int, features: int, facts: Facts | None = None, *, plane: Plane = "fitted") -> list[str]:
    """What the rule does not know about such a table, in words; the interval says nothing about it."""
    if plane == "paper":
        return ["for the paper's plane there is no interval: the rule was fitted to one made-up family"]
    found = []
    for what, value, (least, most) in (("rows", rows, MEASURED_ROWS), ("columns", features, MEASURED_COLUMNS)):
        if not least <= value <= most:
            found.append(
                f"no table with {value:,} {what} was measured ({least:,} to {most:,} were): the interval is extrapolated"
            )
    given = facts or Facts()
    words = {
        "model": "whether a model is registered",
        "rare": "how rare positive answers are",
        "hard": "whether answers are hard",
    }
    if missing := [words[one.name] for one in fields(Facts) if getattr(given, one.name) is None]:
        found.append(f"{', '.join(missing)}; the interval is wider for it")
    return found


def _fitted(plane: Plane) -> bool:
    if require_plane(plane) == "anchored":
        raise ParameterError('what to expect of plane="anchored" was not measured; ask for "fitted" or "paper"')
    return plane == "fitted"


def _expected(curves: tuple[Curve, Curve], reached: float, facts: Facts) -> ExpectedQuality:
    excess, least, most = curves[0].at(reached, facts)
    angle, narrow, wide = curves[1].at(reached, facts)
    if reached < LEAST_REACH:
        return ExpectedQuality(excess, _cosine(angle))
    return ExpectedQuality(excess, _cosine(angle), (least, most), (_cosine(wide), _cosine(narrow)))


def _cosine(tangent: float) -> float:
    return 1 / hypot(1, tangent)
