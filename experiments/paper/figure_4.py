"""Figure 4: ACS, the loss over the iterations of 15 answers that start from a past one (adaptive, ε = 0.01, δ = 1e-7, T = 300).

Each seed has a history and answers of its own, about other people; the first seed's are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import dpexplain as dpx
from dpexplain import evaluation, plots
from dpexplain.noise import SeededNoise
from dpexplain.progress import with_bar
from experiments.datasets import random_records
from experiments.paper import _streams
from experiments.paper._streams import with_error
from experiments.paper._study import ACS_FILE, SEED, Study, digits, figure
from experiments.paper.figure_2 import EPSILON

HISTORY, QUICK_HISTORY = 100, 40
NAMES = ("adaptive, paper", "adaptive, paper's rule made private", "adaptive, ours")


@dataclass(frozen=True)
class Watched:
    """Rows that answer one query with its moments, and remember every φ that a gradient was asked at."""

    A: np.ndarray
    b: np.ndarray
    path: list = field(default_factory=list)

    def local(self, _):
        return self

    def scale_columns(self, _):
        return self

    def gradient(self, phi):
        self.path.append(phi)
        return 2 * (self.A @ phi - self.b)


def run(inputs, queries):
    history = QUICK_HISTORY if inputs.quick else HISTORY
    data, each = inputs.acs, 10 * (history + queries)
    shard = data.private(name="ACS").split(_streams.SHARDS)[0]
    records = random_records(data, inputs.seeds * each, SEED)
    evaluation.remember(shard, most=each)
    printed = dpx.Adaptive(EPSILON, _streams.DELTA, _streams.STEPS, calibration="paper")
    chosen = {name: _streams.our_mechanisms(EPSILON).get(name, printed) for name in NAMES}
    paths = {name: [] for name in chosen}
    for seed in with_bar(range(inputs.seeds), "seeds"):
        for name, one in chosen.items():
            asked = records[seed * each :][:each]
            paths[name].append(excess_by_step(shard, one, asked[:history], asked[history:], queries, seed))
    return {"rows": [line(*one) for one in paths.items()], "paths": {name: runs[0] for name, runs in paths.items()}}


def excess_by_step(shard, mechanism, past, records, queries, seed):
    """Relative excess at each step of the first answers after the history that are computed, not copied."""
    explainer = dpx.Explainer(shard, _streams.BUDGET, mechanism, noise=SeededNoise(SEED + 2 * seed))
    explainer.explain_many(past)
    noise, found = SeededNoise(SEED + 2 * seed + 1), []
    for record in records:
        moments = evaluation.local_moments(shard, record, plane="paper")
        plan = mechanism.plan(shard.domain.encode_query(record), shard.setting, explainer.history)
        rows = Watched(moments.A, moments.b)
        last = plan.run(evaluation.Door(rows, noise, plan.events, private=mechanism.private)).values
        if rows.path:
            best = evaluation.minimise(moments.A, moments.b)
            scores = [evaluation.compare(phi, best, moments, shard.size).relative_excess for phi in (*rows.path, last)]
            found.append([digits(score) for score in scores])
        if len(found) == queries:
            break
    return found


def line(name, runs):
    """Where answers start, the worst they pass through, and where they end: medians of the relative excess, means over seeds."""
    row = {"mechanism": name}
    for title, pick in {"at the start": lambda p: p[0], "at worst": max, "at the end": lambda p: p[-1]}.items():
        row |= with_error(title, [np.median([pick(path) for path in paths]) for paths in runs], 3)
    better = np.mean([path[-1] < path[0] for paths in runs for path in paths])
    return row | {"ends better than it starts": f"{better:.0%}", "answers": sum(map(len, runs)), "seeds": len(runs)}


def draw(found):
    drawn, axes = figure(len(NAMES), width=4.4)
    for ax, (name, paths) in zip(axes[0], found["paths"].items(), strict=True):
        plots.convergence({str(i): path for i, path in enumerate(paths)}, title=name, ax=ax)
        ax.get_legend().remove()
        ax.set(xlabel="gradient descent iterations", ylabel="relative excess loss", yscale="linear")
        ax.set_ylim(bottom=0)  # as in the paper
    return drawn


STUDY = Study(
    name="figure-4",
    title="ACS: loss over the iterations of adaptive answers that start from history",
    shows="from a good start noise first raises the loss, which then returns to nearly where it was",
    files=(ACS_FILE,),
    full=15,
    quick=5,
    run=run,
    draw=draw,
    minutes=2,
)
