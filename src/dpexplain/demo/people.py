"""Made-up census records: clusters, correlated categories, and an income rule with a non-linear boundary. No real person is in them.

Each person belongs to one of four walks of life (student, worker, professional, retired), which shapes age, hours, education, work and
marriage together. Income passes the threshold by a rule with interactions (education pays only in the professions, long hours help up to a
point, age helps until about 55) plus random noise. All draws come from one seed, so every run has the same people.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.domain import Binary, Categorical, Domain, Numeric, Ordinal
from dpexplain.noise.seeded import SeededNoise

EDUCATION = ("none", "school", "college", "degree", "doctorate")
WORK = ("private", "public", "self-employed", "none")
TRADE = ("care", "craft", "office", "sales", "science", "service")
REGION = ("north", "south", "east", "west", "islands")

DOMAIN = Domain(
    [
        Numeric("age", 17, 97),
        Numeric("hours", 0, 99),
        Ordinal("education", levels=EDUCATION),
        Categorical("work", values=WORK),
        Categorical("trade", values=TRADE),
        Categorical("region", values=REGION),
        Binary("married"),
        Binary("city"),
    ]
)

# One row for each walk of life: share, age (mean, sd), hours (mean, sd), then odds of each education, work and trade, and P(married).
_WALKS: tuple[dict[str, Any], ...] = (
    {"share": 0.15, "age": (21, 3), "hours": (18, 9), "education": (1, 6, 10, 1, 0), "work": (7, 1, 0, 4), "trade": (2, 1, 2, 5, 1, 6), "married": 0.05},
    {"share": 0.45, "age": (41, 11), "hours": (40, 7), "education": (2, 10, 5, 1, 0), "work": (9, 3, 2, 0), "trade": (3, 6, 4, 4, 0, 5), "married": 0.6},
    {"share": 0.27, "age": (44, 10), "hours": (46, 9), "education": (0, 1, 4, 10, 3), "work": (7, 4, 3, 0), "trade": (3, 0, 6, 3, 6, 1), "married": 0.7},
    {"share": 0.13, "age": (71, 7), "hours": (9, 9), "education": (3, 8, 3, 3, 1), "work": (2, 1, 2, 10), "trade": (3, 3, 3, 3, 1, 3), "married": 0.65},
)  # fmt: skip


def people(count: int, seed: int = 2026) -> tuple[dict[str, list[Any]], Vector]:
    """`count` records as columns, and whether each earns above the threshold (1.0) or not (0.0)."""
    noise = SeededNoise(seed)
    walk = _pick(np.tile([w["share"] for w in _WALKS], (count, 1)), noise)
    age = np.clip(np.round(_by_walk("age", walk, 0) + _by_walk("age", walk, 1) * noise.standard_normal(count)), 17, 97)
    hours = np.clip(np.round(_by_walk("hours", walk, 0) + _by_walk("hours", walk, 1) * noise.standard_normal(count)), 0, 99)
    education, work, trade = (_pick(_odds(key, walk), noise) for key in ("education", "work", "trade"))
    region = _pick(np.tile([4.0, 3.0, 2.0, 2.0, 0.5], (count, 1)), noise)
    married = noise.uniform(count) < np.array([w["married"] for w in _WALKS])[walk]
    city = noise.uniform(count) < np.where(education >= 3, 0.75, 0.45)
    codes = {"age": age, "hours": hours, "education": education, "work": work, "trade": trade, "region": region}
    rich = _income_score({**codes, "married": married, "city": city}) + 0.6 * noise.standard_normal(count) > 0
    columns = {
        "age": age.tolist(),
        "hours": hours.tolist(),
        "education": [EDUCATION[i] for i in education],
        "work": [WORK[i] for i in work],
        "trade": [TRADE[i] for i in trade],
        "region": [REGION[i] for i in region],
        "married": married.tolist(),
        "city": city.tolist(),
    }
    return columns, rich.astype(np.float64)


def _income_score(codes: dict[str, Any]) -> Vector:
    """The income rule. Education pays in the professions; hours saturate; age peaks at 55; the islands and craft differ."""
    age, hours, education = codes["age"], codes["hours"], codes["education"]
    profession = np.isin(codes["trade"], [TRADE.index("office"), TRADE.index("science")])
    craft = codes["trade"] == TRADE.index("craft")
    value = -3.4 + 0.45 * education + 0.65 * education * profession + 0.9 * craft * (hours > 42)
    value = value + 2.2 * np.tanh((hours - 32) / 14) - np.square((age - 55) / 22) + 0.5 * codes["married"]
    value = value + 0.4 * codes["city"] * profession
    return np.asarray(value - 0.8 * (codes["region"] == REGION.index("islands")) - 1.2 * (codes["work"] == WORK.index("none")))


def _by_walk(key: str, walk: Any, part: int) -> Vector:
    return np.asarray(np.array([w[key][part] for w in _WALKS], dtype=np.float64)[walk])


def _odds(key: str, walk: Any) -> Vector:
    return np.asarray(np.array([w[key] for w in _WALKS], dtype=np.float64)[walk])


def _pick(odds: Vector, noise: SeededNoise) -> Any:
    """One index for each row, drawn with the row's odds."""
    cumulative = np.cumsum(odds, axis=1)
    draws = noise.uniform(len(odds)) * cumulative[:, -1]
    return (draws[:, None] > cumulative).sum(axis=1)
