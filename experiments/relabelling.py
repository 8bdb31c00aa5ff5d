"""A second model on the records of one release: free, with its label moments bought, and beside a release of its own.

python -m experiments.relabelling --data DIR [--queries 12] [--draws 3] [--tables "Adult, retrained"]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from experiments.datasets import adult, arguments, data_folder
from experiments.made_up import FAMILY, made_up

TOTAL, SPENDS = dpx.Budget(1.0, 1e-6), (0.05, 0.2, 1.0)
TABLES = ("Adult, retrained", "Adult, another task", "mixed 30, another task")


@dataclass(frozen=True)
class Soft:
    """A classifier on encoded columns as a black box on tables: 2p - 1."""

    fitted: Any
    domain: dpx.Domain

    def __call__(self, table):
        return 2 * self.fitted.predict_proba(self.domain.encode(table))[:, 1] - 1


def subjects(folder, chosen):
    """(name, domain, encoded rows, first model, second model): the same task trained otherwise, and another task."""
    if set(chosen) & set(TABLES[:2]):
        data = adult(folder, trees=50)
        data.model.forest.n_jobs = 1
        long_hours = data.frame["hours-per-week"].to_numpy() > 45
        tasks = dict(zip(TABLES[:2], (data.labels > 0, long_hours ^ (data.labels > 0)), strict=True))
        for name in [name for name in tasks if name in chosen]:
            second = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(data.encoded, tasks[name])
            yield name, data.domain, data.encoded, data.model.forest, second
    if TABLES[2] in chosen:
        made = made_up(FAMILY["mixed 30"])
        rng = np.random.default_rng(1)
        tasks = [made.encoded @ rng.standard_normal(made.encoded.shape[1]) > 0 for _ in range(2)]
        models = [HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(made.encoded, task) for task in tasks]
        yield TABLES[2], made.domain, made.encoded, *models


def errors(made, truths, records):
    """Relative error of the slopes, and how often two errors hold the exact optimum."""
    found = made.explain_many(records)
    each = np.linalg.norm(found.values - truths, axis=1) / np.linalg.norm(truths, axis=1)
    return float(each.mean()), float((np.abs(found.values - truths) <= 2 * found.error).mean())


def measure(domain, encoded, first, second, queries, draws):
    """(explained by, errors in one draw of the noise, release), draw by draw."""
    rows, records = domain.decode(encoded), domain.decode(encoded[-queries:])
    listed = [dict(zip(records, one, strict=True)) for one in zip(*records.values(), strict=True)]
    new, old = Soft(second, domain), Soft(first, domain)
    own = dpx.PrivateData(rows, domain, model=new)
    truths = np.array([evaluation.optimum(own, record) for record in listed])
    data = dpx.PrivateData(rows, domain, model=old)
    for draw in range(0, 3 * draws, 3):
        release = dpx.release(data, TOTAL, reference=True, noise=SeededNoise(draw))
        yield "the first model's release", errors(release, truths, records), release
        yield "relabelled, free", errors(free := release.relabel(new), truths, records), free
        for epsilon in SPENDS:
            made = release.refine(data, new, spend=dpx.Budget(epsilon, 1e-6), noise=SeededNoise(draw + 1))
            yield f"refined for ε = {epsilon:g}", errors(made, truths, records), made
        full = dpx.release(own, TOTAL, reference=True, noise=SeededNoise(draw + 2))
        yield "a release of its own", errors(full, truths, records), full


def main():
    parser, console = arguments(__doc__.splitlines()[0]), Console(width=140)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    options = parser.parse_args()
    queries = min(options.queries, 12)
    for name, domain, encoded, first, second in subjects(data_folder(options.data), options.tables):
        title = f"{name}: slopes at {queries} records, {options.draws} draws"
        table = Table(
            "second model explained by", "total ε", "relative error", "of single draws", "within two errors", title=title
        )
        found, totals = {}, {}
        for what, scores, made in measure(domain, encoded, first, second, queries, options.draws):
            found.setdefault(what, []).append(scores)
            totals[what] = made.guarantee.epsilon
        for what, draws in found.items():
            error, covered = np.mean(draws, axis=0)
            single = " ".join(f"{one:.3f}" for one, _ in draws)
            table.add_row(what, f"{totals[what]:.3f}", f"{error:.3f}", single, f"{covered:.0%}")
        console.print(table)


if __name__ == "__main__":
    main()
