"""Errors as RFC 9457 problem details. Their content is public: the question, the domain, the budget; never a row, a path or a trace."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from dpexplain.errors import (
    BudgetExhausted,
    DpexplainError,
    InputError,
    IntegrityError,
    LedgerUnavailable,
    QueryError,
    RequestIdInUse,
    RowsUnavailable,
)

TYPE = "urn:dpexplain:problem:"
TITLES = {
    400: ("bad-request", "The request cannot be read"),
    401: ("unauthorised", "A valid API key is needed"),
    403: ("forbidden", "This key may not do that"),
    404: ("not-found", "There is nothing here"),
    405: ("method-not-allowed", "This address takes other methods"),
    413: ("too-large", "The request is too large"),
    422: ("invalid-request", "The request does not have the documented shape"),
    429: ("too-many-requests", "Too many requests"),
    500: ("internal-error", "Something went wrong here"),
    503: ("unavailable", "Not able to answer now"),
}

PYTHON = (
    (", or pass clip=True to ask about the nearest one instead. The answer will say so", ""),
    (', or pass extra="ignore"', ""),
    ("must be a dict", "must be an object"),
    ("Pass a dict", "Send an object"),
)


@dataclass
class Problem(Exception):
    """An error raised anywhere in a request, which becomes the response."""

    status: int
    detail: str = ""
    kind: str = ""
    title: str = ""
    more: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def response(self) -> Response:
        kind, title = TITLES.get(self.status, ("error", "The request failed"))
        body = {"type": TYPE + (self.kind or kind), "title": self.title or title, "status": self.status, **self.more}
        if self.detail:
            body["detail"] = self.detail
        text = json.dumps(body, ensure_ascii=True, allow_nan=False)  # ASCII: lone surrogates in a question stay escapes
        return Response(text, self.status, self.headers, media_type="application/problem+json")


def problem_of(error: DpexplainError) -> Problem:
    """The part of a library error that a caller may see."""
    if isinstance(error, BudgetExhausted):
        left = {"requested": error.requested.to_dict(), "remaining": error.remaining.to_dict()}
        return Problem(403, str(error), "budget-exhausted", "The privacy budget does not allow this answer", left)
    if isinstance(error, QueryError):
        return Problem(422, _for_callers(str(error)), "record-not-in-domain", "The record does not fit the domain")
    if isinstance(error, RequestIdInUse):
        return Problem(409, str(error), "request-id-in-use", "This request id stands for another question")
    if isinstance(error, InputError):
        return Problem(422, str(error), "cannot-be-answered", "This question cannot be answered as the service is set up")
    if isinstance(error, LedgerUnavailable):
        text = "Spending cannot be written down, so nothing was released. Ask again with the same request_id."
        return Problem(503, text, "ledger-unavailable", "The ledger cannot be reached", headers={"Retry-After": "5"})
    if isinstance(error, RowsUnavailable):
        text = (
            "The private rows cannot be read as they were registered. Their owner has to look after them; nothing was released."
        )
        return Problem(503, text, "rows-unavailable", "The private rows cannot be read")
    if isinstance(error, IntegrityError):
        return Problem(
            503, "The ledger needs its owner's attention; nothing was released.", "ledger-damaged", "The ledger is damaged"
        )
    return Problem(500)


def _for_callers(message: str) -> str:
    """The message without what only Python's functions take."""
    for python, said in PYTHON:
        message = message.replace(python, said)
    return message


async def answer_problem(_: Request, error: Exception) -> Response:
    return error.response() if isinstance(error, Problem) else Problem(500).response()


async def answer_library(request: Request, error: Exception) -> Response:
    """What is wrong here and not with the question goes to the owner's log. Those messages quote no row."""
    problem = problem_of(error) if isinstance(error, DpexplainError) else Problem(500)
    if problem.status == 503:
        request.state.log["why"] = str(error)
    return problem.response()


async def answer_validation(_: Request, error: Exception) -> Response:
    """The place and the kind of each mistake, without the values that were sent."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    where = [{"at": "/".join(map(str, one["loc"])), "why": str(one["msg"])} for one in found[:20]]
    return Problem(422, more={"errors": where}).response()


async def answer_http(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return Problem(500).response()
    detail = error.detail if error.status_code in (400, 413) else ""
    return Problem(error.status_code, detail, headers=dict(error.headers or {})).response()


async def answer_unexpected(_: Request, __: Exception) -> Response:
    return Problem(500, "It was logged. If an answer was under way, ask again with the same request_id.").response()
