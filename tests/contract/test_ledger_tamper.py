"""What `verify` finds: every way of changing a ledger behind its back that we could think of."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import replace

import pytest

from dpexplain.errors import LedgerCorrupt
from dpexplain.ledger import Head, verify
from dpexplain.ledger.chain import Row, digest, seal, unseal
from dpexplain.ledger.numbered import BITS
from ledger_support import account, ask, event, refund_request, spend

ENTRIES = "dpexplain_entries"


@pytest.fixture
def filled_place(place):
    """Eleven entries: the account, four answers, a refund and an open reservation."""
    ledger = place.open()
    for number in range(4):
        spend(ledger, f"r{number}", event(0.01 * (number + 1)))
    refund_request(ledger, "given back")
    ledger.reserve(ask("open"))
    verify(ledger)
    ledger.close()
    return place


def caught(place, match, head=None):
    ledger = place.open()
    try:
        with pytest.raises(LedgerCorrupt, match=match) as found:
            verify(ledger, head)
        assert "docs/ledger.md" in str(found.value)
    finally:
        ledger.close()


def columns(place, sequence):
    found = place.execute(f"SELECT sequence, kind, request, position, document, hash FROM {ENTRIES} WHERE sequence = ?", sequence)
    return Row(*found[0])


@pytest.mark.parametrize("sequence", range(2, 12))
def test_an_edited_number(filled_place, sequence):
    document = columns(filled_place, sequence).document
    edited = document.replace('"total":"', '"total":"1', 1)
    filled_place.execute(f"UPDATE {ENTRIES} SET document = ? WHERE sequence = ?", edited, sequence)
    caught(filled_place, f"entry {sequence} was edited")


def test_an_edited_total_is_not_drawn(filled_place):
    ledger = filled_place.open()
    edited = columns(filled_place, 3).document.replace('"total":"', '"total":"1', 1)
    filled_place.execute(f"UPDATE {ENTRIES} SET document = ? WHERE sequence = 3", edited)
    with closing(ledger), pytest.raises(LedgerCorrupt, match="entry 3 was edited"):
        ledger.totals()


@pytest.mark.parametrize("column", ["kind", "request", "position", "hash"])
def test_an_edited_column(filled_place, column):
    value = {"position": 77, "hash": "0" * 64}.get(column, "refund")
    filled_place.execute(f"UPDATE {ENTRIES} SET {column} = ? WHERE sequence = 3", value)
    caught(filled_place, "entry 3 was edited")


@pytest.mark.parametrize("sequence", range(2, 12))
def test_an_edit_with_a_fresh_hash(filled_place, sequence):
    entry = unseal(columns(filled_place, sequence))
    forged = seal(replace(entry, time="2001-01-01T00:00:00+00:00"))
    filled_place.execute(
        f"UPDATE {ENTRIES} SET document = ?, hash = ? WHERE sequence = ?", forged.document, forged.hash, sequence
    )
    assert_caught(filled_place, "does not continue|the last one|was rolled|missing or has another")


def assert_caught(place, match):
    """The last entry is looked at by every transaction, so an edit there is refused as soon as the ledger is opened."""
    with pytest.raises(LedgerCorrupt, match=match):
        open_and_verify(place)


def open_and_verify(place):
    ledger = place.open()
    try:
        verify(ledger)
    finally:
        ledger.close()


@pytest.mark.parametrize("sequence", range(2, 12))
def test_a_deleted_entry(filled_place, sequence):
    filled_place.execute(f"DELETE FROM {ENTRIES} WHERE sequence = ?", sequence)
    assert_caught(filled_place, "removed or moved|missing or has another")


def test_editing_the_first_entry(filled_place):
    filled_place.execute(
        f"UPDATE {ENTRIES} SET document = ? WHERE sequence = 1", columns(filled_place, 1).document.replace("1.0", "9.0")
    )
    assert_caught(filled_place, "entry 1 was edited")


def test_deleting_the_first_entry(filled_place):
    filled_place.execute(f"DELETE FROM {ENTRIES} WHERE sequence = 1")
    assert_caught(filled_place, "entry 1 is missing")


@pytest.mark.parametrize("first", range(2, 10))
def test_two_entries_swapped(filled_place, first):
    for before, after in ((first, 1000), (first + 1, first), (1000, first + 1)):
        filled_place.execute(f"UPDATE {ENTRIES} SET sequence = ? WHERE sequence = ?", after, before)
    caught(filled_place, f"entry ({first}|{first + 1}) was edited")


def test_two_keys_swapped(filled_place):
    """SQLite finds entries by keys of its own, which are in no text."""
    if filled_place.kind != "sqlite":
        return
    (first,), (second,) = filled_place.execute(f"SELECT id FROM {ENTRIES} WHERE sequence IN (4, 5) ORDER BY id")
    for before, after in ((first, 7), (second, first), (7, second)):
        filled_place.execute(f"UPDATE {ENTRIES} SET id = ? WHERE id = ?", after, before)
    caught(filled_place, "removed or moved")


def test_a_truncated_tail(filled_place):
    filled_place.execute(f"DELETE FROM {ENTRIES} WHERE sequence > 8")
    assert_caught(filled_place, "missing or has another")


def test_a_lowered_mark(filled_place):
    filled_place.execute("UPDATE dpexplain_accounts SET sequence = 5, hash = ?", columns(filled_place, 5).hash)
    caught(filled_place, "beyond the end")


def test_a_deleted_account(filled_place):
    filled_place.execute("DELETE FROM dpexplain_accounts")
    assert_caught(filled_place, "its account is gone")


def test_a_careful_truncation_shows_only_against_a_kept_head(filled_place):
    head = read_head(filled_place)
    filled_place.execute(f"DELETE FROM {ENTRIES} WHERE sequence > 7")
    filled_place.execute("UPDATE dpexplain_accounts SET sequence = 7, hash = ?", columns(filled_place, 7).hash)
    ledger = filled_place.open()
    verify(ledger)
    ledger.close()
    caught(filled_place, "cut or rolled back", head)


def test_a_history_rewritten_whole_shows_only_against_a_kept_head(filled_place):
    head = read_head(filled_place)
    rewrite(filled_place, lambda entry: replace(entry, time="2001-01-01T00:00:00+00:00"))
    ledger = filled_place.open()
    verify(ledger)
    ledger.close()
    caught(filled_place, "history was rewritten", head)


@pytest.mark.parametrize(
    ("sequence", "change", "match"),
    [
        (3, lambda e: replace(e, total=0), "does not add up"),
        (3, lambda e: replace(e, answers=5), "was edited|add up"),
        (3, lambda e: replace(e, body=e.body | {"events": []}), "a price that differs"),
        (2, lambda e: replace(e, quanta=1, total=1), "a price that differs"),
        (4, lambda e: replace(e, request="r0"), "was answered"),
        (5, lambda e: replace(e, request="r7"), "no reservation"),
        (11, lambda e: replace(e, quanta=1), "a sum that differs"),
        (6, lambda e: replace(e, kind="open"), "not allowed at this place"),
        (6, lambda e: replace(e, kind="bonus"), "not allowed at this place"),
        (6, lambda e: replace(e, body={}), "cannot be read"),
        (6, lambda e: replace(e, body=e.body | {"events": [{"kind": "future"}]}), "cannot be read"),
    ],
)
def test_a_forger_who_hashes_well_must_still_add_up(filled_place, sequence, change, match):
    rewrite(filled_place, lambda entry: change(entry) if entry.sequence == sequence else entry)
    caught(filled_place, match)


def test_a_raised_budget_is_refused_when_opened_and_when_verified(filled_place):
    rewrite(filled_place, lambda entry: replace(entry, body=entry.body | {"epsilon": 50.0}) if entry.kind == "open" else entry)
    from dpexplain.errors import LedgerMismatch

    with pytest.raises(LedgerMismatch, match=r"epsilon: 50\.0 in the ledger, 1\.0 now"):
        filled_place.open()


def test_a_roll_back_to_an_older_copy_of_the_file(sqlite_place, tmp_path):
    ledger = sqlite_place.open()
    spend(ledger, "a")
    ledger.close()
    shutil.copy(sqlite_place.where, tmp_path / "old")
    spend(ledger, "b")
    head = ledger.head()
    ledger.close()
    shutil.copyfile(tmp_path / "old", sqlite_place.where)
    with pytest.raises(LedgerCorrupt, match="rolled back"):  # the handle remembers what it saw
        ledger.state()
    ledger.close()
    caught(sqlite_place, "cut or rolled back to an older copy", head)


def test_a_head_of_another_ledger_is_not_found(filled_place):
    caught(filled_place, "rewritten", Head(3, digest("other"), 0))


def test_a_copy_that_went_on_differently_is_found(filled_place):
    ledger = filled_place.open()
    head = ledger.head()
    spend(ledger, "more")
    assert verify(ledger, head).head.sequence == head.sequence + 2
    ledger.close()


def test_the_chain_can_be_checked_without_dpexplain(filled_place):
    """What the documentation promises to auditors: SHA-256 of the stored text, each naming the one before."""
    from hashlib import sha256

    previous = "0" * 64
    for document, stored in filled_place.execute(f"SELECT document, hash FROM {ENTRIES} ORDER BY sequence"):
        assert json.loads(document)["previous"] == previous
        assert sha256(document.encode()).hexdigest() == stored
        previous = stored


def read_head(place):
    ledger = place.open()
    head = ledger.head()
    ledger.close()
    return head


def rewrite(place, change):
    """Forge the whole ledger with consistent hashes."""
    found = place.execute(f"SELECT sequence, kind, request, position, document, hash FROM {ENTRIES} ORDER BY sequence")
    place.execute(f"DELETE FROM {ENTRIES}")
    previous = "0" * 64
    for values in found:
        row = seal(replace(change(unseal(Row(*values))), previous=previous))
        previous = row.hash
        key = [(1 << BITS) + row.sequence] if place.kind == "sqlite" else []
        place.execute(f"INSERT INTO {ENTRIES} VALUES ({', '.join('?' * (len(key) + 7))})", *key, account().dataset, *row)
    place.execute("UPDATE dpexplain_accounts SET hash = ?", previous)
