"""Algorithm 1 on reviews, as Tables 2 and 3 both need it: one pass over the reviews that solves and draws noise once for everything.

The scales of the columns share a review's noise, the tables share the answers: Table 3 takes their losses, Table 2 their words.
"""

from __future__ import annotations

from functools import partial
from math import sqrt

import numpy as np

import dpexplain as dpx
from dpexplain.noise import SeededNoise
from dpexplain.privacy import gdp
from dpexplain.progress import with_bar
from experiments.paper import _lanes
from experiments.paper._exact import Problem
from experiments.paper._streams import KnownRows, stack
from experiments.paper._study import SEED
from experiments.paper._words import sums_around

EPSILONS, DELTA, STEPS = (0.01, 0.1), 1e-6, 300
OTHER_STEPS, MOST_STEPS = (100, 1000, 3000), 1000  # longer walks take the noise of several seeds one after the other
SCALES = (1.0, 0.3, 0.1, 0.03)
PIECE, OURS_EVERY, OUR_SEEDS = 50, 10, 2  # the library takes a sixth of a second an answer
PRINTED, AT_ITS_SIZE, OPTIMUM, MIMS = "paper", "paper, noise of its size", "exact optimum", ("MIM", "MIM, signed")
OURS, OURS_AT_ITS_SIZE, STRONG = "ours", "ours, μ of its size", 1.0
WORDS_OF = (PRINTED, AT_ITS_SIZE)  # whose values Table 2 looks at, at ε = 0.1
BUDGET = dpx.Budget(1e7, DELTA)


def measure(inputs, queries, minutes, counted=True):
    """{"scale/ε/explanation": {quantity: (seeds, reviews), "values": (reviews, seeds, words)}}, computed and stored PIECE reviews at a time."""
    parts, starts = inputs.parts("texts", queries, counted), range(0, queries, PIECE)
    chosen = inputs.reviews.draw_positions(queries)
    pieces = [
        parts.get(f"{start}", partial(measure_piece, inputs, chosen[start : start + PIECE], start), minutes / len(starts))
        for start in starts
    ]
    return {
        key: {what: np.concatenate([piece[key][what] for piece in pieces], axis=int(what != "values")) for what in one}
        for key, one in pieces[0].items()
    }


def measure_piece(inputs, positions, start):
    reviews, told = inputs.reviews, {}
    points = np.array([reviews.domain.encode_query(reviews.texts[i]) for i in positions])
    data, width = inputs.private_reviews, points.shape[1]
    lanes = algorithms(data.size, width, inputs.seeds, reviews.paper_rows)
    normal = _lanes.Normal(inputs.seeds, MOST_STEPS, width, [SEED, start])
    ours = Ours(inputs, start)
    for i, point in enumerate(with_bar(points, "reviews")):
        noise = normal.draw()
        for scale, sums in sums_around(data, point, SCALES).items():
            problem = Problem.of(point * scale, sums.A, sums.b)
            note(told, scale, problem, lanes, noise)
            if scale == 1:
                sign = reviews.truth[positions[i]]
                append(told, f"1/0/{MIMS[0]}", values=(sums.first * sign + sums.b)[None] / 2)
                append(told, f"1/0/{MIMS[1]}", values=sums.b[None])
                if i % OURS_EVERY == 0:
                    ours.note(told, problem, reviews.texts[positions[i]])
    return {key: {what: gather(lines, what) for what in lines[0]} for key, lines in told.items()}


def gather(lines, what):
    """Values as (reviews, seeds, words) in single precision, everything else as (seeds, reviews)."""
    return (
        np.array([line[what] for line in lines], np.float32)
        if what == "values"
        else stack([{what: line[what]} for line in lines])[what]
    )


def append(told, key, **quantities):
    told.setdefault(key, []).append(quantities)


def note(told, scale, problem, lanes, noise):
    """What the printed algorithm answers about one review at one scale."""
    append(told, f"{scale:g}/0/{OPTIMUM}", values=problem.best[None])
    for (epsilon, kind), one in lanes.items():
        values = one.answer(problem.point, problem.A, problem.b, in_walks(noise, one))[0]
        found = problem.scores(values)
        append(told, f"{scale:g}/{epsilon}/{kind}", **found, **({"values": values} if (epsilon, kind) in WITH_WORDS else {}))
    for epsilon in EPSILONS:
        append(told, f"{scale:g}/{epsilon}/no explanation", **problem.scores(np.zeros((1, len(problem.b)))))


WITH_WORDS = {(EPSILONS[1], kind) for kind in WORDS_OF}


def in_walks(noise, algorithm):
    """The noise of as many walks as the algorithm has lanes, each as long as its steps: fewer and longer ones, if need be."""
    lanes, steps, width = noise.shape
    times = lanes // algorithm.lanes
    return noise[: algorithm.lanes * times].reshape(algorithm.lanes, times * steps, width) if times > 1 else noise


def algorithms(size, width, seeds, paper_rows):
    """{(ε, name): Algorithm 1 for all seeds at once}: the printed noise, that of the paper's size, exact noise, and other numbers of steps."""
    found = {}
    for epsilon in EPSILONS:

        def basic(rows, count, sigma=None, epsilon=epsilon):
            lanes = max(1, seeds // -(-count // MOST_STEPS))
            return _lanes.Basic(rows, width, epsilon, DELTA, count, lanes, sigma=sigma)

        exact = sqrt(STEPS - 1) / gdp.mu(epsilon, DELTA)  # one record moves a gradient sum by at most 1
        found[epsilon, PRINTED] = basic(size, STEPS)
        found[epsilon, "exact noise"] = basic(size, STEPS, exact / size)
        found[epsilon, AT_ITS_SIZE] = basic(paper_rows, STEPS)
        found[epsilon, "exact noise of its size"] = basic(paper_rows, STEPS, exact / paper_rows)
        found |= {(epsilon, f"paper, T = {count}"): basic(paper_rows, count) for count in OTHER_STEPS}
    return found


def our_budgets(factor):
    """{(ε, kind): ε of a query}; the last is Table 2's."""
    asked = {(epsilon, OURS): epsilon for epsilon in EPSILONS} | {(STRONG, OURS): STRONG}
    return asked | {(e, OURS_AT_ITS_SIZE): gdp.epsilon(gdp.mu(e, DELTA) * factor, DELTA) for e in EPSILONS}


class Ours:
    """The library's answers about reviews whose sums are known."""

    def __init__(self, inputs, start):
        data = inputs.private_reviews
        self.rows = KnownRows(data.size)
        data.wrap_rows(self.rows.wrap)
        seeds = range(start, start + min(OUR_SEEDS, inputs.own_seeds))
        kinds = {key: dpx.Basic(epsilon, DELTA, plane="paper") for key, epsilon in our_budgets(inputs.reviews.factor).items()}
        self.explainers = {
            key: [dpx.Explainer(data, BUDGET, one, noise=SeededNoise(seed)) for seed in seeds] for key, one in kinds.items()
        }

    def note(self, told, problem, text):
        self.rows.problem = problem
        for (epsilon, kind), each in self.explainers.items():
            values = np.array([one.explain(text).values for one in each])
            append(told, f"1/{epsilon}/{kind}", **problem.scores(values), values=values)
        self.rows.problem = None  # the same data are asked again, at other scales
