"""Synthetic records by MST and AIM on the package `mbi` 2.0 (`pip install mbi==2.0`), for the experiment `excess_by_budget`.

Numbers are binned by noisy histograms, as in the library. MST (McKenna, Miklau & Sheldon 2021) measures a spanning tree of pairs. AIM
(McKenna et al. 2022) measures in each round the table that the model so far gets most wrong beyond noise, and halves the noise when a round
taught the model no more than noise would. Both choose by the exponential mechanism; an ε of it is charged as μ = ε/2, its zCDP, which is in
their favour. What differs from AIM as published: 4 MB instead of 80 for the model, and tables of the model are judged on records drawn
from it.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from math import sqrt

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)
import mbi  # noqa: E402  (warns unless JAX was told before)

RECORDS = 1 << 15
HISTOGRAMS, ONE_WAY, MST_CHOICE, AIM_CHOICE = 0.1, 0.1, 0.2, 0.1  # shares of μ²: bins; MST's single features; choosing tables
CELLS, BINS = 256, 16  # of a number
WORKLOAD, ROUNDS, LARGEST = 3, 16, 4.0  # AIM: features of a table, at most so many rounds a feature, megabytes of the model
ITERATIONS = 2000  # of mirror descent, at most
CLOSE = 1e-3  # it stops when fifty of them take off less than this share of the loss, half of χ²


class Bins:
    """Codes of encoded rows: values of a code, or bins of nearly equal noisy mass; `fill` draws encoded records from them."""

    def __init__(self, domain, encoded, mu, random):
        self.blocks, self.random, self.cells, self.joined = domain.blocks, random, [], []
        numbers = [one for one in self.blocks if self._is_number(one)]
        sigma = sqrt(max(len(numbers), 1)) / mu
        for block in numbers:
            counts = np.bincount(self._cells(encoded[:, block.start]), minlength=CELLS) + random.normal(0, sigma, CELLS)
            mass = np.maximum(counts - sigma, 0) + 1e-9
            self.cells.append(mass / mass.sum())
            self.joined.append(np.minimum((np.cumsum(self.cells[-1]) - self.cells[-1] / 2) * BINS, BINS - 1).astype(int))

    @staticmethod
    def _is_number(block):
        return block.stop - block.start == 1 and block.kind not in ("binary", "categorical")

    @staticmethod
    def _cells(values):
        return np.minimum((values * CELLS).astype(int), CELLS - 1)

    def codes(self, encoded):
        found, joined = [], iter(self.joined)
        for block in self.blocks:
            part = encoded[:, block.start : block.stop]
            if self._is_number(block):
                found.append(next(joined)[self._cells(part[:, 0])])
            elif part.shape[1] == 1:
                found.append(part[:, 0].astype(int))
            else:
                found.append(np.where(part.sum(axis=1) > 0, part.argmax(axis=1), part.shape[1]))
        return np.column_stack(found)

    @property
    def sizes(self):
        wide = (block.stop - block.start for block in self.blocks)
        return tuple(BINS if self._is_number(b) else 2 if k == 1 else k + 1 for b, k in zip(self.blocks, wide, strict=True))

    def fill(self, codes):
        out, numbers = np.zeros((len(codes), self.blocks[-1].stop)), iter(zip(self.cells, self.joined, strict=True))
        for code, block in zip(codes.T, self.blocks, strict=True):
            if self._is_number(block):
                out[:, block.start] = self._numbers(code, *next(numbers))
            elif block.stop - block.start == 1:
                out[:, block.start] = code
            else:
                known = code < block.stop - block.start
                out[np.flatnonzero(known), block.start + code[known]] = 1.0
        return out

    def _numbers(self, code, mass, joined):
        steps = np.cumsum(mass)
        starts = np.array([mass[joined < k].sum() for k in range(BINS + 1)])
        place = starts[code] + self.random.random(len(code)) * (starts[code + 1] - starts[code])
        return (np.minimum(np.searchsorted(steps, place), CELLS - 1) + self.random.random(len(code))) / CELLS


class Counts:
    """Private counts of codes, measured with noise for a total of `mu`."""

    def __init__(self, codes, sizes, mu, random):
        self.codes, self.mu, self.random, self.total = codes, mu, random, float(len(codes))  # whose number is public
        self.domain = mbi.Domain(tuple(range(len(sizes))), sizes)
        self.pairs = list(combinations(range(len(sizes)), 2))
        self.exact = {}

    def _table(self, codes, clique):
        shape = self.domain.project(clique).shape
        return np.bincount(np.ravel_multi_index(codes[:, clique].T, shape), minlength=int(np.prod(shape))).astype(float)

    def measure(self, cliques, share):
        """These tables together cost `share` of μ²: k tables have L2 sensitivity √k."""
        sigma = sqrt(len(cliques) / share) / self.mu
        tables = {clique: self._table(self.codes, clique) for clique in cliques}
        return [mbi.LinearMeasurement(t + self.random.normal(0, sigma, len(t)), clique, sigma) for clique, t in tables.items()]

    def choose(self, scores, share, allowed=lambda clique: True):
        """The exponential mechanism among allowed cliques for scores of sensitivity one: exp(ε·score/2), ε = 2μ."""
        noisy = self.mu * sqrt(share) * np.array(list(scores.values())) + self.random.gumbel(size=len(scores))
        cliques = list(scores)
        return next(cliques[place] for place in np.argsort(-noisy) if allowed(cliques[place]))

    def misses(self, model, cliques):
        """By how many records (L1) the model misses each table, judged on records drawn from it."""
        drawn, scale = self.draw(model), self.total / RECORDS
        self.exact |= {clique: self._table(self.codes, clique) for clique in cliques if clique not in self.exact}
        return {clique: np.abs(self.exact[clique] - self._table(drawn, clique) * scale).sum() for clique in cliques}

    def fit(self, measurements, before=None):
        descent = mbi.estimation.MirrorDescent()
        how = {"iters": ITERATIONS, "tol": CLOSE, "patience": 1}
        return descent.estimate(self.domain, measurements, self.total, warm_start=before, **how)

    def draw(self, model):
        np.random.seed(int(self.random.integers(1 << 31)))  # noqa: NPY002  (mbi draws from the global generator)
        columns = model.synthetic_data(RECORDS).to_dict()
        return np.column_stack([columns[attribute].astype(np.int64) for attribute in self.domain])


def mst(counts):
    """Single features, a noisy maximum spanning tree of what they miss, and the tree's tables."""
    ones = counts.measure([(a,) for a in counts.domain], ONE_WAY)
    scores = counts.misses(counts.fit(ones), counts.pairs)
    part, tree = {a: a for a in counts.domain}, []
    for _ in range(len(part) - 1):
        open_ = {(a, b): score for (a, b), score in scores.items() if part[a] != part[b]}
        tree.append(counts.choose(open_, MST_CHOICE / (len(counts.domain) - 1)))
        first, second = (part[a] for a in tree[-1])
        part = {a: first if p == second else p for a, p in part.items()}
    return counts.fit(ones + counts.measure(tree, 1 - ONE_WAY - MST_CHOICE))


def aim(counts):
    """Single features, then in each round the table that the model misses most beyond noise, until nothing is left of the budget.

    The workload is all tables of three features, so that a table counts as much as it has features. The model may be as large a part of the
    limit as the budget that is used.
    """
    features = list(counts.domain)
    cliques = [clique for size in range(1, WORKLOAD + 1) for clique in combinations(features, size)]
    share, left = 1 / (ROUNDS * len(features)), 1 - (1 - AIM_CHOICE) / ROUNDS  # of μ²: a round, and after single features
    found = counts.measure([(a,) for a in features], 1 - left)
    model = counts.fit(found)
    while left > 0:
        share = left if left <= 2 * share else share
        left -= share
        noise = sqrt(2 / np.pi / (share * (1 - AIM_CHOICE))) / counts.mu  # expected, a cell
        fits = partial(_fits, counts, [one.clique for one in found], (1 - left) * LARGEST)
        missed = counts.misses(model, cliques)
        scores = {c: len(c) / WORKLOAD * (miss - noise * counts.domain.size(c)) for c, miss in missed.items()}
        chosen = counts.choose(scores, share * AIM_CHOICE, fits)
        found += counts.measure([chosen], share * (1 - AIM_CHOICE))
        before, model = model, counts.fit(found, model)
        moved = np.abs(model.project(chosen).datavector() - before.project(chosen).datavector()).sum()
        share *= 4 if moved <= noise * counts.domain.size(chosen) else 1
    return model


def _fits(counts, measured, megabytes, clique):
    return mbi.junction_tree.hypothetical_model_size(counts.domain, [*measured, clique]) <= megabytes


MODELS = {"MST": mst, "AIM": aim}


def synthesize(name, domain, encoded, mu, seed):
    """Encoded records by MST or AIM for the whole of `mu`."""
    random = np.random.default_rng(seed)
    bins = Bins(domain, encoded, mu * sqrt(HISTOGRAMS), random)
    counts = Counts(bins.codes(encoded), bins.sizes, mu * sqrt(1 - HISTOGRAMS), random)
    return bins.fill(counts.draw(MODELS[name](counts)))
