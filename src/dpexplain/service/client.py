"""Ask a service from Python, and get the same `Explanation` as from an explainer. Needs nothing but the standard library."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit
from uuid import uuid4

from dpexplain.answers.explanation import Explanation
from dpexplain.domain import Domain, DomainLike
from dpexplain.errors import BudgetExhausted, InputError, ParameterError, QueryError, RequestIdInUse, ServiceError
from dpexplain.privacy.budget import Guarantee
from dpexplain.privacy.relation import Neighbours

if TYPE_CHECKING:
    from urllib.error import HTTPError


class Client:
    """`dpx.Client("https://explain.example", key).explain(record)`. Lost answers are asked for again under the same request id,
    so that a broken connection never pays twice."""

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 60.0, retries: int = 2) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise ParameterError(f"the address of a service must begin with http:// or https://, got {url!r}")
        self._url, self._key, self._timeout, self._retries = url.rstrip("/"), key, timeout, retries

    def explain(self, record: Any, *, request_id: str | None = None, target: str | None = None) -> Explanation:
        """A private explanation at `record`. Raises BudgetExhausted when the service's budget is spent. `target` is a class of a release with several."""
        plain = record if isinstance(record, str) else {name: _plain(value) for name, value in dict(record).items()}
        body = {"record": plain, "request_id": request_id or uuid4().hex} | ({} if target is None else {"target": target})
        return Explanation.from_dict(self._call("/v1/explain", body))

    @property
    def domain(self) -> DomainLike:
        """What can be asked about."""
        return Domain.from_dict(self._call("/v1/domain")["domain"])

    @property
    def spent(self) -> Guarantee:
        """Everything the service has released so far."""
        return _guarantee(self._call("/v1/guarantee")["spent"])

    @property
    def remaining(self) -> Guarantee | None:
        """What may still be released; None where answers cost nothing."""
        left = self._call("/v1/guarantee")["remaining"]
        return None if left is None else _guarantee(left)

    def _call(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        from dpexplain.json_http import HTTPError, exchange  # imported here, because importing Python's HTTP client takes time

        for attempt in range(self._retries + 1):
            try:
                answer: dict[str, Any] = exchange(self._url + path, body, self._timeout, self._key)
                return answer
            except HTTPError as error:
                with error:
                    _raise(error.code, _document(error))
            except (OSError, ValueError) as error:
                if attempt == self._retries:
                    text = f"{self._url} did not answer ({type(error).__name__}). Check the address, and that the service runs"
                    raise ServiceError(text, status=0, problem={}) from None
        raise AssertionError("unreachable")

    def __repr__(self) -> str:
        return f"Client({self._url!r})"  # never the key


def _raise(status: int, problem: dict[str, Any]) -> NoReturn:
    kind, text = (
        str(problem.get("type", "")).rpartition(":")[2],
        problem.get("detail") or problem.get("title") or f"HTTP {status}",
    )
    if kind == "budget-exhausted":
        raise BudgetExhausted(text, requested=_guarantee(problem["requested"]), remaining=_guarantee(problem["remaining"]))
    if kind == "record-not-in-domain":
        raise QueryError(text)
    if kind == "request-id-in-use":
        raise RequestIdInUse(text)
    if kind == "cannot-be-answered":
        raise InputError(text)
    raise ServiceError(f"the service answered {status}: {text}", status=status, problem=problem)


def _document(error: HTTPError) -> dict[str, Any]:
    try:
        found = json.load(error)
    except (ValueError, OSError):
        return {}
    return found if isinstance(found, dict) else {}


def _guarantee(value: dict[str, Any]) -> Guarantee:
    subject = str(value["statement"]).partition(" satisfies ")[0]
    return Guarantee(
        value["mu"], value["delta"], Neighbours.from_dict(value), subject, private=value["private"], note=value["note"]
    )


def _plain(value: Any) -> Any:
    """NumPy's scalars as Python's."""
    return value.item() if hasattr(value, "item") else value
