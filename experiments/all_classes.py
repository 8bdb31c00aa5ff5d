"""All classes of a model from one release, beside a release for each class at the same total ε.

python -m experiments.all_classes [--classes 3 10]
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
    model, rows = Forest(made.domain, made.encoded, classes), made.domain.decode(made.encoded)
    records = made.domain.decode(made.encoded[-QUERIES:])
    listed = [dict(zip(records, one, strict=True)) for one in zip(*records.values(), strict=True)]
    together, alone = [], []
    for draw in range(draws):
        options = {"reference": RECORDS, "noise": SeededNoise(draw)}
        both = dpx.release(dpx.PrivateData(rows, made.domain, model=model, target="all"), dpx.Budget(epsilon, 1e-6), **options)
        for name in model.classes_[:SHOWN]:
            data = dpx.PrivateData(rows, made.domain, model=model, target=str(name))
            truths = np.array([evaluation.optimum(data, record) for record in listed])
            together.append(error_of(both.of(name), truths, records))
            alone.append(error_of(dpx.release(data, dpx.Budget(epsilon, 1e-6), **options), truths, records))
    return np.mean(together), np.mean(alone)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[3, 10])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 0.3])
    parser.add_argument("--draws", type=int, default=2)
    options = parser.parse_args()
    made = made_up(FAMILY["mixed 30"])
    table = Table(
        "classes", "total ε", "all in one release", "one release a class, ε each", "ratio", title="Relative error of the slopes"
    )
    for classes in options.classes:
        for epsilon in options.epsilons:
            together, alone = measure(made, classes, epsilon, options.draws)
            table.add_row(str(classes), f"{epsilon:g}", f"{together:.3f}", f"{alone:.3f}", f"{together / alone:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
