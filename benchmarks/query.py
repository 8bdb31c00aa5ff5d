"""One interactive query: our one pass beside T naive NumPy passes, the NumPy one-pass, lime and KernelSHAP on the same model."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import dpexplain as dpx
from dpexplain.backends.dense import DenseRows
from dpexplain.backends.oracle import OracleRows
from dpexplain.core.moments import LocalMoments

PASSES = 300


def best_of(work, repeat=3):
    """Seconds of the fastest of a few runs, after one to warm up."""
    work()
    times = []
    for _ in range(repeat):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def naive_pass(X, y, z, weight, phi):
    """One gradient the obvious way: distances, weights, residuals, a weighted sum."""
    u = X - z
    alpha = weight(np.sqrt((u * u).sum(axis=1)))
    return 2 / len(X) * ((alpha * (u @ phi - y)) @ u)


def made_up(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((rows, columns))
    return X, np.sign(X[:, 0] - X[:, 1] * X[:, 2] - 0.2)


def growth():
    """Seconds of one query's statistics as rows and columns grow, with exponents."""
    weight, found = dpx.weights.Stable(), []
    for rows, columns in ((50_000, 20), (200_000, 20), (800_000, 20), (200_000, 40), (200_000, 80)):
        X, y = made_up(rows, columns)
        store = DenseRows([X], y, columns)
        found.append((rows, columns, best_of(lambda store=store, X=X: store.local(LocalMoments(X[0], weight)))))
    by_rows = np.polyfit(np.log([f[0] for f in found[:3]]), np.log([f[2] for f in found[:3]]), 1)[0]
    by_columns = np.polyfit(np.log([found[1][1], found[3][1], found[4][1]]), np.log([found[1][2], found[3][2], found[4][2]]), 1)[
        0
    ]
    return found, float(by_rows), float(by_columns)


def explainers(X, y, domain):
    """Seconds for one fresh explanation by each tool, same 100-tree forest, 5,000 samples for lime, 100 background rows for SHAP."""
    import shap
    from lime.lime_tabular import LimeTabularExplainer

    forest = RandomForestClassifier(100, max_depth=10, n_jobs=1, random_state=0).fit(X[:5000], y[:5000] > 0)
    data = dpx.PrivateData(X, domain, labels=y)
    ours = dpx.Explainer(data, dpx.Budget(1000, 1e-6), dpx.Basic(0.1, 1e-6))
    lime = LimeTabularExplainer(X[:5000], discretize_continuous=False)
    kernel = shap.KernelExplainer(lambda rows: forest.predict_proba(rows)[:, 1], X[:100])
    return {
        "dpexplain, fresh private answer": best_of(lambda: ours.explain(X[0])),
        "lime, 5,000 samples": best_of(lambda: lime.explain_instance(X[0], forest.predict_proba, num_features=X.shape[1]), 2),
        "KernelSHAP, 100 background rows": best_of(lambda: kernel.shap_values(X[0], silent=True), 1),
    }


def run():
    X, y = made_up(300_000, 50)
    weight, z = dpx.weights.Stable(), X[0]
    dense, oracle = DenseRows([X], y, 50), OracleRows(X, y)
    one_pass = best_of(lambda: dense.local(LocalMoments(z, weight)))
    numpy_pass = best_of(lambda: oracle.local(LocalMoments(z, weight)), 2)
    passes = PASSES * best_of(lambda: naive_pass(X, y, z, weight, np.zeros(50)), 2)
    rows = [{"what": "statistics of one query, 300k x 50", "seconds": one_pass, "ratio to ours": 1.0}]
    rows.append({"what": "NumPy one pass", "seconds": numpy_pass, "ratio to ours": numpy_pass / one_pass})
    rows.append(
        {"what": f"{PASSES} naive NumPy passes (one timed, scaled)", "seconds": passes, "ratio to ours": passes / one_pass}
    )
    times = explainers(X, y, dpx.Domain.encoded(50))
    ours = times["dpexplain, fresh private answer"]
    rows += [{"what": name, "seconds": seconds, "ratio to ours": seconds / ours} for name, seconds in times.items()]
    found, by_rows, by_columns = growth()
    rows += [{"what": f"growth: {m:,} x {n}", "seconds": s, "ratio to ours": ""} for m, n, s in found]
    rows.append({"what": f"cost grows like rows^{by_rows:.2f}, columns^{by_columns:.2f}", "seconds": "", "ratio to ours": ""})
    return rows
