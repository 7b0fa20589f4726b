"""Attacks on the framing of HTTP/1.1: every byte belongs to the request that a proxy in front would give it to."""

import asyncio
from typing import Any

import pytest

from drachma.listening import exchange, requesthead
from drachma.listening.budget import Budget
from drachma.listening.limits import Limits
from tests.unit.listening.test_exchange import Server, echo, respond

POST = b"POST /a HTTP/1.1\r\nHost: x\r\n"
GET = b"GET /a HTTP/1.1\r\nHost: x\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


class Recorder:
    """Application that keeps the requests it gets."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, list[tuple[bytes, bytes]], bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, has_more = b"", True
        while has_more:
            message = await receive()
            if message["type"] != "http.request":
                return
            body, has_more = body + message["body"], message["more_body"]
        self.requests.append((scope["path"], list(scope["headers"]), body))
        scope[exchange.EXCHANGE].respond(200, (), b"done")


def codes(data: bytes) -> list[int]:
    """Return the status codes of responses."""
    return [int(part[:3]) for part in data.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize(
    ("request_bytes", "want_code"),
    [
        pytest.param(POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, id="both"),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400, id="other-order"),
        pytest.param(POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501, id="unknown-coding"),
        pytest.param(POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, id="two-codings"),
        pytest.param(POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400, id="chunked-is-not-last"),
        pytest.param(
            POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400, id="coding-twice"
        ),
        pytest.param(POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400, id="folded-coding"),
        pytest.param(b"POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, id="coding-in-1.0"),
        pytest.param(POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400, id="two-lengths"),
        pytest.param(POST + b"Content-Length: 3, 3\r\n\r\nabc", 400, id="list-of-lengths"),
        pytest.param(POST + b"Content-Length: +3\r\n\r\nabc", 400, id="length-with-a-sign"),
        pytest.param(POST + b"Content-Length : 3\r\n\r\nabc", 400, id="space-before-the-colon"),
        pytest.param(POST + b"Content-Length: 99999999999999999999\r\n\r\nabc", 400, id="length-that-overflows"),
        pytest.param(GET + b"X: a\r\n b\r\n\r\n", 400, id="folded-header"),
        pytest.param(GET + b"X: a\nY: b\r\n\r\n", 400, id="line-feed-in-a-value"),
        pytest.param(GET + b"X: a\rY: b\r\n\r\n", 400, id="carriage-return-in-a-value"),
        pytest.param(GET + b"X: a\0b\r\n\r\n", 400, id="zero-byte"),
        pytest.param(b"GET /a HTTP/1.1\nHost: x\n\n", 400, id="line-feeds-only"),
        pytest.param(GET + b"Host: y\r\n\r\n", 400, id="two-hosts"),
        pytest.param(b"GET /a HTTP/1.1\r\n\r\n", 400, id="no-host"),
        pytest.param(b"GET /a\r\n\r\n", 400, id="version-0.9"),
        pytest.param(b"GET /a HTTP/2.0\r\nHost: x\r\n\r\n", 505, id="version-2"),
        pytest.param(CHUNKED + b"3\nabc\n0\n\n", 400, id="chunk-with-line-feeds"),
        pytest.param(CHUNKED + b"3;\nx\r\nabc\r\n0\r\n\r\n", 400, id="line-feed-in-an-extension"),
        pytest.param(CHUNKED + b"0x3\r\nabc\r\n0\r\n\r\n", 400, id="chunk-size-with-a-prefix"),
        pytest.param(CHUNKED + b"10000000000000003\r\nabc\r\n0\r\n\r\n", 400, id="chunk-size-that-overflows"),
        pytest.param(CHUNKED + b"3\r\nabcXX0\r\n\r\n", 400, id="chunk-longer-than-its-size"),
        pytest.param(
            POST + b"Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 33\r\n\r\n", 400, id="upgrade-with-a-body"
        ),
        pytest.param(
            POST + b"Connection: upgrade\r\nUpgrade: x\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            id="upgrade-with-chunks",
        ),
    ],
)
async def test_ambiguous_requests_are_refused_and_end_the_connection(request_bytes: bytes, want_code: int) -> None:
    recorder = Recorder()
    server = Server(recorder)
    server.connection.data_received(request_bytes)
    server.connection.data_received(HIDDEN)
    assert codes(await server.finish()) == [want_code]
    assert server.wire.is_closed
    assert recorder.requests == []


@pytest.mark.parametrize("is_split", [pytest.param(False, id="at-once"), pytest.param(True, id="in-pieces")])
async def test_trailers_are_no_headers(*, is_split: bool) -> None:
    recorder = Recorder()
    server = Server(recorder)
    trailers = b"Authorization: Bearer stolen\r\nImpersonate-User: admin\r\n\r\n"
    pieces = [CHUNKED + b"3\r\nabc\r\n", b"0\r\n" + trailers]
    for piece in pieces if is_split else [b"".join(pieces)]:
        server.connection.data_received(piece)
        await asyncio.sleep(0)
    assert codes(await server.finish()) == [200]
    assert recorder.requests == [("/a", [(b"host", b"x"), (b"transfer-encoding", b"chunked")], b"abc")]


async def test_what_follows_an_upgrade_that_is_declined_is_no_request() -> None:
    recorder = Recorder()
    server = Server(recorder)
    server.connection.data_received(GET + b"Connection: upgrade\r\nUpgrade: x\r\n\r\n" + HIDDEN)
    server.connection.data_received(HIDDEN)
    assert codes(await server.finish()) == [200]
    assert server.wire.is_closed
    assert [path for path, _, _ in recorder.requests] == ["/a"]


async def test_requests_before_an_invalid_one_are_answered_first() -> None:
    """A client must not take the refusal for the answer to a write that was carried out."""
    server = Server(respond)
    server.connection.data_received(GET + b"\r\n" + GET + b"\r\n" + b"\0garbage\r\n\r\n")
    server.connection.data_received(HIDDEN)
    assert codes(await server.finish()) == [200, 200, 400]
    assert server.wire.is_closed


async def test_invalid_bytes_do_not_become_part_of_a_response_under_way() -> None:
    more = asyncio.Event()

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": ()})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await more.wait()
        await send({"type": "http.response.body", "body": b"two"})

    server = Server(stream)
    server.connection.data_received(GET + b"\r\n")
    await asyncio.sleep(0)
    server.connection.data_received(b"\0garbage")
    assert server.wire.data.endswith(b"one\r\n")
    more.set()
    data = await server.finish()
    assert codes(data) == [200, 400]
    assert b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\nHTTP/1.1 400" in data


async def test_body_that_becomes_invalid_is_refused_instead_of_its_answer() -> None:
    recorder = Recorder()
    server = Server(recorder)
    server.connection.data_received(GET + b"\r\n" + CHUNKED + b"3\r\nabc\r\n")
    server.connection.data_received(b"not a size\r\n")
    assert codes(await server.finish()) == [200, 400]
    assert [body for _, _, body in recorder.requests] == [b""]


async def test_chunks_of_one_byte_are_a_body() -> None:
    server = Server(echo, Limits(head_bytes=1_000))
    server.connection.data_received(CHUNKED)
    for _ in range(100):
        server.connection.data_received(b"1\r\nx\r\n" * 100)
        await asyncio.sleep(0)
    server.connection.data_received(b"0\r\n\r\n")
    assert (await server.finish()).endswith(b"\r\n\r\n" + b"x" * 10_000)


@pytest.mark.parametrize(
    "piece",
    [
        pytest.param(b"1;" + b"e" * 500 + b"\r\nx\r\n", id="extensions-of-chunks"),
        pytest.param(b"0\r\n" + b"t: " + b"v" * 500, id="long-trailer"),
    ],
)
async def test_framing_that_is_no_body_is_limited(piece: bytes) -> None:
    server = Server(echo, Limits(head_bytes=10_000))
    server.connection.data_received(CHUNKED)
    server.connection.data_received(piece)
    for _ in range(100):
        server.connection.data_received(piece if piece.startswith(b"1") else b"v" * 500)
        await asyncio.sleep(0)
    assert server.wire.is_closed


async def test_headers_are_limited_in_number() -> None:
    server = Server(respond)
    server.connection.data_received(GET + b"a: b\r\n" * requesthead.MOST_HEADERS + b"\r\n")
    assert codes(await server.finish()) == [431]


async def test_incomplete_heads_of_all_connections_share_a_limit() -> None:
    """One client with very many connections, each with a head below the limit for one, must not use up memory."""
    budget = Budget(Limits(waiting_bytes=100_000))
    slots = [budget.admit(f"10.0.0.{number}", descriptor=0) for number in range(5)]
    held = [slot is not None and slot.hold(40_000) for slot in slots]
    assert held == [True, True, False, False, False]
    assert slots[0] is not None
    assert slots[4] is not None
    assert slots[4].hold(10_000), "a usual head always has room"
    for slot in slots[1:4]:
        assert slot is not None
        slot.release()
    assert slots[4].hold(40_000)


async def test_connection_whose_head_has_no_room_is_given_up() -> None:
    server = Server(respond, budget=Budget(Limits(waiting_bytes=20_000)))
    server.connection.data_received(GET + b"x: " + b"y" * 30_000)
    assert server.wire.is_closed
    assert server.wire.data == b""


async def wait_for_ever(scope: Any, receive: Any, send: Any) -> None:
    """Begin a response and leave it open, as a watch does; take nothing of the body."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"first", "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(GET + b"x: " + b"y" * 30_000 + b"\r\n\r\n", id="long-head"),
        pytest.param(GET + b"a:\r\n" * 1000 + b"\r\n", id="many-headers"),
        pytest.param((GET + b"\r\n") * 100, id="requests-sent-together"),
    ],
)
async def test_requests_under_way_share_a_limit(request_bytes: bytes) -> None:
    """Watches last for hours, so what their connections hold must count for as long."""
    budget = Budget(Limits(waiting_bytes=200_000))
    servers = []
    for _ in range(20):
        server = Server(wait_for_ever, budget=budget)
        server.connection.data_received(request_bytes)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        servers.append(server)
    held = sum(server.connection._slot.held_bytes for server in servers if not server.wire.is_closed)
    assert held < 200_000 + len(servers) * 16 * 1024
    assert len([server for server in servers if server.wire.is_closed or server.connection._is_deaf]) >= 10
    for server in servers:
        server.connection.connection_lost(None)
        await server.finish()
    assert budget._held_bytes == 0


async def test_answered_requests_do_not_count() -> None:
    budget = Budget(Limits(waiting_bytes=100_000))
    server = Server(respond, budget=budget)
    for _ in range(50):
        server.connection.data_received(GET + b"x: " + b"y" * 30_000 + b"\r\n\r\n" + GET + b"\r\n")
        await server.finish()
    assert codes(server.wire.data) == [200] * 100
    assert budget._held_bytes < 2048


async def test_bodies_that_are_not_read_share_a_limit() -> None:
    """A request such as a watch never reads its body."""

    async def hold_open(scope: Any, receive: Any, send: Any) -> None:
        await hold.wait()

    hold = asyncio.Event()
    budget = Budget(Limits(waiting_bytes=200_000))
    servers = [Server(hold_open, budget=budget) for _ in range(20)]
    for server in servers:
        server.connection.data_received(POST + b"Content-Length: 90000\r\n\r\n")
        server.connection.data_received(b"x" * 60_000)
    assert [server.wire.is_closed for server in servers] == [False] * 3 + [True] * 17
    hold.set()
    for server in servers:
        await server.finish()


async def test_nothing_is_read_while_requests_wait() -> None:
    """An application that waits for the end of its client must not have further requests read."""
    server = Server(wait_for_ever)
    server.connection.data_received(GET + b"\r\n" + GET + b"\r\n")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not server.wire.is_reading
    server.connection.connection_lost(None)
    await server.finish()
