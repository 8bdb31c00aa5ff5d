"""SHAP over private reference records beside SHAP over true rows: error, coverage of its bars, and time.

python -m experiments.reference_shapley --data DIR [--tables Adult ACS "mixed 60" "numbers 40"] [--queries 20]
python -m experiments.reference_shapley --coverage [--fresh | --newest] [--tables …] [--seeds 1] [--draws 1]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from experiments.datasets import acs, adult, arguments, data_folder
from experiments.made_up import FAMILY, Recipe, made_up

REAL = {"Adult": adult, "ACS": acs}
EPSILONS = (0.1, 0.5, 1.0)
TRUTH = 5_000
DEVELOPMENT = (  # how rehearsals are pooled and enlarged (`estimation/background.py`) was chosen on these
    "numbers 10", "binaries 15", "categories 30", "mixed 21", "mixed 30", "mixed 30, probabilities", "rare categories 90",
    "independent 50", "dependent 40", "weak labels 40", "skewed numbers 40", "mixed 60, probabilities",
)  # fmt: skip
HELD_OUT = (  # and these were looked at for the first time afterwards
    "numbers 40", "binaries 60", "categories 100", "mixed 60", "numbers 8, few rows", "mixed 18, one factor", "skewed mixed 26",
    "categories 45, weak", "dependent numbers 12", "binaries 24, factors",
)  # fmt: skip
FRESH_LOOKED_AT = {  # recipes and seeds that nothing was chosen with before: effects too rare to be seen were looked at on these …
    "tree, mixed 14": (Recipe(30_000, 1, "tree", numbers=4, categories=(6, 9), binaries=8, factors=2, strength=1.0), 11),
    "tree, rare categories 10": (
        Recipe(20_000, 1, "tree", numbers=2, categories=(25, 30, 7), binaries=5, factors=3, strength=0.8),
        17,
    ),
    "interactions, skewed 17": (
        Recipe(30_000, 1, "interactions", numbers=10, categories=(5,), binaries=6, factors=3, skewed=True),
        13,
    ),
    "sign, binaries 30": (Recipe(15_000, 1, "sign", binaries=30, factors=3, strength=1.0), 14),
    "probability, mixed 18": (Recipe(30_000, 1, "probability", numbers=6, categories=(8, 4), binaries=10, strength=0.6), 15),
    "weak, numbers 14": (Recipe(25_000, 1, "weak", numbers=14, factors=3), 16),
}
FRESH_HELD_OUT = {  # … and these were measured once, afterwards
    "tree, mixed 25": (Recipe(30_000, 1, "tree", numbers=5, categories=(10, 6), binaries=18, factors=3, strength=0.9), 21),
    "tree, categories 12": (Recipe(25_000, 1, "tree", categories=(12, 20, 8, 5), binaries=8, factors=3, strength=0.7), 22),
    "interactions, numbers 16": (Recipe(30_000, 1, "interactions", numbers=16, factors=4, strength=1.2), 23),
    "smooth, skewed 15": (Recipe(20_000, 1, "smooth", numbers=8, categories=(7,), binaries=6, factors=2, skewed=True), 24),
    "sign, mixed 23": (Recipe(30_000, 1, "sign", numbers=8, categories=(6, 6, 6), binaries=12, factors=4), 25),
    "probability, dependent 15": (
        Recipe(15_000, 1, "probability", numbers=5, categories=(5, 5), binaries=8, factors=2, strength=2.0),
        26,
    ),
}
NEW_HELD_OUT = {  # hidden codes, and how much rehearsals are enlarged, were looked at on all of the above; these were measured once, afterwards
    "tree, categories 14": (Recipe(20_000, 1, "tree", categories=(15, 9, 6, 24), binaries=10, factors=2, strength=0.9), 41),
    "sign, rare categories 12": (Recipe(15_000, 1, "sign", numbers=3, categories=(30, 20, 10), binaries=6, factors=3), 42),
    "sign, categories 8": (Recipe(25_000, 1, "sign", categories=(4, 12, 7, 18, 5, 9, 3, 22), factors=3, strength=1.0), 43),
    "interactions, mixed 20": (Recipe(30_000, 1, "interactions", numbers=7, categories=(8, 5), binaries=11, factors=3), 44),
    "smooth, numbers 12": (Recipe(12_000, 1, "smooth", numbers=12, factors=3, strength=1.1), 45),
    "probability, categories 10": (Recipe(20_000, 1, "probability", categories=(10, 16, 6), binaries=7, factors=2), 46),
    "weak, mixed 17": (Recipe(30_000, 1, "weak", numbers=6, categories=(7, 11), binaries=9, factors=4, strength=0.8), 47),
    "tree, skewed 19": (Recipe(30_000, 1, "tree", numbers=9, categories=(6,), binaries=9, factors=2, skewed=True), 48),
    "sign, few rows 11": (Recipe(6_000, 1, "sign", numbers=4, categories=(5, 8), binaries=5, factors=2, strength=1.0), 49),
    "interactions, binaries 22": (Recipe(20_000, 1, "interactions", binaries=22, factors=4, strength=1.0), 50),
    "probability, skewed 26": (Recipe(30_000, 1, "probability", numbers=12, categories=(9, 13), binaries=12, skewed=True), 51),
    "tree, dependent 16": (Recipe(25_000, 1, "tree", numbers=6, categories=(8, 10), binaries=8, factors=2, strength=2.0), 52),
}
LATEST_HELD_OUT = {  # positions of numbers within bins, and sizes of the parts of bars, were looked at on all of the above; these were measured once
    "tree, mixed 16": (Recipe(25_000, 1, "tree", numbers=5, categories=(7, 5), binaries=9, factors=2, strength=0.9), 61),
    "tree, numbers 9": (Recipe(20_000, 1, "tree", numbers=9, factors=2, strength=0.8), 62),
    "interactions, mixed 12": (Recipe(30_000, 1, "interactions", numbers=5, categories=(6, 10), binaries=5, factors=3), 63),
    "smooth, skewed 11": (Recipe(20_000, 1, "smooth", numbers=7, categories=(5,), binaries=3, factors=2, skewed=True), 64),
    "sign, numbers 20": (Recipe(30_000, 1, "sign", numbers=20, factors=4), 65),
    "probability, numbers 8": (Recipe(15_000, 1, "probability", numbers=8, factors=3, strength=1.0), 66),
    "weak, categories 9": (Recipe(20_000, 1, "weak", categories=(5, 8, 12), binaries=6, factors=3), 67),
    "sign, rare categories 9": (Recipe(20_000, 1, "sign", numbers=3, categories=(25,), binaries=5, factors=2, strength=1.0), 68),
    "probability, mixed 22": (Recipe(30_000, 1, "probability", numbers=8, categories=(6, 9), binaries=12, factors=3), 69),
    "tree, dependent 12": (Recipe(20_000, 1, "tree", numbers=6, categories=(6,), binaries=5, factors=2, strength=2.0), 70),
}
NEWEST_HELD_OUT = {  # what drawing the background adds to rehearsed noise was looked at on all of the above; these were measured once, three draws each
    "tree, mixed 13": (Recipe(25_000, 1, "tree", numbers=3, categories=(5, 8, 11), binaries=7, factors=2, strength=0.9), 81),
    "tree, categories 7": (Recipe(30_000, 1, "tree", categories=(4, 6, 9, 5, 7, 12, 3), factors=2, strength=1.0), 82),
    "tree, numbers 15": (Recipe(30_000, 1, "tree", numbers=15, factors=3, strength=0.8), 83),
    "interactions, mixed 15": (Recipe(20_000, 1, "interactions", numbers=6, categories=(7, 9), binaries=7, factors=3), 84),
    "interactions, categories 9": (Recipe(30_000, 1, "interactions", categories=(5, 10, 14), binaries=6, factors=3), 85),
    "smooth, mixed 18": (Recipe(25_000, 1, "smooth", numbers=9, categories=(6, 8), binaries=7, factors=3, strength=1.0), 86),
    "smooth, skewed 9": (Recipe(15_000, 1, "smooth", numbers=6, categories=(10,), binaries=2, factors=2, skewed=True), 87),
    "sign, binaries 20": (Recipe(20_000, 1, "sign", binaries=20, factors=3, strength=0.9), 88),
    "sign, rare categories 11": (
        Recipe(25_000, 1, "sign", numbers=2, categories=(20, 35), binaries=7, factors=3, strength=0.8),
        89,
    ),
    "probability, mixed 28": (Recipe(30_000, 1, "probability", numbers=10, categories=(7, 5, 9), binaries=15, factors=4), 90),
    "probability, few rows 12": (
        Recipe(7_000, 1, "probability", numbers=5, categories=(6,), binaries=6, factors=2, strength=1.0),
        91,
    ),
    "weak, skewed 16": (Recipe(25_000, 1, "weak", numbers=8, categories=(8, 5), binaries=6, factors=3, skewed=True), 92),
}
FRESH = FRESH_LOOKED_AT | FRESH_HELD_OUT | NEW_HELD_OUT | LATEST_HELD_OUT | NEWEST_HELD_OUT


@dataclass(frozen=True)
class Soft:
    """A forest on encoded columns as a black box on tables: 2p - 1."""

    forest: Any
    domain: dpx.Domain

    def __call__(self, table):
        encoded = self.domain.encode(table)
        parts = [self.forest.predict_proba(encoded[start : start + 100_000])[:, 1] for start in range(0, len(encoded), 100_000)]
        return 2 * np.concatenate(parts) - 1


@dataclass(frozen=True)
class Subject:
    """Rows, the black box and its forest."""

    name: str
    domain: dpx.Domain
    encoded: np.ndarray
    forest: Any

    def private(self):
        """The rows behind the wall, decoded: what the black box is asked about."""
        return dpx.PrivateData(self.domain.decode(self.encoded), self.domain, model=Soft(self.forest, self.domain))

    def exact(self, query, rows):
        """Exact SHAP values of the forest with these rows as background, features as players."""
        return evaluation.row_shapley(self.forest, self.domain, query, rows).mean(axis=0)


def real(name, folder, trees=50):
    data = REAL[name](folder, trees=trees)
    data.model.forest.n_jobs = 1
    return Subject(name, data.domain, data.encoded[np.random.default_rng(3).permutation(len(data.encoded))], data.model.forest)


def make_subject(name, rows=None, seed=0, trees=50):
    recipe = FRESH[name][0] if name in FRESH else FAMILY[name]
    recipe = recipe if rows is None else replace(recipe, rows=min(rows, recipe.rows))
    made = made_up(recipe, seed)
    forest = RandomForestClassifier(trees, max_depth=10, random_state=0).fit(made.encoded[:30_000], made.labels[:30_000] > 0)
    return Subject(name, made.domain, made.encoded, forest)


def scores(found, truth, k=5):
    """Relative error, cosine, and how many of the five strongest features are shared."""
    size = np.linalg.norm(truth)
    top = len(set(np.argsort(-np.abs(found))[:k]) & set(np.argsort(-np.abs(truth))[:k]))
    return np.linalg.norm(found - truth) / size, found @ truth / (np.linalg.norm(found) * size), top


def baselines(subject, query, at):
    """SHAP over true rows that the truth does not use, and KernelSHAP's own noise over 100 of them."""
    rows = subject.encoded[TRUTH:]
    few = rows[at * 100 : at * 100 + 100]
    yield "100 true rows", subject.exact(query, few)
    yield "1,000 true rows", subject.exact(query, rows[3_000:4_000])
    private = subject.private() if at == 0 else None
    if private is not None:
        options = {"model": lambda x: 2 * subject.forest.predict_proba(x)[:, 1] - 1, "background": few, "permutations": 10}
        kernel = evaluation.shap_values(private, query, method="kernel", **options)
        yield "KernelSHAP, 100 true rows", np.add.reduceat(kernel, [block.start for block in subject.domain.blocks])


def measure(subject, queries, console):
    points = subject.encoded[-queries:]
    truths = [subject.exact(point, subject.encoded[:TRUTH]) for point in track(points, subject.name, transient=True)]
    found = {}
    for at, (point, truth) in enumerate(zip(points, truths, strict=True)):
        for name, values in baselines(subject, point, at):
            found.setdefault(name, []).append(scores(values, truth))
    for epsilon in EPSILONS:
        started = perf_counter()
        release = dpx.release(subject.private(), dpx.Budget(epsilon, 1e-6), reference=True, noise=SeededNoise(1))
        built, started = perf_counter() - started, perf_counter()
        records = subject.domain.decode(points)
        answers = release.shapley_many(records)
        console.print(
            f"{subject.name}, ε = {epsilon:g}: built in {built:.1f} s, {(perf_counter() - started) / queries:.2f} s an answer,"
            f" {answers.details['questions']:,} questions each"
        )
        found[f"**reference, total ε = {epsilon:g}**"] = [scores(*pair) for pair in zip(answers.values, truths, strict=True)]
    found["dpx.Shapley, ε = 0.1 a query"] = score_paid_answers(subject, points[:5], truths[:5])
    return {name: np.mean(all_, axis=0) for name, all_ in found.items()}


def score_paid_answers(subject, points, truths):
    explainer = dpx.Explainer(subject.private(), dpx.Budget(100, 1e-6), dpx.Shapley(0.1, 1e-6, rows=5_000), noise=SeededNoise(1))
    starts = [block.start for block in subject.domain.blocks]
    records = [
        dict(zip(subject.domain.columns, one, strict=True)) for one in zip(*subject.domain.decode(points).values(), strict=True)
    ]
    values = [np.add.reduceat(explainer.explain(record).values, starts) for record in records]
    return [scores(*pair) for pair in zip(values, truths, strict=True)]


def has_every_category(domain, points):
    """Which records have a value of every category: others cannot be asked about."""
    coded = [block for block in domain.blocks if block.kind == "one-hot"]
    return np.all([points[:, block.start : block.stop].any(axis=1) for block in coded], axis=0) & np.ones(len(points), bool)


@dataclass(frozen=True)
class Held:
    """How often ±2 errors held the truth, and how long errors are beside what was missed (both as roots of mean squares)."""

    share: float
    length: float


def measure_bars(subject, points, truths, epsilon, seed):
    """`Held` of one release with this seed's noise."""
    release = dpx.release(subject.private(), dpx.Budget(epsilon, 1e-6), reference=1 << 16, noise=SeededNoise(seed))
    answers = release.shapley_many(subject.domain.decode(points))
    missed = np.abs(answers.values - truths)
    return Held(float((missed <= 2 * answers.error + 1e-9).mean()), float(np.linalg.norm(answers.error) / np.linalg.norm(missed)))


def coverage(console, names, title, seeds=2, queries=8, draws=1):
    """How often ±2 errors hold SHAP over all true rows, for `seeds` tables by each recipe and `draws` of the noise for each of them."""
    heads = [f"ε = {epsilon:g}" for epsilon in (1.0, 0.1)]
    table = Table("table", "rows", *heads, title=f"{title}: SHAP over all true rows within two errors (error / missed)")
    everything = []
    for name in track(names, "tables", transient=True):
        found = {1.0: [], 0.1: []}
        first = FRESH[name][1] if name in FRESH else 0
        for seed in range(first, first + seeds):
            subject = make_subject(name, rows=30_000, seed=seed, trees=12)
            points = subject.encoded[-100:][has_every_category(subject.domain, subject.encoded[-100:])][:queries]
            truths = np.array([subject.exact(point, subject.encoded) for point in points])
            for epsilon, held in found.items():
                held += [measure_bars(subject, points, truths, epsilon, seed + 1000 * draw) for draw in range(draws)]
        everything.append([np.mean([one.share for one in held]) for held in found.values()])
        shown = [
            f"{share:.0%} ({np.median([one.length for one in held]):.2f})"
            for share, held in zip(everything[-1], found.values(), strict=True)
        ]
        console.log(name, *shown)
        table.add_row(name, f"{len(subject.encoded):,}", *shown)
    console.print(table)
    each = ", ".join(f"{share:.1%} at {head}" for share, head in zip(np.mean(everything, axis=0), heads, strict=True))
    console.print(f"{title}: {np.mean(everything):.1%} over all ({each})")


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--fresh", action="store_true", help="coverage on 34 further tables")
    parser.add_argument("--newest", action="store_true", help="coverage on the 12 tables that were measured last")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--draws", type=int, default=1)
    parser.set_defaults(queries=20)
    options, console = parser.parse_args(), Console(width=140)
    if options.coverage:
        families = {"development": DEVELOPMENT, "held out": HELD_OUT}
        fresh = {"looked at": tuple(FRESH_LOOKED_AT | FRESH_HELD_OUT | NEW_HELD_OUT), "held out": tuple(LATEST_HELD_OUT)}
        families = {"held out": tuple(NEWEST_HELD_OUT)} if options.newest else fresh if options.fresh else families
        chosen = {"chosen": options.tables} if options.tables else families
        for title, names in chosen.items():
            coverage(console, names, title, options.seeds, draws=options.draws)
        return
    for name in options.tables or ["Adult", "ACS", "mixed 60, probabilities", "numbers 40"]:
        subject = real(name, data_folder(options.data)) if name in REAL else make_subject(name)
        table = Table(
            "background", "relative error", "cosine", "top 5 shared", title=f"{name}: against SHAP on {TRUTH:,} true rows"
        )
        for row, (error, cosine, top) in measure(subject, options.queries, console).items():
            table.add_row(row.strip("*"), f"{error:.3f}", f"{cosine:.4f}", f"{top:.1f}")
        console.print(table)


if __name__ == "__main__":
    main()
