"""Exchanges on a connection: whole responses, messages of ASGI, several requests at once, and idle connections."""

import asyncio
from typing import Any

import pytest
from uvicorn.server import ServerState

from drachma.listening import exchange, httpconnection
from drachma.listening.budget import Budget
from drachma.listening.limits import Limits
from tests import patience

GET = b"GET /a%20b?x=1 HTTP/1.1\r\nHost: x\r\n\r\n"
JSON = ((b"content-type", b"application/json"),)


class Wire:
    """Transport that keeps everything written to it."""

    def __init__(self) -> None:
        self.data = b""
        self.is_closed = False
        self.is_reading = True

    def get_extra_info(self, _name: str) -> Any:
        return None

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def set_write_buffer_limits(self, *, high: int) -> None:
        assert high > 0

    def write(self, data: bytes) -> None:
        self.data += data


class Server:
    """A connection with an application on it."""

    def __init__(
        self, application: exchange.Application, limits: Limits | None = None, *, budget: Budget | None = None
    ) -> None:
        slot = (Budget() if budget is None else budget).admit("", descriptor=0)
        assert slot is not None
        self.wire = Wire()
        self.state = ServerState()
        self.connection = httpconnection.HttpConnection(application, self.state, slot=slot, limits=limits or Limits())
        self.connection.connection_made(self.wire)

    async def finish(self) -> bytes:
        """Return all responses once the application has nothing to do."""
        async with asyncio.timeout(patience.SECONDS):
            while self.state.tasks:
                await asyncio.sleep(0)
        return self.wire.data


async def respond(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the path in one call, or in messages if the client does not read."""
    body = scope["path"].encode()
    if not scope[exchange.EXCHANGE].respond(200, JSON, body):
        await send({"type": "http.response.start", "status": 200, "headers": JSON})
        await send({"type": "http.response.body", "body": body})


async def stream(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": JSON})
    for part in (b"one", b"two"):
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def echo(scope: Any, receive: Any, send: Any) -> None:
    whole = scope[exchange.EXCHANGE].take_body()
    body = whole or b""
    while whole is None:
        message = await receive()
        body += message["body"]
        if not message["more_body"]:
            break
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def test_whole_response_is_one_write() -> None:
    server = Server(respond)
    server.connection.data_received(GET)
    want = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n/a b"
    assert await server.finish() == want
    assert not server.wire.is_closed


async def test_head_request_gets_no_body() -> None:
    server = Server(respond)
    server.connection.data_received(GET.replace(b"GET", b"HEAD"))
    assert (await server.finish()).endswith(b"content-length: 4\r\n\r\n")


async def test_client_that_closes_is_answered_and_closed() -> None:
    server = Server(respond)
    server.connection.data_received(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"connection: close\r\n" in await server.finish()
    assert server.wire.is_closed


async def test_response_in_parts_is_chunked() -> None:
    server = Server(stream)
    server.connection.data_received(GET)
    assert (await server.finish()).endswith(b"chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")


async def test_requests_sent_together_are_answered_in_turn() -> None:
    server = Server(respond)
    requests = [b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(3)]
    server.connection.data_received(b"".join(requests))
    assert not server.wire.is_reading
    data = await server.finish()
    assert [part[-2:] for part in data.split(b"HTTP/1.1 200 OK")[1:]] == [b"/0", b"/1", b"/2"]
    assert server.wire.is_reading


@pytest.mark.parametrize("size", [3, 70_000])
async def test_body_in_parts_arrives_whole(size: int) -> None:
    server = Server(echo)
    server.connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
    await asyncio.sleep(0)
    for start in range(0, size, 10_000):
        server.connection.data_received(b"x" * min(10_000, size - start))
        await asyncio.sleep(0)
    assert (await server.finish()).endswith(b"\r\n\r\n" + b"x" * size)


async def test_body_that_comes_with_its_head_needs_no_wait() -> None:
    server = Server(echo)
    server.connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
    assert (await server.finish()).endswith(b"abc")


async def test_client_is_asked_to_send_the_body_that_it_holds_back() -> None:
    server = Server(echo)
    server.connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
    await asyncio.sleep(0)
    assert server.wire.data == b"HTTP/1.1 100 Continue\r\n\r\n"
    server.connection.data_received(b"x")
    assert (await server.finish()).endswith(b"x")


async def test_paused_client_gets_its_response_when_it_reads() -> None:
    server = Server(respond)
    server.connection.pause_writing()
    server.connection.data_received(GET)
    await asyncio.sleep(0)
    assert server.wire.data == b""
    server.connection.resume_writing()
    assert (await server.finish()).endswith(b"0\r\n\r\n")


async def test_failed_application_gets_the_client_a_500() -> None:
    async def fail(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError("broken")

    server = Server(fail)
    server.connection.data_received(GET)
    assert (await server.finish()).startswith(b"HTTP/1.1 500 ")
    assert server.wire.is_closed


async def test_application_learns_that_its_client_has_gone() -> None:
    messages = []

    async def wait(scope: Any, receive: Any, send: Any) -> None:
        messages.append((await receive())["type"])
        messages.append((await receive())["type"])

    server = Server(wait)
    server.connection.data_received(GET)
    await asyncio.sleep(0)
    server.connection.connection_lost(None)
    await server.finish()
    assert messages == ["http.request", "http.disconnect"]


async def test_one_timer_closes_an_idle_connection() -> None:
    server = Server(respond, Limits(idle_seconds=0.05))
    for _ in range(3):
        server.connection.data_received(GET)
        await server.finish()
    async with asyncio.timeout(patience.SECONDS):
        while not server.wire.is_closed:
            await asyncio.sleep(0.01)
