"""A black box behind HTTP that speaks KServe's protocols: V1 (`…:predict`, records as JSON) or V2 (`…/infer`, one tensor).

The private rows are sent to it. So it must be the owner's own: over TLS, or on this very machine, unless the owner says otherwise.
"""

from __future__ import annotations

import json
from ipaddress import ip_address
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
import pyarrow as pa

from dpexplain.domain import DomainLike
from dpexplain.errors import DataError, NotPrivateError

_SECONDS = 60.0


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Rows go to the address the owner wrote, and nowhere else."""


class Endpoint:
    """A callable on tables of raw rows."""

    def __init__(self, url: str, domain: DomainLike, given: str | None, *, plain_text: bool = False) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not _is_local(parts.hostname or "") and not plain_text:
            raise NotPrivateError(
                f"private rows would cross the network unencrypted to {parts.hostname}. Use https, or say trusted = true"
            )
        if not parts.path.endswith((":predict", "/infer")):
            raise DataError(f"{url} is neither KServe V1 nor V2. Write …/v1/models/NAME:predict or …/v2/models/NAME/infer")
        self._url, self._domain = url, domain
        self._tensor = parts.path.endswith("/infer")
        self._encoded = self._tensor if given is None else given == "encoded"
        self._opener = build_opener(_NoRedirect)

    def __call__(self, table: pa.Table) -> Any:
        if self._tensor:
            return _tensor_answer(self._post(_tensor(self._domain.encode(table))))
        rows = self._domain.encode(table).tolist() if self._encoded else table.to_pylist()
        return np.asarray(self._post({"instances": rows})["predictions"])

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        request = Request(self._url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with self._opener.open(request, timeout=_SECONDS) as response:
                answer: dict[str, Any] = json.load(response)
        except (URLError, OSError, ValueError) as error:
            raise ConnectionError(f"the model endpoint did not answer ({type(error).__name__})") from None
        return answer


def _tensor(points: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "input-0", "shape": list(points.shape), "datatype": "FP64", "data": points.ravel().tolist()}]}


def _tensor_answer(answer: dict[str, Any]) -> Any:
    output = answer["outputs"][-1]
    return np.asarray(output["data"]).reshape(output["shape"])


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
