"""Applications of aiohttp behind the listener: memory of bodies that arrive, and of those under way."""

import asyncio
import socket

import pytest
from aiohttp import web

from drachma.listening import webserver
from drachma.listening.budget import Budget
from drachma.listening.limits import Limits

_BODY_BYTES = 40_000
_HEAD = f"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: {_BODY_BYTES}\r\n\r\n".encode()


class _Clients:
    """Clients that send a part of a request each, and what came of them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(self, data: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(data)
        self._streams.append((reader, writer))

    async def answer(self, number: int) -> bytes:
        """Return the first line of an answer; empty if the connection was ended."""
        try:
            return await self._streams[number][0].readline()
        except ConnectionResetError:
            return b""

    def close(self) -> None:
        for _, writer in self._streams:
            writer.close()


@pytest.mark.parametrize(
    "sent_bytes", [pytest.param(_BODY_BYTES - 1, id="incomplete"), pytest.param(_BODY_BYTES, id="under-way")]
)
async def test_bodies_of_all_connections_share_a_limit(sent_bytes: int) -> None:
    budget = Budget(Limits(waiting_bytes=100_000))
    may_answer = asyncio.Event()

    async def handle(_request: web.Request) -> web.Response:
        await may_answer.wait()
        return web.Response()

    application = web.Application()
    application.router.add_post("/a", handle)
    opened = socket.create_server(("127.0.0.1", 0))
    clients = _Clients(opened.getsockname()[1])
    async with asyncio.timeout(20), webserver.serving(application, opened, budget=budget):
        for _ in range(2):
            await clients.send(_HEAD + b"x" * sent_bytes)
        while budget._held_bytes < 2 * sent_bytes:
            await asyncio.sleep(0)
        await clients.send(_HEAD + b"x" * sent_bytes)
        assert await clients.answer(2) == b""
        await clients.send(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n" + b"x" * 10)
        may_answer.set()
        assert (await clients.answer(3)).startswith(b"HTTP/1.1 200")
        if sent_bytes == _BODY_BYTES:
            assert (await clients.answer(0)).startswith(b"HTTP/1.1 200")
            assert (await clients.answer(1)).startswith(b"HTTP/1.1 200")
            assert budget._held_bytes == 0
        clients.close()
