"""What `dpexplain plan` should say: quality of releases and of Basic's answers on made-up tables, by the fitted plane, against the reach.

python -m experiments.plan_calibration [--queries 5] [--ways basic] [--halves fresh]

Thirty-two tables choose the constants of `dpexplain.privacy.expected_quality`; thirty-two more only count how often its interval holds. Sixteen
of the thirty-two had been held out before: they showed that an interval from plain residuals is too narrow for a release whose facts are all
given (74 % of excesses inside), so residuals are now those of tables left out one by one, and other tables were drawn to be held out. Sixteen fresh
ones were looked at once, after the moments and error bars of releases had changed. Before all of these, six tables made by hand were measured and
dropped: in them rare positives and labels without a model went together.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from dpexplain.privacy import expected_quality
from experiments.made_up import Recipe, made_up

EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
TRAINED = 4_000  # rows that a model is trained on


@dataclass(frozen=True)
class Case:
    """A table, the share of positive answers, and the model: its kind, whether its answers are hard, whether it is registered."""

    recipe: Recipe
    share: float
    forest: bool
    hard: bool
    registered: bool


def cases(seed):
    """Sixteen tables: every combination of rare or common positives, forest or linear, hard or soft, model or labels; the rest at random."""
    rng = np.random.default_rng(seed)
    return [
        Case(_recipe(rng), 0.05 if rare else float(rng.uniform(0.2, 0.5)), forest, hard, registered)
        for rare, forest, hard, registered in product((True, False), repeat=4)
    ]


def _recipe(rng):
    """3,000 to 60,000 rows, 6 to about 80 columns, independent to strongly dependent, a third with spikes at 0 and long tails."""
    sizes = tuple(int(size) for size in rng.integers(3, 16, rng.integers(0, 4)))
    return Recipe(
        rows=round(float(np.exp(rng.uniform(np.log(3_000), np.log(60_000))))),
        epsilon=1.0,
        labels=str(rng.choice(["probability", "smooth"])),
        numbers=int(rng.integers(6, 21)),
        categories=sizes,
        binaries=int(rng.integers(0, 21)),
        factors=int(rng.integers(1, 7)),
        strength=float(rng.choice([0.0, 0.7, 1.5])),
        skewed=bool(rng.random() < 1 / 3),
    )


SEEDS = {"fitting": (18, 1804), "held out": (7321, 26011), "fresh": (90417,)}  # of sixteen tables each


def private_data(case, seed):
    """The table's records, encoded and as a private data set, labelled by the case's model."""
    made, rng = made_up(case.recipe, seed), np.random.default_rng(seed)
    noisy = made.labels + 0.2 * rng.standard_normal(len(made.labels))
    shape = RandomForestClassifier(30, max_depth=8, random_state=0) if case.forest else LogisticRegression(max_iter=500)
    trained = shape.fit(made.encoded[:TRAINED], noisy[:TRAINED] > np.quantile(noisy, 1 - case.share))
    cut = np.quantile(trained.predict_proba(made.encoded[:TRAINED])[:, 1], 1 - case.share)

    def answers(encoded):
        probability = trained.predict_proba(encoded)[:, 1]
        return np.where(probability > cut, 1.0, -1.0) if case.hard else 2 * probability - 1

    rows = made.domain.decode(made.encoded)
    if not case.registered:
        return made, dpx.PrivateData(rows, made.domain, labels=answers(made.encoded))
    return made, dpx.PrivateData(
        rows, made.domain, model=lambda table: answers(made.domain.encode(table)), output="value", bounds=(-1, 1)
    )


def measure(case, seed, queries, ways):
    """(way, ε, reach, mean relative excess, mean cosine) for each way and ε."""
    made, data = private_data(case, seed)
    columns = made.domain.decode(made.encoded[:100])
    drawn = ({name: column[i] for name, column in columns.items()} for i in range(100))
    records = [one for one in drawn if None not in one.values()][:queries]
    truth = [(evaluation.local_moments(data, one), evaluation.optimum(data, one)) for one in records]
    for epsilon in EPSILONS:
        budget = dpx.Budget(epsilon, 1e-6)
        reached = expected_quality.reach(data.size, made.domain.width, budget)
        asked: dict[str, Any] = {
            "release": lambda budget=budget: dpx.release(data, budget, noise=SeededNoise(seed)),
            "basic": lambda epsilon=epsilon: dpx.Explainer(
                data, dpx.Budget(1000, 1e-6), dpx.Basic(epsilon, 1e-6, by="descent"), noise=SeededNoise(seed)
            ),
        }
        for way in ways:
            ask = asked[way]().explain
            scores = [
                evaluation.compare(ask(record).values, best, moments, data.size)
                for record, (moments, best) in zip(records, truth, strict=True)
            ]
            excess, cosine = (float(np.mean([getattr(one, what) for one in scores])) for what in ("relative_excess", "cosine"))
            yield way, epsilon, reached, excess, cosine


def facts_of(case):
    return {"model": case.registered, "rare": case.share < expected_quality.RARE, "hard": case.hard}


def fit(measured, effects):
    """(constant, power, effects, low, high) of log y = constant - power·log B ± effects / 2.

    The interval holds 90 % of the differences between each table and the curve of all the others.
    """
    reaches, values, facts = (list(column) for column in zip(*measured, strict=True))
    signs = [[0.5 if one[name] else -0.5 for name in effects] for one in facts]
    design, target = np.column_stack([np.ones(len(reaches)), -np.log(reaches), signs]), np.log(values)
    table = np.arange(len(target)) // len(EPSILONS)
    differences = [
        target[table == one] - design[table == one] @ np.linalg.lstsq(design[table != one], target[table != one], rcond=None)[0]
        for one in np.unique(table)
    ]
    found = np.linalg.lstsq(design, target, rcond=None)[0]
    return [round(float(one), 2) for one in (*found, *np.quantile(np.concatenate(differences), (0.05, 0.95)))]


def tangent(cosine):
    """Of the angle to the exact answer; a cosine below 0.02 counts as 0.02."""
    return np.sqrt(1 / np.clip(cosine, 0.02, 1 - 1e-9) ** 2 - 1)


def constants(results, ways):
    """The curves of `expected_quality`, from results of `measure` with their cases."""
    for way in ways:
        effects = ("model", "rare", "hard")
        of_way = [(case, reached, excess, cosine) for case, (name, _, reached, excess, cosine) in results if name == way]
        yield way, "excess", fit([(reached, max(excess, 1e-6), facts_of(case)) for case, reached, excess, _ in of_way], effects)
        yield way, "tangent", fit([(reached, tangent(cosine), facts_of(case)) for case, reached, _, cosine in of_way], effects)


def inside(results, way, *, informed):
    """For each measurement: whether excess and cosine lie in their intervals."""
    for case, (name, _, reached, excess, cosine) in results:
        if name == way:
            facts = expected_quality.Facts(**facts_of(case)) if informed else expected_quality.Facts()
            expected = getattr(expected_quality, way)(reached, facts)
            if expected.excess_interval is not None and expected.cosine_interval is not None:  # it says where it does not know
                low, high = expected.excess_interval
                least, most = expected.cosine_interval
                yield low <= excess <= high, least <= cosine <= most


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument("--ways", default="release,basic")
    parser.add_argument("--halves", nargs="*", choices=tuple(SEEDS), default=["fitting", "held out"])
    options = parser.parse_args()
    queries, ways = options.queries, options.ways.split(",")
    console, table = (
        Console(),
        Table("tables", "way", "facts", "excess inside", "cosine inside", title="Answers inside plan's interval"),
    )
    for half in options.halves:
        tables = [(seed + i, case) for seed in SEEDS[half] for i, case in enumerate(cases(seed))]
        results = [(case, one) for seed, case in track(tables, half) for one in measure(case, seed, queries, ways)]
        if half == "fitting":
            console.print(*constants(results, ways), sep="\n")
            reaches = [one[2] for _, one in results]
            console.print(f"reach from {min(reaches):.0f} to {max(reaches):.0f}")
        for way, informed in product(ways, (True, False)):
            counts = np.mean(list(inside(results, way, informed=informed)), axis=0)
            table.add_row(half, way, "all given" if informed else "none given", *(f"{share:.0%}" for share in counts))
    console.print(table)


if __name__ == "__main__":
    main()
