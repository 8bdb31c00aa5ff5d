"""Reads a request's key and body without FastAPI, for the endpoint that is asked most (`shortcut.py`)."""

from __future__ import annotations

from typing import TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

B = TypeVar("B", bound=BaseModel)


def bearer_of(request: Request) -> str | None:
    """The key in `Authorization: Bearer …`; None where there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else None


def parse_body(kind: type[B], request: Request, body: bytes) -> B:
    """The body as an object of this kind; RequestValidationError, as FastAPI raises it, for anything else."""
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent != "application/json" and not (sent.startswith("application/") and sent.endswith("+json")):
        raise RequestValidationError(
            [{"loc": ("header", "content-type"), "msg": "it must be application/json", "type": "value_error"}]
        )
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in found]) from None
