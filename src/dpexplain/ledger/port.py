"""The interface of ledgers, which store what was spent and answered, durably and linearisably.

The order of events is the guarantee (SPEC §5, `proofs/filter.md`):

    reserve   the full planned price is committed before a row is read or noise is drawn, or the request is refused;
    execute   rows are read and noise is drawn, outside the ledger;
    settle    the answer and what really ran are committed in one step; only then does the answer leave.

An answer that costs nothing reads no row, so it is reserved and settled in one step.

A crash in between leaves the reservation counted. Asking again with the same request id continues that reservation, or
returns the answer that was stored: one request id has one answer for ever and is paid for once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dpexplain.errors import DpexplainError
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.events import PrivacyEvent
from dpexplain.privacy.filter import Filter
from dpexplain.privacy.relation import Neighbours


@dataclass(frozen=True, slots=True)
class Account:
    """What a ledger is about; all of it public. Opening a ledger with another account is refused."""

    dataset: str
    domain: str  # fingerprint of the public domain
    budget: Budget
    neighbours: Neighbours

    def to_dict(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "domain": self.domain,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            **self.neighbours.to_dict(),
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Account:
        budget = Budget(value["epsilon"], value["delta"])
        return cls(value["dataset"], value["domain"], budget, Neighbours.from_dict(value))


@dataclass(frozen=True, slots=True)
class Request:
    """A question and the most its answer may cost. `body` is public and identifies the question.

    `uses` names what guarantees have to mention beside the price, for as long as the account exists: `privacy.budget.USED_SEED`, for example.
    """

    id: str
    body: dict[str, Any]
    events: tuple[PrivacyEvent, ...]
    uses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reservation:
    """A committed promise to pay at most `quanta`."""

    request_id: str
    quanta: int


@dataclass(frozen=True, slots=True)
class Settlement:
    """What ran for a reserved request, and its answer."""

    request_id: str
    events: tuple[PrivacyEvent, ...]
    answer: dict[str, Any]
    uses: tuple[str, ...] = ()  # as in Request: another process may have reserved


@dataclass(frozen=True, slots=True)
class Settled:
    """A stored answer: `position` in the order of settlement, what ran, and what had been spent once it was paid.

    `new` says that this call has stored it. Else another run of the same request did, and what this one has drawn must not be used.
    """

    position: int
    request_id: str
    events: tuple[PrivacyEvent, ...]
    answer: dict[str, Any]
    spent_quanta: int
    new: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a ledger. `quanta` is the price this line states, `total` everything counted once it was written.

    Kinds: `open` (the account), `reserve`, `settle`; older ledgers may hold `refund`, which is read and no longer written.
    `sequence` orders; `time` only informs, clocks may go back.
    """

    sequence: int
    time: str
    kind: str
    request: str
    quanta: int
    total: int
    answers: int  # settled so far, this line included
    body: dict[str, Any]
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a ledger at one moment. Kept somewhere else, it is the anchor that exposes a roll-back to an older copy."""

    sequence: int
    hash: str
    total: int  # quanta counted at that moment


class Ledger(Protocol):
    """Durable record of spending and answers. All methods are safe to call from several threads and processes."""

    @property
    def account(self) -> Account: ...

    @property
    def identity(self) -> str:
        """Two handles with the same identity are one budget."""
        ...

    def state(self) -> Filter:
        """Everything reserved or settled so far, and what requests ever used, by any process; read afresh."""
        ...

    def reserve(self, request: Request) -> Reservation | Settled:
        """Commit the request's price, or raise BudgetExhausted; a known id gives its reservation or its answer."""
        ...

    def settle(self, reservation: Reservation, events: tuple[PrivacyEvent, ...], answer: dict[str, Any]) -> Settled:
        """Store the answer and replace the reserved price by that of what ran (never more); the first to settle wins."""
        ...

    def reserve_many(self, requests: Sequence[Request]) -> list[Reservation | Settled | DpexplainError]:
        """`reserve` for each, in order, in one durable commit; a refusal takes its place in the list and does not stop the others."""
        ...

    def settle_many(self, settlements: Sequence[Settlement]) -> list[Settled | DpexplainError]:
        """`settle` for each, in order, in one durable commit."""
        ...

    def record_many(self, answered: Sequence[tuple[Request, Settlement]]) -> list[Settled | DpexplainError]:
        """`reserve` and `settle` for each, in order, in one durable commit: answers that cost nothing and were computed without rows."""
        ...

    def settled(self, after: int = 0) -> Iterator[Settled]:
        """Stored answers in order, those with `position > after`."""
        ...

    def settled_with(self, part: str, after: int = 0) -> tuple[list[Settled], int]:
        """Those of `settled` whose answer has a member of this name, and the position of the last answer of any kind, or `after`.

        Other answers are passed over unread: many can follow one that has it.
        """
        ...

    def totals(self, after: int = 0) -> list[int]:
        """The `spent_quanta` of those of `settled`, whose answers are checked and not parsed."""
        ...

    def answer_count(self) -> int:
        """How many answers are stored, by any process: read from the last entry alone."""
        ...

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """All entries in order, those with `sequence > after`; each is checked against its hash."""
        ...

    def head(self) -> Head:
        """The last entry's number, hash and running total, read afresh."""
        ...

    @property
    def seen(self) -> Head:
        """The end that this process has seen last, without reading anything: the ledger must contain it from then on."""
        ...

    def require_writable(self, seconds: float) -> None:
        """Raise LedgerUnavailable if spending could not be written down within `seconds`; the ledger is not changed."""
        ...

    def check(self) -> None:
        """Raise LedgerCorrupt if the storage finds its own structures damaged."""
        ...

    def close(self) -> None:
        """Close connections. The next call opens them again."""
        ...
