"""One cap over several ledgers: everything they spend on one data set together stays within it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import TypeVar

from dpexplain.errors import BudgetExhausted, DpexplainError
from dpexplain.ledger.port import Ledger, Request, Reservation, Settled, Settlement
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.events import price
from dpexplain.privacy.filter import Filter
from dpexplain.privacy.relation import Neighbours

T = TypeVar("T")
R = TypeVar("R")


class Cap:
    """The most that may ever be released from one data set, whichever ledgers pay.

    `spent` reads the total of all ledgers, in quanta. Checking it and reserving are one step for the threads of this process. Processes that
    spend on different ledgers see each other's spending only after it is committed: give them one ledger, whose own budget is exact.
    """

    def __init__(self, budget: Budget, neighbours: Neighbours, spent: Callable[[], int]) -> None:
        self._budget, self._neighbours, self._spent = budget, neighbours, spent
        self._lock = RLock()

    @property
    def state(self) -> Filter:
        """What all ledgers have spent of the cap, read afresh."""
        return Filter(self._budget, self._neighbours, self._spent())

    def reserve_many(self, ledger: Ledger, requests: Sequence[Request]) -> list[Reservation | Settled | DpexplainError]:
        """`ledger.reserve_many` for the requests that the cap can pay for; the others are refused and nothing is written for them."""
        return self._admit(ledger, requests, requests, ledger.reserve_many)

    def record_many(self, ledger: Ledger, answered: Sequence[tuple[Request, Settlement]]) -> list[Settled | DpexplainError]:
        """`ledger.record_many`, in one commit too. Answers that cost nothing are refused only where the cap is passed already."""
        return self._admit(ledger, [request for request, _ in answered], answered, ledger.record_many)

    def _admit(
        self, ledger: Ledger, requests: Sequence[Request], items: Sequence[T], write: Callable[[Sequence[T]], list[R]]
    ) -> list[R | BudgetExhausted]:
        """Write those of the items whose request the cap can pay for, together; the others are refused."""
        with self._lock:
            refusals = self._refusals(ledger, requests)
            admitted = [one for i, one in enumerate(items) if i not in refusals]
            found = iter(write(admitted) if admitted else ())
            return [refusals[i] if i in refusals else next(found) for i in range(len(items))]

    def _refusals(self, ledger: Ledger, requests: Sequence[Request]) -> dict[int, BudgetExhausted]:
        """The positions of the requests that would exceed the cap, each with its refusal."""
        state, refusals = self.state, dict[int, BudgetExhausted]()
        for i, request in enumerate(requests):
            quanta = price(request.events)
            try:
                state = state.spend_quanta(quanta)
            except BudgetExhausted:
                extra = _uncounted_price(ledger, request.id, quanta)
                try:
                    state = state.spend_quanta(extra)
                except BudgetExhausted:
                    refusals[i] = state.refusal(extra, "the data set's cap")
        return refusals


def _uncounted_price(ledger: Ledger, request_id: str, quanta: int) -> int:
    """The part of a price that `ledger` does not count yet: a known request id is paid for once."""
    for entry in reversed(list(ledger.entries())):
        if entry.request == request_id:
            return 0 if entry.kind == "settle" else max(quanta - entry.quanta, 0) if entry.kind == "reserve" else quanta
    return quanta
