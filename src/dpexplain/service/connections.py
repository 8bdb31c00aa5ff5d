"""Closes idle connections, so that they cannot block new ones.

A request's headers and its body have to arrive in time, however slowly they trickle, and its response has to be read in time. When there are
too many connections, those that wait for their caller, or ask before they were answered, are closed, oldest first, so that a new caller
always gets a turn; if all are being answered, only health checks are answered. A health check that is the first request of its connection
does not stand in line (`turns.py`).
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, partial

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpexplain.service.limits import network_of
from dpexplain.service.problems import Problem
from dpexplain.service.turns import Turnstile, in_turn

HEADER_SECONDS = 10.0  # from the first moment a request may begin until its headers are complete
BODY_SECONDS = 20.0  # from then until its body is complete
READ_SECONDS = 20.0  # from the moment that a caller leaves too much of a response unread until it has read most of it
MOST = 1000  # connections of one worker
MOST_OF_ONE = 200  # … from one address
MOST_AHEAD = 1 << 16  # bytes of further requests that a caller may send before it has been answered
SPARE_FILES = 100  # file handles that are not for connections
HEALTH = frozenset({"/", "/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"})


class Crowd:
    """The connections of one worker, in the order in which they came."""

    def __init__(self, most: int | None = None, most_of_one: int = MOST_OF_ONE) -> None:
        self._most, self._most_of_one = most or affordable_connections(), most_of_one
        self.turnstile = Turnstile()
        self._all: dict[HttpConnection, str] = {}
        self._of: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, connection: HttpConnection, address: str) -> bool:
        """Count a new connection, closing an idle one if necessary; False if every connection is being answered."""
        self._all[connection] = address
        self._of[address] += 1
        if self._of[address] > self._most_of_one:
            return self._make_room(one for one, where in self._all.items() if where == address)
        return len(self._all) <= self._most or self._make_room(self._all)

    def leave(self, connection: HttpConnection) -> None:
        address = self._all.pop(connection, None)
        if address is not None:
            self._of[address] -= 1
            if not self._of[address]:
                del self._of[address]

    def _make_room(self, among: Iterable[HttpConnection]) -> bool:
        oldest = next((one for one in among if one.is_idle), None)
        if oldest is None or oldest is next(reversed(self._all)):
            return False
        self.leave(oldest)
        oldest.end()
        return True


class HttpConnection(H11Protocol):
    """uvicorn's, with deadlines, and a place in this worker's crowd."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.crowd = crowd_of_this_worker()
        self._timer: asyncio.TimerHandle | None = None
        self._timed: object = None
        self._unread: asyncio.TimerHandle | None = None
        self._is_new, self._asks_ahead = True, False
        address = network_of(self.client[0]) if self.client else ""
        self.app = in_turn(self.app, partial(self.crowd.turnstile.enter, address), self._is_urgent, transport.is_closing)
        if not self.crowd.enter(self, address):
            self.app = health_only(self.app)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.flow.read_paused and (ahead := len(self.conn.trailing_data[0])):
            self._asks_ahead = True
            if ahead > MOST_AHEAD:
                self.cycle.keep_alive = False  # it is closed after this response: what was sent too early is forgotten
        self._watch()

    def on_response_complete(self) -> None:
        self._stop()
        super().on_response_complete()  # from here on its own timer runs, until the next request's first byte

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(READ_SECONDS, self.end)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_unread()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._forget_unread()
        self.crowd.leave(self)
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """Whether it may make room for another: it is the caller's turn (to send a request whole, or to read its response), or it asks ahead."""
        return (
            self._asks_ahead
            or self.cycle is None
            or self.cycle.response_complete
            or self.cycle.more_body
            or self.flow.write_paused
        )

    def end(self) -> None:
        """Close the connection without a response, or what is left of one."""
        self._stop()
        self._forget_unread()
        self.transport.abort()  # also if it is closing already, which waits for the caller to read

    def _should_upgrade(self) -> bool:
        """No: a web socket would leave these limits, and a warning for each that is asked for would fill the log."""
        return False

    def _is_urgent(self, scope: Scope) -> bool:
        """Whether a request is the first of its connection, as a monitor's is, and quick to answer."""
        is_new, self._is_new = self._is_new, False
        return is_new and scope["path"] in HEALTH and not asks_for_page(scope)

    def _watch(self) -> None:
        """One deadline for headers, then one for the body, and none while an answer is being made."""
        waiting = self.cycle is None or self.cycle.response_complete
        if not waiting and not self.cycle.more_body:
            self._stop()
        elif waiting and self.timeout_keep_alive_task is not None:
            return
        elif self._timer is None or self._timed is not self.cycle:
            self._stop()
            self._timed = self.cycle
            self._timer = self.loop.call_later(HEADER_SECONDS if waiting else BODY_SECONDS, self.end)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None


def asks_for_page(scope: Scope) -> bool:
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


@cache
def crowd_of_this_worker() -> Crowd:
    return Crowd()


def count_connections() -> int:
    """How many callers this worker has; 0 in a process that serves in another way."""
    return len(crowd_of_this_worker())


def health_only(app: ASGIApp) -> ASGIApp:
    """Answers health checks, and nothing else."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in HEALTH:
            await app(scope, receive, send)
            return
        headers = {"Retry-After": "1", "Connection": "close"}
        await Problem(503, "Too many connections. Ask again later.", headers=headers).response()(scope, receive, send)

    return answer


def affordable_connections() -> int:
    """As many as there may be file handles for, with some to spare for the ledger and the files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(min(MOST, soft - SPARE_FILES), 10)


def raise_file_limit() -> None:
    """Use as many file handles as this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST + SPARE_FILES if hard == resource.RLIM_INFINITY else min(MOST + SPARE_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
