"""Free answers from a history: where each method of `NonInteractive` works, by the size of the history and the price of its answers.

python -m experiments.free_answers --data DIR [--queries 40] [--histories 10,40,160,640]

Adult (48,842 people), answers by `Basic` at several ε each, fitted planes (what anybody gets) and the paper's planes. Relative excess 1 is no
explanation. "average" is the mean of the history's answers, whatever the question: a method that is not better has learnt nothing about places.
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
EPSILONS, PLANES, DELTA = (0.05, 0.5), ("fitted", "paper"), 1e-6
BUDGET = dpx.Budget(1e6, DELTA)


def histories(data, records, sizes):
    """{(plane, ε, size): history}: one sequence of answers for each plane and ε, cut at each size."""
    found = {}
    for plane in PLANES:
        for epsilon in EPSILONS:
            explainer = dpx.Explainer(data, BUDGET, dpx.Basic(epsilon, DELTA, plane=plane), noise=SeededNoise(1))
            explainer.explain_many(records[: max(sizes)])
            for size in sizes:
                found[plane, epsilon, size] = History.of(list(explainer.history)[:size])
    return found


def average(history):
    """The mean of all answers as a history of one."""
    mean = np.mean([one.values for one in history], axis=0)
    return History.of([ReleasedAnswer(history[0].point, mean, plane=history[0].plane, intercept=history[0].intercept)])


def scores(data, records, history, plane):
    """{method: relative excess of each answer}."""
    phases = {method: dpx.NonInteractive(history, method) for method in METHODS}
    phases["average"] = dpx.NonInteractive(average(history), "neighbour")
    found = {name: [] for name in phases}
    for record in records:
        point = data.domain.encode_query(record)
        moments = evaluation.local_moments(data, point, plane=plane)
        best = evaluation.optimum(data, point, plane=plane)
        for name, phase in phases.items():
            values = phase.explain(point).values
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
        "plane", "ε an answer", "answers", *METHODS, "average", title=f"relative excess, means of {options.queries} queries"
    )
    for (plane, epsilon, size), history in histories(data, records, sizes).items():
        found = scores(data, records[max(sizes) :], history, plane)
        cells = [f"{np.mean(each):.3g} ± {np.std(each) / np.sqrt(len(each)):.1g}" for each in found.values()]
        table.add_row(plane, f"{epsilon:g}", str(size), *cells)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
