"""Private SHAP on real data: quality against ε a query, against the number of rows asked, and what the model is asked for it.

python -m experiments.shapley --data DIR --only adult
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from dpexplain import evaluation
from dpexplain.privacy import gdp
from experiments.datasets import acs, adult, arguments, data_folder

SETS = {"adult": adult, "acs": acs}
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
DRAWS = 50


def answers(data, hard):
    """Labels of encoded rows: 2p - 1, or their sign."""
    data.model.forest.n_jobs = 1
    soft = lambda rows: 2 * data.model.probability(rows)[:, 1] - 1  # noqa: E731
    return (lambda rows: np.where(soft(rows) > 0, 1.0, -1.0)) if hard else soft


def cut(found, clip):
    return found * np.minimum(1.0, clip / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12))


def noisy(mean, clip, size, epsilon, rng):
    return mean + clip / (size * gdp.mu(epsilon, 1e-6)) * rng.standard_normal(len(mean))


def scores(found, truth, k=5):
    each = [evaluation.agreement(one, truth, k) for one in found]
    return [np.mean([getattr(one, what) for one in each]) for what in ("cosine", "rank_correlation", "top_k_overlap")]


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--only", default="adult", choices=list(SETS))
    parser.add_argument("--rows", type=int, default=10_000, help="background rows that Shapley values are computed for")
    parser.add_argument("--hard", action="store_true", help="explain ±1 classes instead of probabilities")
    parser.set_defaults(queries=10)
    options = parser.parse_args()
    data, rng = SETS[options.only](data_folder(options.data), trees=50), np.random.default_rng(options.seed)
    ask, domain, order = answers(data, options.hard), data.domain, rng.permutation(len(data.encoded))
    rows, size = data.encoded[order[: options.rows]], len(data.encoded)
    bound = evaluation.largest_shapley_norm(len(domain.blocks))
    clips, found, sampling, lengths, seconds = {"1": 1.0, f"{bound:.3f} (proven)": bound}, {}, {}, [], []
    for query in track(order[-options.queries :], transient=True):
        started = perf_counter()
        each = evaluation.row_shapley(ask, domain, data.encoded[query], rows)
        seconds.append(perf_counter() - started)
        # other orders: their error shows, too
        others = evaluation.row_shapley(ask, domain, data.encoded[query], rows, first=1 << 40)
        truth = others.mean(axis=0)
        lengths.append(np.linalg.norm(each, axis=1))
        for name, clip in clips.items():
            for epsilon in EPSILONS:
                draws = [noisy(cut(each, clip).mean(axis=0), clip, size, epsilon, rng) for _ in range(DRAWS)]
                found.setdefault((name, epsilon), []).append(scores(draws, truth))
        for count in (100, 1000, options.rows):
            sampling.setdefault(count, []).append(scores([each[:count].mean(axis=0)], truth))
    report(options, data, found, sampling, np.concatenate(lengths), np.mean(seconds), size)


def report(options, data, found, sampling, lengths, seconds, size):
    d = len(data.domain.blocks)
    kind = "classes ±1" if options.hard else "probabilities"
    table = Table(title=f"{data.name}, {kind}, noise for {size:,} rows, δ = 1e-6, {options.queries} queries, {DRAWS} draws each")
    for column in ("cut at", "ε a query", "cosine", "rank correlation", "top-5 shared"):
        table.add_column(column)
    for (name, epsilon), each in found.items():
        table.add_row(name, f"{epsilon:g}", *(f"{value:.3f}" for value in np.mean(each, axis=0)))
    for count, each in sampling.items():
        table.add_row(f"no noise, {count:,} rows", "-", *(f"{value:.3f}" for value in np.mean(each, axis=0)))
    console = Console(width=140)
    console.print(table)
    console.print("‖φ(x)‖: median, 90 %, 99 %, largest", np.quantile(lengths, [0.5, 0.9, 0.99, 1.0]).round(3))
    console.print(
        f"{2 * (d - 1) + 1} model calls a row; {seconds:.1f} s for {options.rows:,} rows; all rows {seconds * size / options.rows:.0f} s"
    )


if __name__ == "__main__":
    main()
