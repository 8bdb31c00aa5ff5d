"""Free answers from a history: where each method of `NonInteractive` works, by the size of the history and the price of its answers.

python -m experiments.free_answers --data DIR [--queries 40] [--histories 10,40,160,640]

Adult (48,842 people), labels only, answers at several ε each: fitted planes by `Basic` (what anybody gets), by `Adaptive` (one payment for all), by
descents, and the paper's planes. Relative excess 1 is no explanation. "default" is what `NonInteractive(history)` chooses; "average" is the mean of
the history's answers, whatever the question: a method that is not better has learnt nothing about places.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.evaluation import History, ReleasedAnswer
from dpexplain.noise import SeededNoise
from experiments.datasets import adult, arguments, data_folder, random_records

METHODS = ("regression", "labels", "neighbour")
EPSILONS, DELTA = (0.05, 0.5), 1e-6
KINDS = {  # what the history's answers were bought with
    "fitted": lambda epsilon: dpx.Basic(epsilon, DELTA),
    "fitted, adaptive": lambda epsilon: dpx.Adaptive(epsilon, DELTA),
    "fitted, by descent": lambda epsilon: dpx.Basic(epsilon, DELTA, by="descent"),
    "paper": lambda epsilon: dpx.Basic(epsilon, DELTA, plane="paper"),
}
BUDGET = dpx.Budget(1e6, DELTA)


def histories(data, records, sizes):
    """{(kind, ε, size): history}: one sequence of answers for each kind and ε, cut at each size."""
    found = {}
    for kind, make in KINDS.items():
        for epsilon in EPSILONS:
            for size in sizes:
                explainer = dpx.Explainer(data, BUDGET, make(epsilon), noise=SeededNoise(1))
                explainer.explain_many(records[:size])
                found[kind, epsilon, size] = explainer.history
    return found


def average(history):
    """The mean of all answers as a history of one."""
    mean = np.mean([one.values for one in history], axis=0)
    return History.of([ReleasedAnswer(history[0].point, mean, plane=history[0].plane, intercept=history[0].intercept)])


def scores(data, records, history, plane):
    """{method: relative excess of each answer}."""
    phases = {"default": dpx.NonInteractive(history)} | {method: dpx.NonInteractive(history, method) for method in METHODS}
    phases["average"] = dpx.NonInteractive(average(history), "neighbour")
    found = {name: [] for name in phases}
    for record in records:
        point = data.domain.encode_query(record)
        moments = evaluation.local_moments(data, point, plane=plane)
        best = evaluation.optimum(data, point, plane=plane)
        for name, phase in phases.items():
            values = phase.explain(point if name == "average" else record).values
            found[name].append(evaluation.compare(values, best, moments, data.size).relative_excess)
    return found


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.set_defaults(queries=40)
    parser.add_argument("--histories", default="10,40,160,640", help="numbers of past answers")
    options = parser.parse_args()
    labelled, sizes = adult(data_folder(options.data)), [int(size) for size in options.histories.split(",")]
    records = random_records(labelled, max(sizes) + options.queries, options.seed)
    data = labelled.private()
    table = Table(
        "history of",
        "ε an answer",
        "answers",
        "default",
        *METHODS,
        "average",
        title=f"relative excess, means of {options.queries} queries",
    )
    for (kind, epsilon, size), history in histories(data, records, sizes).items():
        found = scores(data, records[max(sizes) :], history, kind.split(",")[0])
        cells = [f"{np.mean(each):.3g} ± {np.std(each) / np.sqrt(len(each)):.1g}" for each in found.values()]
        table.add_row(kind, f"{epsilon:g}", str(size), *cells)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
