"""Explanations per second and latency over HTTP with two workers: from a release, from rows and a ledger, and a trivial endpoint beside them.

All on this machine and in one run: the callers share the cores with the servers, so ratios to the trivial endpoint say more than the rates. On a busy
machine rates say little at all; the servers' and callers' CPU time for each answer does, and what it allows on two cores that do nothing else.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpexplain as dpx
from dpexplain.demo.people import DOMAIN, people

ROWS, SECONDS, ROUNDS, WORKERS, CORES = 100_000, 3.0, 3, 2, 2
CALLERS, CROWD = 4, 24  # connections; a crowd's questions are answered together
COMMON = f'[service]\nname = "bench"\nopen = true\nrequests_per_minute = 0\nworkers = {WORKERS}\n'
LEDGER = """
[data]
file = "people.parquet"
domain = "domain.toml"
label = "y"
[mechanism]
kind = "{kind}"
epsilon = 0.001
by = "{by}"
[budget]
epsilon = 8.0
delta = 1e-6
[ledger]
url = "sqlite:///bench.ledger"
"""


@dataclass(frozen=True)
class Served:
    """A running service."""

    port: int
    pid: int

    def workers(self) -> list[int]:
        """Their process ids; a worker that does not answer its parent for too long is replaced."""
        return [int(one) for one in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def cpu_seconds(self) -> float:
        """Of the parent and all workers so far."""
        own = [self.pid, *self.workers()]
        ticks = [sum(map(int, Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:13])) for one in own]
        return sum(ticks) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serve(folder: Path, rest: str):
    """`dpexplain serve` until the block ends; yields its port and process."""
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
        yield Served(port, process.pid)
    finally:
        process.terminate()
        process.wait(60)


def wait_for(port: int, process: subprocess.Popen) -> None:
    for _ in range(1800):
        with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2):
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError("the service did not start")


def time_calls(port: int, method: str, path: str, bodies: list[bytes | None], until: float) -> list[float]:
    """One caller on one connection, with one body after the other; how long each answer took."""
    connection, taken, headers = HTTPConnection("127.0.0.1", port, timeout=60), [], {"Content-Type": "application/json"}
    for body in cycle(bodies):
        start = time.perf_counter()
        if start >= until:
            break
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}")
        taken.append(time.perf_counter() - start)
    connection.close()
    return taken


def measure(
    service: Served, what: str, method: str, path: str, bodies: list[bytes | None], callers: int = CALLERS
) -> dict[str, object]:
    time_calls(service.port, method, path, bodies, time.perf_counter() + 1.0)  # warm both workers
    before = service.workers()
    server, own, start = service.cpu_seconds(), time.process_time(), time.perf_counter()
    with ThreadPoolExecutor(callers) as pool:
        parts = list(
            pool.map(lambda i: time_calls(service.port, method, path, bodies[i:] + bodies[:i], start + SECONDS), range(callers))
        )
    taken = np.concatenate(parts)
    if service.workers() != before:  # its CPU time is gone with it
        raise RuntimeError("a worker was replaced while it was measured: the machine is too busy to measure anything")
    each = (service.cpu_seconds() - server + time.process_time() - own) / len(taken)
    p50, p99 = np.percentile(taken, [50, 99]) * 1000
    return {
        "what": what,
        "callers": callers,
        "per second": len(taken) / SECONDS,
        "p50 ms": float(p50),
        "p99 ms": float(p99),
        "CPU ms": each * 1000,
        "two cores allow": CORES / each,
    }


def in_turns(*measurements: Callable[[], dict[str, object]]) -> list[dict[str, object]]:
    """Each measurement ROUNDS times, taking turns so that a busy machine slows all of them; the round with the median CPU time."""
    rounds = [[one() for one in measurements] for _ in range(ROUNDS)]
    return [sorted(column, key=lambda row: float(str(row["CPU ms"])))[ROUNDS // 2] for column in zip(*rounds, strict=True)]


def release_and_trivial(service: Served, bodies: list[bytes | None]) -> list[dict[str, object]]:
    """A release beside the trivial endpoint, for a few callers and for a crowd."""
    found = []
    for callers in (CALLERS, CROWD):
        trivial, release = in_turns(
            lambda n=callers: measure(service, "trivial endpoint (/healthz)", "GET", "/healthz", [None], n),
            lambda n=callers: measure(service, "release", "POST", "/v1/explain", bodies, n),
        )
        found += [trivial, {**release, "of trivial": ratio(release, trivial)}]
    return found


def ratio(one: dict[str, object], other: dict[str, object]) -> float:
    """Of what two cores allow."""
    return float(str(one["two cores allow"])) / float(str(other["two cores allow"]))


def paid_answers(rows: dict[str, Any], rich: Any, bodies: list[bytes | None], kind: str, by: str) -> list[dict[str, object]]:
    """A service on rows and a ledger of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(pa.table({**rows, "y": rich.astype(np.int8)}), folder / "people.parquet")
        DOMAIN.save(folder / "domain.toml")
        with serve(folder, LEDGER.format(kind=kind, by=by)) as service:
            what = f"{ROWS:,} rows, SQLite ledger, {kind}, by {by}"
            return [measure(service, what, "POST", "/v1/explain", bodies, callers) for callers in (CALLERS, CROWD)]


def run() -> list[dict[str, object]]:
    rows, rich = people(ROWS, seed=2)
    records = [
        dict(zip(rows, values, strict=True))
        for values in zip(*(np.array(column[:64]).tolist() for column in rows.values()), strict=True)
    ]
    bodies: list[bytes | None] = [json.dumps({"record": record}).encode() for record in records]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dpx.release(dpx.PrivateData(rows, DOMAIN, labels=2 * rich - 1), dpx.Budget(1, 1e-6)).save(folder / "people.dpx")
        with serve(folder, '[release]\nfile = "people.dpx"\n') as service:
            found = release_and_trivial(service, bodies)
    ways = (("basic", "descent"), ("basic", "moments"), ("adaptive", "moments"))  # the last is the default; it pays once, before
    paid = [one for way in ways for one in paid_answers(rows, rich, bodies, *way)]
    return found + [{**one, "of trivial": ratio(one, found[0])} for one in paid]


if __name__ == "__main__":
    for line in run():
        print(line)
