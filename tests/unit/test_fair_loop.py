"""Workers that share a port share its connections."""

from __future__ import annotations

import asyncio
import socket
from asyncio.selector_events import BaseSelectorEventLoop

from dpexplain.service import fair_loop
from dpexplain.service.fair_loop import FEW, MANY, FairLoop

CALLERS = 60


class Held(asyncio.Protocol):
    """A connection that is counted, as a worker's crowd counts its own."""

    def __init__(self, crowd):
        self._crowd = crowd

    def connection_made(self, transport):
        self._crowd.append(transport)


def test_waiting_connections_are_left_to_others_and_none_is_forgotten(monkeypatch):
    """asyncio's own loop would accept all at once; then one worker answers all callers who keep their connections."""
    crowd, told, accept = [], [], BaseSelectorEventLoop._accept_connection
    monkeypatch.setattr(fair_loop, "crowd_of_this_worker", lambda: crowd)
    monkeypatch.setattr(
        BaseSelectorEventLoop, "_accept_connection", lambda loop, *given: (told.append(given[4]), accept(loop, *given))
    )

    async def run(loop):
        server = await loop.create_server(lambda: Held(crowd), "127.0.0.1", 0, backlog=CALLERS)
        callers = [socket.create_connection(server.sockets[0].getsockname()) for _ in range(CALLERS)]
        async with asyncio.timeout(20):
            while len(crowd) < CALLERS:
                await asyncio.sleep(0.001)
        late = socket.create_connection(server.sockets[0].getsockname())
        await asyncio.sleep(0)  # an accept is put off now, and finds the server closed
        server.close()
        await asyncio.sleep(2 * fair_loop.LONGEST)
        for one in (*crowd, *callers, late):
            one.abort() if isinstance(one, asyncio.Transport) else one.close()
        await asyncio.sleep(0)

    loop = FairLoop()
    loop.run_until_complete(run(loop))
    loop.close()
    assert told[0] == 1
    assert set(told) <= {*range(1, 1 + FEW // 2), MANY}
    assert MANY in told  # a burst is soon accepted
