"""Processes killed at every step of reserve → execute → settle: never counted too little, and no answer is lost."""

from __future__ import annotations

import os
import signal
import time

import pytest

from dpexplain.ledger import Reservation, verify
from ledger_support import account, ask, children, event, published_answers, record_once, run_forever, run_once, spend

STEPS = (
    "before reserve",
    "in reserve",
    "after reserve",
    "noise drawn",
    "before settle",
    "in settle",
    "after settle",
    "before return",
    "after return",
)
ANSWERED = STEPS[STEPS.index("after settle") :]
COUNTED = STEPS[STEPS.index("after reserve") :]
REPETITIONS = 8


def die(place, request_id, value, step, log):
    child = children.Process(target=run_once, args=(place.kind, place.where, request_id, value, step, log))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    child.close()


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_at_a_step(place, step, tmp_path):
    log = str(tmp_path / "released")
    ledger = place.open()
    for number in range(REPETITIONS):
        die(place, f"r{number}", f"first-{number}", step, log)
        check_after_crash(ledger, f"r{number}", number, step, log)
        retry_and_check(ledger, f"r{number}", number, step)
    verify(ledger, ledger.head())
    ledger.close()


def check_after_crash(ledger, request_id, number, step, log):
    counted, released = ledger.state().spent_quanta, published_answers(log)
    assert counted >= len(released) * event().quanta
    assert counted == (number + (step in COUNTED)) * event().quanta
    if step in COUNTED:
        assert isinstance(ledger.reserve(ask(request_id)), Reservation) == (step not in ANSWERED)
    assert counted == ledger.state().spent_quanta


def retry_and_check(ledger, request_id, number, step):
    """A retry with noise of its own: once answered, always the same answer; paid once in any case."""
    done = spend(ledger, request_id, answer={"value": f"second-{number}"})
    assert done.answer["value"] == (f"first-{number}" if step in ANSWERED else f"second-{number}")
    assert ledger.state().spent_quanta == (number + 1) * event().quanta


@pytest.mark.slow
@pytest.mark.parametrize("step", ["before record", "in reserve", "in settle", "after record"])
def test_a_process_killed_while_free_answers_are_recorded(place, step):
    """All of them are there, or none."""
    spend(place.open(), "paid")
    child = children.Process(target=record_once, args=(place.kind, place.where, "first", step))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    ledger = place.open()
    stored = [done.answer for done in ledger.settled(after=1)]
    assert stored == ([{"value": "first"}] * 2 if step == "after record" else [])
    assert (verify(ledger).pending, ledger.state().spent_quanta) == (0, event().quanta)
    record_once(place.kind, place.where, "second", "")
    again = [done.answer["value"] for done in ledger.settled(after=1)]
    assert again == ["first" if step == "after record" else "second"] * 2
    ledger.close()


@pytest.mark.slow
def test_a_process_killed_twice_on_one_request(place, tmp_path):
    log = str(tmp_path / "released")
    for step in ("in reserve", "after reserve", "noise drawn", "in settle", "after settle", "before return"):
        die(place, "stubborn", step, step, log)
    ledger = place.open()
    assert spend(ledger, "stubborn").answer == {"value": "after settle"}
    assert ledger.state().spent_quanta == event().quanta
    assert published_answers(log) == []
    ledger.close()


@pytest.mark.slow
def test_processes_killed_at_any_moment(place, tmp_path):
    log = str(tmp_path / "released")
    ledger = place.open(account(epsilon=8.0))
    for life in range(20):
        child = children.Process(target=run_forever, args=(place.kind, place.where, f"life{life}", log))
        child.start()
        wait_for_more(log, len(published_answers(log)))
        time.sleep(0.0137 * (life % 7))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        check_nothing_lost(ledger, log)
    verify(ledger)
    ledger.close()


def wait_for_more(log, before):
    deadline = time.monotonic() + 60
    while len(published_answers(log)) <= before:
        assert time.monotonic() < deadline, "the child never released anything"
        time.sleep(0.002)


def check_nothing_lost(ledger, log):
    released = dict(published_answers(log))
    stored = {done.request_id: done.answer["value"] for done in ledger.settled()}
    assert released.items() <= stored.items()
    counted = ledger.state().spent_quanta // event().quanta
    assert counted >= len(stored) >= len(released)


@pytest.mark.slow
def test_a_server_killed_while_spending_forgets_nothing(tmp_path):
    """PostgreSQL itself dies without a checkpoint (an immediate stop is a crash to it) and recovers from its log."""
    server = start_server()
    ledger, log = server_place(server).open(account(epsilon=8.0), timeout=30.0), str(tmp_path / "released")
    for life in range(2):
        child = children.Process(target=run_forever, args=("postgres", server.get_uri(), f"life{life}", log))
        child.start()
        wait_for_more(log, len(published_answers(log)) + 5)
        crash(server)
        child.join(60)
        assert child.exitcode not in (None, 0)
        server.ensure_postgres_running()
        check_nothing_lost(ledger, log)
    verify(ledger)
    ledger.close()
    server.cleanup()


def start_server():
    import tempfile
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip("pgserver")
        try:
            return pgserver.get_server(tempfile.mkdtemp(prefix="dpxpg"), cleanup_mode="delete")
        except Exception as error:
            pytest.skip(f"PostgreSQL cannot run here, its crash is NOT tested: {error}")


def server_place(server):
    from ledger_support import Place

    return Place("postgres", server.get_uri())


def crash(server):
    from pgserver import pg_ctl

    pg_ctl(["-m", "immediate", "-w", "stop"], pgdata=server.pgdata, user=server.system_user, timeout=20)
