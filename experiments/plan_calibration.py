"""What `dpexplain plan` should say: quality of releases and of descents by `Basic`, by the fitted plane, against the reach.

python -m experiments.plan_calibration [--queries 5] [--ways basic] [--halves fresh] [--real FILE …]

Curves of releases are fitted to real tables, whose results are the files of `experiments.coverage --records 0 --weights stable --json FILE`. All of them have
a model, so what labels alone change is taken from thirty-two made-up tables. Curves of descents are fitted to these alone. Ends are those of
differences between each table and the curve of all the others. Thirty-two other made-up tables only count how often intervals hold, and so do sixteen
fresh ones. Six tables made by hand were dropped before: in them rare positives and labels without a model went together.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
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
from experiments.coverage import facts_of_result, reach_of_result
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


@dataclass(frozen=True)
class Result:
    """What came out for one table, way and ε."""

    table: str
    way: str
    facts: expected_quality.Facts
    reached: float
    excess: float
    cosine: float


def facts_of(case):
    return expected_quality.Facts(case.registered, case.share < expected_quality.RARE, case.hard, not case.forest, tied=False)


def real_results(files):
    """Those of stored files of `experiments.coverage`, for releases without reference."""
    for one in (one for file in files for one in json.loads(Path(file).read_text(encoding="utf-8"))):
        if (one["source"], one["weight"], one["plane"]) == ("moments", "stable", "fitted"):
            yield Result(one["table"], "release", facts_of_result(one), reach_of_result(one), one["excess"], one["cosine"])


def tangent(cosine):
    """Of the angle to the exact answer; a cosine below 0.02 counts as 0.02."""
    return np.sqrt(1 / np.clip(cosine, 0.02, 1 - 1e-9) ** 2 - 1)


def fit(results, effects, what, held):
    """(constant, power, effects, low, high) of log y = constant - power·log B ± effects / 2; every table counts once.

    The interval holds the share `held` of the differences between each table and the curve of all the others. Angles of tables with tied numbers do not
    count there: nothing is promised about them.
    """
    signs = {True: 0.5, False: -0.5, None: 0.0}
    design = np.array([[1.0, -np.log(one.reached), *(signs[getattr(one.facts, name)] for name in effects)] for one in results])
    target = np.log([max(one.excess, 1e-6) if what == "excess" else tangent(one.cosine) for one in results])
    tables = np.array([one.table for one in results])
    weight = np.array([1 / np.sqrt((tables == one).sum()) for one in tables])

    def solve(some):
        return np.linalg.lstsq(design[some] * weight[some, None], target[some] * weight[some], rcond=None)[0]

    free = np.array([what == "excess" or not one.facts.tied for one in results])
    left_out = [target[tables == one] - design[tables == one] @ solve(tables != one) for one in np.unique(tables[free])]
    ends = np.quantile(np.concatenate(left_out), ((1 - held) / 2, (1 + held) / 2))
    return [round(float(one), 2) for one in (*solve(tables != ""), *ends)]


REAL_FACTS = ("rare", "linear", "tied")
HELD = {"excess": 0.95, "tangent": 0.9}  # of left-out real tables; an angle has one end only, because better ones count as inside


def constants(made, real):
    """The curves of `expected_quality`."""
    for what in ("excess", "tangent"):
        if basic := [one for one in made if one.way == "basic"]:
            yield "basic", what, fit(basic, ("model", "rare", "hard"), what, 0.9)
        release = [one for one in made if one.way == "release"]
        if release and real:
            model = fit(release, ("model", "rare", "linear"), what, 0.9)[2]
            constant, power, *effects, low, high = fit(real, REAL_FACTS, what, HELD[what])
            yield "release", what, [round(constant - model / 2, 2), power, model, *effects, low, high]


def inside(results, *, informed):
    """For each measurement: whether excess and cosine lie in their intervals."""
    for one in results:
        expected = getattr(expected_quality, one.way)(one.reached, one.facts if informed else expected_quality.Facts())
        if expected.excess_interval is not None and expected.cosine_interval is not None:  # it says where it does not know
            yield is_inside(one, expected)


def is_inside(result, expected):
    (low, high), (least, most) = expected.excess_interval, expected.cosine_interval
    return low <= result.excess <= high, least <= result.cosine <= most


def inside_left_out(real):
    """The same for curves and ends that are fitted to all real tables but the one that is judged."""
    for table in track({one.table: None for one in real}, "left out"):
        others = [one for one in real if one.table != table]
        curves = []
        for what in ("excess", "tangent"):
            constant, power, *effects, low, high = fit(others, REAL_FACTS, what, HELD[what])
            curves.append(expected_quality.PowerLaw(constant, power, dict(zip(REAL_FACTS, effects, strict=True)), low, high))
        for one in (one for one in real if one.table == table):
            yield is_inside(one, expected_quality.quality_on(tuple(curves), one.reached, one.facts, 0.0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument("--ways", default="release,basic")
    parser.add_argument("--halves", nargs="*", choices=tuple(SEEDS), default=["fitting", "held out"])
    parser.add_argument(
        "--real", nargs="*", default=[], help="files with results of real tables that releases' curves are fitted to"
    )
    options = parser.parse_args()
    queries, ways = options.queries, options.ways.split(",")
    console, table = (
        Console(),
        Table("tables", "way", "facts", "excess inside", "cosine inside", title="Answers inside plan's interval"),
    )
    measured = {
        half: [
            Result(f"{half} {seed + i}", way, facts_of(case), reached, excess, cosine)
            for seed in SEEDS[half]
            for i, case in enumerate(track(cases(seed), half))
            for way, _, reached, excess, cosine in measure(case, seed + i, queries, ways)
        ]
        for half in options.halves
    } | {"real": list(real_results(options.real))}
    console.print(*constants(measured.get("fitting", []), measured["real"]), sep="\n")
    for (half, results), way, informed in product(measured.items(), ways, (True, False)):
        if of_way := [one for one in results if one.way == way]:
            counts = np.mean(list(inside(of_way, informed=informed)), axis=0)
            table.add_row(half, way, "all given" if informed else "none given", *(f"{share:.0%}" for share in counts))
    if options.real:
        counts = np.mean(list(inside_left_out(measured["real"])), axis=0)
        table.add_row("real, left out one by one", "release", "all given", *(f"{share:.0%}" for share in counts))
    console.print(table)


if __name__ == "__main__":
    main()
