"""Error bars of a release: how often ±2 of them cover the same answers with hardly any noise, over a family of made-up tables and real ones.

python -m experiments.release_coverage [--data DIR] [--draws 20] [--only "mixed 30" Adult]

Each draw is a whole release with noise of its own. The answers it is compared with come from a release of the same rows at a total ε of 100,000.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from experiments.datasets import adult, data_folder
from experiments.made_up import FAMILY, MadeUp, made_up

DELTA, HARDLY_ANY_NOISE = 1e-6, 100_000.0


def askable_rows(table):
    """Positions of rows whose categories all have a declared value: only these can be asked about."""
    codes = [block for block in table.domain.blocks if block.kind == "one-hot"]
    return np.flatnonzero(np.all([table.encoded[:, block.start : block.stop].any(axis=1) for block in codes] or [True], axis=0))


def coverage(table, epsilon, draws, queries):
    """(share within two errors, the same anchored at the rows' labels, cosine to the answers with hardly any noise)."""
    private = dpx.PrivateData(table.domain.decode(table.encoded), table.domain, labels=table.labels)
    candidates = askable_rows(table) if len(askable_rows(table)) else np.arange(len(table.encoded))
    chosen = np.random.default_rng(5).choice(candidates, queries)
    asked, labels = table.domain.decode(table.encoded[chosen]), table.labels[chosen]

    def answers(total, seed):
        release = dpx.release(private, dpx.Budget(total, DELTA), noise=SeededNoise(seed))
        return release.explain_many(asked), release.explain_many(asked, anchor=release.scale.answers(labels))

    truth = [many.values for many in answers(HARDLY_ANY_NOISE, 10_000)]
    inside, cosines = [], []
    for draw in range(draws):
        found = answers(epsilon, draw)
        inside.append([np.abs(many.values - exact) <= 2 * many.error for many, exact in zip(found, truth, strict=True)])
        pairs = zip(found[0].values, truth[0], strict=True)
        cosines += [evaluation.agreement(one, exact).cosine for one, exact in pairs]
    return *(float(share) for share in np.mean(inside, axis=(0, 2, 3))), float(np.mean(cosines))


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
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="another family of the same recipes")
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    table = Table(title=f"±2 errors, {options.draws} draws, {options.queries} queries, δ = {DELTA:g}")
    for column in ("table", "rows", "columns", "total ε", "within 2 errors", "anchored", "cosine to hardly any noise", "seconds"):
        table.add_column(column)
    for name, epsilon, made in tables(options):
        start = perf_counter()
        within, anchored, near = coverage(made, epsilon, options.draws, options.queries)
        shape = (f"{len(made.encoded):,}", str(made.domain.width), f"{epsilon:g}")
        table.add_row(name, *shape, f"{within:.1%}", f"{anchored:.1%}", f"{near:.4f}", f"{perf_counter() - start:.0f}")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
