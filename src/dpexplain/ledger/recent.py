"""A cache of the entries that one process has read from or written to a ledger, by their hashes.

An entry's hash stands for its text, so an entry whose hash is known need not be read, parsed and checked again. It caches contents
and not what is committed: whether an entry is in the ledger, and where it ends, is asked of every transaction anew.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from dpexplain.ledger.chain import Row, canonical, unseal
from dpexplain.ledger.port import Entry, Head

MOST = 1024
LONGEST = 1 << 16  # characters of the longest text that is cached


class Tail(NamedTuple):
    """The end of a ledger: what the next entry has to continue."""

    sequence: int
    hash: str
    total: int
    answers: int
    uses: tuple[str, ...] = ()

    @property
    def head(self) -> Head:
        return Head(self.sequence, self.hash, self.total)


class Line(NamedTuple):
    """What decisions about a request read of one of its entries; `question` is canonical text."""

    kind: str
    quanta: int
    question: str
    entry: Entry | None  # None for a reservation that this process wrote


class Held(NamedTuple):
    """A reservation that this process wrote: where, and what it holds."""

    sequence: int
    quanta: int


class Recent:
    """Tails and reservations by hash. Plain dictionaries, so that threads and forks need no lock."""

    def __init__(self) -> None:
        self._tails: dict[str, Tail] = {}
        self._reserved: dict[str, tuple[Row, Line]] = {}
        self._held: dict[str, Held] = {}

    def tail(self, sequence: int, digest: str) -> Tail | None:
        found = self._tails.get(digest)
        return found if found is not None and found.sequence == sequence else None

    def read(self, entry: Entry) -> Tail:
        return self.keep(Tail(entry.sequence, entry.hash, entry.total, entry.answers, uses_of(entry)))

    def remember_reservation(self, row: Row, quanta: int, question: str) -> None:
        self._held[row.request] = Held(row.sequence, quanta)
        trim(self._held)
        if len(row.document) <= LONGEST:
            self._reserved[row.hash] = row, Line("reserve", quanta, question, None)
            trim(self._reserved)

    def find_held(self, request: str) -> Held | None:
        """The reservation that this process wrote last for a request. It may have been settled since."""
        return self._held.get(request)

    def line(self, row: Row) -> Line:
        """The entry in this row, checked."""
        known = self._reserved.get(row.hash)
        return known[1] if known is not None and known[0] == row else line_of(unseal(row))

    def keep(self, tail: Tail) -> Tail:
        self._tails[tail.hash] = tail
        trim(self._tails)
        return tail


def line_of(entry: Entry) -> Line:
    return Line(entry.kind, entry.quanta, canonical(entry.body.get("question")) if entry.kind == "reserve" else "", entry)


def uses_of(entry: Entry) -> tuple[str, ...]:
    """What the account had used once this entry was written."""
    found = entry.body.get("uses", ())
    return tuple(str(use) for use in found) if isinstance(found, list) else ()


def trim(remembered: dict[str, Any]) -> None:
    """Remove the older half of the entries once there are too many: one by one would search for the oldest each time."""
    if len(remembered) <= MOST:
        return
    with suppress(RuntimeError, KeyError):  # another thread may remove entries at the same time
        for name in list(islice(remembered, len(remembered) - MOST // 2)):
            del remembered[name]
