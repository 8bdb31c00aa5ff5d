"""One query, one answer and a batch of answers over the same Parquet rows held in memory, streamed, and held by two Ray workers; and a release."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpexplain as dpx
from benchmarks._measure import best_of
from dpexplain.core.moments import LocalMoments

ROWS, COLUMNS, FILES = 400_000, 50, 8
BATCH = 16


def write(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(FILES):
        X = rng.random((COLUMNS, ROWS // FILES), dtype=np.float32)
        table = pa.table({f"x{j}": column for j, column in enumerate(X)} | {"y": np.sign(X[0] - X[1] * X[2] - 0.2)})
        pq.write_table(table, folder / f"{i}.parquet", row_group_size=1 << 16)


def in_memory(folder: str, domain: dpx.Domain) -> dpx.PrivateData:
    table = pq.read_table(folder)
    return dpx.PrivateData(table, domain, labels=table["y"].to_numpy())


def measure(name: str, register) -> dict[str, object]:
    """Seconds to register, to read the sums of one query, to answer one question, to answer several by `explain_many`, and to release."""
    start = perf_counter()
    data = register()
    registered = perf_counter() - start
    points = np.random.default_rng(1).random((BATCH, COLUMNS))
    query = best_of(lambda: data.private_rows.local(LocalMoments(points[0], dpx.weights.Stable())), 3)
    explainer = dpx.Explainer(data, dpx.Budget(1, 1e-6), dpx.Basic(0.01, 1e-6))
    one = best_of(lambda: explainer.explain(points[0]), 3)
    many = best_of(lambda: explainer.explain_many(points), 2)
    start = perf_counter()
    dpx.release(data, dpx.Budget(1, 1e-6))
    released = perf_counter() - start
    data.close()
    return {
        "rows": name,
        "register s": registered,
        "query ms": 1e3 * query,
        "million rows/s": ROWS / query / 1e6,
        "answer ms": 1e3 * one,
        f"each of {BATCH} by explain_many ms": 1e3 * many / BATCH,
        "times faster": one * BATCH / many,
        "release s": released,
        "peak MiB of this process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def run() -> list[dict[str, object]]:
    domain = dpx.Domain.encoded(COLUMNS)
    with tempfile.TemporaryDirectory(prefix="dpx") as folder:
        write(Path(folder))
        found = [  # the one that needs least memory first: peaks only grow
            measure("streamed from Parquet", lambda: dpx.PrivateData.scan(folder, domain, label="y")),
            measure("two Ray workers", lambda: dpx.PrivateData.cluster(folder, domain, label="y")),
            measure("in memory", lambda: in_memory(folder, domain)),
        ]
    for row in found:
        row["query, of in memory"] = float(str(row["query ms"])) / float(str(found[-1]["query ms"]))
    return found
