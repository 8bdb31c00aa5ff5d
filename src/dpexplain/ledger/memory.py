"""A ledger that lives as long as the process: for notebooks and tests. Nothing survives a restart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from threading import RLock
from typing import Any

from dpexplain.errors import InputError
from dpexplain.ledger.port import Account, Request, Reservation, Settled
from dpexplain.privacy.events import PrivacyEvent, price
from dpexplain.privacy.filter import Filter

_numbers = count(1)


class MemoryLedger:
    """The `Ledger` protocol over plain dictionaries and one lock."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._identity = f"memory:{next(_numbers)}"
        self._lock = RLock()
        self._filter = Filter(account.budget, account.neighbours)
        self._bodies: dict[str, dict[str, Any]] = {}
        self._reserved: dict[str, Reservation] = {}
        self._settled: dict[str, Settled] = {}

    @property
    def account(self) -> Account:
        return self._account

    @property
    def identity(self) -> str:
        return self._identity

    def state(self) -> Filter:
        return self._filter

    def reserve(self, request: Request) -> Reservation | Settled:
        with self._lock:
            known = self._settled.get(request.id) or self._reserved.get(request.id)
            if known is not None:
                require_same_question(request, self._bodies[request.id])
                return known
            quanta = price(request.events)
            self._filter = self._filter.spend_quanta(quanta)
            self._bodies[request.id] = request.body
            self._reserved[request.id] = Reservation(request.id, quanta)
            return self._reserved[request.id]

    def settle(self, reservation: Reservation, events: tuple[PrivacyEvent, ...], answer: dict[str, Any]) -> Settled:
        with self._lock:
            if reservation.request_id in self._settled:
                return self._settled[reservation.request_id]
            quanta = require_affordable(reservation, events)
            self._filter = Filter(
                self._account.budget, self._account.neighbours, self._filter.spent_quanta - reservation.quanta + quanta
            )
            del self._reserved[reservation.request_id]
            done = Settled(len(self._settled) + 1, reservation.request_id, events, answer, self._filter.spent_quanta)
            self._settled[reservation.request_id] = done
            return done

    def refund(self, reservation: Reservation) -> None:
        with self._lock:
            if self._reserved.pop(reservation.request_id, None) is None:
                return
            del self._bodies[reservation.request_id]
            left = self._filter.spent_quanta - reservation.quanta
            self._filter = Filter(self._account.budget, self._account.neighbours, left)

    def settled(self, after: int = 0) -> Iterator[Settled]:
        with self._lock:
            return iter([done for done in self._settled.values() if done.position > after])


def require_same_question(request: Request, stored: dict[str, Any]) -> None:
    """One request id stands for one question."""
    if request.body != stored:
        raise InputError(f"request id {request.id!r} was used for another question: choose a new id for a new question")


def require_affordable(reservation: Reservation, events: tuple[PrivacyEvent, ...]) -> int:
    """What ran, in quanta; never more than was reserved."""
    quanta = price(events)
    if not quanta <= reservation.quanta:
        raise RuntimeError("a mechanism ran more than it had reserved: this is a bug in dpexplain, and nothing was released")
    return quanta
