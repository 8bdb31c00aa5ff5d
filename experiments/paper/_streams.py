"""Sequences of queries about disjoint shards, each answered by several mechanisms: what was spent, how many iterations, how good.

The paper's algorithms run for all seeds at once (`_lanes.py`); ours run in the library, seed by seed, on the same stored sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import MaxNLocator

import dpexplain as dpx
from dpexplain import evaluation, plots
from dpexplain.noise import SeededNoise
from dpexplain.plots.style import SERIES
from dpexplain.privacy import gdp
from dpexplain.progress import with_bar
from experiments.paper import _lanes
from experiments.paper._exact import problems
from experiments.paper._free_labels import LabelsOfHistories
from experiments.paper._study import digits, mean, plain_numbers

SHARDS, DELTA, STEPS, TOTAL_DELTA = 3, 1e-7, 300, 1e-6
BUDGET = dpx.Budget(100_000.0, TOTAL_DELTA)  # large enough to be told what was spent instead of being stopped
QUANTITIES = ("excess_loss", "relative_excess", "cosine")
PRINTED = ("basic, paper", "adaptive, paper", "enhanced, paper")
OURS = ("basic, ours", "adaptive, ours", "enhanced, ours")
FREE = ("labels", "regression", "neighbour")  # methods of the non-interactive phase; the paper has the first
FREE_SEEDS = 5


@dataclass(frozen=True)
class Plan:
    """What is asked of one shard: `size` rows are what the paper's formulas see, which may be more than the shard has."""

    shard: dpx.PrivateData
    records: list
    later: list  # for the non-interactive phase
    size: int
    our_mechanisms: dict  # {name: mechanism}
    epsilon: float
    release: float | None = None  # ε of one release

    def points(self):
        encoded = [self.shard.domain.encode_query(record) for record in (*self.records, *self.later)]
        return np.asarray(encoded[: len(self.records)]), np.asarray(encoded[len(self.records) :])


def our_mechanisms(epsilon):
    """Our defaults with the paper's plane, and its rule made private with exact noise."""
    return {
        "basic, ours": dpx.Basic(epsilon, DELTA, plane="paper"),
        "adaptive, ours": dpx.Adaptive(epsilon, DELTA, STEPS, plane="paper"),
        "enhanced, ours": dpx.Enhanced(epsilon, DELTA, STEPS, plane="paper"),
        "adaptive, paper's rule made private": dpx.Adaptive(epsilon, DELTA, STEPS, rule="paper", plane="paper"),
        "enhanced, paper's rule made private": dpx.Enhanced(epsilon, DELTA, STEPS, rule="paper", plane="paper"),
    }


def paper_algorithms(size, width, epsilon, lanes, seed):
    """The paper's three algorithms to the letter."""
    common = {"lanes": lanes, "total_delta": TOTAL_DELTA}
    return {
        "basic, paper": _lanes.Basic(size, width, epsilon, DELTA, STEPS, **common),
        "adaptive, paper": _lanes.Adaptive(size, width, epsilon, DELTA, STEPS, seed=seed + 1, **common),
        "enhanced, paper": _lanes.Adaptive(size, width, epsilon, DELTA, STEPS, seed=seed + 2, only_beta=True, **common),
    }


def ask_paper_algorithms(plan, lanes, seed, stored=None, names=PRINTED):
    """{mechanism: {quantity: (seeds, queries)}} by the paper's formulas; its non-interactive phase answers the later records."""
    points, later = plan.points()
    everything = paper_algorithms(plan.size, points.shape[1], plan.epsilon, lanes, 1000 * seed)
    chosen = {name: everything[name] for name in names}
    told = answer_all(
        chosen, problems(plan.shard, points, stored), _lanes.Normal(lanes, STEPS, points.shape[1], 1000 * seed), len(points)
    )
    histories = {f"adaptive, paper|{k}": _history(chosen["adaptive, paper"], k, points) for k in range(min(lanes, FREE_SEEDS))}
    return told | ask_without_rows(plan, later, histories, "paper", stored)


def answer_all(chosen, asked, normal, count):
    """{mechanism: {quantity: (seeds, queries)}} of these lanes on the same problems and noise."""
    told = {name: [] for name in chosen}
    for problem in with_bar(asked, "the paper's", count):
        noise = normal.draw()
        for name, one in chosen.items():
            values, iterations = one.answer(problem.point, problem.A, problem.b, noise)
            spent = {"mu": one.mu, "claimed": one.claimed, "iterations": iterations}
            told[name].append(problem.scores(values) | spent)
    return {name: stack(lines) for name, lines in told.items()}


def _history(adaptive, lane, points):
    entries = zip(points, adaptive.sources, strict=True)
    return evaluation.History.of(evaluation.ReleasedAnswer(point, adaptive.answers[source][lane]) for point, source in entries)


def ask_without_rows(plan, later, histories, kind, stored):
    """The non-interactive phase from several seeds' histories."""
    answer = {method: phase_of(method, list(histories.values())) for method in FREE}
    told = {f"non-interactive by {method}, {kind}": [] for method in FREE}
    stored = stored and stored.with_name(f"later-{stored.name}")
    for problem in with_bar(problems(plan.shard, later, stored) if len(later) else (), "free", len(later)):
        for method in FREE:
            told[f"non-interactive by {method}, {kind}"].append(problem.scores(answer[method](problem.point)))
    return {name: stack(lines) for name, lines in told.items() if lines}


def phase_of(method, histories):
    """What answers a point from each of these histories by this method, one a row."""
    if method == "labels":
        return LabelsOfHistories(histories).answers
    phases = [dpx.NonInteractive(history, method) for history in histories]
    return lambda point: np.array([phase.explain(point).values for phase in phases])


def ask_library(plan, seeds, seed, stored=None):
    """The same by the library, by a few seeds of noise where answers share it, and by one release a seed."""
    points, later = plan.points()
    rows = KnownRows(plan.shard.size)
    plan.shard.wrap_rows(rows.wrap)
    explainers = {
        name: [dpx.Explainer(plan.shard, BUDGET, one, noise=SeededNoise(100 * seed + k)) for k in range(draws(one, seeds))]
        for name, one in plan.our_mechanisms.items()
    }
    made = make_releases(plan, seeds, seed) if plan.release else {}
    told = {name: [] for name in (*explainers, *made)}
    for record, problem in with_bar(zip(plan.records, problems(plan.shard, points, stored), strict=True), "ours", len(points)):
        rows.problem = problem
        for name, each in explainers.items():
            answers = [explainer.explain(record) for explainer in each]
            spent = {"mu": np.array([e.spent.mu for e in each]), "iterations": np.array([_iterations(a) for a in answers])}
            told[name].append(problem.scores(np.array([a.values for a in answers])) | spent)
        for name, each in made.items():
            told[name].append(problem.scores(np.array([one.explain(record).values for one in each])))
    rows.problem = None
    histories = {str(k): _plain(one.history) for k, one in enumerate(explainers.get("adaptive, ours", ())[:FREE_SEEDS])}
    found = {name: stack(lines) for name, lines in told.items()}
    return found | (ask_without_rows(plan, later, histories, "ours", stored) if histories else {})


def draws(mechanism, seeds):
    """Answers by `Basic` have noise of their own, so that one draw for each of many queries is enough; others share what history has."""
    return 1 if isinstance(mechanism, dpx.Basic) else seeds


def _plain(history):
    """The history without its domain, so that encoded points can be asked about."""
    return evaluation.History.of(evaluation.ReleasedAnswer(one.point, one.values, one.copied) for one in history)


def _iterations(answer):
    return 0 if answer.copied else answer.details["gradients"] + 1


def make_releases(plan, seeds, seed):
    """One release instead of paid answers: everything after it is free."""
    budget = dpx.Budget(plan.release, TOTAL_DELTA)
    made = [OnPapersPlane(dpx.release(plan.shard, budget, noise=SeededNoise(100 * seed + k))) for k in range(seeds)]
    return {f"release, ε = {plan.release:g} once": made}


@dataclass(frozen=True)
class OnPapersPlane:
    """A release that answers with the plane that studies judge by, through 0 at the point; by default it answers with the fitted one."""

    release: dpx.Release

    def explain(self, record):
        return self.release.explain(record, plane="paper")


class KnownRows:
    """Rows that answer about one problem from its stored sums, and about everything else themselves."""

    def __init__(self, size):
        self.size, self.problem = size, None

    def wrap(self, rows):
        self.rows = rows
        return self

    def local(self, query):
        return self.local_many([query])[0]

    def local_many(self, queries):
        return [self._moments_at(query) for query in queries]

    def _moments_at(self, query):
        problem = self.problem
        if problem is None or not np.array_equal(query.point, problem.point):
            return self.rows.local_many([query])[0]
        return evaluation.Moments(problem.A * self.size, problem.b * self.size, np.zeros(len(problem.b)))

    def __getattr__(self, name):
        return getattr(self.rows, name)


def judge(shard, records):
    """Each record with a function that compares an answer about it with the exact optimum."""
    for record in with_bar(list(records), "queries"):
        point = shard.domain.encode_query(record)
        moments = evaluation.local_moments(shard, point, plane="paper")
        best = evaluation.minimise(moments.A, moments.b)

        def score(values, best=best, moments=moments):
            found = evaluation.compare(values, best, moments, shard.size)
            return {quantity: digits(getattr(found, quantity), 5) for quantity in QUANTITIES}

        yield record, score


def stack(lines):
    return {key: np.array([line[key] for line in lines]).T for key in lines[0]}


def over_shards(runs):
    """Queries of all shards in the order they were asked, (seeds, queries); totals are the worst shard's so far (parallel composition)."""
    together = {}
    for name in runs[0]:
        each = [run[name] for run in runs]
        together[name] = {key: np.stack([run[key] for run in each], axis=2).reshape(len(each[0][key]), -1) for key in each[0]}
        for total in {"mu", "claimed"} & set(together[name]):
            together[name][total] = np.maximum.accumulate(together[name][total], axis=1)
    return together


def line(name, told, factor=1.0):
    """A row of the table about one mechanism, means with standard errors: over queries and seeds for quality, over seeds for totals.

    μ is divided by `factor` where rows were fewer than the noise was made for.
    """
    row = {"mechanism": name}
    if "mu" in told:
        row |= with_error("total ε, exact", [gdp.epsilon(mu / factor, TOTAL_DELTA) for mu in told["mu"][:, -1]])
    if "claimed" in told:
        row |= with_error("ε by the paper's bookkeeping", told["claimed"][:, -1])
    if "iterations" in told:
        counts = told["iterations"]
        row |= with_error("mean T'", [each[each > 0].mean() for each in counts], 3)
        row["copied"] = f"{(counts == 0).mean():.0%}"
        row["at full T"] = f"{(counts >= STEPS).sum(axis=1).mean():.0f} of {counts.shape[1]}"
    for key, title in (("excess_loss", "excess loss"), ("relative_excess", "relative excess"), ("cosine", "cosine")):
        row |= with_both_errors(title, told[key])
    return row | {"seeds": len(told["cosine"]), "queries": told["cosine"].shape[1]}


def with_error(title, values, count=4):
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return {title: mean(values) if count == 4 else digits(values.mean(), count), f"± {title}": digits(error, 2)}


def with_both_errors(title, values, count=4):
    """The mean of (seeds, queries), with the errors over queries and over seeds together: answers of one release share a draw of noise."""
    over_queries, over_seeds = (with_error(title, values.mean(axis=axis), count) for axis in (0, 1))
    key = f"± {title}"
    return over_queries | {key: digits(np.hypot(over_queries[key], over_seeds[key]), 2)}


def first_seed(told, most=4500):
    """Curves and histograms: the first seed's numbers of at most so many queries, which are those of all shards in turn."""
    return {name: {key: [digits(v, 5) for v in thin(array[0], most)] for key, array in one.items()} for name, one in told.items()}


def thin(values, most=400):
    """Curves do not need every query; the last one is always there."""
    step = max(1, len(values) // most)
    return [*values[:-1:step], values[-1]] if len(values) else []


def totals(told, key):
    """ε over queries: by the paper's bookkeeping, or exactly from μ."""
    if key == "claimed":
        return told["claimed"]
    return [gdp.epsilon(mu, TOTAL_DELTA) if mu > 0 else 0.0 for mu in told["mu"]]


def rows_of(found, names, **wanted):
    """The rows of a study's table about these mechanisms, in their order."""
    return [next(row for row in found["rows"] if row.items() >= ({"mechanism": name} | wanted).items()) for name in names]


def draw_spending(told, names, key, title, ax, count=None, factor=1.0, rows=()):
    """`count` queries were asked in all; curves may have fewer points. `rows` of the table, one a name, have the mean over seeds and its error."""
    curves = {}
    for name in names:
        one = {k: v for k, v in told[name].items() if k in ("mu", "claimed")}
        one["mu"] = [mu / factor for mu in one["mu"]]
        curves[name] = thin(totals(one, key), 150)
    plots.budget(curves, title=title, ax=ax)
    shown = len(curves[names[0]])
    asked = count or shown
    ticks = [tick for tick in MaxNLocator(5, integer=True).tick_values(0, asked) if tick <= asked]
    ax.set_xticks([tick * shown / asked for tick in ticks], [f"{tick:,.0f}" for tick in ticks])
    column = "ε by the paper's bookkeeping" if key == "claimed" else "total ε, exact"
    for row, colour in zip(rows, SERIES, strict=False):
        ax.errorbar(shown, row[column], row[f"± {column}"], color=colour, marker="o", markersize=4, capsize=3, clip_on=False)


def draw_losses(told, names, title, ax):
    floor = 1e-7  # a free answer may be the optimum itself
    losses = {name: np.maximum(told[name]["relative_excess"], floor) for name in names}
    plots.histogram(losses, quantity="relative excess loss (1: no explanation)", log=True, normalised=True, title=title, ax=ax)
    ax.axvline(1.0, color="#666666", linewidth=0.8)
    plain_numbers(ax.xaxis)
    ax.set_ylim(top=1.5 * ax.get_ylim()[1])  # room for the legend
    ax.get_legend().set_frame_on(True)  # in front of the line
    ax.get_legend().get_frame().set(facecolor="white", edgecolor="none", alpha=1)
