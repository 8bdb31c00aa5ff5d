"""The event loop of a worker that shares its port with other workers.

Whichever worker is awake first would accept all connections that wait, and callers who keep theirs would be answered by one worker for as long as they
stay, while the others have nothing to do. So a worker hesitates before it accepts, the longer the more connections it has, and accepts a few at a time.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from dpexplain.service.connections import crowd_of_this_worker

EACH, LONGEST = 0.0005, 0.002  # seconds of hesitation: for each connection that this worker has, and at most
FEW = 16  # connections that a worker has from which on
MANY = 128  # … so many are accepted at once: a burst should not hold up health checks


class FairLoop(asyncio.SelectorEventLoop):
    """asyncio's, but for what it does when connections wait to be accepted. A later asyncio that does not call this accepts as it likes."""

    _accepted = float("-inf")  # when, by this loop's clock

    def _accept_connection(
        self, factory: Any, sock: socket.socket, sslcontext: Any = None, server: Any = None, backlog: int = 100, *rest: Any
    ) -> None:
        """`backlog` is how many asyncio accepts at once: as many as may wait."""
        own = len(crowd_of_this_worker())
        again = (factory, sock, sslcontext, server, backlog, *rest)
        now = (*again[:4], 1 + own // 2 if own < FEW else MANY, *rest)
        if own or self.time() < self._accepted + LONGEST:  # a connection counts some turns of the loop after it was accepted
            self.remove_reader(sock)
            self.call_later(min(EACH * max(own, 1), LONGEST), self._accept_some, now, again)
        else:
            self._accept_now(now)

    def _accept_some(self, now: tuple[Any, ...], again: tuple[Any, ...]) -> None:
        if (handle := now[1].fileno()) >= 0:  # the server has not stopped
            self._add_reader(handle, self._accept_connection, *again)  # type: ignore[attr-defined]
            self._accept_now(now)

    def _accept_now(self, given: tuple[Any, ...]) -> None:
        self._accepted = self.time()
        super()._accept_connection(*given)  # type: ignore[misc]
