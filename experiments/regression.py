"""A regression model explained in its own units: SHAP values and planes of a made-up yearly income beside the exact ones.

python -m experiments.regression [--draws 4] [--epsilons 0.1 1]
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestRegressor

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise

PEOPLE, TRAINING, QUERIES = 40_000, 20_000, 12
BOUNDS = (0.0, 200_000.0)  # nothing is cut: SHAP over true rows is of the forest as it is
EDUCATION, TRADES = (
    ("none", "school", "college", "degree", "doctorate"),
    ("care", "craft", "office", "sales", "science", "service"),
)
REGIONS = ("north", "south", "east", "west")
DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 17, 97),
        dpx.Numeric("hours", 0, 99),
        dpx.Ordinal("education", levels=EDUCATION),
        dpx.Categorical("trade", values=TRADES),
        dpx.Categorical("region", values=REGIONS),
        dpx.Binary("married"),
        dpx.Binary("city"),
    ]
)


def people(count, seed):
    """Made-up people, and an income a year: wages by hours, age and education, higher in some trades, with luck in per cent."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(45, 15, count), 17, 97)
    hours = np.clip(np.where(age < 66, rng.normal(40, 10, count), rng.normal(10, 9, count)), 0, 99)
    education = np.clip(np.round(rng.normal(1.8, 1, count)), 0, 4).astype(int)
    trade = np.clip(education + rng.integers(0, 3, count), 0, 5)
    married, city = rng.random(count) < np.clip((age - 17) / 40, 0, 0.7), rng.random(count) < 0.4 + 0.1 * education
    wage = 9_000 + 250 * hours * (3 + education) - 25 * (age - 50) ** 2 + 3_000 * married * (hours > 30)
    wage = np.clip(wage, 2_000, None) * np.linspace(0.9, 1.5, 6)[trade] * np.where(city & (education > 2), 1.15, 1)
    table = {
        "age": age,
        "hours": hours,
        "education": np.array(EDUCATION)[education],
        "trade": np.array(TRADES)[trade],
        "region": rng.choice(REGIONS, count),
        "married": married,
        "city": city,
    }
    return table, wage * np.exp(0.25 * rng.standard_normal(count))


def errors(values, bars, truths):
    """Relative error of the vectors, mean absolute error of a feature in the model's units, and the share within two errors."""
    relative = np.linalg.norm(values - truths, axis=1) / np.linalg.norm(truths, axis=1)
    return relative.mean(), np.abs(values - truths).mean(), (np.abs(values - truths) <= 2 * bars).mean()


def measure(epsilons, draws):
    """(total ε, what, errors) for each ε, mean over draws of the noise."""
    others, earned = people(TRAINING, seed=1)
    forest = RandomForestRegressor(30, max_depth=9, min_samples_leaf=5, random_state=0).fit(DOMAIN.encode(others), earned)
    rows = people(PEOPLE, seed=2)[0]
    encoded = DOMAIN.encode(rows)
    records = {name: column[-QUERIES:] for name, column in rows.items()}
    listed = [dict(zip(records, one, strict=True)) for one in zip(*records.values(), strict=True)]

    def private():
        model = lambda asked: forest.predict(DOMAIN.encode(asked))  # noqa: E731
        return dpx.PrivateData(rows, DOMAIN, model=model, output="value", bounds=BOUNDS)

    exact = np.array([evaluation.row_shapley(forest, DOMAIN, point, encoded).mean(axis=0) for point in encoded[-QUERIES:]])
    best = np.array([evaluation.optimum(private(), record) for record in listed]) * (BOUNDS[1] - BOUNDS[0]) / 2
    few = [evaluation.row_shapley(forest, DOMAIN, point, encoded[:100]).mean(axis=0) for point in encoded[-QUERIES:]]
    yield "", "SHAP over 100 true rows, not private", errors(np.array(few), np.full(exact.shape, np.nan), exact)
    for epsilon in epsilons:
        found = {"shapley": [], "slopes": []}
        for draw in range(draws):
            release = dpx.release(private(), dpx.Budget(epsilon, 1e-6), reference=True, noise=SeededNoise(draw))
            shap, planes = release.shapley_many(records), release.explain_many(records)
            half = (BOUNDS[1] - BOUNDS[0]) / 2
            found["shapley"].append(errors(shap.values, shap.error, exact))
            found["slopes"].append(errors(planes.values * half, planes.error * half, best))
        yield f"{epsilon:g}", "SHAP values", np.mean(found["shapley"], axis=0)
        yield f"{epsilon:g}", "slopes of the plane", np.mean(found["slopes"], axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    options = parser.parse_args()
    title = f"A made-up income, {PEOPLE:,} people, {QUERIES} records, {options.draws} draws"
    table = Table("total ε", "what", "relative error", "mean absolute error", "within two errors", title=title)
    for epsilon, what, (relative, absolute, covered) in measure(options.epsilons, options.draws):
        table.add_row(
            epsilon, what, f"{relative:.3f}", f"{absolute:,.0f} a year", "" if what.endswith("private") else f"{covered:.0%}"
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
