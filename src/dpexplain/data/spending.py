"""Reserve → run → settle: the only code that spends on private data, shared by explainers and releases.

A reservation commits the plan's worst case before a row is read. The plan then runs at a door that was built from that reservation, and what the
door counted is settled with the answer in one step. A crash in between leaves the reservation counted: it over-counts and never under-counts.
A plan that releases nothing runs without access to the rows, and is then reserved and settled in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic, TypeVar, cast

from dpexplain.data import PrivateData
from dpexplain.errors import BudgetExhausted, DpexplainError
from dpexplain.ledger import open_ledger
from dpexplain.ledger.port import Ledger, Request, Reservation, Settled, Settlement
from dpexplain.mechanisms.door import PlanResult, run_plans
from dpexplain.mechanisms.ports import Noise, Plan, Rows
from dpexplain.noise.secure import SecureNoise
from dpexplain.privacy.budget import USED_MODEL_ANSWERS, USED_PAPER_NOISE, USED_SEED, USED_UNPAID, Budget, Guarantee
from dpexplain.privacy.events import price

Result = TypeVar("Result")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class PlannedRequest(Generic[Result]):
    """A question with the plan of its answer. `body` is public and identifies it; `store` converts a result to the public part that the ledger stores.

    `keep` is called with a result that was stored: nothing else of it may outlive the request, because one payment covers one result only.
    """

    id: str
    body: dict[str, Any]
    plan: Plan[Result]
    store: Callable[[Result], dict[str, Any]]
    keep: Callable[[Result], None] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PaidRequest(Generic[Result]):
    """A request whose plan's worst case is reserved, and which has not run yet. `total` is everything spent on the data after the reservation."""

    request: PlannedRequest[Result]
    reservation: Reservation
    total: Guarantee


@dataclass(frozen=True, slots=True, eq=False)
class Bought:
    """A stored answer, or the refusal of one, and everything spent on the data at that moment."""

    outcome: Settled | BudgetExhausted
    total: Guarantee


@dataclass(frozen=True, slots=True, eq=False)
class Spending:
    """The ledger that pays for releases from `data`, and the source of their noise."""

    data: PrivateData
    ledger: Ledger
    noise: Noise
    private: bool = True
    uses: tuple[str, ...] = ()  # what the ledger stores of every request beside its price

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
        paper_noise: bool = False,
    ) -> Spending:
        """Open the ledger that pays and count it among those of `data`. Without `noise` the source is secure.

        `private=False` marks the data as no longer protected. `model_answers` says that answers of the model at public points are published
        beside noisy sums over rows. Noise from a seed can be drawn again by whoever knows it; `paper_noise` is noise by the paper's formulas.
        """
        opened = open_ledger(ledger, data.account(budget))
        seeded = not (noise is None or noise.secure)
        flags = {
            USED_SEED: seeded,
            USED_MODEL_ANSWERS: model_answers,
            USED_UNPAID: not private,
            USED_PAPER_NOISE: private and paper_noise,
        }
        uses = tuple(use for use, so in flags.items() if so)
        data.attach(opened, uses)
        return cls(data, opened, noise or SecureNoise(), private, uses)

    def reserve_many(self, requests: Sequence[PlannedRequest[Result]]) -> list[PaidRequest[Result] | Settled | DpexplainError]:
        """Commit the worst case of each plan, in one durable commit; the stored answer of an id that was answered before. A refusal does not stop
        the others."""
        self.data.require_readable()
        found = self.data.reserve_many(self.ledger, [self._request(one) for one in requests])
        total = self.data.spent
        pairs = zip(requests, found, strict=True)
        return [PaidRequest(one, got, total) if isinstance(got, Reservation) else got for one, got in pairs]

    def buy_in_order(
        self, requests: Sequence[PlannedRequest[Result]], *, past_refusals: bool = False
    ) -> tuple[list[Bought], DpexplainError | None]:
        """Reserve in order, up to the first refusal, which is returned; then run each plan and settle it before the next one runs.

        Every request that was paid for is answered, also after a refusal. `past_refusals` continues where the budget cannot pay for one request.
        Plans about local questions share one read of the rows; free requests that follow each other share one commit.
        """
        reserved: list[PaidRequest[Result] | Bought] = []
        stopped: DpexplainError | None = None
        for found in self._reserve_in_order(requests):
            if isinstance(found, DpexplainError) and not (past_refusals and isinstance(found, BudgetExhausted)):
                stopped = found
                break
            reserved.append(Bought(found, self.data.spent) if isinstance(found, BudgetExhausted) else found)
        ran = self._run([one for one in reserved if isinstance(one, PaidRequest)])
        return [next(ran) if isinstance(one, PaidRequest) else one for one in reserved], stopped

    def _reserve_in_order(
        self, requests: Sequence[PlannedRequest[Result]]
    ) -> Iterator[PaidRequest[Result] | Bought | DpexplainError]:
        """Reserve as the results are asked for: each priced request by itself, so that none is paid for after a refusal. Free ones are answered."""
        for group in in_runs(requests, self._is_free):
            try:
                found = self.record_free(group) if self._is_free(group[0]) else self.reserve_many(group)
            except DpexplainError as error:
                yield error
                continue
            total: Guarantee | None = None
            for one in found:
                if isinstance(one, Settled):
                    total = total or self.data.spent
                    yield Bought(one, total)
                else:
                    yield one

    def answer_each(self, requests: Sequence[PlannedRequest[Result]]) -> tuple[list[Settled | DpexplainError], Guarantee]:
        """Each request is answered or refused by itself, and what was spent on the data when all were reserved. Two durable commits, one if all are free."""
        if all(map(self._is_free, requests)):
            return self.record_free(requests), self.data.spent
        found = self.reserve_many(requests)
        paid = [one for one in found if isinstance(one, PaidRequest)]
        settled = iter(self._run_together(paid))
        done = [next(settled) if isinstance(one, PaidRequest) else one for one in found]
        return done, paid[0].total if paid else self.data.spent

    def _is_free(self, request: PlannedRequest[Result]) -> bool:
        return self.private and not request.plan.events

    def record_free(self, requests: Sequence[PlannedRequest[Result]]) -> list[Settled | DpexplainError]:
        """Answer requests that release nothing: without access to the rows, and with one durable commit for all. No answer leaves before it."""
        self.data.require_readable()
        ran = run_plans(cast(Rows, NoRows()), [(one.plan, 0) for one in requests], self.noise)
        settlements = [
            Settlement(one.id, done.events, one.store(done.value), self.uses) for one, done in zip(requests, ran, strict=True)
        ]
        return self.data.record_many(self.ledger, list(zip(map(self._request, requests), settlements, strict=True)))

    def _request(self, one: PlannedRequest[Result]) -> Request:
        return Request(one.id, one.body, one.plan.events, self.uses)

    def _run_together(self, paid: Sequence[PaidRequest[Result]]) -> list[Settled | DpexplainError]:
        """Run each plan at its own door, then settle all in one durable commit. No result leaves before that commit."""
        return self._settle(list(zip(paid, self._run_plans(paid), strict=True)))

    def _run(self, paid: Sequence[PaidRequest[Result]]) -> Iterator[Bought]:
        for one, done in zip(paid, self._run_plans(paid), strict=True):
            (settled,) = self._settle([(one, done)])
            if isinstance(settled, DpexplainError):
                raise settled
            cheaper = price(settled.events) < one.reservation.quanta
            yield Bought(settled, self.data.spent if cheaper else one.total)

    def _settle(self, ran: Sequence[tuple[PaidRequest[Result], PlanResult[Result]]]) -> list[Settled | DpexplainError]:
        """Store all results in one durable commit. Of a request that was stored before, the answer of then is returned."""
        settlements = [
            Settlement(one.reservation.request_id, done.events, one.request.store(done.value), self.uses) for one, done in ran
        ]
        settled = self.ledger.settle_many(settlements) if settlements else []
        for (one, done), found in zip(ran, settled, strict=True):
            if isinstance(found, Settled) and found.new and one.request.keep is not None:
                one.request.keep(done.value)
        return settled

    def _run_plans(self, paid: Sequence[PaidRequest[Result]]) -> Iterator[PlanResult[Result]]:
        plans = [(one.request.plan, one.reservation.quanta) for one in paid]
        return self.data.run_plans(plans, self.noise, private=self.private)


class NoRows:
    """What an answer gets instead of rows that it must not read."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(
            "an answer that costs nothing asked for rows. This is a bug in dpexplain: report it. Nothing was released"
        )


def in_runs(items: Sequence[T], joins: Callable[[T], bool]) -> Iterator[list[T]]:
    """The items in order, in lists: neighbours for which `joins` is true share a list, each other item has one of its own."""
    for joined, run in groupby(items, joins):
        together = list(run)
        yield from [together] if joined else ([one] for one in together)


def buy(
    data: PrivateData,
    budget: Budget,
    ledger: Ledger | str | None,
    noise: Noise | None,
    request: PlannedRequest[Any],
    *,
    model_answers: bool = False,
) -> Settled:
    """Open the ledger, then reserve, run and settle one request; the stored answer if this id was answered before. Raises the refusal."""
    bought, refusal = Spending.open(data, budget, ledger, noise, model_answers=model_answers).buy_in_order([request])
    if refusal is not None:
        raise refusal
    (one,) = bought
    return cast(Settled, one.outcome)
