"""What goes in and comes out, as OpenAPI describes it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Record = dict[str, Any] | str
RequestId = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9._:/-]+$")]


class Question(BaseModel):
    """One record to explain. Repeating `request_id` returns the same answer and spends nothing."""

    model_config = ConfigDict(extra="forbid")
    record: Record = Field(description="One value for each feature of /v1/domain; the text itself where that describes texts.")
    request_id: RequestId | None = Field(None, description="Your own name for this question; made up if left out.")


class Instances(BaseModel):
    """KServe V1. `id` makes a repeated call free: each instance is then the question `id/position`."""

    model_config = ConfigDict(extra="forbid")
    instances: list[Record] = Field(min_length=1)
    id: RequestId | None = None


class Statement(BaseModel):
    """A differential privacy guarantee."""

    epsilon: float
    delta: float
    mu: float
    relation: str
    unit: str | None
    rows_per_unit: int
    private: bool
    note: str
    statement: str


class Answer(BaseModel):
    """An explanation: one value for each encoded column, what it cost, what is guaranteed in total and what is left."""

    format: str
    version: int
    names: list[str]
    values: list[float]
    error: list[float] | None
    point: list[float]
    copied: bool
    cost: Statement
    guarantee: Statement
    request_id: str | None
    details: dict[str, Any]


class BudgetStatus(BaseModel):
    """Everything spent so far, and what is left; `remaining` is null where answers cost nothing."""

    spent: Statement
    remaining: Statement | None
    budget: dict[str, float] | None
    answers: int | None
    curve: list[tuple[int, float]] = Field(description="ε spent after so many answers, to draw.")
    promise: str


class Card(BaseModel):
    """What is public about the model and its data."""

    name: str
    title: str
    outcome: str
    description: str
    about: dict[str, Any]
    domain: dict[str, Any]
    names: list[str]
    role: str


class Detail(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str | None = None
