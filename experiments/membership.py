"""Who was in the data? A membership attack on unprotected explanations and on private ones, on Adult.

python -m experiments.membership --data DIR --plot docs/images/membership.png
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.special import ndtr, ndtri

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from dpexplain.plots.style import DASHES, MUTED, SERIES, heading, tidy
from dpexplain.privacy import gdp
from experiments.datasets import adult, arguments, data_folder

DELTA, QUERIES = 1e-6, 6
ALPHA = dpx.weights.Stable()


def questions(domain, row):
    """What the attacker asks about: the person with one feature changed, six times over."""
    found = []
    for block in domain.blocks[:QUERIES]:
        asked = row.copy()
        if block.kind == "one-hot":
            asked[block.start : block.stop] = np.roll(row[block.start : block.stop], 1)
        else:
            asked[block.start] += 0.4 if row[block.start] < 0.5 else -0.4
        found.append(asked if block.kind == "numeric" else np.rint(asked))
    return found


def weigh(rows, point):
    u = rows - point
    return u, ALPHA(np.sqrt(np.square(u).sum(axis=1)))


def optimum(points):
    """The exact local optimum: what LIME with the rows as its sample would be."""

    def explain(rows, labels, _):
        found = []
        for point in points:
            u, alpha = weigh(rows, point)
            found.append(evaluation.minimise((u * alpha[:, None]).T @ u, (alpha * labels) @ u))
        return np.concatenate(found)

    return explain


def mim(points):
    def explain(rows, labels, _):
        parts = [weigh(rows, point) for point in points]
        return np.concatenate([(alpha * labels) @ u / len(rows) for u, alpha in parts])

    return explain


def shap(points, ask, rows, domain):
    """Interventional SHAP with the rows as background: the mean of their own Shapley values, which are computed once for the population."""
    each = np.hstack([evaluation.row_shapley(ask, domain, point, rows) for point in points])
    place = {row.tobytes(): i for i, row in enumerate(rows)}
    return lambda sample, labels, _: each[[place[row.tobytes()] for row in sample]].mean(axis=0)


def private(points, mechanism, domain, size):
    """Answers of an Explainer to the same questions."""

    def explain(rows, labels, seed):
        data = dpx.PrivateData(domain.decode(rows), domain, labels=labels, size=size)
        explainer = dpx.Explainer(data, dpx.Budget(100.0, DELTA), mechanism, noise=SeededNoise(seed))
        records = [{name: column[0] for name, column in domain.decode(point[None]).items()} for point in points]
        return np.concatenate([explainer.explain(record).values for record in records])

    return explain


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=6)
    parser.add_argument("--population", type=int, default=3000)
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--shadows", type=int, default=100)
    parser.add_argument("--guesses", type=int, default=100)
    parser.add_argument("--epsilon", type=float, default=1.0, help="of all six answers together")
    parser.add_argument("--plot", help="where the ROC curves go, as PNG or SVG")
    options = parser.parse_args()
    data, rng = adult(data_folder(options.data), trees=20), np.random.default_rng(options.seed)
    data.model.forest.n_jobs = 1
    chosen = rng.permutation(len(data.encoded))[: options.population]
    rows, labels = data.encoded[chosen], data.labels[chosen]
    ask = lambda asked: 2 * data.model.probability(asked)[:, 1] - 1  # noqa: E731
    each = gdp.epsilon(gdp.mu(options.epsilon, DELTA) / np.sqrt(QUERIES), DELTA)
    found = {}
    for person in track(range(options.people), transient=True):
        points = questions(data.domain, rows[person])
        ways = {
            "exact optimum": optimum(points),
            "MIM": mim(points),
            "SHAP": shap(points, ask, rows, data.domain),
            f"Basic, ε = {options.epsilon:g} in all": private(points, dpx.Basic(each, DELTA, 50), data.domain, options.size),
            f"Influence, ε = {options.epsilon:g} in all": private(points, dpx.Influence(each, DELTA), data.domain, options.size),
        }
        for name, explain in ways.items():
            attack = evaluation.membership(
                explain, rows, labels, person, size=options.size, shadows=options.shadows, guesses=options.guesses, seed=person
            )
            found.setdefault(name, []).append(attack)
    pooled = {name: evaluation.Membership.pool(attacks) for name, attacks in found.items()}
    report(pooled, options)
    if options.plot:
        draw(pooled, options).savefig(options.plot, dpi=130)


def report(pooled, options):
    title = f"Adult, samples of {options.size}, {options.people} people, {QUERIES} questions about each"
    table = Table(title=title)
    for column in ("what is shown", "area under the ROC curve", "members found at 1 % false alarms", "at 10 %"):
        table.add_column(column)
    for name, attack in pooled.items():
        table.add_row(name, f"{attack.auc:.3f}", f"{attack.hits(0.01):.3f}", f"{attack.hits(0.1):.3f}")
    mu = gdp.mu(options.epsilon, DELTA)
    allowed = [ndtr(mu / np.sqrt(2)), *(ndtr(mu + ndtri(a)) for a in (0.01, 0.1))]
    table.add_row(f"most that ε = {options.epsilon:g} allows", *(f"{value:.3f}" for value in allowed))
    Console(width=140).print(table)


def draw(pooled, options):
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    ax = figure.add_subplot()
    floor = 1 / len(next(iter(pooled.values())).outside)
    for i, (name, attack) in enumerate(pooled.items()):
        false_alarms, hits = attack.roc()
        look = {"color": SERIES[i], "linestyle": DASHES[i], "linewidth": 1.8}
        ax.plot(
            np.maximum(false_alarms, floor), np.where(hits > 0, hits, np.nan), label=f"{name} (area {attack.auc:.2f})", **look
        )
    at = np.geomspace(floor, 1, 200)
    bound = ndtr(gdp.mu(options.epsilon, DELTA) + ndtri(at))
    ax.fill_between(at, at, bound, color=MUTED, alpha=0.25, label=f"what ε = {options.epsilon:g}, δ = 1e-6 allows anyone")
    ax.plot(at, at, color=MUTED, linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlim=(floor, 1), ylim=(floor, 1.05))
    ax.set_xlabel("others accused (false alarms)", color=MUTED, fontsize=9)
    ax.set_ylabel("members found", color=MUTED, fontsize=9)
    tidy(ax, which="both")
    heading(ax, f"Was this person among the {options.size}? Guessed from six explanations")
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return figure


if __name__ == "__main__":
    main()
