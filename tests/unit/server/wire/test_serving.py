"""HTTP on a connection: what the parser and the transport under the application do to requests and answers."""

import asyncio
from typing import Any

import pytest
from uvicorn.server import ServerState

from drachma.listening.budget import Budget
from drachma.listening.limits import Limits
from drachma.server.wire import serving
from tests.unit.server import client
from tests.unit.server.client import CLAIMS


class _Wire:
    """The other end of a connection: keeps what is written, and says when an answer is complete."""

    def __init__(self) -> None:
        self.data = b""
        self.written = asyncio.Event()

    def get_extra_info(self, _name: str) -> Any:
        return None

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self.written.set()

    def resume_reading(self) -> None:
        pass

    def set_write_buffer_limits(self, *, high: int) -> None:
        assert high > 0

    def write(self, data: bytes) -> None:
        self.data += data
        if data:
            self.written.set()


async def _answer(request: str) -> bytes:
    server = await client.start()
    slot = Budget().admit("", descriptor=0)
    assert slot is not None
    protocol = serving.Connection(server.app, ServerState(), slot=slot, limits=Limits())
    wire = _Wire()
    protocol.connection_made(wire)
    protocol.data_received(request.encode())
    async with asyncio.timeout(60):
        await wire.written.wait()
    protocol.connection_lost(None)
    return wire.data


def _request(method: str, path: str) -> str:
    return f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {client.TOKEN}\r\n\r\n"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("/healthz", 200, id="health"),
        pytest.param("/version", 405, id="version"),
        pytest.param(CLAIMS, 405, id="collection"),
        pytest.param(f"{CLAIMS}/a", 405, id="object"),
        pytest.param("/nope", 404, id="unknown-path"),
    ],
)
async def test_the_answer_to_a_head_ends(path: str, code: int) -> None:
    data = await _answer(_request("HEAD", path))
    assert data.startswith(f"HTTP/1.1 {code} ".encode())
    assert data.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("method", ["FOO", "get", "X-1"])
async def test_unknown_methods_are_not_allowed(method: str) -> None:
    data = await _answer(_request(method, CLAIMS))
    assert data.startswith(b"HTTP/1.1 405 ")
    assert b'"reason":"MethodNotAllowed"' in data


async def test_what_is_no_request_is_refused() -> None:
    assert (await _answer("hello there\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
