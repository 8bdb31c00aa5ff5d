"""Serialises ledger entries and chains them by their hashes.

An entry is written as canonical JSON (sorted keys, no spaces, ASCII, no NaN) that names the hash of the entry before it; its own
hash is SHA-256 over exactly those bytes. The text is stored as it was hashed, so checking never depends on encoding it again.
Quanta are decimal text inside it: they pass 64 bits.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

from dpexplain.errors import InputError, LedgerCorrupt
from dpexplain.ledger.port import Entry, Head

orjson: Any = import_module("orjson") if find_spec("orjson") else None  # it comes with the service
_NOT_JSON = ("SUBCLASS", "DATACLASS", "DATETIME")  # what orjson writes unless it is told not to
_OPTIONS = 0 if orjson is None else orjson.OPT_SORT_KEYS | sum(getattr(orjson, f"OPT_PASSTHROUGH_{kind}") for kind in _NOT_JSON)
_EXPONENT = re.compile("e[-+0-9]").search  # as in 1e16; some texts have it too
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
quote_text = encode_basestring_ascii  # the canonical text of a string
_SCALARS, _NAMES = frozenset({float, int, str, bool, type(None)}), frozenset({str})
HASHED = tuple(field.name for field in fields(Entry) if field.name != "hash")
KINDS = ("open", "reserve", "settle", "refund")
START = "0" * 64  # what the first entry names as the hash before it
RESTORE = (
    "Stop spending from it, keep a copy as evidence, restore the newest backup that `dpexplain ledger verify` accepts, and count "
    "what is missing since as spent (docs/ledger.md, 'After a loss')."
)


class Row(NamedTuple):
    """An entry as it is stored: the hashed text, its hash, and the columns that queries need."""

    sequence: int
    kind: str
    request: str
    position: int | None  # of an answer, in the order of settlement
    document: str
    hash: str


def utc_now() -> datetime:
    return datetime.now(UTC)


def time_text(time: datetime) -> str:
    """What `time.isoformat(timespec="microseconds")` is in UTC, in half of the time."""
    values = (time.year, time.month, time.day, time.hour, time.minute, time.second, time.microsecond)
    return "%04d-%02d-%02dT%02d:%02d:%02d.%06d+00:00" % values  # noqa: UP031  (an f-string takes twice as long)


def canonical(value: Any) -> str:
    """The one text of a JSON value."""
    text = _encode_quickly(value)
    if text is not None:
        return text
    try:
        return _encode(value)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"a ledger stores JSON and cannot store this ({error}). Pass plain finite numbers, text, lists and dicts"
        ) from None


def _encode_quickly(value: Any) -> str | None:
    """The canonical text by orjson, in a tenth of the time; None where that is not installed, or may write something else.

    Both write the shortest digits that read back as the same float. They differ about floats below 1e-4 and from 1e16 on, not-a-number, characters beyond
    ASCII, and types that JSON has not. A text that could hold one of these is not used, so what is stored does not depend on what is installed.
    """
    if orjson is None:
        return None
    try:
        text: str = orjson.dumps(value, option=_OPTIONS).decode()
    except TypeError:
        return None
    plain = text.isascii() and "null" not in text and "\x7f" not in text
    return text if plain and "0.0000" not in text and not _EXPONENT(text) else None


def text_and_copy(value: Any) -> tuple[str, Any]:
    """The canonical text of a JSON value, and the value that is read back from it."""
    text = _encode_quickly(value)
    if text is not None:  # its numbers and texts are ones that both libraries read alike
        return text, orjson.loads(text)
    text = canonical(value)
    return text, copy_as_stored(value, text)


def copy_as_stored(value: Any, text: str) -> Any:
    """The JSON value that is read back from `text`, which is the canonical text of `value`."""
    try:
        return _copy_plain(value)
    except TypeError:
        return json.loads(text)


def _copy_plain(value: Any) -> Any:
    """Copy dicts, lists and scalars. TypeError for anything that JSON reads back as another type, such as a tuple."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is list:
        return value[:] if _SCALARS.issuperset(map(type, value)) else [_copy_plain(one) for one in value]
    if kind is dict and _NAMES.issuperset(map(type, value)):
        return {name: _copy_plain(value[name]) for name in sorted(value)}
    raise TypeError(kind)


def digest(document: str) -> str:
    return sha256(document.encode()).hexdigest()


def seal(entry: Entry) -> Row:
    """The row that stores this entry. `entry.hash` is not read: it is computed here."""
    values = {name: getattr(entry, name) for name in HASHED} | {"quanta": str(entry.quanta), "total": str(entry.total)}
    document = canonical(values)
    return Row(entry.sequence, entry.kind, entry.request, answer_position(entry), document, digest(document))


def answer_position(entry: Entry) -> int | None:
    return entry.answers if entry.kind == "settle" else None


def unseal(row: Row) -> Entry:
    """The entry in this row, or LedgerCorrupt if a bit of it changed since it was written."""
    if not (isinstance(row.document, str) and digest_or_none(row.document) == row.hash):
        raise damage_error(row.sequence, "was edited: its text does not have its hash")
    entry = parse(row)
    if (entry.sequence, entry.kind, entry.request, answer_position(entry)) != row[:4]:
        raise damage_error(row.sequence, "was edited: its columns disagree with its text")
    return entry


def parse(row: Row) -> Entry:
    try:
        values = json.loads(row.document)
        values |= {"quanta": int(values["quanta"]), "total": int(values["total"]), "hash": row.hash}
        return Entry(**values)
    except (ValueError, TypeError, KeyError):
        raise damage_error(row.sequence, "is not an entry this version can read") from None


def total_of(row: Row) -> int:
    """`unseal(row).total`, checked as well, without parsing the rest: the total is the last member of every entry's text."""
    _, found, end = row.document.rpartition('"total":"')
    if digest_or_none(row.document) != row.hash or not (found and end.endswith('"}') and end[:-2].isdecimal()):
        return unseal(row).total
    return int(end[:-2])


def digest_or_none(document: str) -> str | None:
    try:
        return digest(document)
    except UnicodeEncodeError:  # lone surrogates: never written by us
        return None


def head_of(entry: Entry) -> Head:
    return Head(entry.sequence, entry.hash, entry.total)


def damage_error(sequence: object, what: str) -> LedgerCorrupt:
    return LedgerCorrupt(f"ledger entry {sequence} {what}. {RESTORE}")
