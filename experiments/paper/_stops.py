"""How many queries of a stream are answered before Algorithm 2's own test ends it, beside a budget that counts the same noise exactly.

The streams of Figures 2 and 3 have no total: they are cut where each rule would have stopped. Before that nothing depends on the rule.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np

import dpexplain as dpx
from dpexplain.privacy import gdp, paper
from experiments.paper import _streams
from experiments.paper._streams import DELTA, TOTAL_DELTA
from experiments.paper._study import digits

TOTALS = (0.01, 0.05, 0.1, 1.0)  # ε; with δ = TOTAL_DELTA
THE_RULE, BY_EPSILON, SAME_NOISE, OURS = "its rule", "its test of ε alone", "exact budget, its noise", "exact budget, ours"
AT_THE_END = ("ε_spent at the end", "δ_spent at the end")


def stops(data, runs, size, epsilon, factor=1.0):
    """Rows of a table: for each algorithm and rule, how many queries of a shard are answered at each total. `runs` are the shards' answers."""
    rows = []
    for kind in ("adaptive", "enhanced"):
        printed, own = ([run[f"{kind}, {whose}"] for run in runs] for whose in ("paper", "ours"))
        spent = [spent_by_rule(one) for one in printed]
        worst = worst_case(size, epsilon)
        tests = {
            THE_RULE: lambda total, spent=spent: [(e > total) | (d >= TOTAL_DELTA) for e, d in spent],
            BY_EPSILON: lambda total, spent=spent: [e > total for e, _ in spent],
            SAME_NOISE: lambda total, told=printed, worst=worst: [refusals(one, total, worst) for one in told],
            OURS: lambda total, told=own: [one["mu"] / factor > dpx.Budget(total, TOTAL_DELTA).mu for one in told],
        }
        for name, test in tests.items():
            row = {"data": data, "algorithm": kind, "stopped by": name}
            rows.append(row | {f"ε = {total:g}": _count_answers(test(total)) for total in TOTALS})
        ends = zip(AT_THE_END, np.array([[e[:, -1].mean(), d[:, -1].mean()] for e, d in spent]).max(axis=0), strict=True)
        rows[-len(tests)] |= {title: digits(float(value), 3) for title, value in ends}
    return rows


def spent_by_rule(told):
    """(ε_spent, δ_spent) after each query, (seeds, queries), with the slack δ_min/2 of ε_ite's formula.

    "claimed" has another slack: c√S + P with S = Σε² and P = Σε(e^ε - 1), which is S here within a ten-thousandth, since every ε is below 1e-4.
    """
    known, slack = sqrt(2 * log(1 / TOTAL_DELTA)), DELTA / 2
    root = (np.sqrt(known * known + 4 * told["claimed"]) - known) / 2
    gradients = np.maximum(told["iterations"] - 1, 0).cumsum(axis=1)
    return sqrt(2 * log(1 / slack)) * root + root * root, gradients * DELTA / (2 * _streams.STEPS) + slack


def worst_case(size, epsilon):
    """μ² of an answer's worst case, which the library reserves before it reads a row."""
    noise = paper.adaptive_sigma(size, epsilon, DELTA, _streams.STEPS) * size
    return (_streams.STEPS - 1) / noise**2 + gdp.mu_of_pure(paper.step_epsilon(epsilon, DELTA, _streams.STEPS)) ** 2


def refusals(told, total, worst):
    """Where an exact budget does not pay: at answers that have to be computed and could cost more than is left."""
    before = np.hstack([np.zeros((len(told["mu"]), 1)), told["mu"][:, :-1]])
    return (told["iterations"] > 0) & (before**2 + worst > dpx.Budget(total, TOTAL_DELTA).mu ** 2)


def _count_answers(each):
    """Queries before the first stop, the mean over shards of means over seeds, with the standard error over shards."""
    counts = np.array([np.where(stop.any(axis=1), stop.argmax(axis=1), stop.shape[1]).mean() for stop in each])
    if all(not stop.any() for stop in each):
        return f"all {each[0].shape[1]:,}"
    error = counts.std(ddof=1) / sqrt(len(counts)) if len(counts) > 1 else 0.0
    return f"{counts.mean():,.0f}" + (f" ± {error:.2g}" if error >= 0.5 else "")
