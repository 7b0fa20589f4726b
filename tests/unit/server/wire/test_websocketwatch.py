"""Watches over WebSocket: a client library on a real connection, and clients that misbehave."""

import asyncio
import pathlib
import ssl

import aiohttp
import msgspec
import pytest
from uvicorn.server import ServerState

from drachma.listening.budget import Budget
from drachma.listening.limits import Limits
from drachma.server.wire import serving, websocketwatch
from tests.unit.listening import test_exchange as exchanges
from tests.unit.server import client
from tests.unit.server.wire import test_connections as connections

WATCH = "/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Dwatched"

HANDSHAKE = (
    b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: eA==\r\n\r\n"
)
ADMIN = {"authorization": f"Bearer {client.TOKEN}"}


class FakeTunnel:
    """The client's side of a connection: bytes that it sends, and bytes that it gets."""

    def __init__(self, *sent: bytes) -> None:
        self._sent = list(sent)
        self.received = b""
        self.is_closed = False

    def open(self, head: bytes) -> None:
        self.received += head

    async def read(self) -> bytes:
        return self._sent.pop(0) if self._sent else b""

    async def write(self, data: bytes) -> None:
        self.received += data

    def close(self) -> None:
        self.is_closed = True


def frame(code: int, payload: bytes = b"") -> bytes:
    """A masked frame of a client."""
    mask = b"\1\2\3\4"
    return bytes([0x80 | code, 0x80 | len(payload)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload))


async def test_a_client_library_reads_events(tmp_path: pathlib.Path) -> None:
    async with (
        connections.serving_with(connections.PATIENT, tmp_path) as place,
        aiohttp.ClientSession(headers=ADMIN) as session,
    ):
        await place.server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "watched"}})
        address = f"https://127.0.0.1:{place.port}{WATCH}"
        trust: ssl.SSLContext = place.trust
        async with session.ws_connect(address, ssl=trust, protocols=["a", "b"]) as socket:
            assert socket.protocol == "a"
            event = msgspec.json.decode(await socket.receive_str())
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "watched")
            await socket.ping()
            await place.server.call("DELETE", "/api/v1/namespaces/watched")
            assert msgspec.json.decode(await socket.receive_str())["type"] in ("MODIFIED", "DELETED")
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(address, ssl=trust, origin="https://evil.example")
        assert refused.value.status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError) as ended:
            await session.ws_connect(f"{address}&timeoutSeconds=x", ssl=trust)
        assert ended.value.status == 400


async def test_lines_become_messages_whatever_the_pieces() -> None:
    fake = FakeTunnel()
    socket = websocketwatch.WebSocket(fake, "k", "")  # type: ignore[arg-type]
    for piece in (b'{"a"', b":1}\n{}", b"\n" + b"x" * 200 + b"\n"):
        await socket.send({"type": "http.response.body", "body": piece, "more_body": True})
    await socket.send({"type": "http.response.body", "body": b""})
    want = b'\x81\x08{"a":1}\n' + b"\x81\x03{}\n" + b"\x81\x7e\x00\xc9" + b"x" * 200 + b"\n" + b"\x88\x02\x03\xe8"
    assert fake.received == want
    assert fake.is_closed


@pytest.mark.parametrize(
    ("sent", "want"),
    [
        pytest.param((frame(0x9, b"hi")[:3], frame(0x9, b"hi")[3:], frame(0x8)), b"\x8a\x02hi", id="ping-in-pieces"),
        pytest.param((frame(0xA), frame(0x8)), b"", id="pong"),
        pytest.param((b"\x89\x02hi",), b"", id="a-frame-without-a-mask-ends-the-watch"),
        pytest.param((b"\x81\xfe\xff\xff" + bytes(10),), b"", id="a-long-message-ends-the-watch"),
        pytest.param((), b"", id="disconnect"),
    ],
)
async def test_frames_of_a_client(sent: tuple[bytes, ...], want: bytes) -> None:
    fake = FakeTunnel(*sent)
    await websocketwatch.WebSocket(fake, "k", "").disconnected()  # type: ignore[arg-type]
    assert fake.received == want


async def test_very_many_pings_get_few_answers_and_hold_up_no_others() -> None:
    fake = FakeTunnel(frame(0x9) * 40_000 + frame(0x9, b"last"), frame(0x8))
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(count_turns())
    await websocketwatch.WebSocket(fake, "k", "").disconnected()  # type: ignore[arg-type]
    others.cancel()
    assert fake.received.endswith(b"\x8a\x04last")
    assert len(fake.received) < 200
    assert turns >= 40


async def test_bytes_behind_a_handshake_share_the_limit_of_unread_bodies() -> None:
    budget = Budget(Limits(waiting_bytes=100_000))
    is_answered = asyncio.Event()

    async def wait(_scope: object, _receive: object, _send: object) -> None:
        await is_answered.wait()

    wires = [exchanges.Wire() for _ in range(4)]
    for wire in wires:
        slot = budget.admit("", descriptor=0)
        assert slot is not None
        connection = serving.Connection(wait, ServerState(), slot=slot, limits=budget.limits)  # type: ignore[arg-type]
        connection.connection_made(wire)
        connection.data_received(HANDSHAKE)
        connection.data_received(b"x" * 40_000)
    assert [wire.is_reading for wire in wires] == [False] * 4
    assert [wire.is_closed for wire in wires] == [False, False, True, True]
    is_answered.set()
