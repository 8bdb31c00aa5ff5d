"""Requests and settlements as they will be written: priced and turned into text before a transaction begins, while nobody waits."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from dpexplain.errors import DpexplainError
from dpexplain.ledger.chain import canonical
from dpexplain.ledger.port import Request, Settlement
from dpexplain.privacy.events import PrivacyEvent, price

T = TypeVar("T")
R = TypeVar("R")


class PreparedRequest(NamedTuple):
    """A request as it will be written."""

    id: str
    quanta: int
    question: str
    events: str
    uses: tuple[str, ...]

    @classmethod
    def of(cls, request: Request) -> PreparedRequest:
        return cls(request.id, price(request.events), canonical(request.body), events_text(request.events), request.uses)


class PreparedSettlement(NamedTuple):
    """A settlement as it will be written."""

    id: str
    quanta: int
    events: tuple[PrivacyEvent, ...]
    events_text: str
    answer: dict[str, Any]
    answer_text: str
    uses: tuple[str, ...]

    @classmethod
    def of(cls, done: Settlement) -> PreparedSettlement:
        events, answer = done.events, done.answer
        return cls(done.request_id, price(events), events, events_text(events), answer, canonical(answer), done.uses)


def attempt(work: Callable[[R], T], about: R) -> T | DpexplainError:
    """What `work` returns, or what it raises on purpose."""
    try:
        return work(about)
    except DpexplainError as error:
        return error


def texts_of(body: dict[str, Any]) -> dict[str, str]:
    return {name: canonical(value) for name, value in body.items()}


@lru_cache(maxsize=256)  # as prices: the answers of one service have the same few events
def events_text(events: tuple[PrivacyEvent, ...]) -> str:
    return canonical([event.to_dict() for event in events])
