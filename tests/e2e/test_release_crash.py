"""A release whose process is killed: paid once, and never lost once it is settled."""

import signal

import pytest

import dpexplain as dpx
from dpexplain.estimation import calibrate
from dpexplain.mechanisms.moments_plan import SketchPlan
from ledger_support import children, release_once, small_table

BUDGET = dpx.Budget(1.0, 1e-6)


def die(place, step):
    child = children.Process(target=release_once, args=(place.kind, place.where, "spring", step))
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    child.close()


@pytest.mark.slow
@pytest.mark.parametrize("step", ["before settle", "after settle"])
def test_a_release_survives_its_process(place, step, monkeypatch):
    die(place, step)
    monkeypatch.setattr(calibrate, "replicates", lambda _: 2)
    data = small_table()
    ledger = place.open(data.account(BUDGET))
    counted = ledger.state().spent_quanta
    if step == "after settle":
        monkeypatch.setattr(SketchPlan, "run", lambda *_: pytest.fail("a row was read again"))
    found = dpx.release(data, BUDGET, ledger=ledger, request_id="spring")
    assert ledger.state().spent_quanta == counted <= BUDGET.quanta
    again = dpx.release(data, BUDGET, ledger=ledger, request_id="spring")
    assert again.payload() == found.payload()
    assert again.guarantee == found.guarantee
    assert found.explain([0.5, 0.5, 0.5]).error.shape == (3,)
    ledger.close()
