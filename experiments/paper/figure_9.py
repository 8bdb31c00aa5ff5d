"""Figure 9: ACS, what the adaptive algorithm spends (a) in dense, random and sparse regions, and (b) on an overfitted model.

(a) three samples of 800 queries from the densest cluster, from everywhere, and spread over all clusters; (b) three of 500 from regions where the
overfitted forest (depth 60) fits the training rows much better than the other (depth 10); ε_min = 0.01, T = 300, three disjoint shards.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import AgglomerativeClustering
from sklearn.ensemble import RandomForestClassifier

import dpexplain as dpx
from experiments.paper import _streams
from experiments.paper._study import ACS_FILE, SEED, Study, figure
from experiments.paper.figure_2 import EPSILON

CLUSTERS, SAMPLE = 15, 3000
OVERFITTED_ROWS, TREES = 200_000, 10
NAMES = ("adaptive, paper", "adaptive, paper's rule made private", "adaptive, ours")


def run(inputs, queries):
    data, rng = inputs.acs, np.random.default_rng(SEED)
    some = rng.permutation(len(data.encoded))[:OVERFITTED_ROWS]
    cluster, centres = clustered(data.encoded[some], rng)
    shards = data.private(name="ACS").split(_streams.SHARDS)
    places = regions(data.encoded[some], cluster, centres, _streams.SHARDS * queries, rng)
    told = {region: spent(data, shards, some[chosen], queries) for region, chosen in places.items()}
    models, notes = compared_models(data, some, cluster, max(2, queries * 5 // 8), rng)  # 500 where regions have 800
    told |= models
    rows = [{"queries about": region} | _streams.line(name, one) for region, each in told.items() for name, one in each.items()]
    return {"rows": rows, "told": told, "notes": notes}


def compared_models(data, some, cluster, queries, rng):
    """The same queries about both forests, where the deeper one is overfitted; their training rows are the private rows."""
    truth, names = data.frame.PINCP.to_numpy()[some], [feature.name for feature in data.domain.features]
    answers = {f"depth {depth}": forest(depth).fit(data.encoded[some], truth).predict(data.encoded[some]) for depth in (10, 60)}
    chosen = some[overfitted(cluster, [each == truth for each in answers.values()], _streams.SHARDS * queries, rng)]
    told = {}
    for name, each in answers.items():
        labels = np.where(each, 1.0, -1.0)
        private = dpx.PrivateData(data.frame[names].iloc[some], data.domain, labels=labels, name=name)
        told[name] = spent(data, private.split(_streams.SHARDS), chosen, queries)
    return told, [f"training accuracy of {name}: {np.mean(each == truth):.3f}" for name, each in answers.items()]


def clustered(encoded, rng):
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


def forest(depth):
    return RandomForestClassifier(TREES, max_depth=depth, n_jobs=1, random_state=SEED)


def overfitted(cluster, hits, count, rng):
    """Positions in the clusters, a fifth of them, where the deeper forest gains most training accuracy."""
    gain = {k: float((hits[1][cluster == k] * 1.0 - hits[0][cluster == k]).mean()) for k in np.unique(cluster)}
    worst = sorted(gain, key=gain.get)[-max(1, len(gain) // 5) :]
    return rng.choice(np.flatnonzero(np.isin(cluster, worst)), count)


def spent(data, shards, positions, queries):
    chosen = {name: _streams.mechanisms(EPSILON)[name] for name in NAMES}
    names = [feature.name for feature in data.domain.features]
    records = data.frame[names].iloc[positions].to_dict("records")
    parts = [records[i * queries :][:queries] for i in range(len(shards))]
    return _streams.over_shards(
        [_streams.asked(shard, part, chosen, i) for i, (shard, part) in enumerate(zip(shards, parts, strict=True))]
    )


def draw(found):
    drawn, axes = figure(2, 2)
    told = found["told"]
    panels = {"sparse and dense regions": ("sparse", "random", "dense"), "overfitted or not": ("depth 60", "depth 10")}
    kinds = (("adaptive, paper", "claimed", "the paper's, by its bookkeeping"), ("adaptive, ours", "epsilon", "ours, exact"))
    for row, (mechanism, key, kind) in zip(axes, kinds, strict=True):
        for ax, (title, names) in zip(row, panels.items(), strict=True):
            series = {name: told[name][mechanism] for name in names}
            _streams.draw_spending(series, names, key, f"{title}: {kind}", ax)
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
)
