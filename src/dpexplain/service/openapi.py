"""The OpenAPI description of a running service: problems as they are sent, and records as its own domain has them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.security.base import SecurityBase
from pydantic import BaseModel

from dpexplain.domain import DomainLike
from dpexplain.service.shapes import ExplainRequest, Instances

REFERENCE = "#/components/schemas/"
PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Detail"}}}


def describe(app: FastAPI, domain: DomainLike) -> None:
    """Make `/openapi.json` describe the records and answers of this service."""
    plain = app.openapi

    def describe_api() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = with_records(with_problems(plain()), record_schema(domain))
        return app.openapi_schema

    app.openapi = describe_api  # type: ignore[method-assign]


def with_problems(description: dict[str, Any]) -> dict[str, Any]:
    """Every error is a problem document (RFC 9457), FastAPI's own validation errors included."""
    for path in description["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                if status[0] in "45":
                    response["content"] = PROBLEM
    for unused in ("HTTPValidationError", "ValidationError"):
        description["components"]["schemas"].pop(unused, None)
    return description


def request_body_of(kind: type[BaseModel], security: SecurityBase) -> dict[str, Any]:
    """The request body and security of an endpoint that reads both itself, as FastAPI would derive them from its signature."""
    content = {"application/json": {"schema": {"$ref": f"{REFERENCE}{kind.__name__}"}}}
    return {"requestBody": {"required": True, "content": content}, "security": [{security.scheme_name: []}]}


def with_records(description: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    schemas = description["components"]["schemas"]
    schemas |= {kind.__name__: kind.model_json_schema() for kind in (ExplainRequest, Instances)}
    schemas["Record"] = record
    reference = {"$ref": "#/components/schemas/Record"}
    schemas["ExplainRequest"]["properties"]["record"] = reference
    schemas["Instances"]["properties"]["instances"]["items"] = reference
    return description


def record_schema(domain: DomainLike) -> dict[str, Any]:
    """What a record looks like: one value for each column of a table, or a text itself."""
    named = {"title": "Record", "description": "One record to explain, as /v1/domain describes it."}
    if domain.to_dict().get("kind") == "text":
        return {**named, "type": "string"}
    properties: dict[str, Any] = {name: {} for name in domain.columns}
    return {**named, "type": "object", "properties": properties, "minProperties": 1}
