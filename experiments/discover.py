"""Discovered domains: how good bounds and categories are for a small ε, and what they cost the release that follows.

    python -m experiments.discover --data DIR [--epsilon 0.05] [--seeds 5] [--release]

For numbers: the share of rows that the discovered bounds clamp, and how much wider they are than the middle 99 % of the rows. For categories: how
many of the values with at least 1 % of the rows are found, and the share of rows whose value is found. With --release: SHAP values from a release of
total ε = 1 under the declared domain, and under a domain discovered with a part of it, against SHAP over 1,000 true rows.
"""

from __future__ import annotations

import tempfile

import numpy as np
import pandas as pd

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.errors import Undeclared
from dpexplain.noise import SeededNoise
from experiments.datasets import adult, arguments, data_folder, random_records

ADULT = {
    "age": "integer", "workclass": "category", "fnlwgt": "integer", "education": "category", "education-num": "integer",
    "marital-status": "category", "occupation": "category", "relationship": "category", "race": "category", "sex": "category",
    "capital-gain": "integer", "capital-loss": "integer", "hours-per-week": "integer", "native-country": "category",
}  # fmt: skip
ACS = {
    "AGEP": "integer", "COW": "category", "SCHL": "category", "MAR": "category", "OCCP": "category", "POBP": "category", "RELP": "category",
    "WKHP": "integer", "SEX": "category", "RAC1P": "category",
}  # fmt: skip
FREQUENT = 0.01


def discover_features(frame, kinds, epsilon, seed, **options):
    """(features found, names of columns where nothing was)."""
    with tempfile.TemporaryDirectory() as folder:
        ledger, budget = f"sqlite:///{folder}/one.ledger", dpx.Budget(epsilon, 1e-6)
        try:
            domain = dpx.discover(frame, budget, ledger=ledger, columns=kinds, noise=SeededNoise(seed), **options)
        except Undeclared as error:
            known = [one for one in error.draft.features if one not in error.draft.open]
            return [one.feature() for one in known], [one.name for one in error.draft.open]
        return list(domain.features), []


def judge(frame, feature):
    """One row of the table."""
    column = frame[feature.name]
    if isinstance(feature, dpx.Numeric):
        low, high = column.quantile(0.005), column.quantile(0.995)
        clamped = float(((column < feature.low) | (column > feature.high)).mean())
        return {"feature": feature.name, "clamped": clamped, "width": (feature.high - feature.low) / max(high - low, 1e-9)}
    shares = column.astype(str).str.removesuffix(".0").value_counts(normalize=True)
    found = set(map(str, feature.values))
    frequent = [value for value in shares.index if shares[value] >= FREQUENT]
    return {
        "feature": feature.name,
        "recall": np.mean([value in found for value in frequent]),
        "mass": float(sum(shares[value] for value in shares.index if value in found)),
        "spurious": len(found - set(shares.index)),
    }


def quality(frame, kinds, epsilon, seeds):
    rows, lost = [], 0
    for seed in range(seeds):
        features, missing = discover_features(frame, kinds, epsilon, seed)
        lost += len(missing)
        rows += [judge(frame, feature) for feature in features]
    print(pd.DataFrame(rows).groupby("feature", sort=False).mean().round(3).to_string())
    print(f"columns where nothing stood out: {lost} of {seeds * len(kinds)}")


def effect(folder, epsilon, queries):
    """SHAP from releases under both domains against SHAP over true rows: relative error and cosine over features."""
    data = adult(folder, trees=50)
    names = list(data.domain.columns)
    frame, records = data.frame[names], random_records(data, queries, seed=1)
    kinds = {name: ADULT[name] for name in names}
    truth = evaluation_truth(data, records)
    for title, domain, spend in (("declared", data.domain, 1.0), (f"discovered at {epsilon:g}", None, None)):
        with tempfile.TemporaryDirectory() as place:
            ledger, budget = f"sqlite:///{place}/one.ledger", dpx.Budget(1.0, 1e-6)
            if domain is None:
                part = dpx.Budget(epsilon, 1e-6)
                domain = dpx.discover(frame, budget, spend=part, ledger=ledger, columns=kinds, noise=SeededNoise(0))
                spend = 0.99 * np.sqrt(1 - (part.mu / budget.mu) ** 2)
            private = dpx.PrivateData(frame, domain, model=data.model)
            release = dpx.release(
                private, budget, spend=dpx.Budget(spend, 1e-6), ledger=ledger, reference=1 << 15, noise=SeededNoise(1)
            )
            total = private.spent.epsilon
            values = by_feature(release.shapley_many(pd.DataFrame(records), model=data.model, clip=True), names)
        cosine = np.sum(values * truth, 1) / np.linalg.norm(values, axis=1) / np.linalg.norm(truth, axis=1)
        error = np.linalg.norm(values - truth, axis=1) / np.linalg.norm(truth, axis=1)
        print(f"{title}: relative error {error.mean():.3f}, cosine {cosine.mean():.4f}, total ε {total:.3f}")


def by_feature(contributions, names):
    return np.array([[dict(zip(one.names, one.values, strict=True))[name] for name in names] for one in contributions])


def evaluation_truth(data, records):
    """SHAP values over 1,000 true rows, summed by feature."""
    chosen = data.frame.sample(1000, random_state=3)
    private = dpx.PrivateData(chosen[list(data.domain.columns)], data.domain, model=data.model)
    blocks = data.domain.blocks
    rows = [evaluation.shap_values(private, record, background=1000, permutations=4) for record in records]
    return np.array([[row[block.start : block.stop].sum() for block in blocks] for row in rows])


def main():
    parser = arguments(__doc__)
    parser.add_argument("--epsilon", type=float, default=0.05)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--release", action="store_true")
    given = parser.parse_args()
    folder = data_folder(given.data)
    if given.release:
        effect(folder, given.epsilon, min(given.queries, 10))
        return
    for name, kinds in (("adult_uci", ADULT), ("acs_income_2018", ACS)):
        frame = pd.read_parquet(folder / f"{name}.parquet", columns=list(kinds))
        print(f"\n{name}: {len(frame):,} rows, ε = {given.epsilon:g}")
        quality(frame, kinds, given.epsilon, given.seeds)


if __name__ == "__main__":
    main()
