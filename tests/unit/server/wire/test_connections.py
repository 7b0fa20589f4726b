"""Clients that take their time, on real sockets and with small limits: they are given up, and others are answered."""

import asyncio
import contextlib
import gc
import pathlib
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import uvloop

from drachma.listening import addresses
from drachma.listening.budget import Budget
from drachma.listening.guard import Guard
from drachma.listening.httpconnection import HttpConnection
from drachma.listening.limits import Limits
from drachma.server.access import certificates
from drachma.server.wire import serving
from tests.unit.server import client

PATIENT = Limits(handshake_seconds=60, head_seconds=60, connections=4, loopback_percent=100)
IMPATIENT_BEFORE = Limits(handshake_seconds=0.2, head_seconds=60)
IMPATIENT_AFTER = Limits(handshake_seconds=60, head_seconds=0.2)
"""Before TLS is agreed, and after it."""

HALF_A_HEAD = b"GET /version HTTP/1.1\r\nhost: x\r\n"
MINIMAL = '{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "A"}}'
REQUEST = b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n"


class Place:
    """Address of the server."""

    def __init__(self, port: int, trust: ssl.SSLContext, server: client.Client, budget: Budget) -> None:
        self.server = server
        self._budget = budget
        self.port = port
        self.trust = trust
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self, *, limit: int = 2**16) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection on which TLS is agreed; the client takes in no more than about ``limit`` bytes unread."""
        return await self._open(self.trust, limit)

    async def connect_without_tls(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection that says nothing."""
        return await self._open(None, 2**16)

    async def emptied(self) -> None:
        """Returns once the server has no connection left."""
        while len(self._budget):
            await asyncio.sleep(0.01)

    async def _open(
        self, trust: ssl.SSLContext | None, limit: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        opened = socket.socket()
        # Without this the kernel takes in more, by some megabytes, if it has the memory.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        opened.setblocking(False)
        await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", self.port))
        name = "127.0.0.1" if trust is not None else None
        reader, writer = await asyncio.open_connection(sock=opened, ssl=trust, server_hostname=name, limit=limit)
        self._writers.append(writer)
        return reader, writer

    async def leave(self) -> None:
        """Ends all connections."""
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


class _Server(serving.Server):
    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield


@contextlib.asynccontextmanager
async def serving_with(limits: Limits, folder: pathlib.Path) -> AsyncIterator[Place]:
    started = await client.start()
    opened, bound = addresses.bind(addresses.Address("127.0.0.1", 0))
    files = certificates.ensure(folder / "pki", hosts=bound.hosts, now=datetime.now(UTC))
    budget = Budget(limits)
    server = _Server(started.app, files, budget=budget)
    task = asyncio.create_task(server.serve(sockets=[opened]))
    try:
        async with asyncio.timeout(60):
            while not server.started:
                await asyncio.sleep(0)
            trust = ssl.create_default_context(cafile=str(files.authority))
            place = Place(bound.port, trust, started, budget)
            yield place
            await place.leave()
    finally:
        server.should_exit = True
        await task
        opened.close()
        await started.store.close()


async def ended(reader: asyncio.StreamReader) -> bool:
    """Returns once the server has ended the connection, whichever way."""
    with contextlib.suppress(OSError):
        while await reader.read(1000):
            pass
    return True


async def answer(reader: asyncio.StreamReader) -> bytes:
    """The first line of an answer."""
    return await reader.readline()


async def test_a_handshake_that_does_not_begin_is_given_up(tmp_path: pathlib.Path) -> None:
    async with serving_with(IMPATIENT_BEFORE, tmp_path) as place:
        reader, _ = await place.connect_without_tls()
        assert await ended(reader)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(HALF_A_HEAD, id="half-a-head"),
        pytest.param(b"\r\n", id="empty-lines"),
    ],
)
async def test_a_request_that_does_not_become_whole_is_given_up(tmp_path: pathlib.Path, words: bytes) -> None:
    async with serving_with(IMPATIENT_AFTER, tmp_path) as place:
        reader, writer = await place.connect()
        writer.write(words)
        assert await ended(reader)


async def test_dribbling_buys_no_time(tmp_path: pathlib.Path) -> None:
    async with serving_with(IMPATIENT_AFTER, tmp_path) as place:
        reader, writer = await place.connect()
        writer.write(HALF_A_HEAD)

        async def dribble() -> None:
            with contextlib.suppress(OSError):
                while True:
                    writer.write(b"x-more: 1\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.05)

        dribbling = asyncio.create_task(dribble())
        assert await ended(reader)
        dribbling.cancel()


async def test_a_head_too_large_is_given_up(tmp_path: pathlib.Path) -> None:
    limits = Limits(head_bytes=10_000)
    async with serving_with(limits, tmp_path) as place:
        reader, writer = await place.connect()
        writer.write(HALF_A_HEAD + b"x: " + b"y" * 20_000)
        assert await ended(reader)


@pytest.mark.parametrize(
    "after_head",
    [
        pytest.param(b"0\r\n" + b"x: 123456789\r\n" * 100_000, id="many-trailers"),
        pytest.param(b"0\r\nx: " + b"y" * 1_500_000, id="a-long-trailer"),
        pytest.param(b"1;x=" + b"y" * 1_500_000, id="a-long-chunk-extension"),
    ],
)
async def test_bytes_around_a_body_are_limited(tmp_path: pathlib.Path, after_head: bytes) -> None:
    """Without a limit, a client without credentials fills the memory with trailers."""
    async with serving_with(Limits(head_bytes=300_000, head_seconds=600, body_seconds=600), tmp_path) as place:
        reader, writer = await place.connect()
        writer.write(b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        await writer.drain()
        writer.write(after_head)
        assert await ended(reader)


async def test_a_body_in_chunks_is_longer_than_the_limit_of_heads(tmp_path: pathlib.Path) -> None:
    async with serving_with(Limits(head_bytes=100_000), tmp_path) as place:
        reader, writer = await place.connect()
        token = f"authorization: Bearer {client.TOKEN}\r\n".encode()
        writer.write(b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\n" + token)
        writer.write(b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        annotation = b"y" * 200_000
        body = b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","annotations":{"x":"%b"}}}' % annotation
        for begin in range(0, len(body), 1000):
            part = body[begin : begin + 1000]
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        writer.write(b"0\r\nx-trailer: 1\r\n\r\n")
        assert (await answer(reader)).startswith(b"HTTP/1.1 201")


async def test_requests_in_pieces_are_answered_one_after_the_other(tmp_path: pathlib.Path) -> None:
    async with serving_with(PATIENT, tmp_path) as place:
        reader, writer = await place.connect()
        for _ in range(3):
            writer.write(REQUEST[:10])
            await writer.drain()
            writer.write(REQUEST[10:])
            assert (await answer(reader)).startswith(b"HTTP/1.1 200")
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.partition(b":")[2]))


async def test_whoever_waits_longest_makes_room(tmp_path: pathlib.Path) -> None:
    """Far more clients that say nothing than there is room for, and one that has a question."""
    async with serving_with(PATIENT, tmp_path) as place:
        silent = [await place.connect() for _ in range(2)] + [await place.connect_without_tls() for _ in range(10)]
        reader, writer = await place.connect()
        writer.write(REQUEST)
        assert (await answer(reader)).startswith(b"HTTP/1.1 200")
        assert await ended(silent[0][0])


async def test_who_is_being_answered_is_not_given_up(tmp_path: pathlib.Path) -> None:
    async with serving_with(PATIENT, tmp_path) as place:
        watches = []
        for _ in range(PATIENT.connections):
            reader, writer = await place.connect()
            token = f"authorization: Bearer {client.TOKEN}\r\n"
            writer.write(f"GET {client.CLAIMS}?watch=1 HTTP/1.1\r\nhost: x\r\n{token}\r\n".encode())
            assert (await answer(reader)).startswith(b"HTTP/1.1 200")
            watches.append(reader)
        refused, _ = await place.connect_without_tls()
        assert await ended(refused)
        assert not any(reader.at_eof() for reader in watches)


async def _list_of(place: Place, writer: asyncio.StreamWriter, path: str) -> None:
    token = f"authorization: Bearer {client.TOKEN}\r\n"
    writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\n{token}\r\n".encode())
    await writer.drain()


async def test_client_that_does_not_read_is_given_up(tmp_path: pathlib.Path) -> None:
    limits = Limits(unread_seconds=0.2)
    async with serving_with(limits, tmp_path) as place:
        for number in range(8):
            document = {"metadata": {"name": f"m{number}"}, "data": {"x": "x" * 1_000_000}}
            await place.server.call("POST", "/api/v1/namespaces/default/configmaps", document)
        reader, writer = await place.connect(limit=1000)
        await _list_of(place, writer, "/api/v1/namespaces/default/configmaps")
        assert (await answer(reader)).startswith(b"HTTP/1.1 200")
        await place.emptied()
        while place.server.app._sending.outgoing.total:
            await asyncio.sleep(0.01)


async def test_watch_over_websocket_that_is_not_read_is_given_up(tmp_path: pathlib.Path) -> None:
    """The protocol of a watch buys its client no more time than HTTP does."""
    async with serving_with(Limits(unread_seconds=0.2), tmp_path) as place:
        for number in range(8):
            document = {"metadata": {"name": f"m{number}"}, "data": {"x": "x" * 1_000_000}}
            await place.server.call("POST", "/api/v1/namespaces/default/configmaps", document)
        reader, writer = await place.connect(limit=1000)
        upgrade = (
            "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==\r\n"
        )
        path = "/api/v1/namespaces/default/configmaps?watch=1"
        head = f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {client.TOKEN}\r\n{upgrade}\r\n"
        writer.write(head.encode())
        assert (await answer(reader)).startswith(b"HTTP/1.1 101")
        await place.emptied()


async def test_client_that_closes_its_half_is_noticed(tmp_path: pathlib.Path) -> None:
    async with serving_with(Limits(), tmp_path) as place:
        reader, writer = await place.connect()
        await _list_of(place, writer, f"{client.CLAIMS}?watch=1")
        assert (await answer(reader)).startswith(b"HTTP/1.1 200")
        writer.get_extra_info("socket").shutdown(socket.SHUT_WR)
        await place.emptied()
        while len(place.server.app.dispatcher.services.watches):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("head", "body", "code"),
    [
        pytest.param("GET /version", "", 200, id="answered"),
        pytest.param(f"GET {client.CLAIMS}/none", "", 404, id="not-found"),
        pytest.param(f"GET {client.CLAIMS}?limit=x", "", 400, id="bad-query"),
        pytest.param(f"POST {client.CLAIMS}", "{", 400, id="bad-body"),
        pytest.param(f"POST {client.CLAIMS}", '{"apiVersion": "v1", "kind": "Pod"}', 400, id="another-kind"),
        pytest.param(f"POST {client.CLAIMS}", MINIMAL, 422, id="invalid"),
        pytest.param(f"POST {client.CLAIMS.replace('default', 'nowhere')}", MINIMAL, 404, id="no-namespace"),
        pytest.param(f"PATCH {client.CLAIMS}/none", "{}", 415, id="no-patch"),
        pytest.param(f"DELETE {client.CLAIMS}/none", "", 404, id="not-deleted"),
        pytest.param("GET /api/v1/namespaces/default/pods/none/log", "", 404, id="no-log"),
        pytest.param("GET /nope", "", 404, id="no-path"),
        pytest.param(f"BREW {client.CLAIMS}", "", 405, id="unknown-method"),
    ],
)
async def test_an_ended_connection_leaves_nothing_for_the_garbage_collector(
    tmp_path: pathlib.Path, head: str, body: str, code: int
) -> None:
    """Collections are rare, and until the next one a connection would keep its buffers of TLS."""
    await _end_a_connection(tmp_path, head, body, code=code)


def test_an_ended_connection_leaves_nothing_on_the_event_loop_of_servers(tmp_path: pathlib.Path) -> None:
    uvloop.run(_end_a_connection(tmp_path, "GET /version", "", code=200))


async def _end_a_connection(folder: pathlib.Path, head: str, body: str, *, code: int) -> None:
    """Check that a connection and its guard are freed when the client closes it."""
    async with serving_with(PATIENT, folder) as place:
        gc.collect()
        gc.disable()
        try:
            reader, writer = await place.connect()
            more = f"authorization: Bearer {client.TOKEN}\r\ncontent-type: application/json\r\n"
            writer.write(f"{head} HTTP/1.1\r\nhost: x\r\n{more}content-length: {len(body)}\r\n\r\n{body}".encode())
            assert (await reader.readline()).startswith(f"HTTP/1.1 {code} ".encode())
            assert len(connections_in_memory()) == 2
            writer.close()
            await place.emptied()
            await asyncio.sleep(0)
            assert connections_in_memory() == []
        finally:
            gc.enable()


def connections_in_memory() -> list[object]:
    """Return protocols and guards that were made since the last collection, and that the server has not freed."""
    return [each for each in gc.get_objects(generation=0) if isinstance(each, (HttpConnection, Guard))]
