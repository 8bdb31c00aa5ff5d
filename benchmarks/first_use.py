"""What a new process waits for: importing, the first answer with and without a cache of compiled kernels, answers from a release's file.

CPU seconds of child processes, so that a busy machine does not matter.
"""

from __future__ import annotations

import csv
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import dpexplain as dpx

COLUMNS = 10
FIRST = """
import numpy as np, dpexplain as dpx
rows = np.random.default_rng(0).random((2000, 10))
data = dpx.PrivateData(rows, dpx.Domain.encoded(10), labels=np.sign(rows[:, 0] - 0.5))
dpx.Explainer(data, dpx.Budget(1, 1e-6), dpx.Basic(0.1, 1e-7)).explain(rows[0])
"""


def cpu_seconds(words: list[str], cache: str) -> float:
    """User and system time of one child process and what it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, capture_output=True, env=os.environ | {"NUMBA_CACHE_DIR": cache})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_release(folder: Path) -> None:
    rows = np.random.default_rng(0).random((2000, COLUMNS))
    data = dpx.PrivateData(rows, dpx.Domain.encoded(COLUMNS), labels=np.sign(rows[:, 0] - 0.5))
    dpx.release(data, dpx.Budget(1, 1e-6)).save(folder / "a.dpx")
    with (folder / "q.csv").open("w", newline="") as out:
        csv.writer(out).writerows([[f"x{j}" for j in range(COLUMNS)], *rows[:100].tolist()])


def run() -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory(prefix="dpx") as made:
        folder, cache = Path(made), str(Path(made) / "kernels")
        write_release(folder)
        explain = ["explain", str(folder / "a.dpx"), "--rows", str(folder / "q.csv"), "-o", str(folder / "out.csv")]
        python = [sys.executable, "-c"]
        works = {
            "python alone": [*python, "pass"],
            "import dpexplain": [*python, "import dpexplain"],
            "first answer ever: kernels are compiled": [*python, FIRST],
            "first answer of the next process": [*python, FIRST],
            "dpexplain explain --rows, 100 records from a release": [*python, "from dpexplain.cli import app; app()", *explain],
            "the same, with numba loaded": [*python, "import numba; from dpexplain.cli import app; app()", *explain],
        }
        found = {name: cpu_seconds(words, cache) for name, words in works.items()}
    first = found["first answer ever: kernels are compiled"]
    return [{"process": name, "CPU seconds": one, "of the first answer ever": one / first} for name, one in found.items()]
