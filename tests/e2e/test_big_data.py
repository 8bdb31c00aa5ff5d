"""A release over files four times larger than the memory that may be used, with the numbers it has in memory."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpexplain as dpx
from dpexplain.noise.seeded import SeededNoise

pytestmark = pytest.mark.slow

CAP = 64 << 20  # bytes that the reader may add to what a Python with everything loaded needs
COLUMNS, FILES = 11, 8
ROWS = 4 * CAP // (8 * (COLUMNS + 1)) + 1000

READER = """
import json, resource, sys
import numpy as np, pyarrow as pa
import dpexplain as dpx
from dpexplain.noise.seeded import SeededNoise

pa.set_cpu_count(2), pa.set_io_thread_count(2)  # each thread takes its stack from what is allowed
folder, small, cap, columns = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
domain, budget = dpx.Domain.encoded(columns), dpx.Budget(1, 1e-6)

def release(where):
    return dpx.release(dpx.PrivateData.scan(where, domain, label="y"), budget, noise=SeededNoise(5))

release(small)  # whatever is compiled or loaded on first use
used = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + cap, used + cap))
values = release(folder).explain(np.full(columns, 0.3)).values
try:
    np.ones(4 * cap, dtype=np.uint8)  # as many bytes as the files have
    fits = True
except MemoryError:
    fits = False
print(json.dumps({"values": values.tolist(), "fits in memory": fits}))
"""


def write(folder, rows, files, seed=0):
    folder.mkdir()
    rng = np.random.default_rng(seed)
    for i in range(files):
        X = rng.random((COLUMNS, rows // files))
        table = pa.table({f"x{j}": column for j, column in enumerate(X)} | {"y": np.sign(X[0] + X[1] - 2 * X[2])})
        pq.write_table(table, folder / f"{i}.parquet", use_dictionary=False, compression="none", write_statistics=False)


def test_a_release_reads_four_times_the_memory_it_may_use(tmp_path):
    write(tmp_path / "small", 70_000, 1)
    write(tmp_path / "large", ROWS, FILES)
    assert sum(file.stat().st_size for file in (tmp_path / "large").iterdir()) >= 4 * CAP
    arguments = [str(tmp_path / "large"), str(tmp_path / "small"), str(CAP), str(COLUMNS)]
    plain = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}  # nothing claims memory beforehand
    told = subprocess.run(
        [sys.executable, "-c", READER, *arguments], capture_output=True, text=True, timeout=300, check=False, env=plain
    )
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert not found["fits in memory"]  # or the cap would mean nothing
    table = pq.read_table(tmp_path / "large")
    data = dpx.PrivateData(table, dpx.Domain.encoded(COLUMNS), labels=table["y"].to_numpy())
    expected = dpx.release(data, dpx.Budget(1, 1e-6), noise=SeededNoise(5)).explain(np.full(COLUMNS, 0.3)).values
    assert found["values"] == pytest.approx(expected, rel=1e-6, abs=1e-9)
