"""Questions that wait together are answered together, each by itself: shared commits, one read of the rows, bounded waiting."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.answers.explanation import Explanation
from dpexplain.errors import BudgetExhausted, LedgerUnavailable, ParameterError, QueryError, RequestIdInUse
from dpexplain.ledger import open_existing, verify
from dpexplain.service.backend import ReleaseBackend
from dpexplain.service.batching import TURNS, Batcher, TurnBatcher


@pytest.fixture
def data():
    rows = np.random.default_rng(0).random((300, 3))
    return dpx.PrivateData(rows, dpx.Domain.encoded(3), labels=np.where(rows[:, 0] > 0.5, 1.0, -1.0), name="income")


def record_at(value):
    return {"x0": value, "x1": 0.5, "x2": 0.5}


def test_questions_of_several_callers_share_reads_and_commits(data, tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/x.ledger"
    explainer = dpx.Explainer(data, dpx.Budget(1.0, 1e-6), dpx.Basic(0.3, 1e-6, by="descent"), ledger=url)
    first = explainer.explain(record_at(0.1), request_id="first")
    store, commits, reads = explainer._ledger._store, [], []
    together, rows = store._write_together, data._rows
    monkeypatch.setattr(store, "_write_together", lambda turns, seconds: (commits.append(1), together(turns, seconds)))
    monkeypatch.setattr(rows, "local_many", lambda queries: reads.append(len(queries)) or type(rows).local_many(rows, queries))
    asked = [
        (record_at(0.1), "first"),
        (record_at(0.2), "b"),
        (record_at(9.0), "c"),
        (record_at(0.3), "first"),
        (record_at(0.4), "d"),
        (record_at(0.2), "b"),
    ]
    known, b, bad, other, d, again = explainer.explain_each(asked)
    assert (known.values == first.values).all()
    assert isinstance(bad, QueryError)
    assert isinstance(other, RequestIdInUse)
    assert (b.values == again.values).all()  # one id, one answer, also within a batch
    assert b.request_id == "b"
    assert d.guarantee == b.guarantee  # what was paid for together is in the total of each
    assert len(commits) == 2
    assert len(reads) == 1
    found = explainer.explain_each([(record_at(0.5), f"e{number}") for number in range(12)])
    kinds = [type(one) for one in found]
    assert kinds == sorted(kinds, key=lambda kind: kind is BudgetExhausted)  # answered in order, then refused
    assert BudgetExhausted in kinds
    assert dpx.Explanation in kinds
    explainer._ledger.close()
    (ledger,) = open_existing(url)
    assert verify(ledger).pending == 0
    ledger.close()


def test_answers_that_build_on_each_other_are_given_one_after_another(data):
    explainer = dpx.Explainer(data, dpx.Budget(1.0, 1e-6), dpx.Adaptive(0.2, 1e-6))
    found = explainer.explain_each([(record_at(0.1), "a"), (record_at(7.0), "b"), (record_at(0.9), "c")])
    assert [type(one) for one in found] == [dpx.Explanation, QueryError, dpx.Explanation]


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 20))


def test_what_arrives_while_a_batch_is_answered_is_the_next_batch():
    sizes, go = [], threading.Event()

    def answer(questions):
        sizes.append(len(questions))
        go.wait(10)
        return [ValueError(one) if one == 3 else one * 10 for one in questions]

    async def crowd():
        batcher = Batcher(answer, most=8)
        asked = [asyncio.ensure_future(batcher.ask(number)) for number in range(12)]
        await asyncio.sleep(0.1)
        go.set()
        found = await asyncio.gather(*asked, return_exceptions=True)
        await asyncio.to_thread(batcher.close)
        return found

    found = run(crowd())
    assert isinstance(found[3], ValueError)
    assert [one for one in found if not isinstance(one, ValueError)] == [number * 10 for number in range(12) if number != 3]
    assert len(sizes) <= 4
    assert max(sizes) <= 8
    assert sum(sizes) == 12


def test_nobody_waits_for_a_turn_longer_than_their_patience():
    go = threading.Event()

    async def crowd():
        batcher = Batcher(lambda questions: go.wait(10) and questions, most=1, patience=0.2)
        taken, waiting = asyncio.ensure_future(batcher.ask("taken")), None
        await asyncio.sleep(0.05)
        start = time.monotonic()
        with pytest.raises(LedgerUnavailable):
            await batcher.ask("waiting")
        waiting = time.monotonic() - start
        go.set()
        assert await taken == "taken"  # what has begun is finished
        batcher.close()
        return waiting

    assert 0.1 < run(crowd()) < 2


def test_who_went_away_before_their_turn_has_not_asked():
    asked, go = [], threading.Event()

    def answer(questions):
        asked.extend(questions)
        go.wait(10)
        return questions

    async def crowd():
        batcher = Batcher(answer, most=1)
        first, second = (asyncio.ensure_future(batcher.ask(name)) for name in ("first", "second"))
        await asyncio.sleep(0.05)
        second.cancel()
        await asyncio.sleep(0)
        go.set()
        assert await first == "first"
        assert await batcher.ask("third") == "third"
        batcher.close()

    run(crowd())
    assert asked == ["first", "third"]


def test_an_error_of_a_whole_batch_is_everybodys():
    async def crowd():
        batcher = Batcher(lambda questions: 1 / 0, most=4)
        return await asyncio.gather(*(batcher.ask(number) for number in range(3)), return_exceptions=True)

    assert [type(one) for one in run(crowd())] == [ZeroDivisionError] * 3


def test_questions_of_one_turn_of_the_loop_are_answered_in_one_call():
    batches = []

    def answer(questions):
        batches.append(list(questions))
        return [QueryError("bad") if one < 0 else 2 * one for one in questions]

    async def ask_all():
        batcher = TurnBatcher(answer, 3)
        first = await asyncio.gather(*(batcher.ask(i) for i in (1, -1, 2, 5)), return_exceptions=True)
        return first, await batcher.ask(7)

    found, alone = asyncio.run(ask_all())
    assert batches == [[1, -1, 2], [5], [7]]
    assert [found[0], found[2], found[3], alone] == [2, 4, 10, 14]
    assert isinstance(found[1], QueryError)


def test_a_question_that_was_being_read_joins_the_one_before_it():
    batches = []

    async def later(batcher, turns):
        for _ in range(turns):
            await asyncio.sleep(0)
        return await batcher.ask(turns)

    async def ask_all():
        batcher = TurnBatcher(lambda questions: batches.append(list(questions)) or list(questions), 8)
        return await asyncio.gather(*(later(batcher, turns) for turns in (0, TURNS - 1, TURNS + 1)))

    assert asyncio.run(ask_all()) == [0, TURNS - 1, TURNS + 1]
    assert batches == [[0, TURNS - 1], [TURNS + 1]]


@pytest.mark.parametrize(("callers", "batches"), [(1, [[1], [2]]), (2, [[1, 2]]), (3, [[1, 2]])])
def test_callers_are_answered_at_once_when_all_of_them_wait(callers, batches):
    found, turned = [], []

    async def ask_both():
        batcher = TurnBatcher(lambda questions: found.append(list(questions)) or list(questions), 8, lambda: callers)
        both = asyncio.gather(batcher.ask(1), batcher.ask(2))
        asyncio.get_running_loop().call_soon(lambda: turned.append(list(found)))
        return await both

    assert asyncio.run(ask_both()) == [1, 2]
    assert found == batches
    assert turned == [[] if callers == 3 else batches]  # where one may still ask, some turns of the loop go by


def test_turns_that_were_begun_for_answered_questions_answer_nobody_twice():
    found = []

    async def ask_in_turn():
        callers = [3]
        batcher = TurnBatcher(lambda questions: found.append(list(questions)) or list(questions), 8, lambda: callers[0])
        first = asyncio.ensure_future(batcher.ask(1))
        await asyncio.sleep(0)
        callers[0] = 2  # the third has gone
        answers = [await batcher.ask(2), await first]
        callers[0] = 3
        return [*answers, await batcher.ask(3), await batcher.ask(4)]

    assert asyncio.run(ask_in_turn()) == [2, 1, 3, 4]
    assert found == [[1, 2], [3], [4]]


def test_a_batch_of_a_turn_that_fails_fails_for_each_of_its_callers():
    async def ask_all():
        def answer(_):
            raise ValueError("broken")

        batcher = TurnBatcher(answer, 8)
        return await asyncio.gather(batcher.ask(1), batcher.ask(2), return_exceptions=True)

    assert [type(one) for one in asyncio.run(ask_all())] == [ValueError, ValueError]


def test_a_release_answers_questions_together_as_it_does_one_by_one(data):
    backend = ReleaseBackend(dpx.release(data, dpx.Budget(1.0, 1e-6)))

    async def ask_all():
        asked = [(record_at(0.1), "a"), (record_at(9.0), "b"), (record_at(0.3), "c", "nobody"), (record_at(0.7), "d")]
        return await asyncio.gather(*(backend.ask(*one) for one in asked), return_exceptions=True)

    first, bad, unknown, last = asyncio.run(ask_all())
    assert isinstance(bad, QueryError)
    assert "x0" in str(bad)
    assert isinstance(unknown, ParameterError)
    for found, value, name in ((first, 0.1, "a"), (last, 0.7, "d")):
        alone, answer = backend.explain(record_at(value), name), Explanation.from_dict(found.to_dict())
        assert found.cost == alone.cost
        assert answer.request_id == name
        assert answer.contributions().record == alone.contributions().record == tuple(record_at(value).values())
        assert answer.values == pytest.approx(alone.values, rel=1e-9, abs=1e-12)
        assert answer.contributions().error == pytest.approx(alone.contributions().error, rel=1e-9)
    with pytest.raises(QueryError, match="x0"):
        backend.explain_many([record_at(0.1), record_at(9.0)], ["a", "b"])


def test_callers_that_were_answered_just_now_are_waited_for(monkeypatch):
    """Two callers who ask again at once would else be answered in turn, each alone, for ever."""
    monkeypatch.setattr("dpexplain.service.batching.LINGER", 60.0)
    sizes, second_asked = [], threading.Event()

    def answer(questions):
        sizes.append(len(questions))
        assert second_asked.wait(60)
        return list(questions)

    async def ask_three_times(batcher, name):
        for _ in range(3):
            assert await batcher.ask(name) == name

    async def main():
        batcher = Batcher(answer, 8, patience=120.0)
        first = asyncio.create_task(ask_three_times(batcher, "a"))
        while not sizes:
            await asyncio.sleep(0.001)
        second = asyncio.create_task(ask_three_times(batcher, "b"))
        while not batcher._waiting:
            await asyncio.sleep(0.001)
        second_asked.set()
        await first
        batcher.close()  # nobody else will come: what waits is answered at once
        await second

    asyncio.run(main())
    assert sizes == [1, 2, 2, 1]


def test_who_asks_alone_is_not_made_to_wait_for_others(monkeypatch):
    monkeypatch.setattr("dpexplain.service.batching.LINGER", 60.0)

    async def main():
        batcher = Batcher(list, 8)
        for number in range(3):
            assert await asyncio.wait_for(batcher.ask(number), 30) == number
        batcher.close()

    asyncio.run(main())
