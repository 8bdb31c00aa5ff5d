"""Fitted planes about models of reviews by our own trainer: Figure 7's distances from the plain model's optimum, and Figure 8's question whether an
answer is worse where the model is wrong about the 50 nearest reviews.

Curvature does not depend on a model's answers, so that each review's is computed once for all models. Releases explain every review; paid answers, which
take a hundred times as long, every tenth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from dpexplain.progress import with_bar
from experiments.paper import _streams, _training
from experiments.paper._exact import optima
from experiments.paper._study import SEED
from experiments.paper.figure_7 import pulls, weigh

MODELS = {"own f": None, "own f_10": 10.0, "own f_0.5": 0.5, "own f_0.01": 0.01}  # ε̂
PAID, ONCE, THE_PAPERS = "basic, ε = 1", "release, ε = 1 once", "the paper's plane, exact"
DELTA, DRAWS, TIMES, PAID_EVERY = 1e-5, 2, 10, 10
CUT = 1e-6  # of the largest eigenvalue: what rows do not determine, as `evaluation.optimum` has it


def explain_models(inputs, queries):
    """{"Text, MODEL/explanation": {quantity: (draws, reviews)}} about `TIMES` as many reviews; in a quick run about the plain and the weakest model."""
    reviews, every = inputs.reviews, list(MODELS.items())
    rows, rng = reviews.domain.encode(reviews.texts), np.random.default_rng(SEED)
    training = rng.permutation(rows.shape[0])[: rows.shape[0] * 7 // 10]
    chosen = dict([every[0], every[-1]] if inputs.quick else every)
    labels = np.array([_training.train(rows[training], reviews.truth[training], epsilon)(rows) for epsilon in chosen.values()])
    told = {f"Text, {name}/{kind}": [] for name in chosen for kind in (PAID, ONCE, THE_PAPERS)}
    draws = 1 if inputs.quick else DRAWS
    sources = [Sources.of(reviews, answers, range(draws * k, draws * (k + 1))) for k, answers in enumerate(labels)]
    positions = reviews.draw_positions(TIMES * queries, SEED + 1)
    for number, i in enumerate(with_bar(positions, "models")):
        problem = Problem.around_text(reviews.texts[i], sources[0].data, rows, labels)
        wrong = (labels[:, problem.near] != reviews.truth[problem.near]).mean(axis=1)
        for k, name in enumerate(chosen):
            answers = sources[k].explain(reviews.texts[i], number % PAID_EVERY == 0)
            answers |= {THE_PAPERS: problem.of_papers_plane(k)[None]} if PAID in answers else {}
            for kind, values in answers.items():
                told[f"Text, {name}/{kind}"].append(problem.scores(k, values) | {"wrong": np.full(len(values), wrong[k])})
    return {key: _streams.stack(lines) for key, lines in told.items()}


class Sources(NamedTuple):
    """A model's reviews, an explainer and releases."""

    data: dpx.PrivateData
    paid: dpx.Explainer
    releases: list[dpx.Release]

    @classmethod
    def of(cls, reviews, labels, seeds):
        data = dpx.PrivateData(reviews.texts, reviews.domain, labels=labels)
        paid = dpx.Explainer(data, _streams.BUDGET, dpx.Basic(1.0, DELTA), noise=SeededNoise(seeds[0]))
        once = dpx.Budget(1.0, _streams.TOTAL_DELTA)
        return cls(data, paid, [dpx.release(data, once, noise=SeededNoise(seed)) for seed in seeds])

    def explain(self, text, pay):
        """{explanation: (draws, words)}."""
        found = {ONCE: np.array([one.explain(text, plane="fitted").values for one in self.releases])}
        return found | ({PAID: self.paid.explain(text).values[None]} if pay else {})


class Problem(NamedTuple):
    """Sums around one review: curvature with the best constant taken out, each model's b with and without it, and the optima."""

    A: np.ndarray
    removed: np.ndarray  # what the constant took out of A
    b: np.ndarray  # (models, words)
    plain_b: np.ndarray
    best: np.ndarray
    near: np.ndarray  # rows
    size: int

    @classmethod
    def around_text(cls, text, data, rows, labels):
        point = data.domain.encode_query(text)
        alpha, near = weigh(rows, point)
        middle = pulls(rows, point, alpha, np.ones((1, len(alpha))))[0]
        plain = pulls(rows, point, alpha, labels)
        b = plain - np.outer(labels @ alpha, middle / alpha.sum())
        A = evaluation.local_moments(data, point).A
        best = b @ np.linalg.pinv(A, CUT, hermitian=True)
        return cls(A, np.outer(middle, middle / alpha.sum()), b, plain, best, near, data.size)

    def of_papers_plane(self, model):
        """Its exact optimum, which is to be judged with the best constant beside it."""
        return optima(self.A + self.removed, self.plain_b[model : model + 1])[0]

    def scores(self, model, values):
        moments = evaluation.Moments(self.A, self.b[model], np.zeros(len(self.A)))
        found = [evaluation.compare(one, self.best[model], moments, self.size) for one in values]
        scored = {what: np.array([getattr(one, what) for one in found]) for what in _streams.QUANTITIES}
        return scored | {"distance": np.linalg.norm(values - self.best[0], axis=1)}
