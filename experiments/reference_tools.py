"""LIME and SHAP handed the private reference instead of the private rows, beside their own disagreement under another seed.

python -m experiments.reference_tools --data DIR
"""

from __future__ import annotations

import warnings

import lime.lime_tabular
import numpy as np
import shap
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.stats import spearmanr

import dpexplain as dpx
from dpexplain.noise import SeededNoise
from experiments.datasets import adult, arguments, data_folder, random_records

TRAINING, BACKGROUND = 20_000, 200


def lime_values(data, rows, points, seed):
    explainer = lime.lime_tabular.LimeTabularExplainer(
        rows[:TRAINING], feature_names=list(data.domain.names), discretize_continuous=False, random_state=seed
    )
    found = []
    for point in track(points, description="lime", transient=True):
        answer = explainer.explain_instance(point, data.model.probability, num_features=data.domain.width, num_samples=3000)
        found.append(np.array([value for _, value in sorted(answer.as_map()[1])]))
    return np.array(found)


def shap_values(data, rows, points, seed):
    background = rows[np.random.default_rng(seed).choice(len(rows), BACKGROUND, replace=False)]
    explainer = shap.TreeExplainer(data.model.forest, background, model_output="probability")
    return np.asarray(explainer.shap_values(points, check_additivity=False))[..., 1]


def agreement(first, second, k=5):
    """Mean rank correlation, and mean share of the five strongest columns in common."""
    ranks = [spearmanr(a, b).statistic for a, b in zip(np.abs(first), np.abs(second), strict=True)]
    tops = [
        len(set(np.argsort(-np.abs(a))[:k]) & set(np.argsort(-np.abs(b))[:k])) / k for a, b in zip(first, second, strict=True)
    ]
    return float(np.nanmean(ranks)), float(np.mean(tops))


def main():
    options = arguments(__doc__.splitlines()[0]).parse_args()
    warnings.simplefilter("ignore")
    data = adult(data_folder(options.data), trees=50)
    release = dpx.release(data.with_model(), dpx.Budget(1.0, 1e-6), reference=True, noise=SeededNoise(options.seed))
    points = data.domain.encode_queries(random_records(data, options.queries, options.seed))
    private = data.encoded[np.random.default_rng(1).permutation(len(data.encoded))]
    shown = Table(title=f"Adult, {options.queries} queries, reference at total ε = 1, δ = 1e-6")
    for column in ("tool", "compared with itself on the private rows", "rank correlation", "top-5 shared"):
        shown.add_column(column)
    for name, tool in (("LIME", lime_values), ("TreeSHAP", shap_values)):
        base = tool(data, private, points, 0)
        for what, rows, seed in (("another seed", private, 1), ("the private reference instead", release.reference.encoded, 1)):
            rank, top = agreement(base, tool(data, rows, points, seed))
            shown.add_row(name, what, f"{rank:.3f}", f"{top:.2f}")
    Console().print(shown)


if __name__ == "__main__":
    main()
