"""Planes beside LIME and SHAP: which explains the model, exact and private, on real tables and on two unbalanced made-up ones.

python -m experiments.faithfulness --data DIR [--only Adult ACS credit clinic] [--queries 20]

Every method is asked about the same records. "cosine": of contributions (a slope times the value's distance from the average, summed over a feature's
columns) to SHAP with 1,000 private rows. "wrong signs": of the slopes that a method calls certain (more than two errors from 0), the share for which the
model itself moves the other way as that feature goes from one end of its domain to the other at the record, everything else unchanged.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from experiments.datasets import acs, adult, arguments, data_folder

DELTA, TRUTH, BACKGROUND, LIME_SAMPLES = 1e-6, 1_000, 100, 3_000
COLUMNS = ("cosine", "deletion ↓", "insertion ↑", "PGI ↑", "PGU ↓", "infidelity ↓", "wrong signs ↓")


@dataclass(frozen=True)
class Subject:
    """A table in its domain's terms, and the model as a function of encoded rows, with answers 2p - 1."""

    name: str
    domain: dpx.Domain
    frame: Any
    model: Any

    def private(self):
        table_model = lambda table: self.model(self.domain.encode(table))  # noqa: E731
        return dpx.PrivateData(self.frame, self.domain, model=table_model, output="value", bounds=(-1, 1))


def real(data):
    data.model.forest.n_jobs = 1
    names = [feature.name for feature in data.domain.features]
    return Subject(data.name, data.domain, data.frame[names], lambda rows: 2 * data.model.probability(rows)[:, 1] - 1)


def train_subject(name, domain, table, truth):
    """A gradient-boosted model on a part of the rows."""
    encoded, chosen = domain.encode(table), np.random.default_rng(0).permutation(len(truth))[:20_000]
    fitted = HistGradientBoostingClassifier(max_iter=80, random_state=0).fit(encoded[chosen], truth[chosen])
    return Subject(name, domain, table, lambda rows: 2 * fitted.predict_proba(rows)[:, 1] - 1)


def credit(m=60_000):
    """Defaults of about 6 %: skewed amounts, spikes at zero, a few late payments."""
    rng = np.random.default_rng(11)
    stress = rng.standard_normal(m)
    age = np.clip(45 + 14 * rng.standard_normal(m), 18, 95)
    income = np.minimum(np.exp(8.4 + 0.6 * rng.standard_normal(m) - 0.2 * stress), 30_000)
    used = np.clip(0.3 + 0.3 * stress + 0.3 * rng.standard_normal(m), 0, 1.5)
    late = rng.poisson(np.exp(-2.2 + 0.9 * stress)).clip(0, 10)
    loans = rng.poisson(6, m).clip(0, 25)
    home = rng.choice(["own", "rent", "family", "other"], m, p=[0.5, 0.35, 0.12, 0.03])
    score = (
        1.1 * used + 0.8 * np.minimum(late, 3) - 0.00008 * income - 0.02 * age + 0.3 * (home == "rent") + 0.4 * used * (late > 0)
    )
    truth = score + rng.logistic(size=m) > 3.2
    domain = dpx.Domain(
        [
            dpx.Numeric("age", 18, 95),
            dpx.Numeric("income", 0, 30_000),
            dpx.Numeric("used", 0, 1.5),
            dpx.Numeric("late", 0, 10),
            dpx.Numeric("loans", 0, 25),
            dpx.Categorical("home", values=["own", "rent", "family", "other"]),
        ]
    )
    table = {"age": age, "income": income, "used": used, "late": late, "loans": loans, "home": home}
    return train_subject("credit, made up", domain, table, truth)


def clinic(m=60_000):
    """Rare outcomes of about 5 % in a wide table of categories, some of them rare."""
    rng = np.random.default_rng(12)
    frailty = rng.standard_normal(m)
    wards, drugs, areas = (np.exp(-0.25 * np.arange(k)) for k in (14, 20, 10))
    draw = lambda weights, tilt: (rng.gumbel(size=(m, len(weights))) + np.log(weights) + tilt).argmax(axis=1)  # noqa: E731
    ward = draw(wards, 0.5 * frailty[:, None] * np.sin(np.arange(14)))
    drug = draw(drugs, 0.4 * frailty[:, None] * np.cos(np.arange(20)))
    area = draw(areas, 0.0)
    age = np.clip(55 + 15 * rng.standard_normal(m) + 5 * frailty, 0, 100)
    visits = rng.poisson(np.exp(0.4 * frailty)).clip(0, 12)
    flags = {f"flag{i}": rng.random(m) < 1 / (1 + np.exp(2 - 0.5 * frailty * (i % 3))) for i in range(8)}
    score = (
        0.03 * age + 0.35 * visits + np.sin(ward) + 0.6 * np.cos(drug) + 0.8 * flags["flag1"] + 0.5 * flags["flag2"] * (age > 60)
    )
    truth = score + rng.logistic(size=m) > 7.0
    named = lambda prefix, codes, k: ([f"{prefix}{i}" for i in range(k)], np.array([f"{prefix}{i}" for i in range(k)])[codes])  # noqa: E731
    codes = {"ward": named("w", ward, 14), "drug": named("d", drug, 20), "area": named("a", area, 10)}
    features = [dpx.Numeric("age", 0, 100), dpx.Numeric("visits", 0, 12)]
    features += [dpx.Categorical(name, values=values) for name, (values, _) in codes.items()] + [
        dpx.Binary(name) for name in flags
    ]
    table = {"age": age, "visits": visits, **{name: column for name, (_, column) in codes.items()}, **flags}
    return train_subject("clinic, made up", dpx.Domain(features), table, truth)


SUBJECTS = {
    "Adult": lambda options: real(adult(data_folder(options.data), trees=50)),
    "ACS": lambda options: real(acs(data_folder(options.data), trees=50)),
    "credit": lambda _: credit(),
    "clinic": lambda _: clinic(),
}


def per_feature(domain, columns):
    return np.add.reduceat(columns, [block.start for block in domain.blocks])


def methods(subject, private, releases, background, mean, record, point, answer):
    """Name → (values by column, kind, contributions by feature, errors of the values or None)."""

    def slopes(values, errors=None):
        return values, "slope", per_feature(subject.domain, values * (point - mean)), errors

    def read_explanation(explanation):
        added = explanation.contributions()
        return explanation.values, "slope", np.asarray(added.values), explanation.error

    found = {f"exact {plane}": slopes(evaluation.optimum(private, point, plane=plane)) for plane in ("paper", "fitted")}
    found["exact anchored"] = slopes(evaluation.optimum(private, point, anchor=answer))
    for name, release in releases.items():
        found[f"{name}, fitted"] = read_explanation(release.explain(record))
        if "reference" not in name:
            found[f"{name}, anchored"] = read_explanation(release.explain(record, anchor=float(release.scale.answers(answer))))
            found[f"{name}, paper"] = read_explanation(release.explain(record, plane="paper"))
    found["LIME"] = slopes(evaluation.lime(private, point, model=subject.model, samples=LIME_SAMPLES))
    shap = evaluation.shap_values(private, point, model=subject.model, background=background, permutations=5)
    return found | {f"SHAP, {BACKGROUND} rows": (shap, "contribution", per_feature(subject.domain, shap), None)}


def own_changes(subject, point):
    """For each feature of one column, the model's change from its low end to its high end at the record."""
    changes = np.full(len(subject.domain.blocks), np.nan)
    for i, block in enumerate(subject.domain.blocks):
        rows = np.repeat(point[None], 2, axis=0)
        if block.stop - block.start == 1:
            rows[:, block.start] = 0.0, 1.0
            changes[i] = np.subtract(*subject.model(rows)[::-1])
    return changes


def wrong_signs(subject, point, values, errors):
    """(certain, wrong) among features of one column, whose end-to-end change has a sign of its own."""
    if errors is None:
        return 0, 0
    changes = own_changes(subject, point)
    starts = np.array([block.start for block in subject.domain.blocks])
    certain = (np.abs(values[starts]) > 2 * errors[starts]) & np.isfinite(changes) & (np.abs(changes) > 1e-3)
    return int(certain.sum()), int((certain & (np.sign(values[starts]) != np.sign(changes))).sum())


def scores(subject, point, background, truth, found):
    values, kind, added, errors = found
    ask, domain = subject.model, subject.domain
    slope = kind == "slope"
    return [
        float(added @ truth) / max(float(np.linalg.norm(added) * np.linalg.norm(truth)), 1e-300),
        evaluation.deletion(values, ask, domain, point, background, kind=kind).area,
        evaluation.insertion(values, ask, domain, point, background, kind=kind).area,
        evaluation.pgi(values, ask, domain, point, kind=kind),
        evaluation.pgu(values, ask, domain, point, kind=kind),
        evaluation.infidelity(values, ask, domain, point) if slope else np.nan,
        *wrong_signs(subject, point, values, errors),
    ]


def measure(subject, options):
    """Name → mean scores over the records."""
    private, encoded = subject.private(), subject.domain.encode(subject.frame)
    rng = np.random.default_rng(options.seed)
    rows = encoded[rng.choice(len(encoded), TRUTH, replace=False)]
    mean, background = evaluation.column_spread(private).mean, rows[:BACKGROUND]
    budget = dpx.Budget(1_000, DELTA)
    spend = [(epsilon, dpx.Budget(epsilon, DELTA)) for epsilon in options.epsilons]
    releases = {f"ε={e:g}": dpx.release(private, budget, spend=part, noise=SeededNoise(1)) for e, part in spend}
    if options.reference:
        releases |= {
            f"ε={e:g} with reference": dpx.release(private, budget, spend=part, noise=SeededNoise(1), reference=True)
            for e, part in spend
        }
    chosen, collected = rng.integers(0, len(encoded), options.queries), {}
    table = subject.frame if isinstance(subject.frame, dict) else {name: subject.frame[name].to_numpy() for name in subject.frame}
    for i in track(chosen, description=subject.name, transient=True):
        record = {name: column[i].item() if hasattr(column[i], "item") else column[i] for name, column in table.items()}
        point = subject.domain.encode_query(record)
        answer = float(np.clip(subject.model(point[None])[0], -1, 1))
        shap = evaluation.shap_values(private, point, model=subject.model, background=rows, permutations=5)
        truth = per_feature(subject.domain, shap)
        for name, found in methods(subject, private, releases, background, mean, record, point, answer).items():
            collected.setdefault(name, []).append(scores(subject, point, background, truth, found))
    return {name: np.array(each) for name, each in collected.items()}


def format_row(found):
    means = [f"{value:.3f}" if np.isfinite(value) else "" for value in found[:, :6].mean(axis=0)]
    certain, wrong = found[:, 6].sum(), found[:, 7].sum()
    return [*means, f"{wrong / certain:.1%} of {certain:.0f}" if certain else ""]


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(SUBJECTS), choices=list(SUBJECTS))
    parser.add_argument("--epsilons", type=float, nargs="*", default=(0.1, 1.0))
    parser.add_argument("--reference", action="store_true", help="also releases with reference records")
    parser.set_defaults(queries=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.only:
        subject = SUBJECTS[name](options)
        table = Table("method", *COLUMNS, title=f"{subject.name}: {options.queries} records")
        for method, found in sorted(measure(subject, options).items()):
            table.add_row(method, *format_row(found))
        Console(width=150).print(table)


if __name__ == "__main__":
    main()
