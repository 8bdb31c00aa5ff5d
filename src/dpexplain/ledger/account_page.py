"""One account within one transaction, and the text of the entry that continues it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from dpexplain.errors import LedgerCorrupt
from dpexplain.ledger.chain import RESTORE, START, Row, canonical, damage_error, digest, quote_text, time_text, unseal
from dpexplain.ledger.port import Entry
from dpexplain.ledger.recent import Line, Recent, Tail
from dpexplain.ledger.store import Session

NOTHING = Tail(0, START, 0, 0)  # what the first entry continues


class Posting(NamedTuple):
    """What an entry states; `members` is the canonical text between the braces of its body, whose names sort before `uses`."""

    kind: str
    request: str
    quanta: int
    total: int
    members: str
    uses: tuple[str, ...] = ()


def write_entry(last: Tail, posting: Posting, time: datetime) -> tuple[Row, Tail]:
    """The row of a posting after the entry `last`, and the end that it makes."""
    kind, request, quanta, total, members, uses = posting
    carried = last.uses
    if uses or carried:  # as the total: reading the last entry is enough
        carried = tuple(sorted({*uses, *carried}))
        members = ",".join(filter(None, [members, f'"uses":{canonical(carried)}']))
    sequence, answers = last.sequence + 1, last.answers + (kind == "settle")
    document = (  # as `canonical` would write it
        f'{{"answers":{answers},"body":{{{members}}},"kind":"{kind}","previous":"{last.hash}","quanta":"{quanta}",'
        f'"request":{quote_text(request)},"sequence":{sequence},"time":"{time_text(time)}",'
        f'"total":"{total}"}}'
    )
    row = Row(sequence, kind, request, answers if kind == "settle" else None, document, digest(document))
    return row, Tail(sequence, row.hash, total, answers, carried)


class Page:
    """One account within one transaction."""

    def __init__(self, session: Session, dataset: str, clock: Callable[[], datetime], recent: Recent) -> None:
        self._session, self.dataset, self._clock, self._recent = session, dataset, clock, recent
        self.last = last_entry(session, dataset, recent)

    def first_entry(self) -> Entry:
        row = self._session.row(self.dataset, 1)
        if row is None:
            raise damage_error(1, "is missing")
        return unseal(row)

    def newest(self, request: str) -> list[Line]:
        return [self._recent.line(row) for row in self._session.newest(self.dataset, request)]

    def append(self, posting: Posting) -> Row:
        row, tail = write_entry(self.last or NOTHING, posting, self._clock())
        self._session.append(self.dataset, row)
        self.last = self._recent.keep(tail)
        return row


def last_entry(session: Session, dataset: str, recent: Recent) -> Tail | None:
    """The end that the mark points to, checked unless this process has checked it before; None for an account that does not exist."""
    mark = session.mark(dataset)
    if mark is None:
        if session.rows(dataset, 0, 1):
            raise LedgerCorrupt(f"the ledger has entries for {dataset!r} but its account is gone. {RESTORE}")
        return None
    known = recent.tail(*mark)
    if known is not None:
        return known
    row = session.row(dataset, mark[0])
    if row is None or row.hash != mark[1]:
        raise damage_error(mark[0], "is the last one that the account states, but it is missing or has another hash")
    return recent.read(unseal(row))


def required_last(page: Page) -> Tail:
    if page.last is None:
        raise LedgerCorrupt(f"the account {page.dataset!r} is gone from the ledger. {RESTORE}")
    return page.last
