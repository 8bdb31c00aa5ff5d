"""Entries are composed from prepared texts: they are the canonical text of what they say, and an answer is returned as it will be read back."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpexplain.errors import InputError
from dpexplain.ledger import MemoryLedger, Request, verify
from dpexplain.ledger.chain import _encode_quickly, canonical, copy_as_stored, seal, text_and_copy, time_text, unseal
from ledger_support import account, ask, event, spend

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)
ODD = st.recursive(
    SCALARS | st.tuples(SCALARS) | st.builds(np.float64, st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.integers(0, 9), inner),
    max_leaves=8,
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
EVERYDAY = st.floats(-1e17, 1e17) | st.floats(-1e-3, 1e-3) | st.decimals(-1000, 1000, places=5).map(float)
NAMES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=20)


@given(question=VALUES, answer=st.dictionaries(st.text(), VALUES), name=NAMES, uses=st.lists(NAMES, max_size=2))
def test_entries_are_canonical_text(question, answer, name, uses):
    ledger = MemoryLedger(account())
    request = Request(name, {"question": question}, (event(),), tuple(uses))
    done = ledger.settle(ledger.reserve(request), request.events, answer)
    rows = ledger._store.read(lambda session: session.rows("income", 0, 9))
    assert len(rows) == 3
    for row in rows:
        assert row.document == canonical(json.loads(row.document))
        assert seal(unseal(row)) == row
    stored = ledger.reserve(request)
    assert (done, json.dumps(done.answer)) == (stored, json.dumps(stored.answer))
    assert verify(ledger).uses == tuple(sorted(set(uses)))


@given(ODD | VALUES | st.lists(FLOATS) | st.lists(EVERYDAY))
def test_a_copy_is_what_would_be_read_back(value):
    text = canonical(value)
    made, read = text_and_copy(value), json.loads(text)
    assert made[0] == text
    for copied in (copy_as_stored(value, text), made[1]):
        assert copied == read
        assert json.dumps(copied) == json.dumps(read)  # types and the order of keys, too


@given(VALUES | ODD | st.lists(FLOATS) | st.lists(EVERYDAY))
def test_the_text_is_that_of_the_standard_library_whatever_is_installed(value):
    assert canonical(value) == json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


NO_JSON = [
    float("nan"),
    [float("inf")],
    {"a": {1, 2}},
    {"a": [object()]},
    date(2026, 1, 2),
    [datetime(2026, 1, 2)],
    {"a": time(1)},
]


@pytest.mark.parametrize("value", NO_JSON)
def test_what_is_no_json_is_refused_whatever_is_installed(value):
    with pytest.raises(InputError, match="stores JSON"):
        canonical(value)


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_are_written_as_isoformat_writes_them(moment):
    assert time_text(moment) == moment.isoformat(timespec="microseconds")


def test_everyday_answers_are_written_quickly():
    pytest.importorskip("orjson")
    assert _encode_quickly({"values": [0.5, -1 / 3, 12.0, 0.0001], "kept": True, "name": "a\\b"}) is not None


def test_an_answer_that_is_changed_later_changes_nothing():
    ledger, request = MemoryLedger(account()), ask("a")
    answer = {"values": [1.0, 2.0], "more": {"kept": [True]}}
    done = ledger.settle(ledger.reserve(request), request.events, answer)
    answer["values"].append(3.0)
    answer["more"]["kept"].clear()
    assert done.answer == ledger.reserve(request).answer == {"values": [1.0, 2.0], "more": {"kept": [True]}}


def test_what_cannot_be_stored_is_refused_alone(place):
    ledger = place.open()
    found = ledger.reserve_many([ask("a"), ask("b", question=float("nan")), ask("c")])
    assert isinstance(found[1], InputError)
    assert [one.request_id for one in (found[0], found[2])] == ["a", "c"]
    with pytest.raises(InputError, match="cannot store"):
        ledger.settle(found[0], (event(),), {"value": {1, 2}})
    assert spend(ledger, "a").answer == {"values": [0.5]}
    assert verify(ledger).pending == 1
    ledger.close()
