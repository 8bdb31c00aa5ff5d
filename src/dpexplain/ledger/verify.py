"""Verifies a ledger from its first entry to its last.

Found without help: an entry edited, removed, inserted or moved, a total that does not add up, an answer given twice or unpaid,
and entries cut off at the end while the account still points to them. Found with a head that was exported earlier and kept
elsewhere: also a history rewritten whole with fresh hashes, and a roll-back to an older copy, because neither contains that head.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dpexplain.errors import DpexplainError, LedgerCorrupt
from dpexplain.ledger.chain import KINDS, RESTORE, START, canonical, damage_error, head_of
from dpexplain.ledger.port import Account, Entry, Head, Ledger
from dpexplain.ledger.recent import uses_of
from dpexplain.privacy.events import event_from_dict, price


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """The result of a successful verification."""

    head: Head
    answers: int
    pending: int  # reservations neither settled nor given back: counted as spent
    uses: tuple[str, ...] = ()  # what requests ever used that guarantees have to mention, such as seeded noise


@dataclass(slots=True)
class Replay:
    """An account's state, recomputed from its entries one by one."""

    account: Account
    sequence: int = 0
    hash: str = START
    total: int = 0
    answers: int = 0
    held: dict[str, int] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)

    def follow(self, entry: Entry) -> None:
        """Take the next entry, or raise LedgerCorrupt."""
        self._require(entry.sequence == self.sequence + 1, entry, f"follows entry {self.sequence}: entries were removed or moved")
        self._require(entry.previous == self.hash, entry, "does not continue the entry before it")
        self._require(
            (entry.kind == "open") == (entry.sequence == 1) and entry.kind in KINDS,
            entry,
            "has a kind that is not allowed at this place",
        )
        try:
            {"open": self._open, "reserve": self._reserve, "settle": self._settle, "refund": self._refund}[entry.kind](entry)
        except (KeyError, TypeError, ValueError, DpexplainError) as error:
            raise error if isinstance(error, LedgerCorrupt) else damage_error(entry.sequence, "cannot be read") from None
        self._require((entry.total, entry.answers) == (self.total, self.answers), entry, "has a total that does not add up")
        self.sequence, self.hash = entry.sequence, entry.hash
        self.uses.update(uses_of(entry))

    def _open(self, entry: Entry) -> None:
        self._require(entry.body == self.account.to_dict(), entry, "describes another account")

    def _reserve(self, entry: Entry) -> None:
        question = canonical(entry.body["question"])
        self._require(entry.request not in self.done, entry, "reserves for a request that was answered before")
        self._require(self.questions.setdefault(entry.request, question) == question, entry, "changes a question")
        self._require_price(entry)
        held = self.held.get(entry.request)
        self._require(held is None or entry.quanta > held, entry, "lowers a reservation")
        self.total += entry.quanta - (held or 0)
        self.held[entry.request] = entry.quanta
        self._require(at_most(self.total, self.account.budget.quanta), entry, "passes the budget")

    def _settle(self, entry: Entry) -> None:
        self._require_price(entry)
        held = self._let_go(entry)
        self._require(0 <= entry.quanta <= held, entry, "pays more than was reserved")
        self.total += entry.quanta - held
        self.answers += 1
        self.done.add(entry.request)

    def _refund(self, entry: Entry) -> None:
        self._require(self._let_go(entry) == entry.quanta, entry, "gives back a sum that differs from the reserved one")
        self.total -= entry.quanta

    def _let_go(self, entry: Entry) -> int:
        self._require(entry.request in self.held, entry, "has no reservation")
        return self.held.pop(entry.request)

    def _require_price(self, entry: Entry) -> None:
        worth = price(tuple(event_from_dict(event) for event in entry.body["events"]))
        self._require(
            at_most(worth, entry.quanta) and at_most(entry.quanta, worth),
            entry,
            "states a price that differs from that of its events",
        )

    def _require(self, holds: bool, entry: Entry, what: str) -> None:
        if not holds:
            raise damage_error(entry.sequence, what)


def at_most(value: int, limit: int) -> bool:
    """value ≤ limit, up to one part in 2⁴⁰: another version's numerical libraries may differ in the last bits of μ."""
    return value <= limit + (limit >> 40)


def verify(ledger: Ledger, head: Head | None = None) -> VerificationReport:
    """Check every entry of one account, and that it contains `head`; raise LedgerCorrupt at the first that does not hold."""
    ledger.check()
    start = ledger.head()  # others may append meanwhile: the end must lie between the marks read before and after
    replay = Replay(ledger.account)
    wanted = [start] if head is None else [start, head]
    for entry in ledger.entries():
        replay.follow(entry)
        wanted = [mark for mark in wanted if mark != head_of(entry)]
    require_found(replay, wanted)
    require_end(replay, ledger.head())
    end = Head(replay.sequence, replay.hash, replay.total)
    return VerificationReport(end, replay.answers, len(replay.held), tuple(sorted(replay.uses)))


def require_found(replay: Replay, missing: list[Head]) -> None:
    for mark in missing:
        if mark.sequence > replay.sequence:
            what = f"has {replay.sequence} entries and had {mark.sequence} before: it was cut or rolled back to an older copy"
        else:
            what = f"has a different entry {mark.sequence} than before: its history was rewritten"
        raise LedgerCorrupt(f"the ledger of {replay.account.dataset!r} {what}. {RESTORE}")


def require_end(replay: Replay, end: Head) -> None:
    if end.sequence < replay.sequence:
        raise damage_error(end.sequence + 1, "and later ones lie beyond the end that the account states")
