"""Eight processes on one budget: never a quantum too much, and exactly as many answers as it can pay for."""

from __future__ import annotations

from collections import Counter

import pytest

from dpexplain.ledger import verify
from ledger_support import (
    account,
    affordable,
    children,
    event,
    published_answers,
    run_open,
    run_same_request,
    run_until_exhausted,
)

PROCESSES = 8


def run_all(target, *arguments):
    crowd = [children.Process(target=target, args=(*arguments[:2], f"p{number}", *arguments[2:])) for number in range(PROCESSES)]
    for child in crowd:
        child.start()
    for child in crowd:
        child.join(120)
    assert [child.exitcode for child in crowd] == [0] * PROCESSES


@pytest.mark.slow
def test_eight_processes_end_with_exactly_the_affordable_number_of_answers(place, tmp_path):
    log, mu = str(tmp_path / "released"), 0.012
    run_all(run_until_exhausted, place.kind, place.where, mu, log)
    lines = published_answers(log)
    answers = [line for line in lines if line[0] != "refused"]
    assert len(answers) == affordable(account(), event(mu))
    assert len(lines) - len(answers) == PROCESSES
    ledger = place.open()
    assert ledger.state().spent_quanta == len(answers) * event(mu).quanta <= account().budget.quanta
    assert {done.request_id for done in ledger.settled()} == {line[0] for line in answers}
    assert verify(ledger).answers == len(answers)
    ledger.close()


@pytest.mark.slow
def test_eight_processes_asking_the_same_get_one_answer_paid_once(place, tmp_path):
    log = str(tmp_path / "released")
    run_all(run_same_request, place.kind, place.where, log)
    seen = Counter(tuple(line) for line in published_answers(log))
    assert len(seen) == 10  # one answer for each of ten questions …
    assert set(seen.values()) == {PROCESSES}  # … told to everybody
    ledger = place.open()
    assert ledger.state().spent_quanta == 10 * event().quanta
    verify(ledger)
    ledger.close()


def test_eight_processes_make_one_new_ledger(place, tmp_path):
    """All find nothing at first; one of them makes it, and nobody replaces it."""
    log = str(tmp_path / "released")
    run_all(run_open, place.kind, place.where, children.Barrier(PROCESSES), log)
    ledger = place.open()
    assert {done.request_id for done in ledger.settled()} == {name for (name,) in published_answers(log)}
    assert verify(ledger).answers == PROCESSES
    ledger.close()
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".new")] == []
