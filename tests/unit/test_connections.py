"""Connections whose callers do not read what they asked for."""

import socket
import threading
import time

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from dpexplain.service import connections
from dpexplain.service.connections import Crowd, HttpConnection

LARGE = "x" * (16 << 20)  # more than the system's buffers hold


async def answer(scope, receive, send):
    await PlainTextResponse(LARGE if scope["path"] == "/large" else "small")(scope, receive, send)


@pytest.fixture
def crowd(monkeypatch):
    crowd = Crowd(most=3)
    monkeypatch.setattr(connections, "crowd_of_this_worker", lambda: crowd)
    return crowd


@pytest.fixture
def port(crowd):
    options = {"http": HttpConnection, "lifespan": "off", "log_level": "critical"}
    server = uvicorn.Server(uvicorn.Config(answer, port=0, **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = server.force_exit = True
    thread.join(10)


def ask(port, path):
    """A connection that has asked twice and reads nothing: the second response waits for the first to be read."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 2)
    return connection


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def read_until_closed(connection):
    """How many bytes were still sent."""
    count = 0
    try:
        while data := connection.recv(1 << 20):
            count += len(data)
    except ConnectionResetError:
        pass
    return count


def test_who_does_not_read_makes_room_for_a_new_caller(port, crowd):
    slow = [ask(port, "/large") for _ in range(3)]
    until(lambda: len(crowd._all) == 3 and all(one.flow.write_paused for one in crowd._all))
    with ask(port, "/small") as quick, quick.makefile("rb") as response:
        assert response.readline() == b"HTTP/1.1 200 OK\r\n"
    assert read_until_closed(slow[0]) < len(LARGE)
    for one in slow:
        one.close()


def test_who_does_not_read_in_time_is_disconnected(port, crowd, monkeypatch):
    monkeypatch.setattr(connections, "READ_SECONDS", 0.3)
    with ask(port, "/large") as slow:
        until(lambda: len(crowd._all) == 1)
        until(lambda: not crowd._all)
        assert read_until_closed(slow) < len(LARGE)


def test_who_reads_gets_everything(port, crowd, monkeypatch):
    monkeypatch.setattr(connections, "READ_SECONDS", 5.0)
    with ask(port, "/large") as steady:
        assert read_until_closed(steady) > 2 * len(LARGE)
