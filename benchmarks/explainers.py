"""One explanation by each tool, same 500-tree forest, same table: what a user waits for.

lime draws its 5,000 samples, KernelSHAP uses 100 background rows; both ask the forest, which may use all cores. Ours asked the forest once, when
the rows were registered; that time is shown too.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import dpexplain as dpx
from benchmarks._measure import best_of, count_label, made_up

ROWS, COLUMNS, TREES, SAMPLES = 1_500_000, 50, 500, 5_000


def forest_of(X, y):
    return RandomForestClassifier(TREES, max_depth=10, n_jobs=-1, random_state=0).fit(X[:5_000], y[:5_000] > 0)


def time_ours(X, y):
    """(fresh answer, single answer from a release, each of many, seconds to make the release)."""
    domain, budget = dpx.Domain.encoded(COLUMNS), dpx.Budget(1.0, 1e-6)
    data = dpx.PrivateData(X, domain, labels=y)
    explainer = dpx.Explainer(data, dpx.Budget(1000.0, 1e-6), dpx.Basic(0.1, 1e-6))
    fresh = best_of(lambda: explainer.explain(X[0]))
    start = perf_counter()
    release = dpx.release(data, budget)
    made = perf_counter() - start
    fresh_points = iter(X)  # a repeated question might be remembered
    one = best_of(lambda: release.explain(next(fresh_points)), 50)
    many = best_of(lambda: release.explain_many(X[:2_000]), 2) / 2_000
    return fresh, one, many, made


def time_theirs(X, forest):
    import shap
    from lime.lime_tabular import LimeTabularExplainer

    lime = LimeTabularExplainer(X[:5_000], discretize_continuous=False, random_state=0)
    kernel = shap.KernelExplainer(lambda rows: forest.predict_proba(rows)[:, 1], X[:100])
    point = X[0].astype(np.float64)
    return (
        best_of(lambda: lime.explain_instance(point, forest.predict_proba, num_features=COLUMNS, num_samples=SAMPLES), 3),
        best_of(lambda: kernel.shap_values(point, silent=True), 1, warm=False),
    )


def run():
    X, y = made_up(ROWS, COLUMNS)
    forest = forest_of(X, y)
    start = perf_counter()
    forest.predict_proba(X[:20_000])
    labelling = (perf_counter() - start) * ROWS / 20_000
    lime, kernel = time_theirs(X, forest)
    fresh, one, many, made = time_ours(X, y)
    found = {
        f"dpexplain, fresh private answer from {count_label(ROWS)} rows": fresh,
        "dpexplain, from a release, one at a time": one,
        "dpexplain, from a release, each of 2,000": many,
        f"lime, {SAMPLES:,} samples": lime,
        "KernelSHAP, 100 background rows": kernel,
    }
    rows = [{"explanation": what, "seconds": seconds, "lime takes times": lime / seconds} for what, seconds in found.items()]
    rows.append({"explanation": "once: making the release", "seconds": made})
    rows.append({"explanation": "once: labels of all rows by the forest (20,000 timed)", "seconds": labelling})
    return rows
