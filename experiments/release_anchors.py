"""Several anchors at one budget: do weighted moments around K anchors, mixed to fit each query's weight, beat one release?

python -m experiments.release_anchors --data DIR [--queries 40] [--only Adult]

Around each of K anchors the raw moments of SPEC §7 are released with the stable weight and √K times the noise of one. A query's weight is
approximated by Σ ωₖ(z) wₖ, ω by least squares on the public reference points of a release. What the encoding makes public is repaired. The ridge
is the best of a grid *in hindsight*, which no real release could choose: the comparison favours several anchors.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

import dpexplain as dpx
from dpexplain.core import sensitivity
from dpexplain.core.ball import Ball
from dpexplain.core.layout import Layout
from dpexplain.core.moments import RawMoments, RawSums
from dpexplain.evaluation.metrics.fidelity import compare
from dpexplain.noise.seeded import SeededNoise
from experiments.datasets import acs, adult, arguments, data_folder
from experiments.release_accuracy import exact, records_of

SETS = {"ACS": (acs, 0.1), "Adult": (adult, 1.0)}
COUNTS = (1, 2, 4, 8)
RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0)  # times the noise's spectral norm
WEIGHT = dpx.weights.Stable()


def distances(points, anchor):
    return np.linalg.norm(points - anchor, axis=1)


def spread_out(points, count):
    """The mean, then the reference point farthest from all anchors so far."""
    anchors = [points.mean(axis=0)]
    while len(anchors) < count:
        anchors.append(points[np.min([distances(points, anchor) for anchor in anchors], axis=0).argmax()])
    return anchors


def released(rows, anchor, layout, sigma, rng):
    """Noisy moments around one anchor, moved to the origin and repaired: within a code products are known from the means."""
    exact_sums, n = rows.raw(RawMoments(anchor, WEIGHT)), len(anchor)
    noise = np.triu(rng.standard_normal((n, n))) * sigma / np.sqrt(2)  # a pair of entries counts twice in the norm
    noise = noise + noise.T
    s0, t0 = exact_sums.S0 + sigma * rng.standard_normal(), exact_sums.t0 + sigma * rng.standard_normal()
    s1, t1 = (vector + sigma * rng.standard_normal(n) for vector in (exact_sums.S1, exact_sums.t1))
    moved = RawSums(s0, s1, exact_sums.S2 + noise, t0, t1).shifted(anchor)
    first = s1 + s0 * anchor
    second = np.where(layout.same(), 0.0, moved.A)
    codes = np.setdiff1d(np.arange(n), layout.numbers)
    second[layout.numbers, layout.numbers] = np.diag(moved.A)[layout.numbers]
    second[codes, codes] = first[codes]
    return RawSums(s0, first, second, t0, moved.b)


def mixed(sums, shares):
    parts = {
        name: sum(w * getattr(one, name) for w, one in zip(shares, sums, strict=True)) for name in ("S0", "S1", "S2", "t0", "t1")
    }
    return RawSums(**parts)


def answers(sums, anchors, points, queries, level):
    """One explanation for each query and ridge."""
    columns = np.column_stack([WEIGHT(distances(points, anchor)) for anchor in anchors])
    for z in queries:
        shares, *_ = np.linalg.lstsq(columns, WEIGHT(distances(points, z)), rcond=1e-3)
        moments = mixed(sums, shares).shifted(-z)
        values, vectors = np.linalg.eigh((moments.A + moments.A.T) / 2)
        ridge = level * np.linalg.norm(shares)
        for factor in RIDGES:
            yield Ball(1.0).minimise((vectors * (np.maximum(values, 0) + factor * ridge)) @ vectors.T, moments.b)


def measure(private, made, truth, queries, epsilon, count, noisy=True):
    """(relative excess, cosine) at the ridge that turned out best."""
    layout, rng = Layout.of(private.domain.blocks), np.random.default_rng(count)
    points = made.solver.reference.points(layout)
    anchors = spread_out(points, count)
    sigma = sensitivity.raw_moments(WEIGHT) * np.sqrt(count) / dpx.Budget(epsilon, 1e-6).mu
    sums = [released(private._rows, anchor, layout, sigma if noisy else 0.0, rng) for anchor in anchors]
    found = list(answers(sums, anchors, points, queries, sigma * np.sqrt(2 * layout.width) if noisy else 1e-9 * private.size))
    scores = [compare(phi, *truth[i // len(RIDGES)][::-1], private.size) for i, phi in enumerate(found)]
    table = (
        np.array([(score.relative_excess, score.cosine) for score in scores]).reshape(len(queries), len(RIDGES), 2).mean(axis=0)
    )
    return table[table[:, 0].argmin()]


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(SETS), choices=list(SETS))
    options = parser.parse_args()
    table = Table(title=f"K anchors at one total budget, {options.queries} queries: relative excess / cosine")
    for column in ("data", "total ε", "anchors", "without noise", "with noise"):
        table.add_column(column)
    for name in options.only:
        read, epsilon = SETS[name]
        data = read(data_folder(options.data))
        private, records = data.private(), records_of(data, options.queries, options.seed)
        truth, queries = exact(private, records, name), [data.domain.encode_query(record) for record in records]
        made = dpx.release(private, dpx.Budget(epsilon, 1e-6), noise=SeededNoise(0))
        ours = [
            compare(made.explain(record).values, best, one, private.size)
            for record, (one, best) in zip(records, truth, strict=True)
        ]
        means = np.mean([(score.relative_excess, score.cosine) for score in ours], axis=0)
        table.add_row(name, f"{epsilon:g}", "the release", "", "{:.4f} / {:.4f}".format(*means))
        for count in COUNTS:
            cells = [measure(private, made, truth, queries, epsilon, count, noisy) for noisy in (False, True)]
            table.add_row(name, f"{epsilon:g}", str(count), *("{:.4f} / {:.4f}".format(*cell) for cell in cells))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
