"""Generated tables of few columns whose numbers nearly follow from each other: a set on which constants of error bars may be chosen.

Prices of a day that agree to a hundredth of their range, a score beside itself less a mean, sums of parts, heights and lengths with their products, logarithms
of one size, rounded copies. They are declared as the real tables are (`experiments/real_tables.py`), with `item` the function that makes the rows.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.real_tables import RealTable, table_of


def _quotes(rng, rows=9_000):
    """Prices of a day: walks of a few shares, spreads of about 1 %."""
    level = np.exp(
        rng.normal(4, 0.5, (rows // 1500, 1)) + 0.012 * rng.standard_normal((rows // 1500, 1500)).cumsum(axis=1)
    ).ravel()
    a, b, c, d = level * np.exp(0.009 * rng.standard_normal((4, len(level))))
    high, low = np.maximum.reduce([a, b, c, d]), np.minimum.reduce([a, b, c, d])
    volume = np.exp(10 + rng.standard_normal(len(level)) + 30 * (high / low - 1))
    return {
        "open": a,
        "high": high,
        "low": low,
        "volume": volume,
        "year": np.tile(np.arange(1500) // 250, rows // 1500),
        "close": b,
    }


def _marks(rng, rows=24_000):
    """A score, the same less the mean of all, and one less the mean of its school."""
    school = rng.integers(0, 300, rows)
    score = np.round(6.3 + 0.4 * rng.standard_normal(300)[school] + 0.75 * rng.standard_normal(rows), 3)
    age, boy = rng.integers(-6, 6, rows), rng.random(rows) < 0.5
    passed = score + 0.4 * boy + 0.6 * rng.standard_normal(rows)
    return {"age": age, "score": score, "less": score - score.mean(), "boy": boy.astype(int), "passed": passed}


def _accounts(rng, rows=6_000):
    """Logarithms of one size: sales, wages, capital and cash of firms over years."""
    size = 1.2 * rng.standard_normal(rows // 8).repeat(8)
    year = np.tile(np.arange(8), rows // 8)
    found = {
        k: size + s * rng.standard_normal(rows) for k, s in {"sales": 0.25, "wages": 0.12, "cash": 0.5, "stock": 0.2}.items()
    }
    invested = 0.8 * size + rng.standard_normal(rows)
    return found | {"year": year, "invested": invested, "people": size + 0.4 * found["wages"] + 0.1 * rng.standard_normal(rows)}


def _blocks(rng, rows=5_400):
    """Blocks of a page: height, length, their product and quotient, and how much of them is black, as number and as share."""
    height, length = (
        np.exp(2.2 + 0.5 * rng.standard_normal(rows)).round() + 1,
        np.exp(4 + 1.1 * rng.standard_normal(rows)).round() + 1,
    )
    share = rng.beta(3, 6, rows)
    filled = np.clip(share + 0.4 * rng.random(rows), 0, 1)
    area = height * length
    found = {"height": height, "length": length, "area": area, "quotient": length / height, "share": share, "filled": filled}
    found |= {"black": share * area, "all": filled * area, "runs": np.round(0.1 * share * area * rng.uniform(0.6, 1.4, rows))}
    return found | {"kind": np.log(length / height) + 4 * share + 0.7 * rng.standard_normal(rows)}


def _surfaces(rng, rows=5_500):
    """Thirty-two numbers that are smooth functions of five."""
    hidden = rng.standard_normal((rows, 5))
    line = hidden @ rng.standard_normal((5, 32)) * 0.4
    columns = line + 0.25 * np.square(line) * rng.standard_normal(32) + 0.04 * rng.standard_normal((rows, 32))
    return {f"c{i}": column for i, column in enumerate(columns.T)} | {"kind": hidden[:, 0] * hidden[:, 1] + hidden[:, 2]}


def _budgets(rng, rows=12_000):
    """Parts, their total, its logarithm, and two shares."""
    food, rent, other = np.exp(rng.multivariate_normal([6, 6.3, 5.5], 0.15 + 0.2 * np.eye(3), rows).T).round()
    total, people = food + rent + other, rng.integers(1, 7, rows)
    found = {"food": food, "rent": rent, "other": other, "total": total, "log": np.log(total).round(3), "each": total / people}
    return found | {
        "people": people,
        "town": rng.integers(0, 5, rows),
        "saves": rng.standard_normal(rows) + 2 * rent / total - np.log(people),
    }


def _temperatures(rng, rows=15_000):
    """Lowest, mean and highest of a day, in two units of which one is rounded, a day of the year, and last day's."""
    day = rng.integers(1, 366, rows)
    mean = 10 + 11 * np.cos(2 * np.pi * (day - 200) / 365) + 4 * rng.standard_normal(rows)
    low, high = mean - rng.gamma(6, 0.8, rows), mean + rng.gamma(6, 0.8, rows)
    found = {
        "day": day,
        "low": low.round(1),
        "mean": mean.round(1),
        "high": high.round(1),
        "fahrenheit": (32 + 1.8 * mean).round(),
    }
    return found | {"before": mean + 2 * rng.standard_normal(rows), "rain": (high - low) * -0.5 + 1.5 * rng.standard_normal(rows)}


def _lessons(rng, rows=7_000):
    """Marks before and after with their gain, and the class's own mean of each."""
    room, girl = rng.integers(0, 250, rows), rng.integers(0, 2, rows)
    before = np.rint(465 + 20 * rng.standard_normal(250)[room] + 38 * rng.standard_normal(rows))
    gain = np.rint(58 - 0.35 * (before - 465) + 30 * rng.standard_normal(rows))
    wealth = rng.standard_normal(rows)
    return {
        "before": before,
        "gain": gain,
        "after": before + gain,
        "wealth": wealth,
        "girl": girl,
        "liked": 0.02 * gain + wealth + 0.7 * rng.standard_normal(rows),
    }


TABLES = {
    "quotes": (_quotes, RealTable("", "close > open", "open high low volume year", tied=True)),
    "marks": (_marks, RealTable("", "passed > 6.8", "age score less", "", "boy", model="forest", tied=True)),
    "accounts": (_accounts, RealTable("", "people > 0.3", "year sales wages cash stock invested", model="linear")),
    "blocks": (_blocks, RealTable("", "kind > 4", "height length area quotient share filled black all runs", tied=True)),
    "surfaces": (_surfaces, RealTable("", "kind > 0.5", " ".join(f"c{i}" for i in range(32)), model="neural", tied=True)),
    "budgets": (
        _budgets,
        RealTable("", "saves > 0", "food rent other total log each people", "town", model="forest", soft=False, tied=True),
    ),
    "temperatures": (
        _temperatures,
        RealTable("", "rain > -4", "day low mean high fahrenheit before", model="boosted", tied=True),
    ),
    "lessons": (_lessons, RealTable("", "liked > 1", "before gain after wealth", "", "girl", model="forest", tied=True)),
}


def load(name):
    make, declared = TABLES[name]
    return table_of(declared, pd.DataFrame(make(np.random.default_rng([18, list(TABLES).index(name)]))))
