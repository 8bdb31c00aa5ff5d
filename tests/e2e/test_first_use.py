"""What a first use does not wait for: compilers and plotting where nothing is compiled or plotted."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

import dpexplain as dpx

pytestmark = pytest.mark.slow
SCRIPT = """
import json, sys
from dpexplain.cli import app
try:
    app(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code, ended.code
print(json.dumps([name for name in ("numba", "matplotlib", "ray", "fastapi") if name in sys.modules]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def release_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    rows = np.random.default_rng(0).random((300, 2))
    data = dpx.PrivateData(rows, dpx.Domain.encoded(2), labels=np.where(rows[:, 0] > 0.5, 1.0, -1.0))
    dpx.release(data, dpx.Budget(1, 1e-6)).save(folder / "a.dpx")
    with (folder / "q.csv").open("w", newline="") as out:
        csv.writer(out).writerows([["x0", "x1"], [0.1, 0.9], [0.6, 0.4]])
    return folder


def loaded_modules(*words):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])


def test_explaining_from_a_release_compiles_and_plots_nothing(release_folder):
    assert loaded_modules("explain", release_folder / "a.dpx", "--record", '{"x0": 0.1, "x1": 0.9}') == []
    assert (
        loaded_modules("explain", release_folder / "a.dpx", "--rows", release_folder / "q.csv", "-o", release_folder / "out.csv")
        == []
    )
    assert (release_folder / "out.csv").exists()


def test_importing_loads_no_compiler():
    code = "import sys, dpexplain; print([name for name in ('numba', 'matplotlib', 'ray', 'fastapi') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"


RELEASE = """
import sys, numpy as np, dpexplain as dpx
rows = np.random.default_rng(0).random((300, 2))
dpx.release(dpx.PrivateData(rows, dpx.Domain.encoded(2), labels=np.ones(300)), dpx.Budget(1, 1e-6))
print([name for name in ("scipy.stats", "matplotlib", "ray", "fastapi", "pandas") if name in sys.modules])
"""


def test_a_release_loads_nothing_that_it_does_not_need():
    done = subprocess.run([sys.executable, "-c", RELEASE], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
