"""Sequences of queries about disjoint shards, each answered by several mechanisms: what was spent, how many iterations, how good."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import dpexplain as dpx
from dpexplain import evaluation, plots
from dpexplain.noise import SeededNoise
from dpexplain.privacy import gdp, paper
from dpexplain.progress import with_bar
from experiments.paper._study import digits, mean

SHARDS, DELTA, STEPS, TOTAL_DELTA = 3, 1e-7, 300, 1e-6
BUDGET = dpx.Budget(100_000.0, TOTAL_DELTA)  # large enough to be told what was spent instead of being stopped
QUANTITIES = ("excess_loss", "relative_excess", "cosine")


@dataclass(frozen=True)
class Free:
    """The non-interactive phase: which mechanism's history answers, and how."""

    name: str
    history: str
    method: str


def mechanisms(epsilon):
    """The paper's three algorithms to the letter, its rule made private with exact noise, and our defaults."""
    return {
        "basic, paper": dpx.Basic(epsilon, DELTA, STEPS, calibration="paper"),
        "adaptive, paper": dpx.Adaptive(epsilon, DELTA, STEPS, calibration="paper"),
        "enhanced, paper": dpx.Enhanced(epsilon, DELTA, STEPS, calibration="paper"),
        "basic, ours": dpx.Basic(epsilon, DELTA, plane="paper"),
        "adaptive, ours": dpx.Adaptive(epsilon, DELTA, STEPS, plane="paper"),
        "enhanced, ours": dpx.Enhanced(epsilon, DELTA, STEPS, plane="paper"),
        "adaptive, paper's rule made private": dpx.Adaptive(epsilon, DELTA, STEPS, rule="paper", plane="paper"),
        "enhanced, paper's rule made private": dpx.Enhanced(epsilon, DELTA, STEPS, rule="paper", plane="paper"),
    }


FREE = (
    Free("non-interactive, paper", "adaptive, paper", "labels"),
    Free("non-interactive, ours", "adaptive, ours", "regression"),
)


class Book:
    """The paper's running ε: its own sums where Algorithm 2 keeps them, else strong composition of what each answer claims."""

    def __init__(self, mechanism):
        self.own, self.claim = paper.Bookkeeping(), mechanism.epsilon if mechanism.calibration == "paper" else None

    def after(self, answer):
        if "paper" in answer.details:
            self.own = paper.Bookkeeping(**answer.details["paper"]["sums"])
        elif not answer.copied:
            self.own = self.own.add(self.claim or answer.cost.epsilon)
        return self.own.epsilon(TOTAL_DELTA)


def released(shard, epsilon, seed):
    """One release instead: everything after it is free."""
    return {f"release, ε = {epsilon:g} once": dpx.release(shard, dpx.Budget(epsilon, TOTAL_DELTA), noise=SeededNoise(seed))}


def asked(shard, records, chosen, seed, made=None, free=(), later=()):
    """{name: {quantity: one number a query}}; each query's sums are computed once, for all mechanisms and `made` releases.

    `free` phases answer the `later` records from the histories of the mechanisms that answered before.
    """
    made = made or {}
    evaluation.remember(shard, most=1)
    explainers = {name: dpx.Explainer(shard, BUDGET, one, noise=SeededNoise(seed)) for name, one in chosen.items()}
    books = {name: Book(one) for name, one in chosen.items()}
    told = {name: [] for name in (*explainers, *made)}
    for record, score in judged(shard, records):
        for name, explainer in explainers.items():
            answer = explainer.explain(record)
            told[name].append(paid(answer, explainer, books[name]) | score(answer.values))
        for name, release in made.items():
            told[name].append({"epsilon": release.guarantee.epsilon} | score(release.explain(record).values))
    phases = {one.name: dpx.NonInteractive(explainers[one.history].history, one.method) for one in free}
    told |= {name: [] for name in phases}
    for record, score in judged(shard, later):
        for name, phase in phases.items():
            told[name].append(score(phase.explain(record).values))
    return {name: columns(lines) for name, lines in told.items() if lines}


def judged(shard, records):
    """Each record with a function that compares an answer about it with the exact optimum."""
    for record in with_bar(list(records), "queries"):
        point = shard.domain.encode_query(record)
        moments = evaluation.local_moments(shard, point, plane="paper")
        best = evaluation.minimise(moments.A, moments.b)

        def score(values, best=best, moments=moments):
            found = evaluation.compare(values, best, moments, shard.size)
            return {quantity: digits(getattr(found, quantity), 5) for quantity in QUANTITIES}

        yield record, score


def paid(answer, explainer, book):
    return {
        "epsilon": digits(explainer.spent.epsilon, 5),
        "mu": digits(explainer.spent.mu, 6),
        "claimed": digits(book.after(answer), 5),
        "iterations": 0 if answer.copied else answer.details["gradients"] + 1,
    }


def columns(lines):
    return {key: [line[key] for line in lines] for key in lines[0]}


def over_shards(runs):
    """Queries of all shards in the order they were asked; totals are the worst shard's so far (parallel composition)."""
    together = {}
    for name in runs[0]:
        each = [run[name] for run in runs]
        together[name] = {
            key: [value for one in zip(*(run[key] for run in each), strict=True) for value in one] for key in each[0]
        }
        for total in {"epsilon", "mu", "claimed"} & set(together[name]):
            together[name][total] = np.maximum.accumulate(together[name][total]).tolist()
    return together


def line(name, told):
    """A row of the table about one mechanism."""
    row = {"mechanism": name}
    if "epsilon" in told:
        row["total ε, exact"] = digits(told["epsilon"][-1])
    if "iterations" in told:
        iterations = np.array(told["iterations"])
        row["ε by the paper's bookkeeping"] = digits(told["claimed"][-1])
        row["mean T'"] = digits(iterations[iterations > 0].mean(), 3)
        row["copied"] = f"{(iterations == 0).mean():.0%}"
        row["full T"] = f"{(iterations >= STEPS).sum()} of {len(iterations)}"
    means = {"excess_loss": "excess loss", "relative_excess": "relative excess", "cosine": "cosine"}
    return row | {title: mean(told[key]) for key, title in means.items()}


def at_size(told, factor):
    """ε at the end if there were `factor` times the rows and the noise on each mean gradient were the same: μ shrinks by the factor."""
    return digits(gdp.epsilon(told["mu"][-1] / factor, TOTAL_DELTA))


def thin(told, most=400):
    """Curves do not need every query."""
    return told[:: max(1, len(told) // most)]


def draw_spending(told, names, key, title, ax):
    plots.budget({name: thin(told[name][key]) for name in names}, title=title, ax=ax)
    count = len(told[names[0]][key])
    ticks = np.linspace(0, len(thin(told[names[0]][key])), 5)
    ax.set_xticks(ticks, [f"{count * i // 4:,}" for i in range(5)])


def draw_losses(told, names, title, ax):
    floor = 1e-7  # a free answer may be the optimum itself
    losses = {name: np.maximum(told[name]["relative_excess"], floor) for name in names}
    plots.histogram(losses, quantity="relative excess loss (1: no explanation)", log=True, title=title, ax=ax)
    ax.axvline(1.0, color="#666666", linewidth=0.8)
    ax.set_ylim(top=1.5 * ax.get_ylim()[1])  # room for the legend
