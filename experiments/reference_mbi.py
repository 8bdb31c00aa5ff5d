"""The library's reference records beside MST and AIM on the package `mbi`, for the same budget, bins, histograms and moments.

python -m experiments.reference_mbi --data DIR [--sets Adult ACS] [--rows 200000]        (needs the extra `reference`)

What differs is which pair tables are measured and how records follow from them. Here: all of them, raked. MST (McKenna, Miklau & Sheldon 2021): a
spanning tree. AIM (McKenna et al. 2022), with the pairs as workload and equal rounds: again and again the pair that the model so far gets most
wrong. Both choose by the exponential mechanism; an ε of it is charged as μ = ε/2, its zCDP, which is in their favour.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import sqrt
from time import process_time

import jax
import numpy as np
from rich.console import Console
from rich.progress import track

import dpexplain as dpx
from dpexplain.core.layout import Layout
from dpexplain.core.uniforms import Uniforms
from dpexplain.estimation.local_reference import MomentRaking
from dpexplain.estimation.records import records
from dpexplain.mechanisms.door import Door
from dpexplain.noise.seeded import SeededNoise
from dpexplain.release.plan import moment_targets, plan_release
from dpexplain.release.reference_data import ROWS, ReferenceData, columns_of
from experiments.datasets import arguments, data_folder, random_records
from experiments.reference_accuracy import SETS, WEIGHTS, accuracy, estimators

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)
import mbi  # noqa: E402  (warns unless JAX was told before)

ONE_WAY, MST_CHOICE, AIM_CHOICE = 0.1, 0.2, 0.1  # shares of μ²: single features, and choosing pairs
ROUNDS, LARGEST = 2, 4.0  # AIM: rounds for each feature, and megabytes of the model
ITERATIONS, QUICK = 1000, 150  # of mirror descent: at last, and between rounds


class Counts:
    """Private counts over the bins in use, measured with noise; `mu` is what all tables of the library's reference get."""

    def __init__(self, bins, encoded, mu, seed):
        self.used = [np.unique(joined) for joined in bins.joined]
        self.codes = np.column_stack([np.searchsorted(*pair) for pair in zip(self.used, bins.of(encoded).T, strict=True)])
        self.domain = mbi.Domain(tuple(range(len(self.used))), tuple(map(len, self.used)))
        self.pairs = list(combinations(range(len(self.used)), 2))
        self.mu, self.random, self.total = mu, np.random.default_rng(seed), float(len(encoded))  # whose size is public
        self.exact = {pair: self.table(self.codes, pair) for pair in self.pairs}

    def table(self, codes, clique):
        shape = self.domain.project(clique).shape
        return np.bincount(np.ravel_multi_index(codes[:, clique].T, shape), minlength=int(np.prod(shape))).astype(float)

    def measured(self, cliques, share):
        """These tables together cost `share` of μ²: k tables have L2 sensitivity √k."""
        sigma = sqrt(len(cliques) / share) / self.mu
        tables = {clique: self.table(self.codes, clique) for clique in cliques}
        return [mbi.LinearMeasurement(t + self.random.normal(0, sigma, len(t)), clique, sigma) for clique, t in tables.items()]

    def chosen(self, scores, share):
        """The exponential mechanism for scores of sensitivity one: exp(ε·score/2), ε = 2μ."""
        noisy = self.mu * sqrt(share) * np.array(list(scores.values())) + self.random.gumbel(size=len(scores))
        return list(scores)[int(np.argmax(noisy))]

    def misses(self, model, pairs):
        """By how many records (L1) the model misses each pair's table; seen on records drawn from it."""
        drawn = self.drawn(model)
        return {pair: np.abs(self.exact[pair] - self.table(drawn, pair) * (self.total / ROWS)).sum() for pair in pairs}

    def fitted(self, measurements, iterations, before=None):
        descent = mbi.estimation.MirrorDescent()
        return descent.estimate(self.domain, measurements, self.total, iters=iterations, warm_start=before)

    def drawn(self, model):
        np.random.seed(int(self.random.integers(1 << 31)))  # noqa: NPY002  (mbi draws from the global generator)
        columns = model.synthetic_data(ROWS).to_dict()
        return np.column_stack([columns[attribute].astype(np.int64) for attribute in self.domain])


def mst(counts):
    """Single features, a noisy maximum spanning tree of what they miss, and the tree's tables."""
    ones = counts.measured([(a,) for a in counts.domain], ONE_WAY)
    scores = counts.misses(counts.fitted(ones, QUICK), counts.pairs)
    part, tree = {a: a for a in counts.domain}, []
    for _ in range(len(part) - 1):
        open_ = {(a, b): score for (a, b), score in scores.items() if part[a] != part[b]}
        tree.append(counts.chosen(open_, MST_CHOICE / (len(counts.domain) - 1)))
        first, second = (part[a] for a in tree[-1])
        part = {a: first if p == second else p for a, p in part.items()}
    return counts.fitted(ones + counts.measured(tree, 1 - ONE_WAY - MST_CHOICE), ITERATIONS)


def aim(counts):
    """Single features, then in each round the pair the model misses most beyond noise, while the model stays small."""
    each = (1 - ONE_WAY) / (ROUNDS * len(counts.domain))
    bias = sqrt(2 / np.pi) / (counts.mu * sqrt(each * (1 - AIM_CHOICE)))  # what noise would miss, a cell
    found = counts.measured([(a,) for a in counts.domain], ONE_WAY)
    model = counts.fitted(found, QUICK)
    for _ in track(range(ROUNDS * len(counts.domain)), description="AIM", transient=True):
        cliques = [one.clique for one in found]
        small = [p for p in counts.pairs if mbi.junction_tree.hypothetical_model_size(counts.domain, [*cliques, p]) <= LARGEST]
        scores = {p: miss - bias * len(counts.exact[p]) for p, miss in counts.misses(model, small).items()}
        found += counts.measured([counts.chosen(scores, each * AIM_CHOICE)], each * (1 - AIM_CHOICE))
        model = counts.fitted(found, QUICK, model)
    return counts.fitted(found, ITERATIONS, model)


def referred(counts, model, found, sketch, release, private):
    """A release that answers from the model's records: numbers within bins, labels and raking to the moments as the library has them."""
    domain, drawn = private.domain, counts.drawn(model(counts))
    codes = np.column_stack([used[column] for used, column in zip(counts.used, drawn.T, strict=True)])
    stored = records(codes, found.bins, found.histograms, found.histogram_sigma, Layout.of(domain.blocks), Uniforms())
    plain = ReferenceData(domain, stored, None, None, release.solver.radius)
    labels = private.labeller(columns_of(stored, domain))
    raking = MomentRaking(plain.encoded, labels, sketch.query.weights(plain.encoded), moment_targets(release.solver))
    unknown = np.zeros((1, len(plain)), dtype=np.int8)  # error bars are not looked at
    return replace(release, reference=replace(plain, labels=labels, weights=raking.weights(), changes=unknown))


def built(data, epsilon, seed):
    """For each model of the records: a release that answers from it, and the seconds it took; the black box's are in all of them."""
    private, budget = data.modelled(), dpx.Budget(epsilon, 1e-6)
    start = process_time()
    release = dpx.release(private, budget, reference=True, noise=SeededNoise(seed))
    yield "all pairs, raked", private, release, process_time() - start
    plan = plan_release(private, budget.mu, ROWS)
    sketch, found = plan.run(
        Door(private._rows, SeededNoise(seed), plan.events)
    )  # the same noise: the same histograms, bins and moments
    for name, model in (("MST", mst), ("AIM", aim)):
        counts = Counts(found.bins, data.encoded, plan.marginals.second.mu, seed)
        start = process_time()
        yield name, private, referred(counts, model, found, sketch, release, private), process_time() - start


def scored(private, asked, release):
    for weight in WEIGHTS.values():
        answers = {e: one.explain_many(asked, weight).values for e, one in estimators(release).items() if e != "moments"}
        yield "; ".join(f"{excess:.4f} / {cosine:.3f}" for excess, cosine in accuracy(private, asked, weight, answers).values())


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=["Adult"])
    parser.add_argument("--rows", type=int, help="of each data set, drawn at random (default: all)")
    options, console = parser.parse_args(), Console(width=200)
    console.print("records from | CPU s | relative excess / cosine of the reference alone; raked to the moments:", *WEIGHTS)
    for load, epsilon in map(SETS.get, options.sets):
        data = load(data_folder(options.data))
        some = np.sort(np.random.default_rng(options.seed).permutation(len(data.frame))[: options.rows])
        data = replace(data, frame=data.frame.iloc[some], encoded=data.encoded[some], labels=data.labels[some])
        asked = random_records(data, options.queries, options.seed)
        console.print(f"{data.name}, {len(data.frame):,} rows, total ε = {epsilon:g}")
        for name, private, release, seconds in built(data, epsilon, options.seed):
            console.print(name, f"{seconds:.0f}", *scored(private, asked, release), sep=" | ")


if __name__ == "__main__":
    main()
