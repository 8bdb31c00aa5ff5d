"""Requests and settlements as they will be written: priced and turned into text before a transaction begins, while nobody waits."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from dpexplain.errors import DpexplainError
from dpexplain.ledger.account_page import Posting
from dpexplain.ledger.chain import canonical, text_and_copy
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
        quanta, events = price_and_text(request.events)
        question = canonical(request.body)
        return cls(request.id, quanta, question, f'"events":{events},"question":{question}', request.uses)

    def make_posting(self, total: int) -> Posting:
        return Posting("reserve", self.id, self.quanta, total, self.members, self.uses)


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
        quanta, events = price_and_text(done.events)
        text, answer = text_and_copy(done.answer)
        return cls(done.request_id, quanta, done.events, answer, f'"answer":{text},"events":{events}', done.uses)

    def make_posting(self, total: int) -> Posting:
        return Posting("settle", self.id, self.quanta, total, self.members, self.uses)


def attempt(work: Callable[[R], T], about: R) -> T | DpexplainError:
    """What `work` returns, or what it raises on purpose."""
    try:
        return work(about)
    except DpexplainError as error:
        return error


@lru_cache(maxsize=256)  # the answers of one service have the same few events
def price_and_text(events: tuple[PrivacyEvent, ...]) -> tuple[int, str]:
    return price(events), canonical([event.to_dict() for event in events])
