"""Paid answers of `Basic`, by moments and by descent: distance to the exact plane, coverage of error bars and CPU time.

python -m experiments.paid_answers [--half dev] [--only claims bills] [--epsilons 0.1 1] [--queries 6] [--labels] [--soft] [--data DIR] [--json FILE]

Every answer has noise of its own. Exact answers are computed from the rows once and stored in `--cache`. With `--labels`, the tables are registered with
the model's answers and without the model. `--soft` asks the forest behind Adult and ACS for probabilities.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from experiments.coverage import (
    DELTA,
    TINY,
    WEIGHTS,
    Case,
    half_of,
    minimiser,
    real_case,
    relative_excess,
    soft_case,
    strange_case,
)
from experiments.strangers import MAKES

WAYS = ("moments", "descent")


def labels_only(case):
    """The case with its labels and without its model."""
    answers = np.concatenate([case.answers(part) for part in np.array_split(case.encoded, max(len(case.encoded) // 100_000, 1))])
    data = dpx.PrivateData(case.domain.decode(case.encoded), case.domain, labels=answers)
    return Case(case.name, case.domain, case.encoded, data, case.records, case.answers, case.groups)


def measure(case, options):
    exact = {w: case.exact(w, Path(options.cache)) for w in options.weights}
    for w, p, epsilon, by in product(options.weights, options.planes, options.epsilons, options.ways):
        A, b = exact[w][p]
        best = np.array([minimiser(*one) for one in zip(A, b, strict=True)])
        basic = dpx.Basic(epsilon, DELTA, weight=WEIGHTS[w], plane=p, by=by)
        explainer = dpx.Explainer(case.data, dpx.Budget(9000, DELTA), basic, noise=SeededNoise(options.seed))
        start = process_time()
        answers = [explainer.explain(record) for _ in range(options.draws) for record in case.records]
        seconds = (process_time() - start) / len(answers)
        exact_ones = zip(*(list(part) * options.draws for part in (best, A, b)), strict=True)
        scores = [(one.values, *exactly) for one, exactly in zip(answers, exact_ones, strict=True)]
        yield {
            "table": case.name,
            "half": half_of(case.name),
            "model": not options.labels,
            "columns": case.domain.width,
            "weight": w,
            "plane": p,
            "epsilon": epsilon,
            "by": by,
            "excess": float(np.mean([relative_excess(*one) for one in scores])),
            "cosine": float(np.mean([evaluation.agreement(phi, best).cosine for phi, best, *_ in scores])),
            "milliseconds": round(1000 * seconds, 1),
        } | (coverage_of(case, answers, best, options.draws) if by == "moments" else {})


def coverage_of(case, answers, best, draws):
    """Shares of slopes and of contributions that two error bars cover."""
    added = np.add.reduceat(best * (case.points - case.mean), case.features, axis=1)
    best, added = np.tile(best, (draws, 1)), np.tile(added, (draws, 1))
    inside = [np.abs(one.values - exact) <= 2 * one.error + TINY for one, exact in zip(answers, best, strict=True)]
    found = [one.contributions() for one in answers]
    half = found[0].scale.half_range
    covered = [np.abs(one.values / half - exact) <= 2 * one.error / half + TINY for one, exact in zip(found, added, strict=True)]
    return {"slopes": float(np.mean(inside)), "contributions": float(np.mean(covered))}


def cases(options):
    names = options.only or [name for name in MAKES if half_of(name) == options.half]
    for name in names:
        if name not in MAKES:
            case = (soft_case if options.soft else real_case)(name, options.data, options.queries)
        else:
            case = strange_case(name, options.queries)
        yield labels_only(case) if options.labels else case


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", default="dev", choices=("dev", "held-out"))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.1, 1.0])
    parser.add_argument("--weights", nargs="*", default=["stable"], choices=list(WEIGHTS))
    parser.add_argument("--planes", nargs="*", default=["fitted"], choices=("fitted", "anchored"))
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS)
    parser.add_argument("--queries", type=int, default=6)
    parser.add_argument("--draws", type=int, default=1, help="answers to each question")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--labels", action="store_true", help="register labels without a model")
    parser.add_argument("--soft", action="store_true", help="probabilities of Adult and ACS instead of classes")
    parser.add_argument("--data", help="folder with adult_uci.parquet and acs_income_2018.parquet")
    parser.add_argument("--cache", default="build/coverage", help="folder for exact answers")
    parser.add_argument("--json", help="file for the results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = []
    for case in cases(options):
        for one in measure(case, options):
            results.append(one)
            print(*(f"{value:.4g}" if isinstance(value, float) else value for value in one.values()), sep=" | ", flush=True)
        if options.json:
            Path(options.json).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
