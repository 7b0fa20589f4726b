"""The door and the link on both ends of a socket: lost connections, slow watches, defects of the server."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from drachma import errors
from drachma.api import pod
from drachma.client import local, messages, remote
from drachma.process import door

PLACE = local.Place(group="", version="v1", plural="pods", namespace="ns", name="p")
WRITE = local.Write("update", PLACE, b"{}", {})


class _Stored(msgspec.Struct, frozen=True, eq=False):
    data: bytes
    uid: str = ""


class _Feed:
    """Events without end, or until the feed is closed."""

    def __init__(self) -> None:
        self.batches = 0
        self.closed = asyncio.Event()

    async def batch(self) -> Sequence[tuple[str, local.Stored]]:
        await asyncio.sleep(0)
        self.batches += 1
        return [("MODIFIED", _Stored(str(self.batches).encode()))]

    def close(self) -> None:
        self.closed.set()


class _Backend:
    """A server that answers with what a test puts into it; other calls fail."""

    def __init__(self) -> None:
        self.feed = _Feed()
        self.problem: Exception | None = None
        self.is_cancelled = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    async def get(self, _: local.Place) -> local.Stored:
        if self.problem is not None:
            raise self.problem
        return _Stored(b'{"metadata": {"name": "p"}}')

    async def write(self, _: local.Write) -> local.Stored:
        try:
            await asyncio.Event().wait()
        finally:
            self.is_cancelled.set()
        raise AssertionError("never released")

    async def watch(self, _place: local.Place, _query: local.Query) -> local.Feed:
        return self.feed


class _World(NamedTuple):
    """Both ends of a connection, and the server behind it."""

    server: _Backend
    door: door.Door
    link: remote.Link
    reports: list[messages.Report]

    @property
    def backend(self) -> remote.RemoteBackend:
        return remote.RemoteBackend(self.link, user="u")


@contextlib.asynccontextmanager
async def _world() -> AsyncIterator[_World]:
    backend: Any = _Backend()
    reports: list[messages.Report] = []
    entrance = door.Door(lambda _: backend, report=reports.append)
    link = remote.Link()
    ours, theirs = socket.socketpair()
    await entrance.attach(ours)
    await link.attach(theirs)
    try:
        yield _World(backend, entrance, link, reports)
    finally:
        link.close()
        await entrance.close()


async def _read_to_the_end(feed: local.Feed) -> None:
    while await feed.batch():
        pass


async def test_answers_come_in_any_order() -> None:
    async with _world() as world:
        slow = asyncio.create_task(world.backend.write(WRITE))
        assert (await world.backend.get(PLACE)).data == b'{"metadata": {"name": "p"}}'
        assert not slow.done()
        slow.cancel()


async def test_a_lost_server_fails_calls_and_watches() -> None:
    async with _world() as world:
        call = asyncio.create_task(world.backend.write(WRITE))
        feed = await world.backend.watch(PLACE, {})
        await asyncio.sleep(0)
        await world.door.close()
        await world.link.wait_lost()
        with pytest.raises(errors.UnreachableError, match="closed the connection"):
            await call
        with pytest.raises(errors.UnreachableError):
            await _read_to_the_end(feed)
        with pytest.raises(errors.UnreachableError):
            await world.backend.get(PLACE)


async def test_a_lost_component_ends_its_calls_and_watches() -> None:
    async with _world() as world:
        call = asyncio.create_task(world.backend.write(WRITE))
        await world.backend.watch(PLACE, {})
        world.link.close()
        await world.door.wait_lost()
        await world.server.is_cancelled.wait()
        await world.server.feed.closed.wait()
        with pytest.raises(errors.UnreachableError):
            await call


async def test_a_watch_that_is_not_read_gets_a_limited_number_of_batches() -> None:
    async with _world() as world:
        feed = await world.backend.watch(PLACE, {})
        before = 0
        while world.server.feed.batches == 0 or world.server.feed.batches != before:
            before = world.server.feed.batches
            for _ in range(20):
                await asyncio.sleep(0)
        assert before < 100
        numbers = [int((await feed.batch())[0][1].data) for _ in range(3 * before)]
        assert numbers == list(range(1, 3 * before + 1)), "reading goes on without a gap"


async def test_a_closed_watch_ends_at_the_server() -> None:
    async with _world() as world:
        feed = await world.backend.watch(PLACE, {})
        feed.close()
        assert await feed.batch() == ()
        await world.server.feed.closed.wait()


@pytest.mark.parametrize(
    ("problem", "want_kind", "want_message"),
    [
        pytest.param(
            errors.ObjectNotFoundError({"reason": "NotFound", "code": 404, "message": 'pods "p" not found'}),
            errors.ObjectNotFoundError,
            'pods "p" not found',
            id="refusal",
        ),
        pytest.param(errors.DiskFullError("the disk is full"), errors.ServerFaultError, "the disk is full", id="store"),
        pytest.param(RuntimeError("bug"), errors.ServerFaultError, "the API server has a defect", id="defect"),
    ],
)
async def test_an_error_reaches_the_component(
    problem: Exception, want_kind: type[Exception], want_message: str
) -> None:
    async with _world() as world:
        world.server.problem = problem
        with pytest.raises(want_kind, match=want_message):
            await world.backend.get(PLACE)


async def test_reports_reach_the_supervisor() -> None:
    async with _world() as world:
        world.link.send(messages.Ready())
        world.link.send(messages.Failed("no room"))
        await world.backend.get(PLACE)
        assert world.reports == [messages.Ready(), messages.Failed("no room")]


async def test_a_client_on_the_link_reads_objects() -> None:
    async with _world() as world:
        client = local.LocalClient(world.backend)
        assert (await client.get(pod.Pod, "p", namespace="ns")).metadata.name == "p"
