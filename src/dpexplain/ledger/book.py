"""The `Ledger` protocol over any store: reserve → settle as chained entries.

All decisions are taken inside the write transaction that records them, from what that transaction reads. A counted total is
carried by every entry, so reading the last one is reading the whole account. What this process has read or written itself is
recognised by its hash and not read again. A caller that is alone need not read at all: it decides from the end that it saw last, and its
entry is written on condition that this is still the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from math import inf
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
from dpexplain.ledger.account_page import NOTHING, Page, Posting, required_last, write_entry
from dpexplain.ledger.chain import (
    RESTORE,
    Row,
    canonical,
    damage_error,
    quote_text,
    total_of,
    unseal,
    utc_now,
)
from dpexplain.ledger.patience import waiting_until
from dpexplain.ledger.port import Account, Entry, Head, Request, Reservation, Settled, Settlement
from dpexplain.ledger.prepared import PreparedRequest, PreparedSettlement, attempt
from dpexplain.ledger.recent import Line, Recent, Tail
from dpexplain.ledger.store import Session, Store
from dpexplain.privacy.events import PrivacyEvent, event_from_dict, price
from dpexplain.privacy.filter import Filter

T = TypeVar("T")
R = TypeVar("R")

Fetch = Callable[[Row, Session], list[Row]]  # the rows after the given one

PAGE = 500
LONGEST_ID = 256


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
        self._seen = NOTHING
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

    def spent_by(self, dataset: str) -> int:
        """What another account of the same ledger has spent, in quanta; 0 where there is none. LedgerMismatch where it protects somebody else."""
        others = [one for one in Book.list_accounts(self._store) if one.account.dataset == dataset]
        if any(one.account.neighbours != self.account.neighbours for one in others):
            raise LedgerMismatch(
                f"the account of {dataset!r} has another relation or privacy unit, so what it spent cannot be added. Register the data as they were for it"
            )
        return sum(one.state().spent_quanta for one in others)

    def state(self) -> Filter:
        return self._filter(self._read(required_last))

    def head(self) -> Head:
        return self._read(required_last).head

    @property
    def seen(self) -> Head:
        return self._seen.head

    def reserve_many(self, requests: Sequence[Request]) -> list[Reservation | Settled | DpexplainError]:
        for request in requests:
            require_id("request id", request.id)
        asked = [attempt(PreparedRequest.of, request) for request in requests]  # texts are made before others have to wait
        self._step("before reserve")
        ids = [request.id for request in requests]
        if len(asked) == 1 and (alone := self._reserve_next(asked[0])):
            found: list[Reservation | Settled | DpexplainError] = [alone]
        else:
            found = self._write(lambda page: [outcome_of(self._reserve, page, one) for one in asked], ids)
        self._step("after reserve")
        return found

    def settle_many(self, settlements: Sequence[Settlement]) -> list[Settled | DpexplainError]:
        ran = [attempt(PreparedSettlement.of, one) for one in settlements]
        self._step("before settle")
        ids = [one.request_id for one in settlements]
        if len(ran) == 1 and (alone := self._settle_next(ran[0])):
            done: list[Settled | DpexplainError] = [alone]
        else:
            done = self._store_results(lambda page: [outcome_of(self._settle, page, one) for one in ran], ids)
        self._step("after settle")
        return done

    def record_many(self, answered: Sequence[tuple[Request, Settlement]]) -> list[Settled | DpexplainError]:
        for request, _ in answered:
            require_id("request id", request.id)
            require_free(request)
        pairs = [(attempt(PreparedRequest.of, one), attempt(PreparedSettlement.of, done)) for one, done in answered]
        self._step("before record")
        ids = [request.id for request, _ in answered]
        found = self._write(lambda page: [self._record(page, *pair) for pair in pairs], ids)
        self._step("after record")
        return found

    def reserve(self, request: Request) -> Reservation | Settled:
        require_id("request id", request.id)
        asked = PreparedRequest.of(request)
        self._step("before reserve")
        found = self._reserve_next(asked) or self._write(lambda page: self._reserve(page, asked), (asked.id,))
        self._step("after reserve")
        return found

    def settle(self, reservation: Reservation, events: tuple[PrivacyEvent, ...], answer: dict[str, Any]) -> Settled:
        ran = PreparedSettlement.of(Settlement(reservation.request_id, events, answer))
        self._step("before settle")
        done = self._settle_next(ran) or self._store_results(lambda page: self._settle(page, ran), (ran.id,))
        self._step("after settle")
        return done

    def settled(self, after: int = 0) -> Iterator[Settled]:
        dataset = self.account.dataset
        for row in self._stream(lambda last, session: session.answers(dataset, last.position or 0, PAGE), position=after):
            yield settled_of(unseal(row))

    def settled_with(self, part: str, after: int = 0) -> tuple[list[Settled], int]:
        found, dataset, text = [], self.account.dataset, f"{quote_text(part)}:"  # as it stands in every document that has it
        for row in self._stream(lambda last, session: session.answers(dataset, last.position or 0, PAGE), position=after):
            after = row.position or after
            if text in row.document:
                found.append(settled_of(unseal(row)))
        return [done for done in found if part in done.answer], after

    def totals(self, after: int = 0) -> list[int]:
        dataset = self.account.dataset
        rows = self._stream(lambda last, session: session.answers(dataset, last.position or 0, PAGE), position=after)
        return [total_of(row) for row in rows]

    def answer_count(self) -> int:
        return self._read(required_last).answers

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
            page.append(Posting("open", "", 0, 0, canonical(self.account.to_dict())[1:-1]))
        require_same_account(self.account, page.first_entry().body)

    def _require_account(self, page: Page) -> None:
        if page.last is None:
            raise LedgerMissing(
                f"the ledger has no account {page.dataset!r}. It is not created, because a new account would forget what was spent. "
                "Open the ledger that has it"
            )
        require_same_account(self.account, page.first_entry().body)

    def _reserve(self, page: Page, asked: PreparedRequest) -> Reservation | Settled:
        newest = page.newest(asked.id)
        require_same_question(asked, newest)
        if settled := settled_by(newest):
            return settled
        held = held_by(newest)
        if held is not None and asked.quanta <= held:
            return Reservation(asked.id, held)
        # A retry whose plan has become dearer raises its reservation to the new price.
        spent, more = self._filter(required_last(page)), asked.quanta - (held or 0)
        if not spent.fits(more):
            raise spent.refusal(more)
        row = page.append(asked.make_posting(spent.spent_quanta + more))
        self._recent.remember_reservation(row, asked.quanta, asked.question)
        self._step("in reserve")
        return Reservation(asked.id, asked.quanta)

    def _settle(self, page: Page, ran: PreparedSettlement) -> Settled:
        newest = page.newest(ran.id)
        if settled := settled_by(newest):
            return settled
        held = held_by(newest)
        if held is None:
            raise LedgerUnavailable(
                f"request {ran.id!r} has no reservation, because it was given back. Nothing was released. Ask again"
            )
        require_affordable(held, ran.quanta)
        total = required_last(page).total - held + ran.quanta
        row = page.append(ran.make_posting(total))
        self._step("in settle")
        return Settled(row.position or 0, ran.id, ran.events, ran.answer, total, new=True)

    def _reserve_next(self, asked: PreparedRequest | DpexplainError) -> Reservation | None:
        """Reserve as the next entry after the last one that this process has seen, if nobody has written since and the id is new.

        None with nothing written otherwise, and for what would be refused: a refusal is decided from what is stored.
        """
        last = self._seen
        if isinstance(asked, DpexplainError) or not self._filter(last).fits(asked.quanta):
            return None
        row = self._append_after(last, asked.make_posting(last.total + asked.quanta), None, "in reserve")
        if row is None:
            return None
        self._recent.remember_reservation(row, asked.quanta, asked.question)
        return Reservation(asked.id, asked.quanta)

    def _settle_next(self, ran: PreparedSettlement | DpexplainError) -> Settled | None:
        """Settle what this process has reserved as `_reserve_next` reserves; None with nothing written where that is not possible."""
        last, held = self._seen, None if isinstance(ran, DpexplainError) else self._recent.find_held(ran.id)
        if isinstance(ran, DpexplainError) or held is None or ran.quanta > held.quanta:
            return None
        total = last.total - held.quanta + ran.quanta
        row = self._append_after(last, ran.make_posting(total), held.sequence, "in settle")
        return None if row is None else Settled(row.position or 0, ran.id, ran.events, ran.answer, total, new=True)

    def _append_after(self, last: Tail, posting: Posting, newest: int | None, step: str) -> Row | None:
        """Write an entry by one statement. None, with nothing written, if `last` is not the end or `newest` not the request's last entry."""
        if last is NOTHING or not self._store.may_append():
            return None
        row, tail = write_entry(last, posting, self._clock())
        self._step(step)
        if not self._store.append_after(self.account.dataset, (last.sequence, last.hash), row, newest):
            return None
        self._see(self._recent.keep(tail))
        return row

    def _record(
        self, page: Page, asked: PreparedRequest | DpexplainError, ran: PreparedSettlement | DpexplainError
    ) -> Settled | DpexplainError:
        if isinstance(ran, DpexplainError):
            return ran
        found = outcome_of(self._reserve, page, asked)
        return outcome_of(self._settle, page, ran) if isinstance(found, Reservation) else found

    def _filter(self, last: Tail) -> Filter:
        return Filter(self.account.budget, self.account.neighbours, last.total, last.uses)

    def _read(self, work: Callable[[Page], T]) -> T:
        floor = self._seen
        return self._remember(*self._store.read(lambda session: self._turn(session, floor, work)))

    def _write(self, work: Callable[[Page], T], requests: Sequence[str] = ()) -> T:
        floor, expected = self._seen, [(self.account.dataset, request) for request in requests]
        return self._remember(*self._store.write(lambda session: self._turn(session, floor, work), expected))

    def _store_results(self, work: Callable[[Page], T], requests: Sequence[str]) -> T:
        """`_write` for what was drawn: it waits as long as the store does, also where its caller has waited before."""
        with waiting_until(inf):
            return self._write(work, requests)

    def _stream(self, fetch: Fetch, *, sequence: int = 0, position: int = 0) -> Iterator[Row]:
        """Rows page by page, so that a long history needs little memory and no long transaction."""
        last = Row(sequence, "", "", position, "", "")
        while rows := self._store.read(partial(fetch, last)):
            yield from rows
            last = rows[-1]

    def _turn(self, session: Session, floor: Tail, work: Callable[[Page], T]) -> tuple[Page, T]:
        page = Page(session, self.account.dataset, self._clock, self._recent)
        require_no_rollback(floor, page.last)
        return page, work(page)

    def _remember(self, page: Page, result: T) -> T:
        """Called after a commit: from now on the ledger must contain this entry."""
        if page.last is not None:
            self._see(page.last)
        return result

    def _see(self, last: Tail) -> None:
        if last.sequence >= self._seen.sequence:
            self._seen = last


def outcome_of(work: Callable[[Page, R], T], page: Page, about: R | DpexplainError) -> T | DpexplainError:
    """What `work` returns, or what it raises on purpose, which is always before it writes."""
    if isinstance(about, DpexplainError):
        return about
    try:
        return work(page, about)
    except DpexplainError as error:
        return error


def require_no_rollback(floor: Tail, last: Tail | None) -> None:
    """Raise LedgerCorrupt if the ledger is shorter than this process has seen it: an older copy was put in its place."""
    found = last or NOTHING
    if found.sequence < floor.sequence or (found.sequence == floor.sequence and found != floor):
        raise LedgerCorrupt(
            f"the ledger ended with entry {floor.sequence} and now ends with {found.sequence}: it was rolled back. {RESTORE}"
        )


def require_id(what: str, value: str) -> None:
    """Raise ParameterError unless the id is printable text of limited length, which every backend can store."""
    if not (isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable()):
        raise ParameterError(f"a {what} must be 1 to {LONGEST_ID} printable characters, got {value!r:.50}")


def require_free(request: Request) -> None:
    """Raise RuntimeError if an answer was computed before its price was reserved."""
    if price(request.events):
        raise RuntimeError("an answer with a price was computed before it was reserved. This is a bug in dpexplain: report it")


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


def require_same_question(asked: PreparedRequest, newest: list[Line]) -> None:
    """Raise RequestIdInUse if the id was used for another question. This also holds after a refund of an older ledger."""
    for line in newest:
        if line.kind == "reserve":
            if line.question == asked.question:
                return
            raise RequestIdInUse(f"request id {asked.id!r} was used for another question. Choose a new id for a new question")


def held_by(newest: list[Line]) -> int | None:
    """The quanta a request has reserved and not settled; None when it holds nothing."""
    return newest[0].quanta if newest and newest[0].kind == "reserve" else None


def settled_by(newest: list[Line]) -> Settled | None:
    entry = newest[0].entry if newest and newest[0].kind == "settle" else None
    return None if entry is None else settled_of(entry)


def require_affordable(held: int, quanta: int) -> None:
    """Raise RuntimeError if more ran than was reserved."""
    if not quanta <= held:
        raise RuntimeError(
            "a mechanism ran more than it had reserved. This is a bug in dpexplain: report it. Nothing was released"
        )


def settled_of(entry: Entry) -> Settled:
    """The answer that an entry stores."""
    try:
        events = tuple(event_from_dict(value) for value in entry.body["events"])
        return Settled(entry.answers, entry.request, events, entry.body["answer"], entry.total)
    except (KeyError, TypeError, ValueError):
        raise damage_error(entry.sequence, "is not an answer this version can read") from None
