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
FEW = 8  # connections up to which few more are accepted at once; from then on all that wait, so that a burst does not hold up health checks
GROWTH = 2  # how many more, for each connection that this worker has


class FairLoop(asyncio.SelectorEventLoop):
    """asyncio's, but for what it does when connections wait to be accepted. A later asyncio that does not call this accepts as it likes."""

    def _accept_connection(
        self, factory: Any, sock: socket.socket, sslcontext: Any = None, server: Any = None, backlog: int = 100, *rest: Any
    ) -> None:
        """`backlog` is how many are accepted at once; asyncio's own value is as many as may wait."""
        own = len(crowd_of_this_worker())
        again = (factory, sock, sslcontext, server, backlog, *rest)
        now = (*again[:4], 1 + GROWTH * own if own < FEW else backlog, *rest)
        if own:
            self.remove_reader(sock)
            self.call_later(min(EACH * own, LONGEST), self._accept_some, now, again)
        else:
            super()._accept_connection(*now)  # type: ignore[misc]

    def _accept_some(self, now: tuple[Any, ...], again: tuple[Any, ...]) -> None:
        if (handle := now[1].fileno()) >= 0:  # the server has not stopped
            self._add_reader(handle, self._accept_connection, *again)  # type: ignore[attr-defined]
            super()._accept_connection(*now)  # type: ignore[misc]
