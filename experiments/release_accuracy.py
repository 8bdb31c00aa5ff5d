"""Pay once, explain forever: how close one release's explanations are to the exact local optimum, and what their error bars cover.

python -m experiments.release_accuracy --data DIR [--queries 200] [--only Adult]

Coverage is measured against a release at ε = 1000 from the same rows, whose noise is some 150 times smaller than at ε = 1.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from experiments.datasets import BlackBox, Labelled, acs, adult, arguments, data_folder, random_records

EPSILONS = {"ACS": (0.1, 1.0), "Adult": (0.1, 1.0)}


def made_up(numbers, categories, size, binaries, rows=50_000, seed=0):
    """A mixed table from four hidden factors, labelled by a random forest that learnt a rule with interactions."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((rows, 4))

    def score(columns):
        return hidden @ rng.standard_normal((4, columns)) * 0.7 + rng.standard_normal((rows, columns))

    features, frame = [], {}
    for j in range(numbers):
        features.append(dpx.Numeric(f"number{j}", 0, 1))
        frame[f"number{j}"] = 1 / (1 + np.exp(-score(1)[:, 0] - rng.normal()))
    for j in range(categories):
        features.append(dpx.Categorical(f"category{j}", values=[f"v{k}" for k in range(size)]))
        frame[f"category{j}"] = np.array([f"v{k}" for k in range(size)])[(score(size) + rng.standard_normal(size)).argmax(axis=1)]
    for j in range(binaries):
        features.append(dpx.Binary(f"binary{j}"))
        frame[f"binary{j}"] = score(1)[:, 0] > 1.5 * rng.standard_normal()
    domain = dpx.Domain(features)
    encoded = domain.encode(frame)
    chosen = rng.choice(domain.width, 8, replace=False)
    rule = encoded[:, chosen] - encoded[:, chosen].mean(axis=0)
    truth = rule @ rng.standard_normal(8) + 3 * rule[:, 0] * rule[:, 1] - 3 * rule[:, 2] * rule[:, 3]
    forest = RandomForestClassifier(60, max_depth=10, n_jobs=2, random_state=0).fit(
        encoded[:20_000], truth[:20_000] > np.median(truth)
    )
    model = BlackBox(forest, domain)
    return Labelled(f"made up, {domain.width}", domain, frame, encoded, model.vectors(encoded), model)


SETS = {
    "ACS": lambda options: acs(data_folder(options.data)),
    "Adult": lambda options: adult(data_folder(options.data)),
    "made-up-30": lambda _: made_up(4, 3, 5, 11),
    "made-up-120": lambda _: made_up(20, 10, 6, 40, seed=1),
    "made-up-300": lambda _: made_up(40, 20, 8, 100, seed=2),
}


def records_of(data, count, seed):
    if not isinstance(data.frame, dict):
        return random_records(data, count, seed)
    chosen = np.random.default_rng(seed).integers(0, len(data.encoded), count)
    return [{name: column[i].item() for name, column in data.frame.items()} for i in chosen]


def exact(private, records, name):
    """(moments, optimum) of each query, read once for all releases."""
    asked = track(records, description=f"{name}: exact optima", transient=True)
    moments = [evaluation.local_moments(private, record, plane="paper") for record in asked]
    return [(one, evaluation.minimise(one.A, one.b)) for one in moments]


def measure(private, truth, records, epsilon, seeds, reference):
    """Mean relative excess, cosine and top-5 overlap over queries and releases, and the share of values within two errors."""
    scores, covered = [], []
    for seed in seeds:
        many = dpx.release(private, dpx.Budget(epsilon, 1e-6), noise=SeededNoise(seed)).explain_many(records)
        scores += [
            evaluation.compare(values, best, moments, private.size)
            for values, (moments, best) in zip(many.values, truth, strict=True)
        ]
        covered.append(np.abs(many.values - reference) <= 2 * many.error)
    means = [float(np.mean([getattr(s, what) for s in scores])) for what in ("relative_excess", "cosine", "top_k_overlap")]
    return [*means, float(np.mean(covered))]


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--releases", type=int, default=3, help="how many releases are made at each ε")
    options = parser.parse_args()
    table = Table(
        title=f"One release, {options.queries} random queries, {options.releases} noise draws, δ = 1e-6, stable weight, radius 1"
    )
    for column in ("data", "rows", "columns", "total ε", "relative excess", "cosine", "top-5 shared", "within 2 errors"):
        table.add_column(column)
    for name in options.only:
        data = SETS[name](options)
        private, records = data.private(), records_of(data, options.queries, options.seed)
        truth = exact(private, records, data.name)
        reference = dpx.release(private, dpx.Budget(1000, 1e-6), noise=SeededNoise(99)).explain_many(records).values
        for epsilon in EPSILONS.get(name, (1.0,)):
            found = measure(private, truth, records, epsilon, range(options.releases), reference)
            shape = [f"{len(data.encoded):,}", str(data.domain.width), f"{epsilon:g}"]
            table.add_row(data.name, *shape, *(f"{value:.5f}" if value < 0.1 else f"{value:.4f}" for value in found))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
