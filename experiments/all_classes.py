"""All classes of a model from one release, beside a release for each class at the same total ε.

python -m experiments.all_classes [--classes 3 10] [--draws 4]
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from experiments.made_up import FAMILY, made_up

RECORDS, QUERIES, SHOWN = 1 << 16, 8, 3


class Forest:
    """Named classes, asked about tables of the domain's columns."""

    def __init__(self, domain, encoded, classes, seed=0):
        rng = np.random.default_rng(seed)
        scores = encoded @ rng.standard_normal((encoded.shape[1], classes)) + rng.gumbel(size=(len(encoded), classes))
        self.forest = RandomForestClassifier(20, max_depth=8, random_state=0).fit(
            encoded[:20_000], scores.argmax(axis=1)[:20_000]
        )
        self.domain, self.classes_ = domain, np.array([f"class {k}" for k in range(classes)])

    def predict_proba(self, table):
        found = np.zeros((len(next(iter(table.values()))), len(self.classes_)))
        found[:, self.forest.classes_] = self.forest.predict_proba(self.domain.encode(table))
        return found


def error_of(release, truths, records):
    found = release.explain_many(records).values
    return np.mean(np.linalg.norm(found - truths, axis=1) / np.linalg.norm(truths, axis=1))


def measure(made, classes, epsilon, draws):
    """Relative errors, (draws, classes), of one release for all classes and of a release for each."""
    model, rows = Forest(made.domain, made.encoded, classes), made.domain.decode(made.encoded)
    records = made.domain.decode(made.encoded[-QUERIES:])
    listed = [dict(zip(records, one, strict=True)) for one in zip(*records.values(), strict=True)]
    together, alone = np.empty((draws, min(classes, SHOWN))), np.empty((draws, min(classes, SHOWN)))
    for draw in range(draws):
        options = {"reference": RECORDS, "noise": SeededNoise(draw)}
        both = dpx.release(dpx.PrivateData(rows, made.domain, model=model, target="all"), dpx.Budget(epsilon, 1e-6), **options)
        for k, name in enumerate(model.classes_[:SHOWN]):
            data = dpx.PrivateData(rows, made.domain, model=model, target=str(name))
            truths = np.array([evaluation.optimum(data, record) for record in listed])
            together[draw, k] = error_of(both.of(name), truths, records)
            alone[draw, k] = error_of(dpx.release(data, dpx.Budget(epsilon, 1e-6), **options), truths, records)
    return together, alone


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[3, 10])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 0.3])
    parser.add_argument("--draws", type=int, default=4)
    options = parser.parse_args()
    made = made_up(FAMILY["mixed 30"])
    heads = (
        "classes",
        "total ε",
        "all in one release",
        "one release a class, ε each",
        "ratio",
        "of single draws",
        "median of classes",
    )
    table = Table(*heads, title="Relative error of the slopes")
    for classes in options.classes:
        for epsilon in options.epsilons:
            together, alone = measure(made, classes, epsilon, options.draws)
            each = together.mean(axis=1) / alone.mean(axis=1)
            ratio, middle = together.mean() / alone.mean(), np.median(together / alone)
            errors = (f"{together.mean():.3f}", f"{alone.mean():.3f}", f"{ratio:.2f}")
            table.add_row(str(classes), f"{epsilon:g}", *errors, " ".join(f"{one:.2f}" for one in each), f"{middle:.2f}")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
