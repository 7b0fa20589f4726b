"""Watches over WebSocket: a client library on a real connection, and clients that misbehave."""

import pathlib
import ssl

import aiohttp
import msgspec
import pytest

from drachma.server.wire import websocketwatch
from tests.unit.server import client
from tests.unit.server.wire import test_connections as connections

WATCH = "/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Dwatched"

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
