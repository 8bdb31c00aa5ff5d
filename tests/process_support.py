"""Processes that tests start end with them, however the tests end: Ray's agents outlived a test run that was killed."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from secrets import token_hex

import pytest

ROOT = Path(__file__).parents[1]
CLIENTS = Path(os.environ.get("DPEXPLAIN_CLIENTS_PYTHON", ROOT / ".venv-clients/bin/python"))
S3_SERVER = CLIENTS.with_name("moto_server")
MARK = "DPEXPLAIN_TEST_RUN"
GRACE = 3.0  # seconds to end by themselves


@lru_cache(maxsize=1)
def end_with_this_process() -> subprocess.Popen[bytes]:
    """Mark everything that is started from now on, and start a watcher that ends what is left of it once this process is gone."""
    os.environ[MARK] = mark = token_hex(16)  # children inherit it, and theirs
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    pipe = subprocess.PIPE  # it closes when this process ends
    return subprocess.Popen([sys.executable, __file__, mark], stdin=pipe, env=environment, start_new_session=True)


def marked_processes(mark: str) -> list[int]:
    """The processes that have inherited a mark."""
    sign, found = f"{MARK}={mark}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if sign in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:  # it ended, or is somebody else's
            continue
    return found


def watch(mark: str) -> None:
    """Wait until standard input is closed, then end every marked process by its id."""
    sys.stdin.buffer.read()
    for sign in (signal.SIGTERM, signal.SIGKILL):
        time.sleep(GRACE)
        for pid in marked_processes(mark):
            try:
                os.kill(pid, sign)
            except ProcessLookupError:
                continue


@contextmanager
def ray_start():
    """One process at a time starts Ray: two that start together may find each other's cluster. All that one process starts have its token."""
    os.environ.setdefault("RAY_AUTH_TOKEN", token_hex(32))  # before the import; then none is written to this user's home
    with (Path(tempfile.gettempdir()) / "dpexplain-tests-ray.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def s3_server():
    """host:port of an S3 server (moto's) with one key; skipped, with the reason, where it is not installed."""
    if not S3_SERVER.exists():
        pytest.skip("rows on object storage are NOT tested: make clients, or name DPEXPLAIN_CLIENTS_PYTHON")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    end_with_this_process()
    words = [str(CLIENTS), str(S3_SERVER), "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": ""})
    try:
        _wait_for(port, server)
        yield f"127.0.0.1:{port}", server
    finally:
        server.kill()
        server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert server.poll() is None, "the S3 server ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the S3 server did not start")


if __name__ == "__main__":
    watch(sys.argv[1])
