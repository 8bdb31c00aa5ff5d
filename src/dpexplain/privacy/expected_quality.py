"""Expected quality of answers before anything is spent, from public numbers alone: a rule of thumb with an interval.

Everything follows from one ratio: the reach B = k·m̄·μ / (Δ·√n), the ball's radius over the norm of the noise that the whole budget of an
answer would put on one gradient (`mechanisms/descent.py` chooses its steps from the same number). For the fitted plane, relative excess and the
tangent of the angle to the exact optimum fall as powers of B, and facts shift them where they are public: whether the model is registered (it is
asked at public points; labels alone do worse), whether it is linear, whether positive answers are rare, whether answers are hard, and whether numbers
are tied: nearly follow from other columns, as sums and squares do. The rows then hardly determine single slopes, and the cosine may be as low as 0. Facts that
are not given widen the interval by what they could change at most, as an error that is independent of all others.

Curves of releases are fitted to a hundred real tables and those of descents to made-up ones (`experiments/plan_calibration.py`); `docs/notes/plan.md` has how
often the interval held on others. Beyond the rows and columns that were measured the interval is `extrapolation` wider. An upper end of the cosine that
is near 1 is set to 1: an answer that is better than the rule is not an error. The paper's plane has an older rule, without an interval: excess
1/(1 + (B/40)²) and cosine B/√(B² + 60²) for `Basic`, 17 and 25 in the place of 40 and 60 for a release, with a floor of 0.001.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import exp, hypot, log, sqrt

from dpexplain.arguments import quote
from dpexplain.core import sensitivity
from dpexplain.core.plane import Plane, require_plane
from dpexplain.core.release_moments import WIDEST_PAID
from dpexplain.core.weights import DEFAULT_WEIGHT
from dpexplain.errors import ParameterError
from dpexplain.privacy.budget import Budget, Guarantee

EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
RARE, COMMON = 0.1, 0.2  # shares of positive answers; between them the rule was not fitted
LEAST_REACH, MEASURED_ROWS, MEASURED_COLUMNS = 5.5, (3_100, 1_414_593), (3, 119)
_BEYOND = 0.15  # for each factor of e beyond what was measured
_PAPER_BASIC, _PAPER_RELEASE, _PAPER_FLOOR = (40.0, 60.0), (17.0, 25.0), 0.001

Interval = tuple[float, float]
_NEAR_EXACT = "near exact"
_GRADES = ((0.98, _NEAR_EXACT), (0.9, "good"), (0.7, "fair"), (0.4, "rough"))  # least cosine of each


@dataclass(frozen=True, slots=True)
class Facts:
    """What may be public about the answers; None where it is not known."""

    model: bool | None = None
    rare: bool | None = None
    hard: bool | None = None
    linear: bool | None = None
    tied: bool | None = None


@dataclass(frozen=True, slots=True)
class ExpectedQuality:
    """Quality to expect of one answer: `relative_excess` is 0 for the exact optimum and 1 for the best constant (the paper's plane: for 0).

    The intervals held 5 to 95 % of what was measured; None where there is no such measurement. The verdict is the cosine in words: those of
    both ends of the interval where they differ, because the middle alone would claim more than is known.
    """

    relative_excess: float
    cosine: float
    excess_interval: Interval | None = None
    cosine_interval: Interval | None = None
    verdict: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        least, most = map(_grade, self.cosine_interval or (self.cosine, self.cosine))
        object.__setattr__(self, "verdict", least if least == most else f"{least} to {most}")


@dataclass(frozen=True, slots=True)
class Offer:
    """What one price a query buys: how many answers the budget affords, and how good they are."""

    epsilon: float
    queries: int
    expected: ExpectedQuality


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """log y = constant - power·log B ± effect / 2 for each fact; `low` and `high` bound what was left over."""

    constant: float
    power: float
    effects: dict[str, float]
    low: float
    high: float

    def evaluate(self, reached: float, facts: Facts, beyond: float) -> tuple[float, float, float]:
        """The middle and both ends, which are `beyond` farther apart on each side."""
        middle, unknown = self.constant - self.power * log(reached), 0.0
        for name, effect in self.effects.items():
            fact = getattr(facts, name)
            if fact is None:
                unknown += abs(effect) / 2
            else:
                middle += effect / 2 if fact else -effect / 2
        return exp(middle), exp(middle - hypot(self.low, unknown) - beyond), exp(middle + hypot(self.high, unknown) + beyond)


_RELEASE = (
    PowerLaw(0.93, 0.81, {"model": -2.15, "rare": 1.18, "linear": -1.88, "tied": 0.74}, -2.92, 2.68),
    PowerLaw(1.69, 0.32, {"model": -1.9, "rare": 0.92, "linear": -1.14, "tied": 1.49}, -2.01, 1.94),
)
# relative excess, then the tangent of the angle: printed by experiments/plan_calibration.py; ends of _BASIC were moved outwards for other tables
_BASIC = (
    PowerLaw(2.14, 0.71, {"model": -0.87, "rare": 1.89, "hard": -0.41}, -1.52, 1.31),
    PowerLaw(2.15, 0.43, {"model": -1.18, "rare": 0.95, "hard": -0.33}, -1.3, 1.36),
)


def reach(rows: int, features: int, budget: Budget, multiplier: int = 1) -> float:
    """B, for the default weight and radius; `multiplier` is how many records' worth neighbours differ by."""
    for what, value in (("rows", rows), ("features", features), ("rows per unit", multiplier)):
        if value < 1:
            raise ParameterError(f"{what} must be at least 1, got {quote(value)}")
    return reach_of(rows, features, budget.mu, multiplier)


def reach_of(rows: int, features: int, mu: float, multiplier: int) -> float:
    """B of an answer that costs `mu`."""
    return rows * mu / (multiplier * sensitivity.gradient(DEFAULT_WEIGHT, 1.0) * sqrt(features))


def extrapolation(rows: int, features: int) -> float:
    """How much wider intervals are on each side, as a logarithm, for a table larger, smaller, wider or narrower than those measured."""
    ranges = ((rows, MEASURED_ROWS), (features, MEASURED_COLUMNS))
    return _BEYOND * sum(max(log(value / most), log(least / value), 0.0) for value, (least, most) in ranges)


def basic(reached: float, facts: Facts | None = None, *, plane: Plane = "fitted", beyond: float = 0.0) -> ExpectedQuality:
    """The quality to expect of one answer of `Basic` by descent; `beyond` is `extrapolation` of the table.

    An answer by moments is as good as that of a `release` at the answer's price.
    """
    if _is_fitted(plane):
        return quality_on(_BASIC, reached, facts or Facts(), beyond)
    excess, turn = _PAPER_BASIC
    return ExpectedQuality(1 / (1 + (reached / excess) ** 2), reached / hypot(reached, turn))


def basic_of(cost: Guarantee, rows: int, features: int, facts: Facts, *, plane: Plane) -> ExpectedQuality:
    """The same for an answer that was paid for, from the public row count and the number of columns."""
    return basic(reach_of(rows, features, cost.mu, cost.neighbours.multiplier), facts, plane=plane)


def release(reached: float, facts: Facts | None = None, *, plane: Plane = "fitted", beyond: float = 0.0) -> ExpectedQuality:
    """The quality to expect of each answer of a release without reference records; `beyond` is `extrapolation` of the table."""
    if _is_fitted(plane):
        return quality_on(_RELEASE, reached, facts or Facts(), beyond)
    excess, turn = _PAPER_RELEASE
    best = 1 - _PAPER_FLOOR
    return ExpectedQuality(min(_PAPER_FLOOR + 1 / (1 + (reached / excess) ** 2), 1.0), best * reached / hypot(reached, turn))


def offers(
    rows: int, features: int, budget: Budget, multiplier: int = 1, facts: Facts | None = None, *, plane: Plane = "fitted"
) -> list[Offer]:
    """One offer for each usual ε a query that the budget can pay at all."""
    found = []
    for epsilon in EPSILONS:
        one = Budget(epsilon, budget.delta)
        if queries := budget.quanta // one.quanta:
            rule = release if plane == "fitted" and features <= WIDEST_PAID else basic
            expected = rule(reach(rows, features, one, multiplier), facts, plane=plane, beyond=extrapolation(rows, features))
            found.append(Offer(epsilon, queries, expected))
    return found


def rarity(positives: float | None) -> bool | None:
    """Whether a share of positive answers counts as rare; None between what was measured. The rarer class counts."""
    if positives is None:
        return None
    if not 0 < positives < 1:
        raise ParameterError(f"positives must be a share between 0 and 1, got {quote(positives)}. Write 0.05 for 5 %")
    share = min(positives, 1 - positives)
    return True if share <= RARE else False if share >= COMMON else None


def unknowns(rows: int, features: int, facts: Facts | None = None, *, plane: Plane = "fitted") -> list[str]:
    """The facts about such a table that the rule does not use, in words; the interval does not cover them."""
    if plane == "paper":
        return ["for the paper's plane there is no interval: the rule was fitted to one made-up family"]
    found = []
    for what, value, (least, most) in (("rows", rows, MEASURED_ROWS), ("columns", features, MEASURED_COLUMNS)):
        if not least <= value <= most:
            found.append(
                f"no table with {value:,} {what} was measured ({least:,} to {most:,} were): the interval is extrapolated, and wider for it"
            )
    given = facts or Facts()
    words = {
        "model": "whether a model is registered",
        "rare": "how rare positive answers are",
        "hard": "whether answers are hard",
        "linear": "whether the model is linear",
        "tied": "whether numbers nearly follow from other columns",
    }
    if missing := [words[one.name] for one in fields(Facts) if getattr(given, one.name) is None]:
        found.append(f"{', '.join(missing)}; the interval is wider for it")
    return found


def _is_fitted(plane: Plane) -> bool:
    if require_plane(plane) == "anchored":
        raise ParameterError('what to expect of plane="anchored" was not measured. Ask for "fitted" or "paper"')
    return plane == "fitted"


def quality_on(curves: tuple[PowerLaw, PowerLaw], reached: float, facts: Facts, beyond: float) -> ExpectedQuality:
    """The quality to expect, from the curves of the relative excess and of the tangent of the angle."""
    excess, least, most = curves[0].evaluate(reached, facts, beyond)
    angle, narrow, wide = curves[1].evaluate(reached, facts, beyond)
    if reached < LEAST_REACH:
        return ExpectedQuality(excess, _cosine(angle))
    best = 1.0 if _grade(_cosine(narrow)) == _NEAR_EXACT else _cosine(narrow)
    return ExpectedQuality(excess, _cosine(angle), (least, most), (0.0 if facts.tied else _cosine(wide), best))


def _grade(cosine: float) -> str:
    """A word for a cosine, by the two digits that are printed."""
    return next((words for least, words in _GRADES if round(cosine, 2) >= least), "mostly noise")


def _cosine(tangent: float) -> float:
    return 1 / hypot(1, tangent)
