"""What a public scale of the columns does: accuracy of paid answers and of releases, faithfulness, and how many rows count.

python -m experiments.scale --tables "claims,sensors" --queries 6
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from math import sqrt

import numpy as np
from rich.console import Console
from rich.table import Table

import dpexplain as dpx
from dpexplain import evaluation
from experiments.strangers import HELD_OUT, MAKES, make_table

SCALES = (1.0, 0.5, 0.3, 0.12, "core")
PRICES = (0.1, 1.0)
STABLE = dpx.weights.Stable()
CORE = (sqrt(3) - 1) / 2  # up to here the stable weight is 1


def typical_distance(domain):
    """Between two records that public facts alone make up: numbers and levels uniform, categories equally frequent."""
    apart = {"numeric": lambda k: 1 / 6, "binary": lambda k: 1 / 2, "one-hot": lambda k: 2 * (1 - 1 / max(k, 2))}
    return sqrt(sum(apart[block.kind](block.stop - block.start) for block in domain.blocks))


def scale_of(name, domain):
    return CORE / typical_distance(domain) if name == "core" else float(name)


def stretched_weight(scale):
    """The stable weight of scaled columns as a weight of plain ones: what a release made with any scale answers by."""
    return dpx.weights.Custom(lambda d: STABLE(scale * d), c=1e9)


class Subject:
    """A table with what does not depend on the scale: SHAP values of some records, the rows' average, and one release."""

    def __init__(self, name, queries, seed):
        self.table = make_table(name, seed)
        self.data, self.records = self.table.data(), self.table.records(queries)
        self.mean = self.table.encoded.mean(axis=0)
        self.points = self.table.domain.encode(self.records)
        self.background = self.table.encoded[-60:]
        self.shap = [
            evaluation.shap_values(self.data, record, background=self.background, permutations=4, model=self.table.answers)
            for record in self.records
        ]
        self.release = dpx.release(self.data, dpx.Budget(1.0, 1e-6))

    def measure(self, scale):
        """Means over the records."""
        domain = replace(self.table.domain, scale=scale)
        data = dpx.PrivateData(self.table.columns, domain, labels=self.table.answers(self.table.encoded))
        rows = [self._faithful(data, i, scale) for i in range(len(self.records))]
        found = dict(zip(("rows", "to SHAP", "infidelity"), np.mean(rows, axis=0), strict=True))
        for price in PRICES:
            explainer = dpx.Explainer(data, dpx.Budget(1000, 1e-6), dpx.Basic(price, 1e-6))
            found[f"basic {price:g}"] = self._accuracy(data, [explainer.explain(one).values for one in self.records])
        answers = [self.release.explain(one, weight=stretched_weight(scale)).values for one in self.records]
        found["release 1"] = self._accuracy(data, answers)
        return found

    def _accuracy(self, data, answers):
        scores = [evaluation.score(one, data, record) for one, record in zip(answers, self.records, strict=True)]
        return np.mean([s.relative_excess for s in scores]), np.mean([s.cosine for s in scores])

    def _faithful(self, data, i, scale):
        """(effective rows, cosine of the exact contributions to SHAP, their infidelity)."""
        point, blocks = self.points[i], data.domain.blocks
        slopes = evaluation.optimum(data, self.records[i])
        added = np.add.reduceat(slopes * (point - self.mean), [block.start for block in blocks])
        shap = np.add.reduceat(self.shap[i], [block.start for block in blocks])
        weights = STABLE(scale * np.linalg.norm(self.table.encoded - point, axis=1))
        wrong = evaluation.infidelity(
            slopes * (point - self.mean), self.table.answers, data.domain, point, kind="contribution", baseline=self.background
        )
        cosine = float(added @ shap / max(np.linalg.norm(added) * np.linalg.norm(shap), 1e-300))
        return weights.sum() ** 2 / np.square(weights).sum(), cosine, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(MAKES))
    parser.add_argument("--queries", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    console = Console(width=180)
    for name in options.tables.split(","):
        subject = Subject(name, options.queries, options.seed)
        half = "held out" if name in HELD_OUT else "chosen on"
        shown = Table(title=f"{name} ({half}): {subject.data.size:,} rows, {subject.table.domain.width} columns")
        for column in (
            "scale",
            "effective rows",
            "to SHAP",
            "infidelity",
            *(f"Basic ε = {p:g}" for p in PRICES),
            "release ε = 1",
        ):
            shown.add_column(column)
        for given in SCALES:
            scale = scale_of(given, subject.table.domain)
            found = subject.measure(scale)
            accuracy = [f"{x:.4f} / {c:.3f}" for x, c in (*(found[f"basic {p:g}"] for p in PRICES), found["release 1"])]
            plain = f"{found['rows']:,.0f}", f"{found['to SHAP']:.3f}", f"{found['infidelity']:.4f}"
            shown.add_row(f"{scale:.3g}" + (" (core)" if given == "core" else ""), *plain, *accuracy)
        console.print(shown)


if __name__ == "__main__":
    main()
