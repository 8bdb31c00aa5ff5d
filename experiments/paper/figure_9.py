"""Figure 9: ACS, what the adaptive algorithm spends (a) in dense, random and sparse regions, and (b) on an overfitted model.

(a) three samples of 800 queries from the densest cluster, from everywhere, and spread over all clusters; (b) three of 500 from regions where the
overfitted forest (depth 60) fits the training rows much better than the other (depth 10); ε_min = 0.01, T = 300, three disjoint shards. Both forests
have 500 trees, are trained on all rows, and the shards hold all of them: on shards of 66,000 rows nearly every query takes all iterations for both
models, and no difference could show.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.cluster import AgglomerativeClustering

import dpexplain as dpx
from experiments.paper import _streams
from experiments.paper._forest import Forest, encode_rows
from experiments.paper._study import ACS_FILE, SEED, Study, figure
from experiments.paper.figure_2 import EPSILON

CLUSTERS, SAMPLE, PLACES = 15, 3000, 200_000
AXIS_END = 0.4  # of ε in the paper's figure
TREES, QUICK_TREES, FEWER = 500, 4, (4, 10, 30, 100, 250)  # the answers of fewer trees say whether 500 are enough
NAMES = ("adaptive, paper", "adaptive, paper's rule made private", "adaptive, ours")


def run(inputs, queries):
    data, rng = inputs.acs, np.random.default_rng(SEED)
    some = rng.permutation(len(data.encoded))[:PLACES]
    cluster, centres = find_clusters(data.encoded[some], rng)
    places = regions(data.encoded[some], cluster, centres, _streams.SHARDS * queries, rng)
    parts = inputs.parts("figure-9", queries)
    fewer = max(2, queries * 5 // 8)  # 500 where regions have 800
    models, notes = compare_models(parts, data, some, cluster, fewer, rng, inputs)
    shards = data.private(name="ACS").split(_streams.SHARDS)
    told = {
        region: measure_spending(parts, region, data, shards, some[chosen], queries, inputs) for region, chosen in places.items()
    } | models
    rows = [{"queries about": region} | _streams.line(name, one) for region, each in told.items() for name, one in each.items()]
    curves = {region: _streams.first_seed(each) for region, each in told.items()}
    return {"rows": rows, "told": curves, "notes": notes}


def compare_models(parts, data, some, cluster, queries, rng, inputs):
    """The same queries about both forests, where the deeper one is overfitted; their training rows are the private rows."""
    truth, names = data.frame.PINCP.to_numpy(), [feature.name for feature in data.domain.features]
    forests = {f"depth {depth}": grow_forest(depth, data, truth, inputs) for depth in (10, 60)}
    answers = {name: forest.answers for name, forest in forests.items()}
    chosen = some[
        draw_overfitted(cluster, [each[some] == truth[some] for each in answers.values()], _streams.SHARDS * queries, rng)
    ]
    told = {}
    for name, each in answers.items():
        private = dpx.PrivateData(data.frame[names], data.domain, labels=np.where(each, 1.0, -1.0), name=name)
        told[name] = measure_spending(parts, name, data, private.split(_streams.SHARDS), chosen, queries, inputs)
    return told, [describe(name, forest, truth) for name, forest in forests.items()]


def grow_forest(depth, data, truth, inputs):
    """A forest with its answers about its training rows; what is stored of it goes on where it stopped."""
    trees = QUICK_TREES if inputs.quick else TREES
    codes, columns = encode_rows(data.frame, data.domain)
    forest = Forest(codes, columns, truth, depth, SEED)
    forest.grow(trees, inputs.sums(f"forest-{trees}-depth-{depth}-{len(truth)}"), FEWER)
    inputs.clock.stored_cpu += forest.stored_seconds
    return forest


def describe(name, forest, truth):
    """How often the forest is right about its training rows, and how many of its answers are others than those of fewer trees."""
    others = [f"{np.mean(each != forest.answers):.2%} by {count}" for count, each in forest.kept.items() if count < forest.trees]
    said = f"training accuracy of {name}, {forest.trees} trees: {np.mean(forest.answers == truth):.3f}"
    return said + (f"; answers that differ: {', '.join(others)} trees" if others else "")


def find_clusters(encoded, rng):
    """Ward's hierarchical clusters of a sample; every other row belongs to the nearest centre."""
    sample = encoded[rng.choice(len(encoded), min(SAMPLE, len(encoded)), replace=False)]
    group = AgglomerativeClustering(CLUSTERS).fit_predict(sample)
    centres = np.array([sample[group == k].mean(axis=0) for k in range(CLUSTERS)])
    return ((centres**2).sum(axis=1) - 2 * encoded @ centres.T).argmin(axis=1), centres


def regions(encoded, cluster, centres, count, rng):
    """Positions in `encoded`: of the cluster with the smallest mean distance from its centre, of all rows, and evenly of all clusters."""
    distance = np.linalg.norm(encoded - centres[cluster], axis=1)
    members = [np.flatnonzero(cluster == k) for k in range(len(centres))]
    large = [m for m in members if len(m) >= count] or [max(members, key=len)]
    densest = min(large, key=lambda m: distance[m].mean())
    evenly = np.concatenate([rng.choice(m, -(-count // len(members))) for m in members if len(m)])
    return {
        "dense": rng.choice(densest, count),
        "random": rng.choice(len(encoded), count),
        "sparse": rng.permutation(np.resize(evenly, max(count, len(evenly))))[:count],
    }


def draw_overfitted(cluster, hits, count, rng):
    """Positions in the clusters, a fifth of them, where the deeper forest gains most training accuracy."""
    gain = {k: float((hits[1][cluster == k] * 1.0 - hits[0][cluster == k]).mean()) for k in np.unique(cluster)}
    worst = sorted(gain, key=gain.get)[-max(1, len(gain) // 5) :]
    return rng.choice(np.flatnonzero(np.isin(cluster, worst)), count)


def measure_spending(parts, title, data, shards, positions, queries, inputs):
    """What the adaptive algorithm spends on these queries, by the paper's formulas and ours."""
    names = [feature.name for feature in data.domain.features]
    records, runs = data.frame[names].iloc[positions].to_dict("records"), []
    for i, shard in enumerate(shards):
        ours = {name: one for name, one in _streams.our_mechanisms(EPSILON).items() if name in NAMES}
        plan = _streams.Plan(shard, records[i * queries :][:queries], [], shard.size, ours, EPSILON)
        runs.append(
            parts.get(
                f"{title}-{i}",
                partial(ask_both, plan, i, inputs, f"figure-9-{queries}-{title}"),
                STUDY.minutes / 5 / _streams.SHARDS,
            )
        )
    return _streams.over_shards(runs)


def ask_both(plan, i, inputs, title):
    stored = inputs.sums(f"{title}-shard-{i}")
    printed = _streams.ask_paper_algorithms(plan, inputs.seeds, i, stored, names=("adaptive, paper",))
    return printed | _streams.ask_library(plan, inputs.own_seeds, i, stored)


def draw(found):
    drawn, axes = figure(2, 2)
    told = found["told"]
    panels = {"sparse and dense regions": ("sparse", "random", "dense"), "overfitted or not": ("depth 60", "depth 10")}
    kinds = (("adaptive, paper", "claimed", "the paper's, by its bookkeeping"), ("adaptive, ours", "mu", "ours, exact"))
    for row, (mechanism, key, kind) in zip(axes, kinds, strict=True):
        for ax, (title, names) in zip(row, panels.items(), strict=True):
            series = {name: told[name][mechanism] for name in names}
            rows = [_streams.rows_of(found, [mechanism], **{"queries about": name})[0] for name in names]
            _streams.draw_spending(series, names, key, f"{title}: {kind}", ax, len(series[names[0]][key]), rows=rows)
            ax.set_ylim(0, max(AXIS_END, ax.get_ylim()[1]))
    return drawn


STUDY = Study(
    name="figure-9",
    title="ACS: what adaptive answers spend in dense and sparse regions, and on an overfitted model",
    shows="sparse regions cost more than random ones, dense ones less; the overfitted model more than the other; all below 0.4",
    files=(ACS_FILE,),
    full=800,
    quick=10,
    run=run,
    draw=draw,
    minutes=18,
)
