"""Relative excess against total ε: moments, reference records, both, Basic, MST and AIM, on Adult, ACS and generated tables.

python -m experiments.excess_by_budget --data DIR [--tables Adult census] [--epsilons 0.1 0.3 1 3] [--lines AIM] [--json FILE] [--show FILE ...]
    [--plot FILE]

Every line has the whole ε: a release without reference (moments), one with (both), its records as drawn (reference; tables and histograms
have half of μ²), one answer of Basic, and synthetic records of MST and AIM. Records are labelled by the model, and planes are fitted to
them by least squares. Fitted planes, one noise draw.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import dpexplain as dpx
from dpexplain.noise import SeededNoise
from experiments.coverage import DELTA, WEIGHTS, minimiser, real_case, relative_excess, strange_case
from experiments.synthesizers import MODELS, RECORDS, synthesize

ASKED = ("stable", "0.8")
LINES = {"moments": "C0o-", "reference": "C1s--", "both": "C2D-", "Basic": "C3^-", "MST": "C4v:", "AIM": "C5x:"}


def fit_plane(points, labels, query, weight):
    """Slopes of the fitted plane by least squares, records weighted by their distance."""
    share = weight(np.sqrt(np.square(points - query).sum(axis=1)))
    if not share.sum() > 0:
        return np.zeros(points.shape[1])
    share = share / share.sum()
    centre = share @ points
    A = (points * share[:, None]).T @ points - np.outer(centre, centre)
    return minimiser(A, (share * (labels - share @ labels)) @ points)


def answers(case, epsilon, seed, lines):
    """{(line, weight): slopes} of the lines that are asked for."""
    budget, found, records = dpx.Budget(epsilon, DELTA), {}, {}
    if "moments" in lines:
        release = dpx.release(case.data, budget, noise=SeededNoise(seed))
        found |= {("moments", w): release.explain_many(case.records, WEIGHTS[w]).values for w in ASKED}
    if {"reference", "both"} & set(lines):
        release = dpx.release(case.data, budget, reference=RECORDS, noise=SeededNoise(seed))
        found |= {("both", w): release.explain_many(case.records, WEIGHTS[w]).values for w in ASKED}
        records["reference"] = release.reference.encoded
    if "Basic" in lines:
        found |= {("Basic", w): _basic(case, epsilon, seed, w) for w in ASKED}
    for name in (one for one in MODELS if one in lines):
        records[name] = synthesize(name, case.domain, case.encoded, budget.mu, seed)
    for name, points in records.items():
        labels = case.answers(points)
        found |= {(name, w): np.array([fit_plane(points, labels, z, WEIGHTS[w]) for z in case.points]) for w in ASKED}
    return found


def _basic(case, epsilon, seed, weight):
    mechanism = dpx.Basic(epsilon, DELTA, weight=WEIGHTS[weight])
    explainer = dpx.Explainer(case.data, dpx.Budget(1000, DELTA), mechanism, noise=SeededNoise(seed))
    return np.array([explainer.explain(record).values for record in case.records])


def measure(case, epsilons, seed, cache, lines):
    exact = {w: case.exact(w, cache)["fitted"] for w in ASKED}
    best = {w: np.array([minimiser(*pair) for pair in zip(*exact[w], strict=True)]) for w in ASKED}
    for epsilon in epsilons:
        for (line, w), slopes in answers(case, epsilon, seed, lines).items():
            excess = [relative_excess(*one) for one in zip(slopes, best[w], *exact[w], strict=True)]
            yield {
                "table": case.name,
                "epsilon": epsilon,
                "line": line,
                "weight": w,
                "excess": float(np.mean(excess)),
                "median": float(np.median(excess)),
            }


def plot(results, file):
    tables = list(dict.fromkeys(one["table"] for one in results))
    figure = Figure(figsize=(4.6 * len(tables) + 0.6, 7.0), layout="constrained")
    axes = figure.subplots(2, len(tables), squeeze=False, sharex=True)
    for (row, w), (column, table) in product(enumerate(ASKED), enumerate(tables)):
        axis = axes[row, column]
        for line, style in LINES.items():
            part = sorted(
                (one["epsilon"], one["excess"])
                for one in results
                if (one["table"], one["line"], one["weight"]) == (table, line, w)
            )
            if part:
                axis.plot(*zip(*part, strict=True), style, label=line, markersize=5, linewidth=1.2)
        axis.axhline(1.0, color="0.7", linewidth=0.8)
        epsilons = sorted({one["epsilon"] for one in results})
        axis.set(xscale="log", yscale="log", title=f"{table}, {'stable weight' if w == 'stable' else f'Gaussian {w}'}")
        axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        if row:
            axis.set_xlabel("total ε")
        if not column:
            axis.set_ylabel("mean relative excess")
    axes[0, 0].legend(fontsize=8)
    figure.savefig(file, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=["Adult", "census"], help="names of tables; Adult and ACS need --data")
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.1, 0.3, 1.0, 3.0])
    parser.add_argument("--lines", nargs="*", choices=tuple(LINES), default=list(LINES))
    parser.add_argument("--queries", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", help="folder with adult_uci.parquet and acs_income_2018.parquet")
    parser.add_argument("--cache", default="build/coverage", help="folder for exact answers")
    parser.add_argument("--json", help="file for the results")
    parser.add_argument("--show", nargs="*", default=[], help="files of earlier results, to be shown instead of measuring")
    parser.add_argument("--plot", help="file for a figure")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = [one for file in options.show for one in json.loads(Path(file).read_text(encoding="utf-8"))]
    for name in () if options.show else options.tables:
        real = name in ("Adult", "ACS")
        case = real_case(name, options.data, options.queries) if real else strange_case(name, options.queries)
        for one in measure(case, options.epsilons, options.seed, Path(options.cache), options.lines):
            results.append(one)
            print(one["table"], one["epsilon"], one["weight"], one["line"], f"{one['excess']:.4f}", sep=" | ", flush=True)
        if options.json:
            Path(options.json).write_text(json.dumps(results), encoding="utf-8")
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
