"""One conformance suite for every ledger: memory, SQLite, PostgreSQL."""

from __future__ import annotations

import os
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from dpexplain.errors import BudgetExhausted, InputError, LedgerMismatch, LedgerUnavailable, ParameterError, RequestIdInUse
from dpexplain.ledger import Request, Reservation, Settled, open_ledger, verify
from dpexplain.ledger.port import Settlement
from dpexplain.privacy.budget import USED_MODEL_ANSWERS, USED_SEED
from dpexplain.privacy.events import GaussianEvent, PureEvent, price
from dpexplain.privacy.relation import Neighbours, Relation
from ledger_support import Place, account, affordable, ask, event, refund_request, spend


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request):
    where = Place("memory", "") if request.param == "memory" else request.getfixturevalue(f"{request.param}_place")
    opened = where.open()
    yield opened
    verify(opened)
    opened.close()


def test_a_new_ledger_has_spent_nothing(ledger):
    assert ledger.state().spent_quanta == 0
    assert ledger.state().budget == ledger.account.budget
    assert list(ledger.settled()) == []


def test_a_reservation_counts_before_anything_ran(ledger):
    reserved = ledger.reserve(ask("a"))
    assert reserved == Reservation("a", event().quanta)
    assert ledger.state().spent_quanta == event().quanta


def test_settling_replaces_the_reserved_price_by_what_ran(ledger):
    reserved = ledger.reserve(ask("a", event(0.02), event(0.01)))
    done = ledger.settle(reserved, (event(0.01),), {"values": [1.5, -2.0]})
    assert done == Settled(1, "a", (event(0.01),), {"values": [1.5, -2.0]}, event(0.01).quanta)
    assert ledger.state().spent_quanta == event(0.01).quanta


def test_a_refund_in_an_older_ledger_gives_its_reservation_back(ledger):
    spend(ledger, "before")
    refund_request(ledger, "a")
    assert ledger.state().spent_quanta == event().quanta
    assert [entry.kind for entry in ledger.entries()] == ["open", "reserve", "settle", "reserve", "refund"]
    assert ledger.reserve(ask("a")) == Reservation("a", event().quanta)


def test_asking_again_returns_the_answer_and_spends_nothing(ledger):
    done = spend(ledger, "a", answer={"values": [0.1 + 0.2]})
    assert ledger.reserve(ask("a")) == done
    assert ledger.state().spent_quanta == event().quanta


def test_asking_again_continues_a_reservation(ledger):
    assert ledger.reserve(ask("a")) == ledger.reserve(ask("a"))
    assert ledger.state().spent_quanta == event().quanta


def test_a_dearer_retry_raises_its_reservation_and_a_cheaper_one_keeps_it(ledger):
    ledger.reserve(ask("a", event(0.01)))
    assert ledger.reserve(ask("a", event(0.02))) == Reservation("a", event(0.02).quanta)
    assert ledger.reserve(ask("a", event(0.01))) == Reservation("a", event(0.02).quanta)
    assert ledger.state().spent_quanta == event(0.02).quanta


def test_a_retry_that_has_become_too_dear_is_refused_and_its_reservation_stays(ledger):
    ledger.reserve(ask("a", event(0.01)))
    with pytest.raises(BudgetExhausted):
        ledger.reserve(ask("a", event(5.0)))
    assert ledger.state().spent_quanta == event(0.01).quanta


def test_the_first_to_settle_wins(ledger):
    reserved = ledger.reserve(ask("a"))
    first = ledger.settle(reserved, (event(),), {"by": "first"})
    second = ledger.settle(reserved, (), {"by": "second"})
    assert first == second
    assert second.answer == {"by": "first"}


def test_one_id_has_one_question(ledger):
    spend(ledger, "a")
    with pytest.raises(InputError, match="Choose a new id"):
        ledger.reserve(ask("a", question="what else?"))


def test_one_id_has_one_question_also_after_a_refund(ledger):
    refund_request(ledger, "a")
    with pytest.raises(InputError, match="Choose a new id"):
        ledger.reserve(ask("a", question="what else?"))
    assert isinstance(ledger.reserve(ask("a")), Reservation)


def test_settling_more_than_was_reserved_is_a_bug_and_changes_nothing(ledger):
    reserved = ledger.reserve(ask("a", event(0.01)))
    with pytest.raises(RuntimeError, match="Nothing was released"):
        ledger.settle(replace(reserved, quanta=10**60), (event(0.02),), {})
    assert ledger.state().spent_quanta == event(0.01).quanta


def test_a_runner_whose_reservation_was_given_back_cannot_release(ledger):
    reserved = refund_request(ledger, "a")
    with pytest.raises(LedgerUnavailable, match="Ask again"):
        ledger.settle(reserved, (event(),), {})
    assert ledger.state().spent_quanta == 0


def test_the_budget_is_refused_exactly_where_it_ends(ledger):
    unit = event(0.05)
    count = affordable(ledger.account, unit)
    for number in range(count):
        spend(ledger, f"{number}", unit)
    with pytest.raises(BudgetExhausted) as refused:
        ledger.reserve(ask("one too many", unit))
    assert refused.value.requested.mu == pytest.approx(0.05)
    assert ledger.state().spent_quanta == count * unit.quanta
    assert ledger.reserve(ask("0", unit)).answer  # what was bought stays


def test_a_refused_request_leaves_no_trace_and_may_come_back_cheaper(ledger):
    with pytest.raises(BudgetExhausted):
        ledger.reserve(ask("a", event(10.0)))
    assert ledger.head().sequence == 1
    assert ledger.reserve(ask("a", event(0.01))).quanta == event(0.01).quanta


def test_a_free_answer_costs_nothing_even_when_all_is_spent(ledger):
    ledger.reserve(ask("all", event(ledger.account.budget.mu * (1 - 1e-9))))
    free = ledger.settle(ledger.reserve(replace(ask("free"), events=())), (), {"copied": True})
    assert free.events == ()


def test_answers_come_back_in_order_with_their_events(ledger):
    events = (GaussianEvent("beta", 0.001, 2.0, 3), PureEvent("start", 0.001))
    for number in range(7):
        spend(ledger, f"{number}", *events)
        ledger.reserve(ask(f"pending {number}"))
    stored = list(ledger.settled())
    assert [done.position for done in stored] == list(range(1, 8))
    assert [done.request_id for done in stored] == [f"{number}" for number in range(7)]
    assert all(done.events == events and price(done.events) == price(events) for done in stored)
    assert [done.position for done in ledger.settled(after=5)] == [6, 7]


def test_answers_with_a_part_are_found_among_others(ledger, monkeypatch):
    monkeypatch.setattr("dpexplain.ledger.book.PAGE", 3)
    assert ledger.settled_with("sums") == ([], 0)
    with_sums = {"value": 1, "sums": {"a": [1]}}
    answers = [{"value": '"sums":'}, with_sums, {"value": {"sums": 2}}, with_sums, {"sum": 1}]
    for number, answer in enumerate(answers):
        spend(ledger, f"{number}", event(0.001), answer=answer)
        ledger.reserve(ask(f"pending {number}"))
    found, end = ledger.settled_with("sums")
    assert [(done.position, done.answer) for done in found] == [(2, with_sums), (4, with_sums)]
    assert end == 5
    assert [done.position for done in ledger.settled_with("sums", after=2)[0]] == [4]
    assert ledger.settled_with("sums", after=end) == ([], end)


def test_totals_are_read_without_parsing_answers(ledger, monkeypatch):
    assert (ledger.totals(), ledger.answer_count()) == ([], 0)
    for number in range(4):
        spend(ledger, f"{number}", event(0.001), answer={"note": '"total":"7"}'})  # as the end of an entry looks
    ledger.reserve(ask("pending"))
    expected = [done.spent_quanta for done in ledger.settled()]
    monkeypatch.setattr("dpexplain.ledger.chain.parse", None)
    assert ledger.totals() == expected
    assert ledger.totals(after=3) == expected[3:]
    assert ledger.answer_count() == 4


def test_long_histories_are_read_in_pages(ledger, monkeypatch):
    monkeypatch.setattr("dpexplain.ledger.book.PAGE", 3)
    for number in range(10):
        spend(ledger, f"{number}", event(0.001))
    assert [done.position for done in ledger.settled()] == list(range(1, 11))
    assert [entry.sequence for entry in ledger.entries()] == list(range(1, 22))


@pytest.mark.parametrize("bad", ["", "x" * 257, "new\nline", "nul\x00", "\ud800", None, 7])
def test_an_id_must_be_storable_everywhere(ledger, bad):
    with pytest.raises(ParameterError, match="printable"):
        ledger.reserve(replace(ask("a"), id=bad))


@pytest.mark.parametrize("request_id", ["ünïcödé-問い", "'; DROP TABLE dpexplain_entries; --", "%s ? %", "x" * 200])
def test_any_printable_id_is_kept_as_it_is(ledger, request_id):
    assert spend(ledger, request_id).request_id == request_id
    assert ledger.reserve(ask(request_id)).request_id == request_id


@pytest.mark.parametrize("answer", [{"value": float("nan")}, {"value": float("inf")}, {"value": object()}])
def test_an_answer_that_cannot_be_stored_is_not_released(ledger, answer):
    reserved = ledger.reserve(ask("a"))
    with pytest.raises(InputError, match="plain finite numbers"):
        ledger.settle(reserved, (event(),), answer)
    assert ledger.state().spent_quanta == event().quanta
    assert list(ledger.settled()) == []


def test_floats_survive_to_the_last_bit(ledger):
    values = [0.1, 1e-308, 5e-324, -0.0, 1.7976931348623157e308, 2**0.5]
    answer = spend(ledger, "a", answer={"values": values}).answer
    assert [value.hex() for value in answer["values"]] == [value.hex() for value in values]


def test_events_of_an_unknown_kind_are_refused(ledger):
    class Free:
        kind, quanta = "free", 0

        def to_dict(self):
            return {}

    with pytest.raises(ParameterError, match="the price of a"):
        ledger.reserve(ask("a", Free()))


def test_eight_threads_end_with_exactly_the_affordable_number_of_answers(ledger):
    unit, counts = event(0.05), []

    def hammer(name):
        done = 0
        try:
            for number in range(1000):
                spend(ledger, f"{name}-{number}", unit)
                done += 1
        except BudgetExhausted:
            counts.append(done)

    threads = [threading.Thread(target=hammer, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == affordable(ledger.account, unit)
    assert len(counts) == 8


def test_a_clock_that_goes_back_changes_nothing(place):
    from datetime import UTC, datetime, timedelta

    moments = iter(datetime(2030, 1, 1, tzinfo=UTC) - timedelta(days=day) for day in range(1000))
    ledger = place.open(clock=lambda: next(moments))
    for number in range(5):
        spend(ledger, f"{number}")
    assert [done.request_id for done in ledger.settled()] == ["0", "1", "2", "3", "4"]
    times = [entry.time for entry in ledger.entries()]
    assert times == sorted(times, reverse=True)
    verify(ledger, ledger.head())
    ledger.close()


def test_everything_survives_closing_and_opening(place):
    first = place.open()
    done, pending = spend(first, "a"), first.reserve(ask("b"))
    head = first.head()
    first.close()
    again = place.open()
    assert again.state().spent_quanta == 2 * event().quanta
    assert again.reserve(ask("a")) == done
    assert again.reserve(ask("b")) == pending
    assert again.head() == head
    assert again.identity == first.identity
    assert list(again.settled()) == [done]
    first.state(), again.close(), first.close()


def test_two_handles_are_one_budget(place):
    one, two = place.open(), place.open()
    spend(one, "a")
    assert two.state().spent_quanta == event().quanta
    assert two.reserve(ask("a")) == one.reserve(ask("a"))
    one.close(), two.close()


def test_data_sets_in_one_ledger_do_not_share_a_budget(place):
    one, two = place.open(account("one")), place.open(account("two", epsilon=3.0))
    spend(one, "a")
    assert two.state().spent_quanta == 0
    assert one.identity != two.identity
    assert isinstance(two.reserve(ask("a")), Reservation)
    one.close(), two.close()


def test_other_parameters_are_refused_showing_exactly_what_differs(place):
    place.open().close()
    person = Neighbours(Relation.REPLACE_ONE, "person", 3)
    for other, different in (
        (account(epsilon=2.0), {"epsilon: 1.0 in the ledger, 2.0 now"}),
        (account(delta=1e-7), {"delta: 1e-06 in the ledger, 1e-07 now"}),
        (account(domain="d1"), {"domain: 'd0' in the ledger, 'd1' now"}),
        (account(neighbours=person), {"relation: 'add-remove'", "unit: None", "rows_per_unit: 1 in the ledger, 3 now"}),
    ):
        with pytest.raises(LedgerMismatch) as refused:
            place.open(other)
        assert all(words in str(refused.value) for words in different)
        assert str(refused.value).count("in the ledger") == len(different)


def test_open_ledger_understands_its_argument(place, tmp_path):
    who = account()
    assert open_ledger(None, who).identity.startswith("memory:")
    opened = open_ledger(place.url, who)
    assert open_ledger(opened, who) is opened
    with pytest.raises(LedgerMismatch, match="epsilon"):
        open_ledger(opened, account(epsilon=2.0))
    opened.close()


@pytest.mark.parametrize("url", ["mysql://u:secret@h/d", "income.ledger", "sqlite://x", "sqlite:///", "sqlite:///:memory:", ""])
def test_an_unknown_place_is_refused_with_the_remedy(url):
    with pytest.raises(ParameterError, match=r"Write sqlite:///(file|income\.ledger)") as refused:
        open_ledger(url, account())
    assert "secret" not in str(refused.value)


def test_a_relative_path_keeps_its_meaning_when_the_directory_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = open_ledger("sqlite:///here.ledger", account())
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    ledger.close()
    spend(ledger, "a")
    ledger.close()
    assert not list((tmp_path / "elsewhere").iterdir())
    assert open_ledger(f"sqlite:///{tmp_path}/here.ledger", account()).identity == ledger.identity


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:topsecret@127.0.0.1:1/db",
        "postgresql://user:top@secret@127.0.0.1:1/db",
        "postgresql://user:top/secret@127.0.0.1:1/db",
        "postgresql://user:topsecret@127.0.0.1:port/db",
        "postgresql://user:topsecret@127.0.0.1:1/db?password=topsecret&nonsense=1",
    ],
)
def test_no_error_tells_the_password(url):
    pytest.importorskip("psycopg")
    with pytest.raises((LedgerUnavailable, ParameterError)) as refused:
        open_ledger(url, account())
    told = f"{refused.value!r} {refused.value.__cause__!r}"
    assert "secret" not in told
    assert "top" not in told
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_identity_has_no_secret(postgres_server):
    ledger = open_ledger(postgres_server.replace("postgres:@", "postgres:topsecret@"), account("identity"))
    assert "topsecret" not in ledger.identity
    assert ledger.identity.endswith("#identity")
    ledger.close()


def test_without_the_driver_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(ParameterError, match=r"dpexplain\[postgres\]"):
        open_ledger("postgresql://host/db", account())


def test_a_ledger_in_memory_does_not_become_two_budgets_by_forking():
    ledger = Place("memory", "").open()
    spend(ledger, "parent")
    child = os.fork()
    if child == 0:
        try:
            spend(ledger, "child")
        except LedgerUnavailable:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_forked_child_gets_a_connection_of_its_own(place):
    ledger = place.open()
    spend(ledger, "parent before")
    child = os.fork()
    if child == 0:
        try:
            spend(ledger, "child")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    spend(ledger, "parent after")
    assert [done.request_id for done in ledger.settled()] == ["parent before", "child", "parent after"]
    verify(ledger)
    ledger.close()


def free(request_id, answer=None, question="why?", events=()):
    """A request that costs nothing, with its answer."""
    asked = Request(request_id, {"question": question, "point": [0.25, 1.0]}, events)
    return asked, Settlement(request_id, events, answer or {"values": [0.5]})


def test_free_answers_are_reserved_and_settled_in_one_step(ledger):
    known = spend(ledger, "known", answer={"values": [7.0]})
    ledger.reserve(ask("held"))
    spent = ledger.state().spent_quanta
    asked = [free("a", {"values": [1.0]}), free("known"), free("a"), free("known", question="another?"), free("b")]
    first, again, twice, refused, second = ledger.record_many(asked)
    assert (first.answer, first.events, first.spent_quanta) == ({"values": [1.0]}, (), spent)
    assert again == known
    assert twice == first  # one answer for each request id, also within one commit
    assert isinstance(refused, RequestIdInUse)
    assert (second.position, second.answer) == (3, {"values": [0.5]})
    assert ledger.state().spent_quanta == spent
    kinds = [(entry.kind, entry.request) for entry in ledger.entries(after=4)]
    assert kinds == [("reserve", "a"), ("settle", "a"), ("reserve", "b"), ("settle", "b")]
    assert ledger.reserve(free("a")[0]) == first


def test_a_free_answer_to_a_reserved_request_gives_the_price_back(ledger):
    ledger.reserve(ask("held"))
    (done,) = ledger.record_many([free("held")])
    assert (done.events, ledger.state().spent_quanta) == ((), 0)


def test_an_answer_with_a_price_is_not_recorded_without_a_reservation(ledger):
    with pytest.raises(RuntimeError, match="before it was reserved"):
        ledger.record_many([free("a"), free("b", events=(event(),))])
    assert [entry.kind for entry in ledger.entries()] == ["open"]


def test_free_answers_that_cannot_be_stored_stop_nobody_else(ledger):
    refused, done = ledger.record_many([free("a", {"values": [float("nan")]}), free("b")])
    assert isinstance(refused, InputError)
    assert (done.position, done.request_id) == (1, "b")


def test_what_requests_used_is_remembered_for_good(place):
    with closing(place.open()) as ledger:
        spend(ledger, "plain")
        assert ledger.state().uses == verify(ledger).uses == ()
        assert all("uses" not in entry.body for entry in ledger.entries())
        reserved = ledger.reserve(replace(ask("seeded"), uses=(USED_SEED,)))
        assert ledger.state().uses == (USED_SEED,)  # from the reservation on
        ledger.settle(reserved, (event(),), {"values": [1]})
        ledger.reserve(ask("by another process"))
        ledger.settle_many([Settlement("by another process", (event(),), {"values": [2]}, (USED_MODEL_ANSWERS,))])
    with closing(place.open()) as again:
        spend(again, "later")
        assert again.state().uses == verify(again).uses == (USED_MODEL_ANSWERS, USED_SEED)
        assert spend(again, "seeded").answer == {"values": [1]}
