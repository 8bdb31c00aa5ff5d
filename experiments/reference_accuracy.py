"""Explanations of any locality from one release: moments alone, reference records alone, and both, on real data.

python -m experiments.reference_accuracy --data DIR [--sets ACS Adult] [--planes fitted paper] [--plot docs/images/locality.png]
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Table

import dpexplain as dpx
from dpexplain import evaluation, weights
from dpexplain.noise import SeededNoise
from experiments.coverage import minimiser
from experiments.datasets import acs, adult, arguments, data_folder, random_records

SETS = {"ACS": (acs, 0.5), "Adult": (adult, 1.0)}
WEIGHTS = {"stable": weights.Stable(), "Gaussian 1.2": weights.Gaussian(1.2), "Gaussian 0.8": weights.Gaussian(0.8)}
WIDTHS = (0.5, 0.65, 0.8, 1.0, 1.2, 1.6, 2.4, 4.0)


def estimators(release):
    """The same release, answering from its moments, from its records as drawn, and from records raked to the moments."""
    plain = replace(release.reference, weights=np.ones(len(release.reference)))
    return {"moments": replace(release, reference=None), "reference": replace(release, reference=plain), "both": release}


def accuracy(private, records, weight, answers, plane):
    """Mean relative excess and cosine for each estimator, and the exact optima, reading the private rows once a query."""
    found, optima = {name: [] for name in answers}, []
    for i, record in enumerate(track(records, description="exact optima", transient=True)):
        moments = evaluation.local_moments(private, record, weight, plane=plane)
        optima.append(minimiser(moments.A, moments.b) if plane == "fitted" else evaluation.minimise(moments.A, moments.b))
        for name, values in answers.items():
            found[name].append(evaluation.compare(values[i], optima[-1], moments, private.size))
    means = {
        name: [float(np.mean([getattr(s, w) for s in all_])) for w in ("relative_excess", "cosine")]
        for name, all_ in found.items()
    }
    return means, np.array(optima)


def basic(private, records, weight, plane, epsilon=0.1):
    explainer = dpx.Explainer(private, dpx.Budget(1000, 1e-6), dpx.Basic(epsilon, 1e-6, weight=weight, plane=plane))
    return np.array([explainer.explain(record).values for record in records])


def adaptive(private, records, weight, plane, epsilon=0.1):
    mechanism = dpx.Adaptive(epsilon, 1e-7, steps=300, weight=weight, plane=plane)
    explainer = dpx.Explainer(private, dpx.Budget(1000, 1e-6), mechanism)
    return np.array([explainer.explain(record).values for record in records])


def make_release(data, epsilon, seed):
    private, start = data.with_model(), perf_counter()
    release = dpx.release(private, dpx.Budget(epsilon, 1e-6), reference=True, noise=SeededNoise(seed))
    return private, release, perf_counter() - start


def effective_rows(data, point, weight):
    alpha = weight(np.sqrt(np.square(data.encoded - point).sum(axis=1)))
    return float(alpha.sum() ** 2 / np.square(alpha).sum())


def table(results, queries):
    shown = Table(title=f"{queries} random queries, δ = 1e-6: relative excess / cosine to the exact local optimum")
    for column in ("data", "total ε", "plane", "weight", "effective rows", "moments", "reference", "both", "within two errors"):
        shown.add_column(column)
    for name, epsilon, plane, weight, rows, scores, covered in results:
        cells = [f"{scores[e][0]:.4f} / {scores[e][1]:.4f}" for e in ("moments", "reference", "both")]
        shown.add_row(name, f"{epsilon:g}", plane, weight, f"{rows:,.0f}", *cells, f"{covered:.0%}")
    return shown


def measure(data, epsilon, options, console):
    private, release, seconds = make_release(data, epsilon, options.seed)
    console.print(f"{data.name}: {release.reference} built in {seconds:.0f} s")
    records = random_records(data, options.queries, options.seed)
    points = data.domain.encode_queries(records)
    for plane, (name, weight) in product(options.planes, WEIGHTS.items()):
        answers = {which: one.explain_many(records, weight, plane=plane) for which, one in estimators(release).items()}
        rows = np.mean([effective_rows(data, point, weight) for point in points[:10]])
        values = {which: found.values for which, found in answers.items()}
        scores, optima = accuracy(private, records, weight, values, plane)
        covered = np.mean(np.abs(answers["both"].values - optima) <= 2 * answers["both"].error)
        console.print(f"{data.name}, {plane}, {name}: excess {scores['both'][0]:.4f}, cosine {scores['both'][1]:.4f}")
        yield data.name, epsilon, plane, name, rows, scores, covered


def curve(data, epsilon, options):
    """Relative excess against the width of a Gaussian weight."""
    private, release, _ = make_release(data, epsilon, options.seed)
    records = random_records(data, options.queries, options.seed)
    curves, plane = {}, options.planes[0]
    for width in track(WIDTHS, description=data.name, transient=True):
        weight = weights.Gaussian(width)
        answers = {"basic, ε = 0.1 a query": basic(private, records, weight, plane)}
        answers["adaptive, ε = 0.1 a query at most"] = adaptive(private, records, weight, plane)
        answers |= {name: one.explain_many(records, weight, plane=plane).values for name, one in estimators(release).items()}
        for name, (excess, _) in accuracy(private, records, weight, answers, plane)[0].items():
            curves.setdefault(name, []).append(excess)
    return curves


def plot(data, epsilon, curves, path):
    names = {
        "moments": f"moments alone, total ε = {epsilon:g}",
        "reference": f"reference alone, total ε = {epsilon:g}",
        "both": f"reference raked to the moments, total ε = {epsilon:g}",
    }
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    ax = figure.add_subplot()
    styles = zip(curves.items(), ("#999999", "#555555", "#b2182b", "#e08214", "#2166ac"), ("--", ":", "-", "-", "-"), strict=True)
    for (name, values), colour, line in styles:
        ax.plot(WIDTHS, values, line, marker="o", color=colour, label=names.get(name, name), linewidth=2, markersize=4)
    ax.set(xscale="log", yscale="log", xlabel="width of the Gaussian weight (smaller is more local)")
    ax.set(ylabel="relative excess loss (0 is exact, 1 is no explanation)")
    ax.set_xticks(WIDTHS, [f"{width:g}" for width in WIDTHS], minor=False)
    ax.minorticks_off()
    ax.grid(color="#e6e6e6")
    ax.legend(frameon=False, fontsize=8.5)
    ax.set_title(
        f"{data.name}: error against locality, {len(data.frame):,} rows (solid: one release, unlimited queries)",
        loc="left",
        fontsize=10,
    )
    figure.savefig(path, dpi=150)


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--planes", nargs="+", choices=["fitted", "paper"], default=["fitted"], help="a plot has the first")
    parser.add_argument("--plot", help="draw error against locality for the first data set here, instead of the table")
    options, console = parser.parse_args(), Console()
    folder = data_folder(options.data)
    if options.plot:
        load, epsilon = SETS[options.sets[0]]
        data = load(folder)
        plot(data, epsilon, curve(data, epsilon, options), options.plot)
        return
    results = [one for load, epsilon in map(SETS.get, options.sets) for one in measure(load(folder), epsilon, options, console)]
    console.print(table(results, options.queries))


if __name__ == "__main__":
    main()
