"""Answers that clients do not read: what is given up, and what all of them may take together."""

import asyncio
import contextlib
import json
from typing import Any

import pytest

from drachma.server.user import User
from drachma.server.wire import frames, outgoing, sending
from drachma.server.wire import limits as requestlimits
from tests.unit.server import client
from tests.unit.server.client import CLAIMS, Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
USERS = {"ann": User(name="ann", groups=("system:authenticated",))}


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Connection:
    """A connection that knows whether it was ended."""

    def __init__(self) -> None:
        self.is_ended = False

    def give_up(self) -> None:
        self.is_ended = True

    def allow_pauses(self) -> None:
        raise AssertionError("no stream of a node")


def test_answer_without_progress_makes_room() -> None:
    clock = Clock()
    answers = outgoing.Outgoing(clock=clock, limit=100)
    stalled, moving = Connection(), Connection()
    first = answers.hold(60, stalled.give_up)
    second = answers.hold(40, moving.give_up)
    clock.now = outgoing.STALL_SECONDS
    second.move()
    answers.hold(10, Connection().give_up)
    assert (stalled.is_ended, moving.is_ended) == (True, False)
    assert first.is_given_up
    assert (answers.total, answers.given_up) == (50, 1)


def test_answers_that_have_just_begun_are_sent() -> None:
    answers = outgoing.Outgoing(clock=Clock(), limit=100)
    connections = [Connection() for _ in range(5)]
    shipments = [answers.hold(60, each.give_up) for each in connections]
    assert not any(each.is_ended for each in connections)
    for each in shipments:
        each.release()
        each.release()
    assert answers.total == 0


def test_frames_are_bounded_in_bytes() -> None:
    kept = frames.Frames(limit=100)
    for number in range(10):
        kept.put(number, b"x" * 30)
    kept.put("large", b"x" * 101)
    assert kept.total == 90
    assert [number for number in range(10) if kept.get(number)] == [7, 8, 9]
    assert kept.get("large") is None


async def _large_list(server: Client, *, count: int = 4) -> None:
    for number in range(count):
        document = {"metadata": {"name": f"m{number}"}, "data": {"x": "x" * 100_000}}
        assert (await server.call("POST", CONFIG_MAPS, document)).code == 201


async def test_large_list_is_the_same_as_its_pages(server: Client) -> None:
    await _large_list(server)
    whole = await server.call("GET", CONFIG_MAPS)
    assert whole.header("content-length") is None, "it is sent as it is stored, piece by piece"
    pages: list[Any] = []
    token = ""
    while True:
        page = (await server.call("GET", f"{CONFIG_MAPS}?limit=1&continue={token}")).body
        pages += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert whole.body["items"] == pages
    assert whole.body["kind"] == "ConfigMapList"


async def test_pieces_are_small(server: Client) -> None:
    await _large_list(server)
    pieces = []

    async def send(message: Any) -> None:
        pieces.append(len(message.get("body", b"")))

    for path in (CONFIG_MAPS, f"{CONFIG_MAPS}?pretty=true", f"{CONFIG_MAPS}/m0"):
        await server.app(server.scope("GET", path), _nothing_more, send)
    assert max(pieces) <= sending.PIECE


async def _nothing_more() -> Any:
    return await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(CONFIG_MAPS, id="list"),
        pytest.param(f"{CONFIG_MAPS}?pretty=true", id="list-in-another-form"),
        pytest.param(f"{CONFIG_MAPS}?watch=1&resourceVersion=START", id="watch"),
        pytest.param(f"{CONFIG_MAPS}?watch=1", id="watch-that-begins-with-objects"),
    ],
)
async def test_connection_of_a_client_that_does_not_read_is_ended(path: str) -> None:
    server = await client.start(limits=requestlimits.Limits(unread_seconds=0.02))
    await _large_list(server)
    connection = Connection()
    path = path.replace("START", str(server.store.compacted))
    scope = {**server.scope("GET", path), "state": {"connection": connection}}
    sent = 0

    async def send(message: Any) -> None:
        nonlocal sent
        sent += len(message.get("body", b""))
        if sent > 2 * sending.PIECE:
            await asyncio.get_running_loop().create_future()

    async with asyncio.timeout(30):
        await server.app(scope, _nothing_more, send)
    assert connection.is_ended
    assert server.app._sending.outgoing.total == 0
    assert server.app._open_watches.total == 0


async def test_events_are_encoded_once_and_shared(server: Client) -> None:
    sent: list[list[bytes]] = [[], []]
    gone = asyncio.Event()

    async def receive() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    def sender(bodies: list[bytes]) -> Any:
        async def send(message: Any) -> None:
            if message.get("body"):
                bodies.append(message["body"])

        return send

    scope = server.scope("GET", f"{CLAIMS}?watch=1")
    watches = [asyncio.create_task(server.app(scope, receive, sender(bodies))) for bodies in sent]
    while len(server.app.dispatcher.services.watches) < 2:
        await asyncio.sleep(0)
    await server.call("POST", CLAIMS, client.claim())
    async with asyncio.timeout(30):
        while not all(sent):
            await asyncio.sleep(0)
    gone.set()
    await asyncio.gather(*watches)
    assert sent[0][0] is sent[1][0]
    assert json.loads(sent[0][0])["type"] == "ADDED"


async def test_watches_of_a_user_are_limited() -> None:
    server = await client.start(limits=requestlimits.Limits(user_watches=2, watches=4), users=USERS)
    async with contextlib.AsyncExitStack() as stack:

        async def open_watch(of: Client) -> int:
            stream = await stack.enter_async_context(of.watch(f"{CLAIMS}?watch=1"))
            async with asyncio.timeout(30):
                while not stream.code:
                    await asyncio.sleep(0)
            return stream.code

        ann = server.showing("ann")
        assert [await open_watch(ann) for _ in range(3)] == [200, 200, 429]
        refused = await ann.call("GET", f"{CLAIMS}?watch=1")
        assert refused.body["message"] == "user 'ann' has 2 watches open, the limit is 2"
        assert refused.header("retry-after") == "5"
        assert [await open_watch(server) for _ in range(3)] == [200, 200, 429], "in all there are four"
    assert (await server.call("GET", "/metrics")).body.count("drachma_outgoing_bytes 0.0") == 1
    assert server.app._open_watches.total == 0
