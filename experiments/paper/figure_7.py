"""Figure 7: Text, explanations of models trained with differential privacy: how far from the plain model's, and how good.

Networks for ε̂ = 0.5, 2, 10 and none (δ̂ = 1e-5), trained on 35,000 reviews by Opacus and by our own trainer; Algorithm 1 with ε = 0.1, δ = 1e-5, T =
200, and T = 500 for Figure 8, at the noise of the paper's 8.8 M reviews. A well trained f_0.5 is right about as often as f_10; the paper's is right
for 52 %, so a badly trained one is added. Curvature A does not depend on a model's answers, so that each review's A is computed once for all models.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import dpexplain as dpx
from dpexplain import evaluation, plots
from dpexplain.noise import SeededNoise
from dpexplain.privacy import paper
from dpexplain.progress import with_bar
from experiments.paper import _lanes, _private_models
from experiments.paper._exact import Problem, optima
from experiments.paper._streams import KnownRows
from experiments.paper._study import SEED, TEXT_FILES, Study, digits, figure, mean

EPSILON, DELTA, NEAREST = 0.1, 1e-5, 50
PRINTED = {"paper, T=200": 200, "paper, T=500": 500}
OURS, OURS_EVERY = "ours, ε = 1", 4  # the library answers one model at a time, about every fourth review
PANELS = {"paper, T=200": "the paper's formulas, T = 200", OURS: "our defaults, ε = 1"}
PIECE = 250
EXPLAINED = None  # how many reviews are explanation data; None: all
BUDGET = dpx.Budget(1e7, DELTA)


def run(inputs, queries):
    reviews, rng = inputs.reviews, np.random.default_rng(SEED)
    rows = reviews.domain.encode(reviews.texts)
    training, test = np.split(rng.permutation(rows.shape[0]), [rows.shape[0] * 7 // 10])
    models = _private_models.models_of_reviews(rows[training], reviews.truth[training], inputs)
    some = np.sort(rng.permutation(rows.shape[0])[:EXPLAINED])
    labels = np.array([model(rows[some]) for model in models.values()])
    chosen = reviews.draw_positions(queries, SEED + 1)
    points = reviews.domain.encode_queries([reviews.texts[i] for i in chosen])
    work = Work(reviews, rows[some], some, labels, list(models), inputs.seeds)
    told = compute_in_pieces(inputs.parts("figure-7", queries), work, points)
    described = [_private_models.describe(name, model, rows[test], reviews.truth[test]) for name, model in models.items()]
    seeds = dict.fromkeys(PRINTED, work.draws) | {OURS: 1}
    lines = [line(row, name, told[row["model"]]) | {"seeds": each} for row in described for name, each in seeds.items()]
    return {"rows": lines, "models": described, "told": told, "explanation rows": len(some)}


class Work(NamedTuple):
    """What every piece of the reviews needs."""

    reviews: Any
    rows: Any
    some: np.ndarray  # which reviews the rows are
    labels: np.ndarray  # (models, rows)
    names: list
    draws: int


def compute_in_pieces(parts, work, points):
    """{model: {quantity: one number a review}}, computed and stored PIECE reviews at a time."""
    starts = range(0, len(points), PIECE)
    size = STUDY.minutes / len(starts)
    pieces = [parts.get(f"reviews-{i}", lambda i=i: explain_reviews(work, points[i : i + PIECE], i), size) for i in starts]
    keys = pieces[0][work.names[0]].keys()
    return {name: {key: np.concatenate([one[name][key] for one in pieces]).tolist() for key in keys} for name in work.names}


def explain_reviews(work, points, first):
    """{model: {quantity: one number a review}}: draws of noise are averaged."""
    reviews, some = work.reviews, work.some
    data = dpx.PrivateData([reviews.texts[i] for i in some], reviews.domain, labels=reviews.truth[some])
    own, count = _Ours(data, len(work.names), reviews.domain), len(work.names)
    printed = {name: _Printed(reviews.paper_rows, steps, count, work.draws) for name, steps in PRINTED.items()}
    lines, normal = [], _lanes.Normal(count * work.draws, max(PRINTED.values()), points.shape[1], [SEED, first])
    for number, point in enumerate(with_bar(points, "reviews")):
        alpha, near = weigh(work.rows, point)
        A = evaluation.local_moments_of(data, [point])[0].A / data.size
        targets = pulls(work.rows, point, alpha, work.labels) / data.size
        best = optima(A, targets)
        gains = 2 * np.einsum("ij,ij->i", targets, best) - np.einsum("ij,ij->i", best @ A, best)
        found = {"no explanation": gains, "optimum moved": np.linalg.norm(best - best[0], axis=1)}
        found["wrong nearby"] = (work.labels[:, near] != reviews.truth[some][near]).mean(axis=1)
        noise = normal.draw()
        answers = {name: one.answer(A, targets, noise) for name, one in printed.items()}
        if number % OURS_EVERY == 0:
            answers[OURS] = own.answer(point, A, targets)
        for name, values in answers.items():
            found |= judge(name, values, A, targets, gains, best)
        lines.append(found)
    columns = {key: np.array([line[key] for line in lines if key in line]) for key in lines[0]}
    return {name: {key: column[:, i] for key, column in columns.items()} for i, name in enumerate(work.names)}


class _Printed:
    """Algorithm 1 at the noise of so many rows, for all models and draws at once."""

    def __init__(self, size, steps, models, draws):
        self.sigma = paper.basic_sigma(size, EPSILON, DELTA, steps)
        self.steps, self.draws, self.lanes = steps, draws, models * draws

    def answer(self, A, targets, noise):
        """(models, draws, width)."""
        width, same = len(A), np.ones(self.lanes)
        rate, start = paper.learning_rate(width, self.sigma), np.zeros((self.lanes, width))
        repeated = np.repeat(targets, self.draws, axis=0)
        values = _lanes.descend(A, repeated, start, self.sigma * same, rate * same, noise[:, : self.steps - 1])
        return values.reshape(-1, self.draws, width)


def weigh(rows, point):
    """(α of each row, the nearest rows): for binary rows ‖x - z‖² = Σx + Σz - 2x·z."""
    squares = np.asarray(rows.sum(axis=1)).ravel() + point.sum() - 2 * np.asarray(rows @ point).ravel()
    return dpx.weights.Stable()(np.sqrt(np.maximum(squares, 0.0))), np.argsort(squares, kind="stable")[:NEAREST]


def pulls(rows, point, alpha, labels):
    """b of each model: Σ α y (x - z)."""
    weights = labels * alpha
    return np.asarray(rows.T @ weights.T).T - np.outer(weights.sum(axis=1), point)


class _Ours:
    """The library's own answers about all models: one explainer each, which sees the same A and its model's b."""

    def __init__(self, data, models, domain):
        self.rows, self.domain = KnownRows(data.size), domain
        data.wrap_rows(self.rows.wrap)
        basic = dpx.Basic(1.0, DELTA, plane="paper")
        self.explainers = [dpx.Explainer(data, BUDGET, basic, noise=SeededNoise(k)) for k in range(models)]

    def answer(self, point, A, targets):
        """(models, 1, width)."""
        text = " ".join(name for name, has in zip(self.domain.names, point, strict=True) if has)
        values = []
        for explainer, target in zip(self.explainers, targets, strict=True):
            self.rows.problem = Problem(point, A, target, target, 0.0)
            values.append([explainer.explain(text).values])
        self.rows.problem = None
        return np.array(values)


def judge(name, values, A, targets, gains, best):
    """Distance from the plain model's optimum and excess loss, means over draws."""
    losses = np.einsum("mdi,ij,mdj->md", values, A, values, optimize=True) - 2 * np.einsum("mdi,mi->md", values, targets)
    excess = losses.mean(axis=1) + gains
    distance = np.linalg.norm(values - best[0], axis=2).mean(axis=1)
    return {f"{name}: distance": distance, f"{name}: excess": excess, f"{name}: relative": excess / gains}


def line(described, mechanism, told):
    row = {key: described[key] for key in ("model", "test accuracy", "in the paper", "ε̂")} | {"mechanism": mechanism}
    for key, title in (("distance", "distance from f's optimum"), ("excess", "excess loss"), ("relative", "relative excess")):
        values = np.array(told[f"{mechanism}: {key}"])
        row |= {title: mean(values), f"± {title}": digits(values.std() / np.sqrt(len(values)), 2)}
    row["distance of the exact optimum"] = mean(told["optimum moved"])
    row["of no explanation"] = mean(told["no explanation"])
    return row | {"labels wrong nearby": mean(told["wrong nearby"]), "reviews": len(told[f"{mechanism}: excess"])}


def draw(found):
    """The models that the paper has; those of our own trainer are in the table."""
    drawn, axes = figure(2, 2)
    shown = {"distance": "Dist: distance from the plain model's optimum", "excess": "approximation error (excess loss)"}
    for row, (mechanism, heading) in zip(axes, PANELS.items(), strict=True):
        for ax, (key, title) in zip(row, shown.items(), strict=True):
            told = {name: one for name, one in found["told"].items() if name != "f" and not name.startswith("own ")}
            values = {name: np.maximum(one[f"{mechanism}: {key}"], 1e-9) for name, one in told.items()}
            plots.histogram(values, bins=20, quantity=title, title=heading, ax=ax)
            ax.locator_params(axis="x", nbins=5)
            ax.set_ylim(top=1.35 * ax.get_ylim()[1])  # room for the legend
    return drawn


STUDY = Study(
    name="figure-7",
    title="Text: explanations of models trained with differential privacy",
    shows="distance and excess loss are larger for f_0.5 than for f_2 and f_10",
    files=TEXT_FILES,
    full=1000,
    quick=8,
    run=run,
    draw=draw,
    minutes=8,
)
