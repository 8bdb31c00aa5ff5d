"""The paper's interactive protocol on ACS: three disjoint shards, 1,500 queries each, T = 300, at most ε = 0.01 and δ = 1e-7 a query.

python -m experiments.interactive --data DIR [--queries 1500]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.core.ball import Ball
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy import paper
from experiments.datasets import acs, arguments, data_folder, random_records

SHARDS, EPSILON, DELTA, STEPS = 3, 0.01, 1e-7, 300
BUDGET = dpx.Budget(1000.0, 1e-6)  # large enough to be told what was spent instead of being stopped
MECHANISMS = {
    "basic": dpx.Basic(EPSILON, DELTA),
    "adaptive (default rule)": dpx.Adaptive(EPSILON, DELTA, STEPS),
    "enhanced (default rule)": dpx.Enhanced(EPSILON, DELTA, STEPS),
    "adaptive, rule=paper": dpx.Adaptive(EPSILON, DELTA, STEPS, rule="paper"),
    "enhanced, rule=paper": dpx.Enhanced(EPSILON, DELTA, STEPS, rule="paper"),
    "basic, calibration=paper": dpx.Basic(EPSILON, DELTA, STEPS, calibration="paper"),
    "adaptive, calibration=paper": dpx.Adaptive(EPSILON, DELTA, STEPS, calibration="paper"),
    "enhanced, calibration=paper": dpx.Enhanced(EPSILON, DELTA, STEPS, calibration="paper"),
}


@dataclass(frozen=True)
class Stream:
    """One shard and its sequence of queries, with the exact answers to compare with."""

    shard: dpx.PrivateData
    points: np.ndarray
    records: list
    moments: list
    best: list

    def score(self, i, values):
        return evaluation.compare(values, self.best[i], self.moments[i], self.shard.size)


def stream(shard, records):
    points = shard.domain.encode_queries(records)
    moments = evaluation.local_moments_of(shard, points)
    return Stream(shard, points, records, moments, [Ball().minimise(m.A, m.b) for m in moments])


def answer(mechanism, one, seed):
    """(answers, scores, spent) of one shard's sequence."""
    explainer = dpx.Explainer(one.shard, BUDGET, mechanism, noise=SeededNoise(seed))
    answers = explainer.explain_many(one.records)
    return answers, [one.score(i, a.values) for i, a in enumerate(answers)], explainer


def told_by_the_paper(mechanism, answers):
    """ε by the paper's bookkeeping: its own running total, or strong composition of what the answers claim."""
    booked = [a.details["paper"]["total_epsilon"] for a in answers if "paper" in a.details]
    if booked:
        return booked[-1]
    claims = [EPSILON if mechanism.calibration == "paper" else a.cost.epsilon for a in answers if not a.copied]
    return paper.strong_composition(claims, 1e-6)


def row(name, mechanism, streams):
    """A line of the table. Totals are the worst shard's: parallel composition."""
    runs = [answer(mechanism, one, seed) for seed, one in enumerate(streams)]
    answers, scores = [a for run in runs for a in run[0]], [s for run in runs for s in run[1]]
    late = [s for run in runs for s in run[1][-(len(run[1]) // 5) :]]
    gradients = np.array([a.details["gradients"] for a in answers])
    full = sum(a.details["gradients"] >= STEPS - 1 for a in answers)
    return [
        name,
        f"{max(run[2].spent.epsilon for run in runs):.3f}",
        f"{max(told_by_the_paper(mechanism, run[0]) for run in runs):.3f}",
        f"{gradients.mean() + 1:.0f}",
        f"{np.mean([a.copied for a in answers]):.1%}",
        f"{full} of {len(answers)}",
        f"{np.mean([s.relative_excess for s in scores]):.4f}",
        f"{np.mean([s.relative_excess for s in late]):.4f}",
        f"{np.mean([s.cosine for s in scores]):.3f}",
    ]


def released(epsilon, streams):
    """One release a shard instead: everything after it is free."""
    made = [dpx.release(one.shard, dpx.Budget(epsilon, 1e-6), noise=SeededNoise(7)) for one in streams]
    answers = [made[k].explain_many(one.records) for k, one in enumerate(streams)]
    scores = [one.score(i, a.values) for one, many in zip(streams, answers, strict=True) for i, a in enumerate(many)]
    excess = f"{np.mean([s.relative_excess for s in scores]):.4f}"
    return [
        f"release, ε={epsilon:g} once",
        f"{epsilon:g}",
        "-",
        "-",
        "-",
        "-",
        excess,
        excess,
        f"{np.mean([s.cosine for s in scores]):.3f}",
    ]


def free_phase(streams):
    """Non-interactive answers to the last fifth of the queries, from the adaptive answers to the others."""
    scores = {method: [] for method in ("regression", "neighbour", "labels")}
    for seed, one in enumerate(streams):
        asked = len(one.records) * 4 // 5
        explainer = dpx.Explainer(one.shard, BUDGET, MECHANISMS["adaptive (default rule)"], noise=SeededNoise(seed))
        explainer.explain_many(one.records[:asked])
        for method, told in scores.items():
            answers = dpx.NonInteractive(explainer.history, method).explain_many(one.records[asked:])
            told += [one.score(asked + i, a.values) for i, a in enumerate(answers)]
    return [
        [method, f"{np.mean([s.relative_excess for s in told]):.4f}", f"{np.mean([s.cosine for s in told]):.3f}"]
        for method, told in scores.items()
    ]


def prepare(options):
    """Disjoint shards and their queries, with exact moments computed once."""
    data = acs(data_folder(options.data))
    shards = data.private(name="ACS").split(SHARDS)
    records = random_records(data, SHARDS * options.queries, options.seed)
    for shard in shards:
        evaluation.remember(shard)
    return [stream(shard, records[i * options.queries :][: options.queries]) for i, shard in enumerate(shards)]


def report(streams, console):
    queries = len(streams[0].records)
    table = Table(title=f"ACS, {SHARDS} shards x {queries} queries of {streams[0].shard.size:,} rows; ε at δ = 1e-6, worst shard")
    for column in (
        "mechanism",
        "total ε, exact",
        "total ε, strong composition",
        "mean T'",
        "copied",
        "full T",
        "relative excess",
        "last fifth",
        "cosine",
    ):
        table.add_column(column)
    for name, mechanism in MECHANISMS.items():
        line = row(name, mechanism, streams)
        console.print(*line, sep=" | ")
        table.add_row(*line)
    for epsilon in (0.1, 1.0):
        table.add_row(*released(epsilon, streams))
    console.print(table)
    phase = Table(title="Free answers to the last fifth from the adaptive answers to the rest")
    for column in ("method", "relative excess", "cosine"):
        phase.add_column(column)
    for line in free_phase(streams):
        phase.add_row(*line)
    console.print(phase)


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.set_defaults(queries=1500)
    report(prepare(parser.parse_args()), Console(width=200))


if __name__ == "__main__":
    main()
