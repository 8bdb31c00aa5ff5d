"""The endpoints. Handlers that wait for rows or the ledger run in threads; what is raised becomes a problem document.

Keys are checked without a thread, and health checks have threads of their own, so neither waits for the ledger.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Annotated, Any

import orjson
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, FastAPI, Query, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from dpexplain.answers.contributions import feature_names
from dpexplain.answers.explanation import Explanation
from dpexplain.answers.paid import PaidExplanations
from dpexplain.errors import BudgetExhausted, DpexplainError
from dpexplain.ledger.patience import waiting_until
from dpexplain.release.page import describe_outcome
from dpexplain.service import problems
from dpexplain.service.backend import Answered, Backend
from dpexplain.service.batching import PATIENCE
from dpexplain.service.config import Settings
from dpexplain.service.guard import Guard
from dpexplain.service.keys import Key, KeyFile
from dpexplain.service.limits import RateLimit, network_of
from dpexplain.service.openapi import describe, request_body_of
from dpexplain.service.problems import Problem
from dpexplain.service.prometheus_metrics import Metrics
from dpexplain.service.raw_request import JsonBytes, bearer_of, parse_body, read_body
from dpexplain.service.service_page import page_policy, promise, render_page
from dpexplain.service.shapes import Answer, BudgetStatus, Card, Detail, ExplainRequest, Instances, Record
from dpexplain.service.shortcut import Shortcut
from dpexplain.version import __version__

BEARER = HTTPBearer(auto_error=False, description="An API key made by `dpexplain serve keys add`.")
EXPLAIN = "/v1/explain"
HEALTH_THREADS, BATCH_THREADS = 2, 8
CONFLICT = (409, "This request id stands for another question")


def describe_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems an endpoint may answer with, for OpenAPI."""
    titles = {status: title for status, (_, title) in problems.TITLES.items()} | dict([CONFLICT])
    return {status: {"model": Detail, "description": titles[status]} for status in statuses}


ANYONE = Key("-", "anyone", "analyst", "", "", "")


@dataclass
class Service:
    """One backend with the keys, limits, metrics and log of a service."""

    backend: Backend
    settings: Settings
    keys: KeyFile | None = None
    metrics: Metrics = field(default_factory=Metrics)
    workers: int = 1

    def __post_init__(self) -> None:
        self.rate = RateLimit(self.settings.requests_per_minute / self.workers)
        self.failures = RateLimit(60)
        self.health_threads = CapacityLimiter(HEALTH_THREADS)
        self.batch_threads = CapacityLimiter(BATCH_THREADS)

    def caller(self, request: Request, token: str | None) -> Key:
        """The role of the caller. An open service has analysts only."""
        key = self._require_key(request, token)
        _log(request)["key"] = key.id
        if wait := self.rate.wait(key.id if self.keys else _address(request)):
            self.metrics.count_refusal("rate")
            raise Problem(429, "Ask again later.", headers={"Retry-After": str(int(wait) + 1)})
        return key

    async def check(self, request: Request) -> None:
        """Raise if nobody could be answered now."""
        await run_sync(self.backend.check, limiter=self.health_threads)
        if self.keys is not None and (why := self.keys.find_trouble()):
            _log(request)["why"] = why
            raise Problem(503, "The keys cannot be read. Their owner has to look after them.", "keys-unreadable")

    def _require_key(self, request: Request, token: str | None) -> Key:
        if self.keys is None:
            return ANYONE
        key = self.keys.find(token) if token else None
        if key is not None:
            return key
        self.metrics.count_refusal("key")
        if why := self.keys.find_trouble():
            _log(request)["why"] = why
        if wait := self.failures.wait(_address(request)):
            raise Problem(429, "Too many wrong keys.", headers={"Retry-After": str(int(wait) + 1)})
        raise Problem(401, "Send `Authorization: Bearer dpx_…`.", headers={"WWW-Authenticate": "Bearer"})

    async def explain(self, request: Request, record: Record, request_id: str | None, target: str | None = None) -> Answered:
        """One answer, counted and logged."""
        start = self._begin(request, record)
        try:
            answer = await self.backend.ask(record, request_id or token_hex(16), target)
        except DpexplainError as error:
            self._count_refusal(error)
            raise
        self._count_answers(request, start, [answer])
        return answer

    async def explain_many(
        self, request: Request, records: Sequence[Record], id: str | None, target: str | None = None
    ) -> PaidExplanations:
        """Each record is the question `id/position`, so that a repeated call is free."""
        name, start = id or token_hex(16), self._begin(request, records)
        ids = [f"{name}/{position}" for position in range(len(records))]
        try:
            with waiting_until(time.monotonic() + PATIENCE):  # from now on, and not from when a thread is free
                found = await run_sync(self.backend.explain_many, records, ids, target, limiter=self.batch_threads)
        except DpexplainError as error:
            self._count_refusal(error)
            raise
        self._count_answers(request, start, found)
        if found.refusal is not None:
            self.metrics.count_refusal("budget")
        return found

    def _begin(self, request: Request, asked: Record | Sequence[Record]) -> float:
        """When it was asked; log what, where the owner wants that."""
        if self.settings.log_records:
            _log(request)["record"] = asked
        return time.perf_counter()

    def _count_refusal(self, error: DpexplainError) -> None:
        self.metrics.count_refusal("budget" if isinstance(error, BudgetExhausted) else "input")

    def _count_answers(self, request: Request, start: float, answers: Sequence[Answered]) -> None:
        """Count and log. Answers that were made together took equal parts of the time."""
        seconds = time.perf_counter() - start
        for one in answers:
            self.metrics.count_answer(seconds / len(answers))
            _log(request)["epsilon"] = one.cost.epsilon


def create_app(service: Service) -> ASGIApp:
    """The application, guarded."""
    app = FastAPI(
        title=f"dpexplain: {service.settings.title}",
        description="Differentially private explanations. The budget belongs to the data set, not to a key.",
        version="1",
        docs_url=None,  # FastAPI's pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # behind a proxy with TLS the redirection would lead to an address without
        lifespan=_lifespan,
    )
    app.state.service = service
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.include_router(router)
    describe(app, service.backend.domain)
    return Guard(Shortcut(app, EXPLAIN, explain, _HANDLERS), service.metrics, service.settings.max_body)


_HANDLERS: dict[type[Exception], Callable[[Request, Exception], Any]] = {
    Problem: problems.answer_problem,
    DpexplainError: problems.answer_library,
    RequestValidationError: problems.answer_validation,
    HTTPException: problems.answer_http,
    Exception: problems.answer_unexpected,
}


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The server waits for requests under way before it ends this: every reservation is settled, or still counted."""
    yield
    app.state.service.backend.close()


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Given = Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]
Serving = Annotated[Service, Depends(_service)]


async def _caller(request: Request, service: Serving, given: Given) -> Key:
    return service.caller(request, given.credentials if given else None)


Caller = Annotated[Key, Depends(_caller)]


async def _owner(service: Serving, key: Caller) -> Key:
    if key.role != "owner":
        service.metrics.count_refusal("role")
        raise Problem(403, "It needs an owner's key.")
    return key


async def _scraper(request: Request, service: Serving, given: Given) -> None:
    if not service.settings.open_metrics:
        service.caller(request, given.credentials if given else None)


router = APIRouter()
owners = [Depends(_owner)]
After = Annotated[int, Query(ge=0, le=2**53)]
Limit = Annotated[int, Query(ge=1, le=500)]


@router.post(
    EXPLAIN,
    response_model=Answer,
    responses=describe_problems(400, 401, 403, 409, 413, 422, 429, 503),
    openapi_extra=request_body_of(ExplainRequest, BEARER),
)
async def explain(request: Request) -> Response:
    """Why does the model answer as it does at this record?"""
    service: Service = request.app.state.service
    service.caller(request, bearer_of(request))
    question = parse_body(ExplainRequest, request, await read_body(request))
    answer = await service.explain(request, question.record, question.request_id, question.target)
    return JsonBytes(orjson.dumps(answer.to_dict()))


@router.post(
    "/v1/models/{name}:explain",
    responses=describe_problems(400, 401, 403, 404, 409, 413, 422, 429, 503),
    openapi_extra=request_body_of(Instances, BEARER),
)
async def explain_instances(name: str, request: Request, service: Serving) -> Response:
    """The same in KServe's V1 shape. All instances are checked before any is paid for; what was paid for is never withheld."""
    service.caller(request, bearer_of(request))  # before the body is read, which may be large
    _require_name(name, service)
    body = parse_body(Instances, request, await request.body())
    if len(body.instances) > service.settings.max_instances:
        raise Problem(413, f"At most {service.settings.max_instances} instances at a time.")
    answers = await service.explain_many(request, body.instances, body.id, body.target)
    answered = [_attributions(answer) for answer in answers]
    if answers.refusal is not None:
        problem = problems.problem_of(answers.refusal)
        problem.more = {**problem.more, "explanations": answered}
        raise problem
    return JSONResponse({"explanations": answered})


def _require_name(name: str, service: Service) -> None:
    if name != service.settings.name:
        raise Problem(404, f"The model here is {service.settings.name}.")


def _attributions(answer: Explanation) -> dict[str, Any]:
    """Contributions of features where the answer has some, slopes of encoded columns otherwise; `quantity` says which."""
    privacy = {"cost": answer.cost.to_dict(), "guarantee": answer.guarantee.to_dict(), "request_id": answer.request_id}
    slopes, base, reached, average = answer.scale.slopes(answer.values), None, None, None
    names, values, error, quantity = answer.names, slopes, answer.error, "slopes"
    error = None if error is None else answer.scale.slopes(error)
    if answer.added is not None:
        added = answer.contributions()
        names, values, error, quantity = added.names, added.values, added.error, "contributions"
        base, reached, average = added.base, added.answer, added.average
    return {
        "attributions": dict(zip(names, values.tolist(), strict=True)),
        "error": None if error is None else dict(zip(names, error.tolist(), strict=True)),
        "base_value": base,
        "answer": reached,
        "average": average,
        "quantity": quantity,
        "plane": answer.plane,
        "scale": answer.scale.to_dict(),
        "slopes": dict(zip(answer.names, slopes.tolist(), strict=True)),
        "privacy": privacy,
    }


@router.get("/v1/guarantee", response_model=BudgetStatus, responses=describe_problems(401, 429, 503))
def guarantee(service: Serving, caller: Caller) -> Response:
    """Everything spent so far, and what is left."""
    found = service.backend.spending()
    return JSONResponse(
        {
            "spent": found.spent.to_dict(),
            "remaining": found.remaining and found.remaining.to_dict(),
            "budget": found.budget and {"epsilon": found.budget.epsilon, "delta": found.budget.delta},
            "answers": found.answers,
            "curve": service.backend.curve(),
            "exhausted": found.exhausted,
            "promise": promise(found),
            "people": found.people and found.people.to_dict(),
        }
    )


@router.get("/v1/domain", response_model=Card, responses=describe_problems(401, 429))
def domain(service: Serving, caller: Caller) -> Response:
    """The domain of records, with bounds and values, and the public facts about the model."""
    card = {name: getattr(service.settings, name) for name in ("name", "title", "description")}
    card["outcome"] = describe_outcome(service.settings.outcome, service.backend.scale)
    known = service.backend.domain
    return JSONResponse(
        {
            **card,
            "about": service.backend.about,
            "domain": known.to_dict(),
            "names": list(known.names),
            "features": list(feature_names(known)),
            "scale": service.backend.scale.to_dict(),
            "targets": service.backend.targets,
            "role": caller.role,
        }
    )


@router.get("/v1/history", dependencies=owners, responses=describe_problems(401, 403, 422, 429, 503))
def history(service: Serving, after: After = 0, limit: Limit = 100) -> Response:
    """Stored answers in order, for owners."""
    return JSONResponse({"answers": service.backend.history(after, limit)})


@router.get("/v1/ledger", dependencies=owners, responses=describe_problems(401, 403, 422, 429, 503))
def ledger(service: Serving, after: After = 0, limit: Limit = 100) -> Response:
    """The ledger's own lines, for owners."""
    return JSONResponse({"entries": service.backend.entries(after, limit)})


@router.get("/healthz")
@router.get("/v2/health/live")
async def live() -> Response:
    """The process is running."""
    return JSONResponse({"live": True, "status": "alive"})


@router.get("/readyz", responses=describe_problems(503))
@router.get("/v2/health/ready", responses=describe_problems(503))
async def ready(request: Request, service: Serving) -> Response:
    """The service can answer now: the rows are available, the ledger can be read and written, and keys can be checked."""
    await service.check(request)
    return JSONResponse({"ready": True})


@router.get("/v1/models", responses=describe_problems(503))
async def models(service: Serving) -> Response:
    """KServe V1: what is served."""
    return JSONResponse({"models": [service.settings.name]})


@router.get("/v1/models/{name}", responses=describe_problems(404, 503))
@router.get("/v2/models/{name}/ready", responses=describe_problems(404, 503))
async def model_ready(name: str, request: Request, service: Serving) -> Response:
    """KServe: whether this model could be explained now."""
    _require_name(name, service)
    await service.check(request)
    return JSONResponse({"name": name, "ready": True})


@router.get("/v2", responses=describe_problems(503))
async def server_metadata(service: Serving) -> Response:
    """KServe V2: the server's name and version."""
    return JSONResponse({"name": "dpexplain", "version": __version__, "extensions": []})


@router.get(
    "/metrics", dependencies=[Depends(_scraper)], response_class=PlainTextResponse, responses=describe_problems(401, 429, 503)
)
def metrics(service: Serving) -> Response:
    """Prometheus text: spent, remaining, latency, refusals."""
    text = service.metrics.text(service.backend.spending())
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/", include_in_schema=False)
async def front(request: Request, service: Serving) -> Response:
    """The page for browsers; for other clients, the liveness answer of KServe's V1 protocol."""
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"status": "alive"}, headers={"Vary": "Accept"})
    return HTMLResponse(
        render_page(service.settings, service.backend.scale),
        headers={"Content-Security-Policy": page_policy(), "Cache-Control": "no-cache", "Vary": "Accept"},
    )


def _address(request: Request) -> str:
    client = request.scope.get("client")
    return network_of(client[0]) if client else "unknown"


def _log(request: Request) -> dict[str, Any]:
    """The fields of the request's line in the log."""
    log: dict[str, Any] = request.scope["state"]["log"]
    return log
