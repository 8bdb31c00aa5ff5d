"""Explanations per second and latency over HTTP with two workers: from a release, from rows and a ledger, and a trivial endpoint beside them.

All on this machine and in one run: the callers share the cores with the servers, so ratios to the trivial endpoint say more than the rates.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpexplain as dpx
from dpexplain.demo.people import DOMAIN, people

ROWS, SECONDS, CALLERS, WORKERS = 100_000, 5.0, 4, 2
RECORD = dict(age=46, hours=52, education="school", work="self-employed", trade="craft", region="north", married=True, city=False)
COMMON = f'[service]\nname = "bench"\nopen = true\nrequests_per_minute = 0\nworkers = {WORKERS}\n'
LEDGER = """
[data]
file = "people.parquet"
domain = "domain.toml"
label = "y"
[mechanism]
epsilon = 0.001
[budget]
epsilon = 8.0
delta = 1e-6
[ledger]
url = "sqlite:///bench.ledger"
"""


@contextmanager
def served(folder: Path, rest: str):
    """`dpexplain serve` until the block ends; yields its port."""
    (folder / "service.toml").write_text(COMMON + rest)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-c", "from dpexplain.cli import app; app()", "serve", "service.toml", "--port", str(port)]
    process = subprocess.Popen(
        words, cwd=folder, stderr=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    )
    try:
        wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def wait_for(port: int, process: subprocess.Popen) -> None:
    for _ in range(600):
        with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2):
            return
        if process.poll() is not None:
            raise RuntimeError("the service did not start")
        time.sleep(0.1)


def calling(port: int, method: str, path: str, body: bytes | None, until: float) -> list[float]:
    """One caller on one connection; how long each answer took."""
    connection, taken, headers = HTTPConnection("127.0.0.1", port, timeout=60), [], {"Content-Type": "application/json"}
    while time.perf_counter() < until:
        start = time.perf_counter()
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}")
        taken.append(time.perf_counter() - start)
    connection.close()
    return taken


def measure(port: int, what: str, method: str, path: str, body: bytes | None = None) -> dict[str, object]:
    calling(port, method, path, body, time.perf_counter() + 1.0)  # warm both workers
    start = time.perf_counter()
    with ThreadPoolExecutor(CALLERS) as pool:
        parts = list(pool.map(lambda _: calling(port, method, path, body, start + SECONDS), range(CALLERS)))
    taken = np.concatenate(parts)
    p50, p99 = np.percentile(taken, [50, 99]) * 1000
    return {"what": what, "per second": len(taken) / SECONDS, "p50 ms": float(p50), "p99 ms": float(p99)}


def run() -> list[dict[str, object]]:
    rows, rich = people(ROWS, seed=2)
    question = json.dumps({"record": RECORD}).encode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(pa.table({**rows, "y": rich.astype(np.int8)}), folder / "people.parquet")
        DOMAIN.save(folder / "domain.toml")
        dpx.release(dpx.PrivateData(rows, DOMAIN, labels=2 * rich - 1), dpx.Budget(1, 1e-6)).save(folder / "people.dpx")
        with served(folder, '[release]\nfile = "people.dpx"\n') as port:
            found = [
                measure(port, "trivial endpoint (/healthz)", "GET", "/healthz"),
                measure(port, "release", "POST", "/v1/explain", question),
            ]
        with served(folder, LEDGER) as port:
            found.append(measure(port, f"{ROWS:,} rows, SQLite ledger", "POST", "/v1/explain", question))
    most = float(str(found[0]["per second"]))
    return [{**one, "of trivial": float(str(one["per second"])) / most} for one in found]


if __name__ == "__main__":
    for line in run():
        print(line)
