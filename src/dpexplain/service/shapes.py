"""Request and response bodies, as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Record = dict[str, Any] | str
RequestId = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9._:/-]+$")]


class ExplainRequest(BaseModel):
    """One record to explain. Repeating `request_id` returns the same answer and spends nothing."""

    model_config = ConfigDict(extra="forbid")
    record: Record = Field(description="One value for each feature of /v1/domain; the text itself where that describes texts.")
    request_id: RequestId | None = Field(None, description="Your own name for this question; made up if left out.")
    target: str | None = Field(None, description="Which class, or model, to explain: one of /v1/domain's targets.")


class Instances(BaseModel):
    """KServe V1. `id` makes a repeated call free: each instance is then the question `id/position`."""

    model_config = ConfigDict(extra="forbid")
    instances: list[Record] = Field(min_length=1)
    id: RequestId | None = None
    target: str | None = None


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
    model_answers: bool = False
    statement: str


class Scale(BaseModel):
    """The units of answers: a label y in [-1, 1] stands for low + (y + 1)/2 (high - low)."""

    kind: str
    low: float
    high: float


class Added(BaseModel):
    """What each feature's value adds, compared with what `average` names, in the answer's own units: base + sum(values) = answer."""

    format: str
    version: int
    names: list[str]
    values: list[float]
    error: list[float] | None
    base: float
    answer: float
    base_error: float | None
    answer_error: float | None
    scale: Scale
    record: list[Any] | None
    average: str = Field(description="What the record is compared with: the average, the baseline, or the middle of all ranges.")
    titles: list[str] | None
    guarantee: None = None
    details: dict[str, Any]


class Changed(BaseModel):
    """What one change of one of the record's values would add to the answer, in the answer's own units."""

    model_config = ConfigDict(populate_by_name=True)
    name: str
    before: str = Field(alias="from", description="The record's own value, or the low end of a number's range; empty for a word.")
    after: str = Field(alias="to")
    value: float
    error: float | None


class Answer(BaseModel):
    """An explanation: contributions of features, slopes of encoded columns (`values`, in labels), what it cost, what is guaranteed."""

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
    plane: str | None = Field(description="fitted, anchored or paper; null for what is no plane.")
    intercept: float | None = Field(description="The plane's value at the record, a label.")
    scale: Scale
    contributions: Added | None = Field(description="Null for what is no plane, and for the paper's.")
    changes: list[Changed] | None = Field(None, description="The largest changes of single values; null for what is no plane.")


class BudgetStatus(BaseModel):
    """Everything spent so far, and what is left; `remaining` is null where answers cost nothing."""

    spent: Statement
    remaining: Statement | None
    budget: dict[str, float] | None
    answers: int | None
    curve: list[tuple[int, float]] = Field(description="ε spent after so many answers, to draw.")
    exhausted: bool = Field(description="Whether every further answer will be refused.")
    promise: str
    people: dict[str, Any] | None = Field(
        None,
        description="Where the model has a card: what holds for a person in the explanation data, its training data, or both.",
    )


class Targets(BaseModel):
    """What may be asked about: classes of the model, or models."""

    kind: str
    names: list[str]


class Card(BaseModel):
    """What is public about the model and its data."""

    name: str
    title: str
    outcome: str
    description: str
    about: dict[str, Any]
    domain: dict[str, Any]
    names: list[str]
    features: list[str]
    scale: Scale
    targets: Targets | None = Field(description="Null where one thing is explained.")
    role: str


class Detail(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str | None = None
