"""A black box behind HTTP that speaks KServe's protocols: V1 (`…:predict`, records as JSON) or V2 (`…/infer`, one tensor).

The private rows are sent to it. So it must be reached over TLS or on this machine, unless the owner sets `trusted`.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from dpexplain.domain import DomainLike
from dpexplain.errors import DataError, NotPrivateError
from dpexplain.json_http import HTTPError, exchange

_SECONDS = 60.0
_REFUSED = (400, 413, 422, 500)  # statuses of a server that could not answer these rows


class Endpoint:
    """A callable on tables of raw rows."""

    def __init__(self, url: str, domain: DomainLike, given: str | None, *, plain_text: bool = False) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not _is_local(parts.hostname or "") and not plain_text:
            raise NotPrivateError(
                f"private rows would cross the network unencrypted to {parts.hostname}. Use https, or set trusted = true"
            )
        if not parts.path.endswith((":predict", "/infer")):
            raise DataError(f"{url} is neither KServe V1 nor V2. Write …/v1/models/NAME:predict or …/v2/models/NAME/infer")
        self._url, self._domain = url, domain
        self._tensor = parts.path.endswith("/infer")
        self._encoded = self._tensor if given is None else given == "encoded"

    def __call__(self, table: pa.Table) -> Any:
        if self._tensor:
            return _tensor_answer(self._post(_tensor(self._domain.encode(table))))
        rows = self._domain.encode(table).tolist() if self._encoded else table.to_pylist()
        return self._post({"instances": rows})["predictions"]  # a list: each answer is read by itself

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = exchange(self._url, body, _SECONDS)
        except HTTPError as error:
            error.close()
            kind = ValueError if error.code in _REFUSED else ConnectionError  # the first may be due to one of the rows
            raise kind(f"the model endpoint refuses the rows (status {error.code}). Check its inputs and your access") from None
        except (OSError, ValueError) as error:
            raise ConnectionError(
                f"the model endpoint did not answer ({type(error).__name__}). Check the address, and that it runs"
            ) from None
        return answer


def _tensor(points: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "input-0", "shape": list(points.shape), "datatype": "FP64", "data": points.ravel().tolist()}]}


def _tensor_answer(answer: dict[str, Any]) -> Any:
    output = answer["outputs"][-1]
    return np.fromiter(output["data"], dtype=object, count=len(output["data"])).reshape(output["shape"])


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
