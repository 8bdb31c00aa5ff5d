"""Begins waiting requests a few at a time, so that a health check is never behind thousands of them.

An event loop answers everything that has arrived before it looks for what is new, so a thousand callers who ask without pause would make
everybody wait for a thousand answers at each of its turns.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Receive, Scope, Send

SECONDS = 0.005  # of one turn of the loop, after which further requests stand in line
AT_ONCE = 8  # requests taken from the line at each turn


class Turnstile:
    """Lets requests begin at once while the loop has time; else addresses take turns, and requests of one address keep their order.

    For one event loop.
    """

    def __init__(self, seconds: float = SECONDS, at_once: int = AT_ONCE) -> None:
        self._seconds, self._at_once = seconds, at_once
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}  # by address; the next to be let in is first
        self._end: float | None = None  # of what this turn of the loop may take

    async def enter(self, address: str) -> None:
        """Return when a request from this address may begin."""
        loop = asyncio.get_running_loop()
        if self._end is None:
            self._begin(loop)
        elif self._lines or loop.time() > self._end:
            place = loop.create_future()
            self._lines.setdefault(address, deque()).append(place)
            await place

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._end = loop.time() + self._seconds
        loop.call_soon(self._turn, loop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._end, left = None, self._at_once
        while left and self._lines:
            left -= self._let_one_in()
        if self._lines:
            self._begin(loop)

    def _let_one_in(self) -> bool:
        """The first of the next address; False if its caller has disconnected."""
        address = next(iter(self._lines))
        line = self._lines.pop(address)
        place = line.popleft()
        if line:
            self._lines[address] = line  # behind the other addresses
        if place.done():
            return False
        place.set_result(None)
        return True


def in_turn(
    app: ASGIApp, enter: Callable[[], Awaitable[None]], is_urgent: Callable[[Scope], bool], is_gone: Callable[[], bool]
) -> ASGIApp:
    """The application behind a turnstile. Urgent requests do not stand in line; those whose callers have gone meanwhile are not answered."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if not is_urgent(scope):
            await enter()
            if is_gone():
                return
        await app(scope, receive, send)

    return answer
