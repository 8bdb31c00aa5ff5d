"""Reserve → run → settle: the only code that spends on private data, shared by explainers and releases.

A reservation commits the plan's worst case before a row is read. The plan then runs at a door that was built from that reservation, and what the
door counted is settled with the answer in one step. A crash in between leaves the reservation counted: it over-counts and never under-counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dpexplain.data import PrivateData
from dpexplain.errors import DpexplainError
from dpexplain.ledger import open_ledger
from dpexplain.ledger.port import Ledger, Request, Reservation, Settled, Settlement
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.ports import Noise, Plan
from dpexplain.noise.secure import SecureNoise
from dpexplain.privacy.budget import Budget

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class Paid(Generic[Result]):
    """A plan whose worst case is reserved and that has not run yet."""

    plan: Plan[Result]
    reservation: Reservation


@dataclass(frozen=True, slots=True, eq=False)
class Spending:
    """The ledger that pays for releases from `data`, and the source of their noise."""

    data: PrivateData
    ledger: Ledger
    noise: Noise
    private: bool = True

    @classmethod
    def open(
        cls,
        data: PrivateData,
        budget: Budget,
        ledger: Ledger | str | None,
        noise: Noise | None,
        *,
        private: bool = True,
        model_answers: bool = False,
    ) -> Spending:
        """Open the ledger that pays and count it among those of `data`. Without `noise` the source is secure. The flags are those of `attach`."""
        opened = open_ledger(ledger, data.account(budget))
        data.attach(opened, private=private, model_answers=model_answers, seeded=not (noise is None or noise.secure))
        return cls(data, opened, noise or SecureNoise(), private)

    def reserve(self, request_id: str, body: dict[str, Any], plan: Plan[Result]) -> Paid[Result] | Settled:
        """Commit the plan's worst case, or raise BudgetExhausted; the stored answer if this id was answered before."""
        (reserved,) = self.reserve_many([(request_id, body, plan)])
        if isinstance(reserved, DpexplainError):
            raise reserved
        return reserved

    def reserve_many(
        self, asked: Sequence[tuple[str, dict[str, Any], Plan[Result]]]
    ) -> list[Paid[Result] | Settled | DpexplainError]:
        """`reserve` for each request id, question and plan, in one durable commit; a refusal does not stop the others."""
        self.data.require_readable()
        found = self.data.reserve_many(self.ledger, [Request(name, body, plan.events) for name, body, plan in asked])
        return [Paid(plan, one) if isinstance(one, Reservation) else one for (_, _, plan), one in zip(asked, found, strict=True)]

    def run_together(
        self, paid: Sequence[Paid[Result]], stored: Callable[[Paid[Result], Result], dict[str, Any]]
    ) -> list[Settled | DpexplainError]:
        """Run each plan at its own door, then settle all in one durable commit. No result leaves before that commit."""
        settlements = []
        for one, door in zip(paid, self._doors(paid), strict=True):
            result = one.plan.run(door)
            settlements.append(Settlement(one.reservation.request_id, door.events, stored(one, result)))
        return self.ledger.settle_many(settlements) if settlements else []

    def run(
        self, paid: Sequence[Paid[Result]], stored: Callable[[Paid[Result], Result], dict[str, Any]]
    ) -> Iterator[tuple[Result, Settled]]:
        """Run each plan at its own door and settle it before the next one runs. `stored` returns the public part of a result that the ledger stores.

        Plans about local questions share one read of the rows.
        """
        for one, door in zip(paid, self._doors(paid), strict=True):
            result = one.plan.run(door)
            yield result, self.ledger.settle(one.reservation, door.events, stored(one, result))

    def _doors(self, paid: Sequence[Paid[Result]]) -> list[Door]:
        return self.data.open_doors([(one.plan, one.reservation.quanta) for one in paid], self.noise, private=self.private)
