"""Requests and settlements as they will be written: priced and turned into text before a transaction begins, while nobody waits."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from dpexplain.errors import DpexplainError
from dpexplain.ledger.chain import canonical, copy_as_stored
from dpexplain.ledger.port import Request, Settlement
from dpexplain.privacy.events import PrivacyEvent, price

T = TypeVar("T")
R = TypeVar("R")


class PreparedRequest(NamedTuple):
    """A request as it will be written; `members` is the text between the braces of its entry's body."""

    id: str
    quanta: int
    question: str
    members: str
    uses: tuple[str, ...]

    @classmethod
    def of(cls, request: Request) -> PreparedRequest:
        events, question = request.events, canonical(request.body)
        return cls(request.id, price(events), question, f'"events":{events_text(events)},"question":{question}', request.uses)


class PreparedSettlement(NamedTuple):
    """A settlement as it will be written; `answer` is what would be read back, and no longer the caller's own."""

    id: str
    quanta: int
    events: tuple[PrivacyEvent, ...]
    answer: dict[str, Any]
    members: str
    uses: tuple[str, ...]

    @classmethod
    def of(cls, done: Settlement) -> PreparedSettlement:
        events, text = done.events, canonical(done.answer)
        members = f'"answer":{text},"events":{events_text(events)}'
        return cls(done.request_id, price(events), events, copy_as_stored(done.answer, text), members, done.uses)


def attempt(work: Callable[[R], T], about: R) -> T | DpexplainError:
    """What `work` returns, or what it raises on purpose."""
    try:
        return work(about)
    except DpexplainError as error:
        return error


@lru_cache(maxsize=256)  # as prices: the answers of one service have the same few events
def events_text(events: tuple[PrivacyEvent, ...]) -> str:
    return canonical([event.to_dict() for event in events])
