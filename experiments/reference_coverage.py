"""Error bars of answers from reference data against the number of rows: how often two of them cover the exact local optimum.

python -m experiments.reference_coverage [--draws 3]
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise

SIZES, RECORDS, QUERIES = (3_000, 6_000, 20_000, 60_000, 200_000), 32_768, 12
WEIGHTS = {"stable": dpx.weights.Stable(), "Gaussian 0.8": dpx.weights.Gaussian(0.8)}
DOMAIN = dpx.Domain(
    [
        *(dpx.Numeric(f"number {i}", 0, 1) for i in range(3)),
        dpx.Categorical("code", values=list("abcd")),
        dpx.Ordinal("level", levels=list(range(5))),
        dpx.Binary("flag"),
    ]
)


def people(m):
    rng = np.random.default_rng(0)
    hidden = rng.random(m)
    numbers = {f"number {i}": np.clip(hidden + spread * rng.standard_normal(m), 0, 1) for i, spread in enumerate((0.1, 0.2, 0.4))}
    level = np.clip((5 * hidden + rng.standard_normal(m)).astype(int), 0, 4)
    return numbers | {"code": rng.choice(list("abcd"), m), "level": level, "flag": rng.random(m) < hidden}


def black_box(table):
    score = np.asarray(table["number 0"]) * np.asarray(table["number 1"]) + 0.3 * (np.asarray(table["code"]) == "a")
    return np.tanh(4 * (score - 0.4 * np.asarray(table["flag"]) - 0.2))


def ratios(m, draws):
    """{weight: |value - exact optimum| / its error, over draws of the noise, queries and columns}."""
    table = people(m)
    data = dpx.PrivateData(table, DOMAIN, model=black_box)
    records = [{name: column[i] for name, column in table.items()} for i in range(QUERIES)]
    best = {
        name: np.array([evaluation.optimum(data, one, weight=weight, plane="paper") for one in records])
        for name, weight in WEIGHTS.items()
    }
    found = {name: [] for name in WEIGHTS}
    for seed in range(draws):
        budget = dpx.Budget(1.0, 1e-6)
        release = dpx.release(dpx.PrivateData(table, DOMAIN, model=black_box), budget, reference=RECORDS, noise=SeededNoise(seed))
        for name, weight in WEIGHTS.items():
            answer = release.explain_many(records, weight)
            found[name].append(np.abs(answer.values - best[name]) / answer.error)
    return {name: np.array(all_) for name, all_ in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    shown = Table(
        "rows", *WEIGHTS, title=f"Exact optimum within two errors (median ratio), total ε = 1, {options.draws} noise draws"
    )
    for m in track(SIZES, description="tables", transient=True):
        found = ratios(m, options.draws)
        shown.add_row(f"{m:,}", *(f"{(found[name] <= 2).mean():.0%} ({np.median(found[name]):.2f})" for name in WEIGHTS))
    Console().print(shown)


if __name__ == "__main__":
    main()
