"""The parent of workers replaces those that end, gives up once none is left and none can start, and waits for nobody who is gone."""

from __future__ import annotations

import json
import multiprocessing
import signal
from typing import ClassVar

import pytest
import uvicorn

from dpexplain.errors import DpexplainError, LedgerMissing
from dpexplain.service import run
from dpexplain.service.worker_parent import FAILURES, Workers


class FakeProcess:
    """A worker that is started and never ends by itself, unless `plan` says so for the next that is made."""

    plan: ClassVar[list[str]] = []

    def __init__(self, config, sockets):
        self.state = self.plan.pop(0) if self.plan else "serves"
        self.parent_conn, self.child_conn = multiprocessing.Pipe()
        self.pid, self.exitcode = 1, {"serves": None, "starts": None, "ends": 1, "fails": 3}[self.state]

    def start(self):
        pass

    join = kill = terminate = start

    def is_alive(self, timeout):
        return self.exitcode is None

    def is_ready(self, timeout):
        return self.state == "serves"


@pytest.fixture
def make_workers(monkeypatch):
    monkeypatch.setattr("uvicorn.supervisors.multiprocess.Process", FakeProcess)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def make(*plan):
        FakeProcess.plan = list(plan)
        workers = Workers(uvicorn.Config("no:app", workers=2), sockets=[])
        workers.should_exit.wait = lambda seconds: workers.should_exit.is_set()  # no pauses
        return workers

    return make


def test_who_cannot_start_anybody_gives_up(make_workers):
    with pytest.raises(DpexplainError, match=r"none can start \(6 attempts"):
        make_workers(*["ends"] * 100).run()
    assert len(FakeProcess.plan) == 100 - 2 - 2 * FAILURES


def test_one_worker_that_serves_is_reason_enough_to_try_on(make_workers):
    workers = make_workers("serves", *["ends"] * 50)
    workers.init_processes()
    for _ in range(40):
        workers.keep_subprocess_alive()
    assert not workers.should_exit.is_set()


def test_who_succeeds_at_last_begins_to_count_anew(make_workers):
    last = ["ends"] * (2 * FAILURES)
    workers = make_workers(*["ends"] * (2 * FAILURES), "serves", *last)
    workers.init_processes()
    for _ in range(30):
        workers.keep_subprocess_alive()
    assert not workers.should_exit.is_set()


def test_workers_that_still_start_are_waited_for(make_workers):
    workers = make_workers("ends", "ends", "starts", "starts")
    workers.init_processes()
    for _ in range(30):
        workers.keep_subprocess_alive()
    assert not workers.should_exit.is_set()


def test_an_application_that_fails_at_start_is_not_a_success(make_workers):
    with pytest.raises(DpexplainError, match="none can start"):
        make_workers("fails", "serves").run()


@pytest.mark.parametrize(
    ("error", "said"), [(LedgerMissing("no ledger"), "no ledger"), (ValueError("Jane Doe, 41"), "ValueError at ")]
)
def test_a_worker_that_cannot_start_says_why_without_quoting_rows(tmp_path, monkeypatch, error, said):
    lines = []

    def fail(*_):
        raise error

    for name, value in ((run.FILE, "service.toml"), (run.STREAM, "no")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(run, "load_config", fail)
    monkeypatch.setattr(run, "RESTART_PAUSE", 0)
    monkeypatch.setattr(run.LOG, "error", lambda *words: lines.append(words[-1]))
    with pytest.raises(SystemExit):
        run.open_or_exit(tmp_path)
    assert said in json.loads(lines[0])["why"]
    assert "Jane" not in lines[0]


def test_a_worker_that_is_gone_is_not_waited_for(make_workers):
    """The parent's own copy of a worker's end would keep the question open, whether it is alive, until time is up."""
    workers = make_workers("serves", "ends", "serves")
    workers.init_processes()
    workers.keep_subprocess_alive()
    assert all(one.child_conn.closed for one in workers.processes)
