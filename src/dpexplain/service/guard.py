"""Middleware around every request: limits its size, adds headers to its response, writes one line to the log, and hides tracebacks."""

from __future__ import annotations

import json
import logging
import secrets
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpexplain.service.problems import Problem
from dpexplain.service.prometheus_metrics import Metrics

LOG = logging.getLogger("dpexplain.service")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",  # a page sets its own
}
_RAW = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, metrics: Metrics, max_body: int) -> None:
        self._app, self._metrics, self._max_body = app, metrics, max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        watch = _Watch(scope, send)
        if scope["method"] == "HEAD":  # what GET is answered with, without the body
            scope = {**scope, "method": "GET"}
        try:
            await self._limit_size(scope, receive, watch)
        except Exception as error:  # the last handler: an error's text may quote private data, so only its type is logged
            watch.facts["error"] = f"{type(error).__name__} at {place_of(error)}"
            if not watch.status:
                await Problem(500).response()(scope, receive, watch)
        self._metrics.count_response(watch.status or 500)
        LOG.info("%s", watch.line())

    async def _limit_size(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not length.isdigit() or int(length) > self._max_body:
            self._metrics.count_refusal("size")
            problem = Problem(
                413 if length.isdigit() else 400, f"At most {self._max_body} bytes are read.", headers={"Connection": "close"}
            )
            await problem.response()(scope, receive, send)
            return
        await self._app(scope, self._count_bytes(receive), send)

    def _count_bytes(self, receive: Receive) -> Receive:
        """Count the bytes of bodies without a Content-Length."""
        seen = 0

        async def receive_limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max_body:
                self._metrics.count_refusal("size")
                raise HTTPException(413, f"At most {self._max_body} bytes are read.")
            return message

        return receive_limited


class _Watch:
    """Passes messages on, adds headers, and stores the fields of the log line. Never the record, unless the owner asked for it."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send, self._start, self.status = send, time.perf_counter(), 0
        self.facts: dict[str, Any] = {"id": secrets.token_hex(6), "method": scope["method"], "path": scope["path"]}
        scope.setdefault("state", {})["log"] = self.facts

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = list(message.get("headers", ()))
            present = {name.lower() for name, _ in given}
            message["headers"] = given + [pair for pair in _RAW if pair[0] not in present]
        elif self.facts["method"] == "HEAD":
            message["body"] = b""
        await self._send(message)

    def line(self) -> str:
        seconds = round(time.perf_counter() - self._start, 6)
        return json.dumps({"time": _now(), **self.facts, "status": self.status, "seconds": seconds})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def place_of(error: BaseException) -> str:
    """The innermost function, which is code and not data."""
    frames = extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


class LibraryFormatter(logging.Formatter):
    """What a library logs, such as a database's driver, as one JSON object: where it was, and not its text, which may quote data."""

    def format(self, record: logging.LogRecord) -> str:
        facts = {"level": record.levelname.lower(), "library": record.name, "at": f"{record.filename}:{record.lineno}"}
        if record.exc_info and (error := record.exc_info[1]) is not None:
            facts["error"] = f"{type(error).__name__} at {place_of(error)}"
        return json.dumps({"time": _now(), **facts})


def log_to_stderr() -> None:
    """One JSON object a line, of this service and of the libraries that it uses."""
    own, others = logging.StreamHandler(sys.stderr), logging.StreamHandler(sys.stderr)
    own.setFormatter(logging.Formatter("%(message)s"))
    LOG.handlers, LOG.propagate = [own], False
    LOG.setLevel(logging.INFO)
    others.setFormatter(LibraryFormatter())
    others.setLevel(logging.WARNING)
    logging.getLogger().addHandler(others)
