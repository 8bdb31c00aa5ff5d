"""An explainer that stops, or is killed, goes on where its ledger says it was: answers, spending and history included."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import LedgerMismatch
from dpexplain.ledger import open_existing, verify
from ledger_support import children

DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Binary("married")])
RECORDS = [{"age": age, "married": age % 2 == 0} for age in (20, 41, 60)]


class DeadlyNoise:
    """Secure noise that kills its process at the n-th draw."""

    def __init__(self, after: int) -> None:
        from dpexplain.noise.secure import SecureNoise

        self._noise, self._left = SecureNoise(), after

    @property
    def secure(self) -> bool:
        return True

    def standard_normal(self, size):
        self._count()
        return self._noise.standard_normal(size)

    def uniform(self, size):
        self._count()
        return self._noise.uniform(size)

    def auxiliary_normal(self, size):
        self._count()
        return self._noise.auxiliary_normal(size)

    def _count(self):
        self._left -= 1
        if self._left < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def start(url, epsilon=1.0, mechanism=None, **options):
    rng = np.random.default_rng(0)
    rows = {"age": rng.uniform(0, 100, 2000), "married": rng.random(2000) < 0.5}
    data = dpx.PrivateData(rows, DOMAIN, labels=np.sign(rows["age"] - 50), name="people")
    return dpx.Explainer(data, dpx.Budget(epsilon, 1e-6), mechanism or dpx.Basic(0.2, 1e-6, steps=5), ledger=url, **options)


def share(url, epsilon=0.2, **options):
    return start(url, mechanism=dpx.Adaptive(epsilon, 1e-6), **options)


def die_while_sharing(url, request_id, after):
    share(url, noise=DeadlyNoise(after)).explain(RECORDS[0], request_id=request_id)


def same(values):
    """Equal but for rounding, which may depend on where arrays lie in memory."""
    return pytest.approx(values, rel=1e-6, abs=1e-9)


def share_once(url, number):
    share(url).explain(RECORDS[number], request_id=f"q{number}")


def die_while_explaining(url, request_id, after):
    start(url, noise=DeadlyNoise(after)).explain(RECORDS[0], request_id=request_id)


def die_in_a_batch(url, ids, after):
    start(url, noise=DeadlyNoise(after)).explain_many(RECORDS, request_ids=ids)


def test_a_restarted_explainer_goes_on_where_it_stopped(place):
    first = start(place.url)
    answers = [first.explain(record, request_id=f"q{number}") for number, record in enumerate(RECORDS)]
    again = start(place.url)
    assert again.spent.mu == first.spent.mu
    assert len(list(again.history)) == len(RECORDS)
    for number, (record, answer) in enumerate(zip(RECORDS, answers, strict=True)):
        repeated = again.explain(record, request_id=f"q{number}")
        assert (repeated.values == answer.values).all()
    assert again.spent.mu == first.spent.mu
    again.explain(RECORDS[0])
    assert len(list(first.history)) == len(RECORDS) + 1  # the first one sees it too
    with pytest.raises(LedgerMismatch, match=r"epsilon: 1\.0 in the ledger, 2\.0 now"):
        start(place.url, epsilon=2.0)


def test_a_restart_does_not_refill_the_budget(place):
    for _ in range(dpx.Budget(1.0, 1e-6).quanta // dpx.Budget(0.2, 1e-6).quanta):
        start(place.url).explain(RECORDS[0])
    last = start(place.url)
    with pytest.raises(dpx.BudgetExhausted):
        last.explain(RECORDS[0])


@pytest.mark.slow
def test_an_explainer_killed_while_drawing_noise_has_paid_and_can_be_asked_again(place):
    for number in range(4):
        child = children.Process(target=die_while_explaining, args=(place.url, f"q{number}", 0))
        child.start()
        child.join(120)
        assert child.exitcode == -signal.SIGKILL
    explainer = start(place.url)
    paid = explainer.spent.mu
    assert len(list(explainer.history)) == 0
    answers = [explainer.explain(RECORDS[0], request_id=f"q{number}") for number in range(4)]
    assert explainer.spent.mu == paid
    assert len(list(explainer.history)) == 4
    assert len({answer.values.tobytes() for answer in answers}) == 4
    (ledger,) = open_existing(place.url)
    assert verify(ledger).pending == 0
    ledger.close()


@pytest.mark.slow
def test_a_batch_killed_in_its_second_answer_has_paid_for_all_and_goes_on_under_the_same_ids(place):
    ids = ["a", "b", "c"]
    child = children.Process(target=die_in_a_batch, args=(place.url, ids, 1))  # an answer's noise is one draw
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    explainer = start(place.url)
    paid, (kept,) = explainer.spent.mu, explainer.history
    answers = explainer.explain_many(RECORDS, request_ids=ids)
    assert (answers[0].values == kept.values).all()
    assert len(answers) == len(explainer.history) == 3
    assert explainer.spent.mu == paid
    (ledger,) = open_existing(place.url)
    assert verify(ledger).pending == 0
    ledger.close()


def test_sums_that_were_bought_serve_after_a_restart(place):
    first = share(place.url)
    paid, free = first.explain(RECORDS[0]), first.explain(RECORDS[1])
    again = share(place.url)
    repeated = again.explain(RECORDS[1])
    assert repeated.values == same(free.values)
    assert repeated.error == same(free.error)
    assert [one.cost.mu for one in (free, repeated)] == [0, 0]
    assert again.spent.mu == paid.cost.mu
    dear = share(place.url, 0.4).explain(RECORDS[1])
    assert 0 < dear.cost.mu < dpx.Budget(0.4, 1e-6).mu
    assert first.explain(RECORDS[1]).values == same(dear.values)  # the first one sees them too
    assert dpx.NonInteractive(again.history).explain(RECORDS[1]).values == same(dear.values)
    (ledger,) = open_existing(place.url)
    assert verify(ledger).pending == 0
    ledger.close()


@pytest.mark.slow
def test_an_explainer_killed_while_buying_sums_has_paid_and_buys_them_again(place):
    """Nothing left before it died, so nothing can be used: the reservation stays counted until its id is asked again."""
    for number, after in enumerate((0, 1, 1)):  # the centre, then the moments
        child = children.Process(target=die_while_sharing, args=(place.url, f"q{number}", after))
        child.start()
        child.join(120)
        assert child.exitcode == -signal.SIGKILL
    explainer = share(place.url)
    price = dpx.Budget(0.2, 1e-6).mu
    assert explainer.spent.mu == pytest.approx(price * 3**0.5, rel=1e-6)
    assert len(explainer.history.sums) == 0
    answers = [explainer.explain(RECORDS[0], request_id=f"q{number}") for number in range(3)]
    assert [one.cost.mu > 0 for one in answers] == [True, False, False]
    assert all(one.values == same(answers[0].values) for one in answers)
    assert explainer.spent.mu == pytest.approx(price, rel=1e-6)  # the other two ran for nothing, and are settled so
    (ledger,) = open_existing(place.url)
    assert verify(ledger).pending == 0
    ledger.close()


@pytest.mark.slow
def test_processes_on_one_ledger_are_counted_and_agree_afterwards(place):
    workers = [children.Process(target=share_once, args=(place.url, number)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    explainers = [share(place.url) for _ in range(2)]
    bought = len(explainers[0].history.sums)
    assert 1 <= bought <= 3  # those that started at the same moment paid for a centre each
    assert explainers[0].spent.mu == pytest.approx(dpx.Budget(0.2, 1e-6).mu * bought**0.5, rel=1e-6)
    one, two = (each.explain(RECORDS[0]) for each in explainers)
    assert one.cost.mu == two.cost.mu == 0
    assert one.values == same(two.values)
