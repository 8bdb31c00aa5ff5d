"""The `Ledger` protocol over any store: reserve → settle as chained entries.

All decisions are taken inside the write transaction that records them, from what that transaction reads. A counted total is
carried by every entry, so reading the last one is reading the whole account. What this process has read or written itself is
recognised by its hash and not read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from dpexplain.errors import (
    DpexplainError,
    LedgerCorrupt,
    LedgerMismatch,
    LedgerMissing,
    LedgerUnavailable,
    ParameterError,
    RequestIdInUse,
)
from dpexplain.ledger.chain import RESTORE, START, Row, canonical, damage_error, parse, seal, unseal, utc_now
from dpexplain.ledger.port import Account, Entry, Head, Request, Reservation, Settled, Settlement
from dpexplain.ledger.recent import Recent, Tail
from dpexplain.ledger.store import Session, Store
from dpexplain.privacy.events import PrivacyEvent, event_from_dict, price
from dpexplain.privacy.filter import Filter

T = TypeVar("T")
R = TypeVar("R")


Fetch = Callable[[Row, Session], list[Row]]  # the rows after the given one


PAGE = 500
LONGEST_ID = 256


class Page:
    """One account within one transaction, which is going to look up `requests`."""

    def __init__(
        self, session: Session, dataset: str, clock: Callable[[], datetime], recent: Recent, requests: Sequence[str] = ()
    ) -> None:
        self._session, self.dataset, self._clock, self._recent = session, dataset, clock, recent
        self.last = last_entry(session, dataset, recent, requests)

    def first_entry(self) -> Entry:
        row = self._session.row(self.dataset, 1)
        if row is None:
            raise damage_error(1, "is missing")
        return unseal(row)

    def newest(self, request: str) -> list[Entry]:
        return [self._recent.unseal(row) for row in self._session.newest(self.dataset, request)]

    def append(
        self, kind: str, request: str, *, quanta: int, total: int, body: dict[str, Any], uses: tuple[str, ...] = ()
    ) -> Row:
        last = self.last
        if carried := sorted({*uses, *(last.uses if last else ())}):  # as the total: reading the last entry is enough
            body = body | {"uses": carried}
        answers = (last.answers if last else 0) + (kind == "settle")
        time = self._clock().isoformat(timespec="microseconds")
        sequence, previous = (last.sequence + 1, last.hash) if last else (1, START)
        entry = Entry(sequence, time, kind, request, quanta, total, answers, body, previous, hash="")
        row = seal(entry)
        self._session.append(self.dataset, row)
        self.last = self._recent.remember_written(row, entry)
        return row


def last_entry(session: Session, dataset: str, recent: Recent, requests: Sequence[str] = ()) -> Tail | None:
    """The end that the mark points to, checked unless this process has checked it before; None for an account that does not exist."""
    mark = session.mark(dataset, requests)
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


def stored_accounts(session: Session) -> list[Account]:
    pages = [Page(session, dataset, utc_now, Recent()) for dataset in session.datasets()]
    return [account_of(page.first_entry()) for page in pages]


def account_of(entry: Entry) -> Account:
    try:
        return Account.from_dict(entry.body)
    except (KeyError, TypeError, ValueError):
        raise damage_error(entry.sequence, "is not an account this version can read") from None


class Book:
    """A ledger over a store. Use it through `open_ledger`, or a backend's own class."""

    def __init__(self, store: Store, account: Account, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._store, self.account, self._clock = store, account, clock
        self._seen = Head(0, START, 0)
        self._recent = Recent()
        self.identity = f"{store.address}#{account.dataset}"

    def open(self, *, may_create: bool = True) -> None:
        """Make the account, or check that it is the one that was made."""
        require_id("dataset", self.account.dataset)
        try:
            self._write(self._open if may_create else self._require_account)
        except BaseException:
            self.close()
            raise
        self.identity = f"{self._store.address}#{self.account.dataset}"  # a server returns its schema only now

    @classmethod
    def list_accounts(cls, store: Store) -> tuple[Book, ...]:
        """Every account in a store, with its stored parameters; nothing is written."""
        return tuple(cls(store, account) for account in store.read(stored_accounts))

    def state(self) -> Filter:
        return self._filter(self._read(required_last))

    def head(self) -> Head:
        return self._read(required_last).head

    def reserve_many(self, requests: Sequence[Request]) -> list[Reservation | Settled | DpexplainError]:
        for request in requests:
            require_id("request id", request.id)
        self._step("before reserve")
        ids = [request.id for request in requests]
        found = self._write(lambda page: [outcome_of(self._reserve, page, request) for request in requests], ids)
        self._step("after reserve")
        return found

    def settle_many(self, settlements: Sequence[Settlement]) -> list[Settled | DpexplainError]:
        self._step("before settle")
        ids = [one.request_id for one in settlements]
        done = self._write(lambda page: [outcome_of(self._settle, page, one) for one in settlements], ids)
        self._step("after settle")
        return done

    def reserve(self, request: Request) -> Reservation | Settled:
        (found,) = self.reserve_many([request])
        if isinstance(found, DpexplainError):
            raise found
        return found

    def settle(self, reservation: Reservation, events: tuple[PrivacyEvent, ...], answer: dict[str, Any]) -> Settled:
        (done,) = self.settle_many([Settlement(reservation.request_id, events, answer)])
        if isinstance(done, DpexplainError):
            raise done
        return done

    def settled(self, after: int = 0) -> Iterator[Settled]:
        dataset = self.account.dataset
        for row in self._stream(lambda last, session: session.answers(dataset, last.position or 0, PAGE), position=after):
            yield settled_of(unseal(row))

    def entries(self, after: int = 0) -> Iterator[Entry]:
        dataset = self.account.dataset
        for row in self._stream(lambda last, session: session.rows(dataset, last.sequence, PAGE), sequence=after):
            yield unseal(row)

    def require_writable(self, seconds: float) -> None:
        self._store.require_writable(self.account.dataset, seconds)

    def check(self) -> None:
        self._store.check()

    def close(self) -> None:
        self._store.close()

    def _step(self, name: str) -> None:
        """Does nothing. Crash tests override it to die between (`before`, `after`) or inside (`in`) transactions."""

    def _open(self, page: Page) -> None:
        if page.last is None:
            page.append("open", "", quanta=0, total=0, body=self.account.to_dict())
        require_same_account(self.account, page.first_entry().body)

    def _require_account(self, page: Page) -> None:
        if page.last is None:
            raise LedgerMissing(
                f"the ledger has no account {page.dataset!r}. It is not created, because a new account would forget what was spent. "
                "Open the ledger that has it"
            )
        require_same_account(self.account, page.first_entry().body)

    def _reserve(self, page: Page, request: Request) -> Reservation | Settled:
        quanta, newest = price(request.events), page.newest(request.id)
        require_same_question(request, newest)
        if newest and newest[0].kind == "settle":
            return settled_of(newest[0])
        held = held_by(newest)
        if held is not None and quanta <= held:
            return Reservation(request.id, held)
        # A retry whose plan has become dearer raises its reservation to the new price.
        total = self._filter(required_last(page)).spend_quanta(quanta - (held or 0)).spent_quanta
        body = {"question": request.body, "events": [event.to_dict() for event in request.events]}
        page.append("reserve", request.id, quanta=quanta, total=total, body=body, uses=request.uses)
        self._step("in reserve")
        return Reservation(request.id, quanta)

    def _settle(self, page: Page, done: Settlement) -> Settled:
        newest = page.newest(done.request_id)
        if newest and newest[0].kind == "settle":
            return settled_of(newest[0])
        held = held_by(newest)
        if held is None:
            raise LedgerUnavailable(
                f"request {done.request_id!r} has no reservation, because it was given back. Nothing was released. Ask again"
            )
        quanta = require_affordable(held, done.events)
        body = {"events": [event.to_dict() for event in done.events], "answer": done.answer}
        total = required_last(page).total - held + quanta
        row = page.append("settle", done.request_id, quanta=quanta, total=total, body=body, uses=done.uses)
        self._step("in settle")
        return settled_of(parse(row), done.events)

    def _filter(self, last: Tail) -> Filter:
        return Filter(self.account.budget, self.account.neighbours, last.total, last.uses)

    def _read(self, work: Callable[[Page], T]) -> T:
        floor = self._seen
        return self._remember(*self._store.read(lambda session: self._turn(session, floor, work)))

    def _write(self, work: Callable[[Page], T], requests: Sequence[str] = ()) -> T:
        floor = self._seen
        return self._remember(*self._store.write(lambda session: self._turn(session, floor, work, requests)))

    def _stream(self, fetch: Fetch, *, sequence: int = 0, position: int = 0) -> Iterator[Row]:
        """Rows page by page, so that a long history needs little memory and no long transaction."""
        last = Row(sequence, "", "", position, "", "")
        while rows := self._store.read(partial(fetch, last)):
            yield from rows
            last = rows[-1]

    def _turn(self, session: Session, floor: Head, work: Callable[[Page], T], requests: Sequence[str] = ()) -> tuple[Page, T]:
        page = Page(session, self.account.dataset, self._clock, self._recent, requests)
        require_no_rollback(floor, page.last)
        return page, work(page)

    def _remember(self, page: Page, result: T) -> T:
        """Called after a commit: from now on the ledger must contain this entry."""
        if page.last is not None and page.last.sequence >= self._seen.sequence:
            self._seen = page.last.head
        return result


def outcome_of(work: Callable[[Page, R], T], page: Page, about: R) -> T | DpexplainError:
    """What `work` returns, or what it raises on purpose, which is always before it writes."""
    try:
        return work(page, about)
    except DpexplainError as error:
        return error


def required_last(page: Page) -> Tail:
    if page.last is None:
        raise LedgerCorrupt(f"the account {page.dataset!r} is gone from the ledger. {RESTORE}")
    return page.last


def require_no_rollback(floor: Head, last: Tail | None) -> None:
    """Raise LedgerCorrupt if the ledger is shorter than this process has seen it: an older copy was put in its place."""
    found = last.head if last else Head(0, START, 0)
    if found.sequence < floor.sequence or (found.sequence == floor.sequence and found != floor):
        raise LedgerCorrupt(
            f"the ledger ended with entry {floor.sequence} and now ends with {found.sequence}: it was rolled back. {RESTORE}"
        )


def require_id(what: str, value: str) -> None:
    """Raise ParameterError unless the id is printable text of limited length, which every backend can store."""
    if not (isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable()):
        raise ParameterError(f"a {what} must be 1 to {LONGEST_ID} printable characters, got {value!r:.50}")


def require_same_account(account: Account, stored: dict[str, Any]) -> None:
    asked = account.to_dict()
    if "" in (asked["domain"], stored.get("domain")):  # opened before there was a domain, or to find one
        asked["domain"] = stored.get("domain")
    if different := [name for name in sorted(asked | stored) if asked.get(name) != stored.get(name)]:
        shown = "; ".join(f"{name}: {stored.get(name)!r} in the ledger, {asked.get(name)!r} now" for name in different)
        raise LedgerMismatch(
            f"the ledger's account {account.dataset!r} was made with other parameters ({shown}). "
            "Open it with the ledger's own, or use another ledger for other data."
        )


def require_same_question(request: Request, newest: list[Entry]) -> None:
    """Raise RequestIdInUse if the id was used for another question. This also holds after a refund of an older ledger."""
    reserved = next((entry for entry in newest if entry.kind == "reserve"), None)
    if reserved is not None and canonical(reserved.body.get("question")) != canonical(request.body):
        raise RequestIdInUse(f"request id {request.id!r} was used for another question. Choose a new id for a new question")


def held_by(newest: list[Entry]) -> int | None:
    """The quanta a request has reserved and not settled; None when it holds nothing."""
    return newest[0].quanta if newest and newest[0].kind == "reserve" else None


def require_affordable(held: int, events: tuple[PrivacyEvent, ...]) -> int:
    """What ran, in quanta; never more than was reserved."""
    quanta = price(events)
    if not quanta <= held:
        raise RuntimeError(
            "a mechanism ran more than it had reserved. This is a bug in dpexplain: report it. Nothing was released"
        )
    return quanta


def settled_of(entry: Entry, ran: tuple[PrivacyEvent, ...] | None = None) -> Settled:
    """The answer that an entry stores. Events are read from it, unless those that `ran` were written a moment ago."""
    try:
        events = tuple(event_from_dict(value) for value in entry.body["events"]) if ran is None else ran
        return Settled(entry.answers, entry.request, events, entry.body["answer"], entry.total)
    except (KeyError, TypeError, ValueError):
        raise damage_error(entry.sequence, "is not an answer this version can read") from None
