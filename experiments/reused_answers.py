"""Paid answers of one explainer after another: what answers that reuse the history cost, and how close they are, beside fresh ones.

python -m experiments.reused_answers [--only census bills] [--epsilons 0.1] [--queries 30] [--draws 3] [--soft] [--data DIR] [--json FILE]

Each draw opens an explainer for each way and asks it all questions. "raised" answers one question at a tenth of ε first, then all at ε: those buy what
the first one's sums lack. Exact answers are computed from the rows once and stored in `--cache`.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from experiments.coverage import DELTA, Case, half_of, minimiser, real_case, relative_excess, strange_case
from experiments.paid_answers import coverage_of, soft_case
from experiments.strangers import MAKES

TABLES = (
    "census",
    "small clinic",
    "shop",
    "late payments",
    "strongly dependent",
    "premiums",
    "bills",
    "questionnaire",
)
WAYS = {
    "basic": lambda epsilon: [dpx.Basic(epsilon, DELTA)],
    "adaptive": lambda epsilon: [dpx.Adaptive(epsilon, DELTA)],
    "raised": lambda epsilon: [dpx.Adaptive(epsilon / 10, DELTA), dpx.Adaptive(epsilon, DELTA)],
    "raised from half": lambda epsilon: [dpx.Adaptive(epsilon / 2, DELTA), dpx.Adaptive(epsilon, DELTA)],
    "adaptive, descent": lambda epsilon: [dpx.Adaptive(epsilon, DELTA, by="descent")],
    "enhanced, descent": lambda epsilon: [dpx.Enhanced(epsilon, DELTA, by="descent")],
}


def ask(case: Case, mechanisms, seed, ledger):
    """Answers of the last mechanism to all questions; those before it answer one each, on the same ledger. And the total ε."""
    budget, noise = dpx.Budget(9000, DELTA), SeededNoise(seed)
    explainers = [dpx.Explainer(case.data, budget, one, ledger=f"sqlite:///{ledger}", noise=noise) for one in mechanisms]
    for first in explainers[:-1]:
        first.explain(case.records[0])
    answers = [explainers[-1].explain(record) for record in case.records]
    return answers, explainers[-1].spent.epsilon


def measure(case, options, folder):
    """One dictionary for each ε and way. The data remember every ledger, so `folder` has to last as long as they are asked."""
    A, b = case.exact("stable", Path(options.cache))["fitted"]
    best = np.array([minimiser(*one) for one in zip(A, b, strict=True)])
    for epsilon, way in product(options.epsilons, options.ways):
        ledgers = [Path(folder) / f"{way} {epsilon} {seed}.ledger" for seed in range(options.draws)]
        start, found = process_time(), [ask(case, WAYS[way](epsilon), *one) for one in enumerate(ledgers)]
        seconds = (process_time() - start) / (options.draws * len(case.records))
        answers = [answer for some, _ in found for answer in some]
        exact = list(zip(best, A, b, strict=True)) * options.draws
        yield {
            "table": case.name,
            "half": half_of(case.name),
            "columns": case.domain.width,
            "epsilon": epsilon,
            "way": way,
            "total": float(np.mean([total for _, total in found])),
            "excess": float(np.mean([relative_excess(one.values, *rest) for one, rest in zip(answers, exact, strict=True)])),
            "cosine": float(
                np.mean([evaluation.agreement(one.values, rest[0]).cosine for one, rest in zip(answers, exact, strict=True)])
            ),
            "milliseconds": round(1000 * seconds, 1),
        } | ({} if answers[0].error is None else coverage_of(case, answers, best, options.draws))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=TABLES)
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.1])
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--draws", type=int, default=3, help="explainers of each way")
    parser.add_argument("--soft", action="store_true", help="probabilities of Adult and ACS instead of classes")
    parser.add_argument("--data", help="folder with adult_uci.parquet and acs_income_2018.parquet")
    parser.add_argument("--cache", default="build/reused", help="folder for exact answers")
    parser.add_argument("--json", help="file for the results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = []
    for name in options.only:
        real = soft_case if options.soft else real_case
        case = strange_case(name, options.queries) if name in MAKES else real(name, options.data, options.queries)
        with TemporaryDirectory() as folder:
            for one in measure(case, options, folder):
                results.append(one)
                print(*(f"{value:.4g}" if isinstance(value, float) else value for value in one.values()), sep=" | ", flush=True)
        if options.json:
            Path(options.json).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
