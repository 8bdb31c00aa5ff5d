"""What happens around a service: silent connections, held locks, deleted ledgers, killed parents and workers."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sqlite3
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

import dpexplain as dpx
from dpexplain.errors import LedgerCorrupt, ServiceError
from dpexplain.service.backend import open_backend
from dpexplain.service.config import load_config
from dpexplain.service.keys import KeyFile
from dpexplain.service.processes import PREFIX, shared_folder
from service_support import RECORD, Running, write_config, write_owner_files

pytestmark = pytest.mark.slow
HALF_A_HEADER = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
HALF_A_BODY = b"POST /v1/explain HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
CHEAP = {"mechanism": {"epsilon": 0.01}, "budget": {"epsilon": 4.0}}


@pytest.fixture
def owner(tmp_path):
    return write_owner_files(tmp_path, 500)


def write_service(owner, **service):
    """A configuration, and a client once it runs."""
    config = write_config(owner, **CHEAP, service={"requests_per_minute": 0, **service})
    return config, KeyFile(owner / "keys.json").add("analyst")


def status(url, seconds=5.0):
    """Status and seconds of a GET."""
    start = time.monotonic()
    try:
        with urlopen(url, timeout=seconds) as answer:
            return answer.status, time.monotonic() - start
    except HTTPError as error:
        return error.code, time.monotonic() - start


def workers_of(parent):
    """Process ids of the serving children, not of Python's resource tracker."""
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(one) for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.05)


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_silent_connections_keep_nobody_out(owner):
    """1,100 connections that say nothing, some that began to, and one that trickles: health and answers go on, and they are closed in time."""
    config, key = write_service(owner)
    with Running(config) as service, ExitStack() as open_ones:
        client = dpx.Client(service.url, key)
        client.explain(RECORD)
        silent = []
        for number in range(1100):
            silent.append(open_ones.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=10)))
            if number % 4 == 0:
                with suppress(OSError):
                    silent[-1].sendall(HALF_A_HEADER if number % 8 else HALF_A_BODY)
        for path in ("/healthz", "/readyz"):
            code, seconds = status(f"{service.url}{path}")
            assert code == 200
            assert seconds < 8  # before the silent ones are closed for their silence, after 10 s
        assert client.explain(RECORD).cost.epsilon > 0
        trickling, end = silent[-1], time.monotonic() + 25
        with suppress(OSError):
            while time.monotonic() < end:
                trickling.sendall(b"X: y\r\n")
                time.sleep(0.5)
        assert time.monotonic() < end, "headers may trickle for ever"
        until(lambda: all(is_closed(one) for one in silent))


def is_closed(connection):
    """Whether the other side has hung up; an answer that was still sent (no key, so 401) is read past."""
    connection.settimeout(0)
    try:
        while connection.recv(65_536):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_a_held_lock_delays_each_caller_once_and_health_tells_at_once(owner):
    config, key = write_service(owner)
    with Running(config) as service:
        client = dpx.Client(service.url, key, retries=0)
        client.explain(RECORD)
        other = sqlite3.connect(owner / "service.ledger", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(48) as callers:
            started = time.monotonic()
            waiting = [callers.submit(client.explain, RECORD, request_id=f"q{number}") for number in range(48)]
            time.sleep(1.0)
            for path, expected in (("/healthz", 200), ("/readyz", 503)):
                code, seconds = status(f"{service.url}{path}")
                assert (path, code) == (path, expected)
                assert seconds < 2
            begun = time.monotonic()
            assert client.spent.epsilon > 0  # readers never wait for a writer
            assert time.monotonic() - begun < 2
            errors = [one.exception() for one in waiting]
            assert all(isinstance(error, ServiceError) and error.status == 503 for error in errors)
            assert (
                time.monotonic() - started < 9
            )  # five seconds for a turn and for the lock together, all callers at the same time
        other.execute("ROLLBACK")
        other.close()
        assert status(f"{service.url}/readyz")[0] == 200
        client.explain(RECORD, request_id="q0")


def test_a_deleted_ledger_stays_deleted(owner):
    config, key = write_service(owner, workers=2)
    with Running(config) as service:
        client = dpx.Client(service.url, key, retries=0)
        for _ in range(4):
            client.explain(RECORD)
        first, _ = workers_of(service.process.pid)
        for file in owner.glob("service.ledger*"):
            file.unlink()
        for _ in range(8):
            with pytest.raises(ServiceError):
                client.explain(RECORD)
        os.kill(first, signal.SIGKILL)
        until(lambda: "and now there is none" in service.log.read_text(), 120)  # what a new worker says before it ends
        with pytest.raises(ServiceError):
            client.explain(RECORD)
    assert not (owner / "service.ledger").exists()
    with pytest.raises(LedgerCorrupt, match=r"had \d+ entries, and now there is none"):
        open_backend(load_config(config))
    assert not (owner / "service.ledger").exists()


def test_a_service_without_workers_stops_and_frees_its_port(owner):
    """The parent holds the port: callers would wait for an answer that nobody gives."""
    config, key = write_service(owner, workers=2)
    with Running(config) as service:
        dpx.Client(service.url, key).explain(RECORD)
        for file in owner.glob("service.ledger*"):
            file.unlink()
        for one in workers_of(service.process.pid):
            os.kill(one, signal.SIGKILL)
        until(lambda: service.process.poll() is not None, 180)
        assert service.process.returncode == 2
        said = service.log.read_text()
        assert "and now there is none" in said  # what each worker said
        assert "none can start" in said
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", service.port)) == errno.ECONNREFUSED


def test_a_worker_that_finds_a_broken_configuration_says_so_and_another_starts_once_it_is_mended(owner):
    config, key = write_service(owner, workers=2)
    with Running(config) as service:
        client, whole = dpx.Client(service.url, key, retries=0), config.read_text()
        client.explain(RECORD)
        config.write_text(whole.replace("[budget]", "[budgets]"))
        first, _ = workers_of(service.process.pid)
        os.kill(first, signal.SIGKILL)
        until(lambda: "a worker cannot start" in service.log.read_text(), 120)
        client.explain(RECORD)  # by the other one
        assert "Traceback" not in service.log.read_text()
        config.write_text(whole)
        until(lambda: len([one for one in workers_of(service.process.pid) if holds(one, owner / "service.ledger")]) == 2, 120)
        assert service.process.poll() is None


def holds(process, path):
    """Whether a process has this file open."""
    with suppress(OSError):
        return any(os.path.realpath(one) == str(path) for one in Path(f"/proc/{process}/fd").iterdir())
    return False


def test_workers_end_with_a_parent_that_was_killed_and_leftovers_are_removed(owner, tmp_path_factory, monkeypatch):
    temporary = tmp_path_factory.mktemp("t")  # of this test alone: other tests start services at the same time
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (owner / "blackbox.py").write_text(
        "def score(rows):\n    return [1.0 if hours > 40 else -1.0 for hours in rows['hours'].to_pylist()]\n"
    )
    config = write_config(
        owner, **CHEAP, data={"label": None}, model={"path": "blackbox:score"}, service={"workers": 2, "requests_per_minute": 0}
    )
    KeyFile(owner / "keys.json").add("analyst")
    service = Running(config)
    workers = workers_of(service.process.pid)
    (left,) = temporary.glob(f"{PREFIX}*")
    assert any(left.glob("labels*"))
    os.kill(service.process.pid, signal.SIGKILL)
    service.process.wait(10)
    until(lambda: not any(is_alive(one) for one in workers))
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", service.port)) == errno.ECONNREFUSED  # nobody listens any more
    assert left.exists()
    with shared_folder() as mine:
        assert not left.exists()
        with shared_folder() as other:  # one that is in use is left alone
            assert mine.exists()
            assert other != mine
    assert not mine.exists()
