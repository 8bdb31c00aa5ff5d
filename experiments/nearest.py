"""Widths that follow a wanted number of rows beside a fixed width: relative excess, cosine and rows that count, on real tables.

python -m experiments.nearest --data DIR [--only Adult ACS] [--queries 40] [--rows 2000 10000]

One release with reference records each; "exact" is the optimum of the very question that was answered, with the width that the answer states.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from experiments.datasets import acs, adult, arguments, data_folder

TABLES = {"Adult": (adult, 1.0), "ACS": (acs, 0.5)}
COLUMNS = (
    "table",
    "weight",
    "relative excess",
    "worst tenth",
    "cosine",
    "rows that count (5, 50, 95 %)",
    "width (5, 50, 95 %)",
    "within 2 errors",
)


def width_of(explanation, weight):
    return explanation.details.get("width", getattr(weight, "width", None))


def measure(private, release, records, weight):
    """(relative excess, cosine, effective rows, width, share within two errors) for each record."""
    for record in records:
        found = release.explain(record, weight=weight)
        own = dpx.weights.Gaussian(width_of(found, weight))
        best = evaluation.optimum(private, record, weight=own)
        scored = evaluation.compare(found.values, best, evaluation.local_moments(private, record, own), private.size)
        inside = float(np.mean(np.abs(found.values - best) <= 2 * found.error))
        yield scored.relative_excess, scored.cosine, found.details["effective_rows"], own.width, inside


def quantiles(values, digits):
    return " ".join(f"{one:{digits}}" for one in np.quantile(values, (0.05, 0.5, 0.95)))


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(TABLES))
    parser.add_argument("--rows", nargs="*", type=float, default=[1000.0, 2000.0, 5000.0])
    options = parser.parse_args()
    table = Table(*COLUMNS, title=f"{options.queries} records, one release with reference records, δ = 1e-6")
    for name in options.only:
        read, epsilon = TABLES[name]
        data = read(data_folder(options.data), trees=30)
        private = data.with_model()
        release = dpx.release(private, dpx.Budget(epsilon, 1e-6), reference=True, noise=SeededNoise(options.seed))
        chosen = np.random.default_rng(options.seed).choice(len(data.frame), options.queries, replace=False)
        names = [feature.name for feature in data.domain.features]
        records = data.frame[names].iloc[chosen].to_dict("records")
        for weight in (dpx.weights.Gaussian(0.8), *(dpx.weights.Nearest(rows) for rows in options.rows)):
            excess, cosine, rows, widths, inside = np.array(list(measure(private, release, records, weight))).T
            numbers = f"{excess.mean():.4f}", f"{np.quantile(excess, 0.9):.4f}", f"{cosine.mean():.3f}"
            table.add_row(
                f"{name}, ε = {epsilon:g}",
                str(weight),
                *numbers,
                quantiles(rows, ",.0f"),
                quantiles(widths, ".2f"),
                f"{inside.mean():.0%}",
            )
    Console(width=170).print(table)


if __name__ == "__main__":
    main()
