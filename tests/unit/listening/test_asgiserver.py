"""ASGI applications behind the listener."""

import asyncio
from typing import Any

import pytest

from drachma.listening import addresses, asgiserver
from drachma.listening import budget as budgets
from drachma.listening import limits as limiting
from tests import patience


async def application(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    headers = [(b"content-length", b"5")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hello"})


async def ask(port: int, request: bytes) -> bytes:
    """Return everything that the server answers until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        async with asyncio.timeout(patience.SECONDS):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_requests_are_answered_and_the_socket_is_closed_in_the_end() -> None:
    opened, bound = addresses.bind(addresses.Address("127.0.0.1", 0))
    async with asgiserver.serving(application, opened):
        answer = await ask(bound.port, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"hello")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", bound.port)


async def test_a_head_beyond_the_limit_ends_the_connection() -> None:
    limits = limiting.Limits(head_bytes=1000)
    opened, bound = addresses.bind(addresses.Address("127.0.0.1", 0))
    async with asgiserver.serving(application, opened, budget=budgets.Budget(limits)):
        assert await ask(bound.port, b"GET / HTTP/1.1\r\nX: " + b"x" * 2000 + b"\r\n\r\n") == b""


async def test_a_client_that_never_asks_is_given_up() -> None:
    limits = limiting.Limits(head_seconds=0.05)
    opened, bound = addresses.bind(addresses.Address("127.0.0.1", 0))
    async with asgiserver.serving(application, opened, budget=budgets.Budget(limits)):
        assert await ask(bound.port, b"GET / HT") == b""
