"""What tests of the command line and the service share: an owner's folder with data, a domain and a record to ask about."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

from dpexplain.cli import app
from dpexplain.demo.people import DOMAIN, people

RECORD = dict(age=46, hours=52, education="school", work="self-employed", trade="craft", region="north", married=True, city=False)
OTHER = RECORD | {"age": 22, "education": "degree"}
JSON = json.dumps(RECORD)


def run(*words, **env):
    """What `dpexplain` prints and returns for these words, on a wide terminal."""
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160", **env})


def write_owner_files(folder: Path, count: int = 3000) -> Path:
    """people.parquet with labels `y` (0/1), `score` in [-1, 1] and `owner`, and domain.toml."""
    rows, rich = people(count, seed=7)
    extra = {
        "y": rich.astype(np.int8),
        "score": 2 * rich - 1,
        "text": np.where(rich > 0, "rich", "poor"),
        "owner": np.arange(count) // 2,
    }
    pq.write_table(pa.table({**rows, **extra}), folder / "people.parquet")
    DOMAIN.save(folder / "domain.toml")
    return folder


def write_config(folder: Path, **sections: dict) -> Path:
    """service.toml beside the owner's files; keyword arguments add to or replace its tables, None removes one."""
    tables = {
        "service": {"name": "income", "title": "Why this income?", "outcome": "an income above the line", "keys": "keys.json"},
        "data": {"file": "people.parquet", "domain": "domain.toml", "label": "y"},
        "mechanism": {"kind": "basic", "epsilon": 0.3, "delta": 1e-6},
        "budget": {"epsilon": 1.0, "delta": 1e-6},
        "ledger": {"url": "sqlite:///service.ledger"},
    }
    for name, table in sections.items():
        tables[name] = None if table is None else tables.get(name, {}) | table
    lines = []
    for name, table in tables.items():
        if table is not None:
            kept = {key: value for key, value in table.items() if value is not None}
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in kept.items()), ""]
    (folder / "service.toml").write_text("\n".join(lines), encoding="utf-8")
    return folder / "service.toml"


def release_only(file: str = "people.dpx") -> dict:
    return {"data": None, "mechanism": None, "budget": None, "ledger": None, "release": {"file": file}}


class Running:
    """`dpexplain serve` in a process of its own, on a free port of this machine."""

    def __init__(self, config: Path, *, wait: float = 180.0) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = config.with_name(f"serve-{self.port}.log")
        words = [sys.executable, "-c", "from dpexplain.cli import app; app()", "serve", str(config), "--port", str(self.port)]
        with self.log.open("w") as out:
            self.process = subprocess.Popen(words, stdout=out, stderr=out, cwd=config.parent)
        self._wait(wait)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"the service stopped: {self.log.read_text()}")
            with suppress(OSError), urlopen(f"{self.url}/readyz", timeout=10) as answer:
                assert answer.status == 200
                return
            time.sleep(0.1)
        self.stop()
        raise AssertionError(f"the service was not ready in time: {self.log.read_text()}")

    def stop(self, seconds: float = 90.0) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class InProcess:
    """An ASGI application called without a socket."""

    def __init__(self, app: object) -> None:
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    def request(self, method: str, path: str, **options: object) -> httpx.Response:
        async def send() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport, base_url="http://test") as client:
                return await client.request(method, path, **options)

        with ThreadPoolExecutor(1) as own:  # a browser of an earlier test may keep this thread's event loop running
            return own.submit(lambda: asyncio.run(send())).result()

    def get(self, path: str, **options: object) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: object) -> httpx.Response:
        return self.request("POST", path, **options)

    def delete(self, path: str, **options: object) -> httpx.Response:
        return self.request("DELETE", path, **options)

    def options(self, path: str, **options: object) -> httpx.Response:
        return self.request("OPTIONS", path, **options)
