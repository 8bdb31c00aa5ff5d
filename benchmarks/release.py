"""Explanations per second of one core's time, from a loaded release file, beside lime and KernelSHAP on the same model.

Time is the process's own CPU time, so that other work on the machine does not change the numbers. Encoding the records is included.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import dpexplain as dpx

BUDGET = dpx.Budget(1.0, 1e-6)
ROWS, ASKED = 20_000, (4_000, 400)


def best_of(work, repeat):
    """CPU seconds of the fastest of a few runs, after one to warm up."""
    work()
    times = []
    for _ in range(repeat):
        start = process_time()
        work()
        times.append(process_time() - start)
    return max(min(times), 1e-9)


def census_like(rows, seed=0):
    """Ten attributes, 70 columns: three numbers, two binaries, codes of 8, 18, 5, 26 and 8 values."""
    rng = np.random.default_rng(seed)
    numbers = [dpx.Numeric(f"n{i}", 0, 1) for i in range(3)]
    codes = [dpx.Categorical(f"c{i}", values=[str(v) for v in range(size)]) for i, size in enumerate((8, 18, 5, 26, 8))]
    domain = dpx.Domain([*numbers, dpx.Binary("b0"), dpx.Binary("b1"), *codes])
    frame = {f"n{i}": rng.beta(2, 3, rows) for i in range(3)} | {f"b{i}": rng.random(rows) < 0.4 for i in range(2)}
    frame |= {code.name: rng.choice(code.values, rows, p=rng.dirichlet(np.ones(len(code.values)))) for code in codes}
    return domain, frame, np.sign(frame["n0"] + frame["n1"] * frame["b0"] - 0.6)


def words(rows, columns=500, seed=0):
    """Binary columns, as of a bag of words."""
    rng = np.random.default_rng(seed)
    domain = dpx.Domain([dpx.Binary(f"w{i}") for i in range(columns)])
    shares = rng.uniform(0.01, 0.3, columns)
    frame = {f"w{i}": rng.random(rows) < share for i, share in enumerate(shares)}
    return domain, frame, np.where(frame["w0"] | frame["w1"], 1.0, -1.0)


def make_and_load(domain, frame, labels):
    """(release as read from its file, seconds to make it, bytes of the file)."""
    data = dpx.PrivateData(frame, domain, labels=labels)
    start = perf_counter()
    made = dpx.release(data, BUDGET)
    seconds = perf_counter() - start
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bench.dpx"
        made.save(path)
        return dpx.load(path), seconds, path.stat().st_size


def rates(release, frame, count):
    """Explanations per second: records in, values and errors out; the default plane, and the paper's, which 0.1.0 answered with."""
    asked = {name: column[:count] for name, column in frame.items()}
    one = {name: column[0].item() for name, column in frame.items()}
    together = {
        f"explain_many, {count:,} records": lambda: release.explain_many(asked),
        "… with contributions": lambda: release.explain_many(asked).contributions(),
        "… anchored": lambda: release.explain_many(asked, anchor=np.zeros(count)),
        "… the paper's plane, slopes only": lambda: release.explain_many(asked, plane="paper"),
    }
    alone = {
        "explain, one at a time": lambda: release.explain(one),
        "… with contributions": lambda: release.explain(one).contributions(),
        "… the paper's plane, slopes only": lambda: release.explain(one, plane="paper"),
    }
    found = {what: count / best_of(work, 2) for what, work in together.items()}
    return found | {f"one: {what}": 10 / best_of(lambda w=work: [w() for _ in range(10)], 3) for what, work in alone.items()}


def time_model_based(domain, frame, labels):
    """lime and KernelSHAP explaining a 100-tree forest on the same encoded rows."""
    import shap
    from lime.lime_tabular import LimeTabularExplainer

    X = domain.encode({name: column[:5000] for name, column in frame.items()})
    forest = RandomForestClassifier(100, max_depth=10, n_jobs=1, random_state=0).fit(X, labels[:5000] > 0)
    lime = LimeTabularExplainer(X, discretize_continuous=False)
    kernel = shap.KernelExplainer(lambda rows: forest.predict_proba(rows)[:, 1], X[:100])
    return {
        "lime, 5,000 samples": 1 / best_of(lambda: lime.explain_instance(X[0], forest.predict_proba, num_features=10), 2),
        "KernelSHAP, 100 background rows": 1 / best_of(lambda: kernel.shap_values(X[0], silent=True), 1),
    }


def run():
    rows = []
    for name, made, count in (("70 columns", census_like(ROWS), ASKED[0]), ("500 columns", words(ROWS), ASKED[1])):
        domain, frame, labels = made
        release, seconds, size = make_and_load(domain, frame, labels)
        found = rates(release, frame, count)
        many = next(iter(found.values()))
        if domain.width < 100:
            found |= time_model_based(domain, frame, labels)
        rows += [
            {"what": f"{name}: {what}", "per CPU second": rate, "ratio to ours": rate / many} for what, rate in found.items()
        ]
        rows.append(
            {"what": f"{name}: {seconds:.1f} s to release, file {size / 1e6:.2f} MB", "per CPU second": "", "ratio to ours": ""}
        )
    return rows
