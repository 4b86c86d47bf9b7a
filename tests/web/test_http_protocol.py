"""Senders that never end the head of a request, over real connections."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from torchtriage.web.http_protocol import BoundedHead


class Impatient(BoundedHead):
    seconds = 0.2


async def greet(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers `hello`; where it was asked for `/later`, once it has looked for everything that was sent."""
    if scope["path"] == "/later":
        while (await receive()).get("more_body", False):
            pass
        await asyncio.sleep(0.2)
    await PlainTextResponse("hello")(scope, receive, send)


@contextmanager
def connected(protocol: type[BoundedHead], sent: bytes = b"") -> Iterator[socket.socket]:
    """Returns a connection to a server that answers everything with `hello`; `sent` is there before its time begins."""
    config = uvicorn.Config(greet, http=protocol, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname(), timeout=120) as connection,
    ):
        connection.sendall(sent)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield connection
        finally:
            connection.close()
            server.should_exit = True
            thread.join()


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with connected(BoundedHead) as connection:
        yield connection


def answer(connection: socket.socket) -> bytes:
    """Returns what comes until the server closes the connection."""
    got = b""
    while chunk := connection.recv(65536):
        got += chunk
    return got


@pytest.mark.parametrize("begin", [b"GET /", b"GET / HTTP/1.1\r\nX-Long: ", b"GET / HTTP/1.1\r\n"])
def test_a_head_without_an_end_is_refused(connection: socket.socket, begin: bytes) -> None:
    endless = b"X-Header: value\r\n" if begin.endswith(b"\n") else b"x" * 16
    connection.sendall(begin)
    try:
        while True:  # until it is refused: a server that takes it all fills its memory, and this test does not end
            connection.sendall(endless * 256)
    except (BrokenPipeError, ConnectionResetError):
        return


@pytest.mark.parametrize(("sent", "status"), [(b"", b""), (b"GET / HTTP/1.1\r\nHost: a", b"HTTP/1.1 408 ")])
def test_a_head_that_does_not_come_is_not_waited_for(sent: bytes, status: bytes) -> None:
    with connected(Impatient, sent) as connection:
        assert answer(connection).startswith(status)


def test_a_slow_body_is_none_of_its_business() -> None:
    with connected(Impatient, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n") as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_requests_in_parts_and_one_after_another_are_answered(connection: socket.socket) -> None:
    for piece in (b"GET / HT", b"TP/1.1\r\nHost", b": a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"):
        connection.sendall(piece)
    assert answer(connection).count(b"hello") == 2


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        (b"POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nlog", 1),
        (b"POST /later HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nlog\r\n0\r\n\r\n", 1),
        (b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n" * 3, 3),
        (b"GET /later HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHo", 1),
        (b"POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nlo", 0),
        (b"", 0),
    ],
)
def test_a_client_that_closed_its_sending_side_gets_every_answer(
    connection: socket.socket, sent: bytes, answers: int
) -> None:
    connection.sendall(sent)
    connection.shutdown(socket.SHUT_WR)
    assert answer(connection).count(b"hello") == answers
