"""Connections whose callers do not read what they asked for, or ask for more than their share."""

import asyncio
import socket
import threading
import time

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from dpexplain.service import connections
from dpexplain.service.connections import MOST_AHEAD, Crowd, HttpConnection
from dpexplain.service.turns import Turnstile

LARGE = "x" * (16 << 20)  # more than the system's buffers hold


ANSWERED = []  # paths, in order


async def answer(scope, receive, send):
    ANSWERED.append(scope["path"])
    if scope["path"] == "/busy":
        time.sleep(0.002)  # the loop's own time
    elif scope["path"] == "/body":
        await receive()
    await PlainTextResponse(LARGE if scope["path"] == "/large" else "small")(scope, receive, send)


@pytest.fixture
def crowd(monkeypatch, request):
    crowd = Crowd(most=getattr(request, "param", 3))
    ANSWERED.clear()
    monkeypatch.setattr(connections, "crowd_of_this_worker", lambda: crowd)
    return crowd


@pytest.fixture
def port(crowd):
    options = {"http": HttpConnection, "lifespan": "off", "log_level": "warning", "log_config": None}
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


@pytest.mark.parametrize("crowd", [200], indirect=True)
@pytest.mark.parametrize("path", ["/busy", "/"])
def test_a_health_check_is_not_behind_requests_that_were_sent_before_it(port, crowd, path):
    """100 callers send 40 requests each at once and read all that is answered."""
    accept = "Accept: text/html\r\n" if path == "/" else ""
    many = f"GET {path} HTTP/1.1\r\nHost: x\r\n{accept}\r\n".encode() * 40
    callers = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(100)]
    for one in callers:
        one.sendall(many)
    until(lambda: len(ANSWERED) > 100)
    before = len(ANSWERED)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as monitor, monitor.makefile("rb") as response:
        monitor.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert response.readline() == b"HTTP/1.1 200 OK\r\n"
    assert ANSWERED.index("/healthz") - before < 100  # one round of all callers is 100, and a health check takes several turns
    for one in callers:
        one.close()


@pytest.mark.parametrize("crowd", [200], indirect=True)
def test_callers_are_answered_in_turn(port, crowd):
    """Whoever sends many requests at once waits for one answer of everybody else between two of its own."""
    greedy = socket.create_connection(("127.0.0.1", port), timeout=30)
    others = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(20)]
    greedy.sendall(b"GET /busy HTTP/1.1\r\nHost: x\r\n\r\n" * 500)
    for number, one in enumerate(others):
        one.sendall(f"GET /other/{number} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    until(lambda: sum(path.startswith("/other") for path in ANSWERED) == 20)
    assert ANSWERED.count("/busy") < 250
    for one in [greedy, *others]:
        one.close()


def test_who_sends_far_ahead_is_disconnected_after_an_answer(port, crowd):
    """Each request that waits for its body reads on: without a limit, requests ahead of it would fill the memory."""
    request = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    count = 64 * MOST_AHEAD // len(request)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as ahead:
        threading.Thread(target=send_all, args=(ahead, request * count), daemon=True).start()
        read_until_closed(ahead)
    assert 0 < ANSWERED.count("/body") < count / 10


def test_who_asks_ahead_makes_room_for_a_new_caller(port, crowd):
    many = b"GET /busy HTTP/1.1\r\nHost: x\r\n\r\n" * 500
    callers = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(3)]
    for one in callers:
        one.sendall(many)
    until(lambda: len(ANSWERED) > 30)
    with ask(port, "/small") as quick, quick.makefile("rb") as response:
        assert response.readline() == b"HTTP/1.1 200 OK\r\n"
    assert ANSWERED.count("/busy") < 1000
    for one in callers:
        one.close()


def test_a_web_socket_is_not_opened(port, crowd, caplog):
    asked = b"GET /small HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=30) as caller, caller.makefile("rb") as response:
        caller.sendall(asked)
        assert response.readline() == b"HTTP/1.1 200 OK\r\n"
    assert not [one for one in caplog.records if "pgrade" in one.getMessage()]


def send_all(connection, data):
    try:
        connection.sendall(data)
    except OSError:
        return


def test_a_turnstile_lets_addresses_take_turns_and_forgets_who_left():
    async def stand_in_line():
        turnstile, entered = Turnstile(seconds=-1, at_once=2), []

        async def enter(name):
            await turnstile.enter(name[0])
            entered.append(name)

        waiting = [asyncio.create_task(enter(name)) for name in ("a0", "a1", "a2", "a3", "a4", "b0", "b1", "c0")]
        await asyncio.sleep(0)
        waiting[2].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return entered

    assert asyncio.run(stand_in_line()) == ["a0", "a1", "b0", "c0", "b1", "a3", "a4"]
