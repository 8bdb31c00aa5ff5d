"""Error bars of a release: how often ±2 of them cover the same solve without noise, over a family of made-up tables and real ones.

python -m experiments.release_coverage [--data DIR] [--draws 20] [--only "mixed 30" Adult]

Each draw is a release's two stages with their own noise. Rehearsals take most of a release's time, so the factors of the first `--rehearsed` draws
are applied to all draws, and the shares averaged.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from dpexplain.backends.dense import DenseRows
from dpexplain.core.layout import Layout
from dpexplain.core.sketch import CentreMoments, NormalisedMoments
from dpexplain.core.weights import Stable
from dpexplain.estimation.calibrate import Rehearsal, calibrate
from dpexplain.estimation.denoise import centre_of
from dpexplain.evaluation.metrics.agreement import cosine
from dpexplain.mechanisms.base import Setting
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.sketch import plan_sketch
from dpexplain.noise import SeededNoise
from dpexplain.privacy import gdp
from dpexplain.privacy.relation import Neighbours
from experiments.datasets import adult, data_folder
from experiments.made_up import FAMILY, MadeUp, made_up

DELTA, RADIUS, WEIGHT = 1e-6, 1.0, Stable()
CHUNK = 1 << 16


def without_noise(rows, layout, size):
    query = NormalisedMoments(layout, *centre_of(rows.centre(CentreMoments(layout)), layout, size, 0.0))
    return Rehearsal(query, 0.0, RADIUS, WEIGHT).solver(rows.normalised(query), 0.0)[0]


def coverage(table, epsilon, draws, rehearsed, queries):
    """(share within two errors, the same anchored at the rows' labels, share with linear bars alone, cosine to the solve without noise)."""
    layout, size = Layout.of(table.domain.blocks), len(table.encoded)
    chunks = [table.encoded[start : start + CHUNK] for start in range(0, size, CHUNK)]
    rows = DenseRows(chunks, table.labels, layout.width)
    chosen = np.random.default_rng(5).integers(0, size, queries)
    asked, labels = table.encoded[chosen], table.labels[chosen]
    exact = without_noise(rows, layout, size)
    truth, anchored_truth = exact.answer(asked, WEIGHT).values, exact.answer(asked, WEIGHT, labels).values
    plan = plan_sketch(layout, gdp.mu(epsilon, DELTA), Setting(layout.width, size, Neighbours(), rows.summation_error))
    ratios, anchored, factors, cosines = [], [], [], []
    for draw in range(draws):
        noise = SeededNoise(draw)
        sketch = plan.run(Door(rows, noise, plan.events))
        solver = Rehearsal(sketch.query, sketch.sigma, RADIUS, WEIGHT).solver(sketch.sums, sketch.sigma)[0]
        plain, through = solver.answer(asked, WEIGHT), solver.answer(asked, WEIGHT, labels)
        ratios.append(np.abs(plain.values - truth) / plain.errors)
        anchored.append(np.abs(through.values - anchored_truth) / through.errors)
        cosines += [cosine(a, b) for a, b in zip(plain.values, truth, strict=True)]
        if draw < rehearsed:
            solver = calibrate(sketch.sums, sketch.query, sketch.sigma, RADIUS, WEIGHT, noise.standard_normal)
            factors.append(solver.noise.calibration)
    shares = [float(np.mean([np.array(found) <= 2 * factor for factor in factors])) for found in (ratios, anchored)]
    return *shares, float((np.array(ratios) <= 2).mean()), float(np.mean(cosines))


def tables(options):
    for number, (name, recipe) in enumerate(FAMILY.items()):
        if not options.only or name in options.only:
            yield name, recipe.epsilon, made_up(recipe, seed=number + options.seed)
    if options.data and (not options.only or "Adult" in options.only):
        data = adult(data_folder(options.data))
        for epsilon in (1.0, 0.1):
            yield "Adult", epsilon, MadeUp(data.domain, data.encoded, data.labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with adult_uci.parquet; without it only made-up tables are measured")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--rehearsed", type=int, default=2)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="another family of the same recipes")
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    table = Table(title=f"±2 errors, {options.draws} draws, {options.queries} queries, δ = {DELTA:g}")
    for column in (
        "table",
        "rows",
        "columns",
        "total ε",
        "within 2 errors",
        "anchored",
        "linear bars alone",
        "cosine to no noise",
        "seconds",
    ):
        table.add_column(column)
    for name, epsilon, made in tables(options):
        start = perf_counter()
        within, anchored, linear, near = coverage(made, epsilon, options.draws, options.rehearsed, options.queries)
        shape = (f"{len(made.encoded):,}", str(made.domain.width), f"{epsilon:g}")
        table.add_row(
            name, *shape, f"{within:.1%}", f"{anchored:.1%}", f"{linear:.1%}", f"{near:.4f}", f"{perf_counter() - start:.0f}"
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
