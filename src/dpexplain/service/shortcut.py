"""Answers the endpoint that is asked most without the framework around it, which takes as long as an answer from a release."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

Endpoint = Callable[[Request], Awaitable[Response]]
Handlers = Mapping[type[Exception], Callable[[Request, Exception], Any]]


class Shortcut:
    """`POST path` is answered by `endpoint` itself, and what that raises by the application's own handlers; all else goes to the application."""

    def __init__(self, app: FastAPI, path: str, endpoint: Endpoint, handlers: Handlers) -> None:
        self._app, self._path, self._endpoint, self._handlers = app, path, endpoint, handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self._path or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        scope["app"] = self._app
        request = Request(scope, receive)
        try:
            response = await self._endpoint(request)
        except Exception as error:
            kind = next(kind for kind in type(error).__mro__ if kind in self._handlers)
            await (await self._handlers[kind](request, error))(scope, receive, send)
            if kind is Exception:
                raise  # so that it is logged
            return
        await response(scope, receive, send)
