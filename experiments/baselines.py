"""Private explanations beside LIME, SHAP, MIM and the exact optimum: who agrees with whom, and who is faithful and stable.

python -m experiments.baselines --data DIR --only adult
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import dpexplain as dpx
from dpexplain import evaluation
from experiments.datasets import acs, adult, arguments, data_folder

SETS = {"adult": adult, "acs": acs}
BACKGROUND = 100  # rows that stand for an absent feature, and SHAP's background


@dataclass(frozen=True)
class Setting:
    """What every method is given: the private rows with a soft-label model, a release, and explainers."""

    data: Any
    model: Any
    private: dpx.PrivateData
    release: dpx.Release
    explainers: dict[str, dpx.Explainer]
    background: np.ndarray
    mean: np.ndarray


def setting(data, shapley_rows, epsilons):
    data.model.forest.n_jobs = 1
    soft = lambda rows: 2 * data.model.probability(rows)[:, 1] - 1  # noqa: E731
    names = [feature.name for feature in data.domain.features]
    private = dpx.PrivateData(data.frame[names], data.domain, model=lambda table: soft(data.domain.encode(table)))
    low, high = epsilons
    mechanisms = {
        f"Basic ε={low:g}": dpx.Basic(low, 1e-6),
        f"Basic ε={high:g}": dpx.Basic(high, 1e-6),
        f"Basic ε={high:g}, anchored": dpx.Basic(high, 1e-6, plane="anchored"),
        f"Influence ε={low:g}": dpx.Influence(low, 1e-6),
        f"Shapley ε={high:g}, {shapley_rows:,} rows": dpx.Shapley(high, 1e-6, rows=shapley_rows, clip=1.0),
    }
    explainers = {name: dpx.Explainer(private, dpx.Budget(1000, 1e-6), one) for name, one in mechanisms.items()}
    evaluation.remember(private)
    release = dpx.release(private, dpx.Budget(1.0, 1e-6))
    rows = data.encoded[np.random.default_rng(3).choice(len(data.encoded), BACKGROUND, replace=False)]
    return Setting(data, soft, private, release, explainers, rows, evaluation.column_spread(private).mean)


def explanations(given, record, point, lime_samples):
    """Name → (values, kind)."""
    lime = lambda seed: evaluation.lime(given.private, point, model=given.model, samples=lime_samples, seed=seed)  # noqa: E731
    shap = lambda rows: evaluation.shap_values(given.private, point, model=given.model, background=rows, permutations=5)  # noqa: E731
    found = {"exact optimum": (evaluation.optimum(given.private, point, plane="paper"), "slope")}
    found |= {"release, total ε=1": (given.release.explain(record).values, "slope")}
    found |= {"exact optimum, anchored": (anchored_optimum(given, point), "slope")}
    found |= {
        "release, anchored": (
            given.release.explain(record, anchor=float(given.release.scale.answers(given.model(point[None])[0]))).values,
            "slope",
        )
    }
    for name, explainer in given.explainers.items():
        found[name] = (explainer.explain(record).values, "contribution" if name.startswith("Shapley") else "slope")
    found |= {"LIME": (lime(0), "slope"), "LIME, another seed": (lime(1), "slope")}
    return found | {
        "SHAP": (shap(given.background), "contribution"),
        "MIM": (evaluation.mim(given.private, point, model=given.model), "slope"),
        "MIM, others against": (evaluation.mim(given.private, point, others="against"), "slope"),
        "random": (np.random.default_rng(len(found)).standard_normal(len(point)), "slope"),
    }


def anchored_optimum(given, point):
    """The local loss with y - f(z) in the place of y: a plane through the answer at z instead of through 0 (SPEC §9.10)."""
    return evaluation.optimum(given.private, point, anchor=float(given.model(point[None])[0]), radius=1.0)


def contributions(given, point, values, kind):
    """One number a feature, what it adds to this answer: only so do all methods speak about the same thing."""
    per_column = values * (point - given.mean) if kind == "slope" else values
    return np.add.reduceat(per_column, [block.start for block in given.data.domain.blocks])


def metrics(given, point, values, kind):
    """Deletion ↓, insertion ↑, PGI ↑, PGU ↓, infidelity (rescaled; of slopes only: contributions are perturbed otherwise) ↓."""
    ask, domain, rows = given.model, given.data.domain, given.background
    return [
        evaluation.deletion(values, ask, domain, point, rows, kind=kind).area,
        evaluation.insertion(values, ask, domain, point, rows, kind=kind).area,
        evaluation.pgi(values, ask, domain, point, kind=kind),
        evaluation.pgu(values, ask, domain, point, kind=kind),
        evaluation.infidelity(values, ask, domain, point, rescaled=True) if kind == "slope" else np.nan,
    ]


def stability(given, points, names, near):
    """Max-sensitivity of the methods that are cheap enough to ask again and again."""
    ask = {name: evaluation.at_points(given.explainers[name], given.data.domain) for name in names}
    ask["exact optimum"] = lambda point: evaluation.optimum(given.private, point, plane="paper")
    ask["release, total ε=1"] = evaluation.at_points(given.release, given.data.domain)
    ask["LIME"] = lambda point: evaluation.lime(given.private, point, model=given.model, samples=1000)
    domain = given.data.domain
    return {
        name: np.mean([evaluation.max_sensitivity(one, domain, point, near=near) for point in points])
        for name, one in ask.items()
    }


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--only", default="adult", choices=list(SETS))
    parser.add_argument("--shapley-rows", type=int, default=5000)
    parser.add_argument("--lime-samples", type=int, default=3000)
    parser.add_argument("--epsilons", type=float, nargs=2, default=(0.1, 1.0))
    parser.add_argument("--stable", type=int, default=3, help="queries that stability is measured on")
    parser.set_defaults(queries=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data = SETS[options.only](data_folder(options.data), trees=50)
    given = setting(data, options.shapley_rows, options.epsilons)
    chosen = np.random.default_rng(options.seed).integers(0, len(data.frame), options.queries)
    names = [feature.name for feature in data.domain.features]
    records = data.frame[names].iloc[chosen].to_dict("records")
    found, scores = [], {}
    for record in track(records, transient=True):
        point = data.domain.encode_query(record)
        each = explanations(given, record, point, options.lime_samples)
        found.append({name: contributions(given, point, *one) for name, one in each.items()})
        for name, one in each.items():
            scores.setdefault(name, []).append(metrics(given, point, *one))
    points = [data.domain.encode_query(record) for record in records[: options.stable]]
    basics = [name for name in given.explainers if name.startswith("Basic")]
    moves = stability(given, points, basics, evaluation.Nearby(scale=0.05, flip=0.1, samples=10))
    report(data, found, scores, moves)


def report(data, found, scores, moves):
    console, names = Console(width=200), list(found[0])
    for what in ("cosine", "rank_correlation", "top_k_overlap"):
        matrices = [
            evaluation.Comparison(tuple(f.name for f in data.domain.features), one, names[0]).matrix(what) for one in found
        ]
        table = Table(title=f"{data.name}: {what.replace('_', ' ')} of contributions, mean of {len(found)} queries")
        for column in ("", *(str(i + 1) for i in range(len(names)))):
            table.add_column(column)
        for i, (name, row) in enumerate(zip(names, np.mean(matrices, axis=0), strict=True)):
            table.add_row(f"{i + 1} {name}", *(f"{value:.2f}" for value in row))
        console.print(table)
    table = Table(title=f"{data.name}: faithfulness and stability")
    for column in ("", "deletion ↓", "insertion ↑", "PGI ↑", "PGU ↓", "infidelity, rescaled ↓", "max-sensitivity ↓"):
        table.add_column(column)
    for name, each in scores.items():
        table.add_row(
            name,
            *(f"{value:.4f}" if value == value else "-" for value in np.mean(each, axis=0)),
            f"{moves[name]:.2f}" if name in moves else "-",
        )
    console.print(table)


if __name__ == "__main__":
    main()
