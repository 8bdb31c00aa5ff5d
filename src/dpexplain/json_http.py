"""JSON to one address and back. No redirect is followed: rows and keys go where they were meant to go, and nowhere else."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError as HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Return None, so that urllib raises the redirect as an HTTPError."""


def exchange(url: str, body: dict[str, Any] | None, seconds: float, key: str | None = None) -> Any:
    """What `url` answers to `body`, or to a GET without one. HTTPError where it refuses, another OSError or ValueError where it fails."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = Request(url, None if body is None else json.dumps(body).encode(), headers)
    with build_opener(_NoRedirect).open(request, timeout=seconds) as response:
        return json.load(response)
