"""The API server in another process of the same program: :class:`drachma.client.local.Backend` on a socket.

A :class:`Link` is the connection of a process, and a :class:`RemoteBackend` is one user of it. When the connection is
lost, the server's process is gone: every call raises ``errors.UnreachableError``, and :meth:`Link.wait_lost` returns.
"""

import asyncio
import collections
import itertools
import socket
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.client import frames, local, messages, refusal, target

_ANNOUNCED_BATCHES: Final = 16
"""Batches of a watch after which the component tells the server that it has handled them."""


class RemoteStored(msgspec.Struct, frozen=True, eq=False):
    """One version of an object; see ``local.Stored``. Each read makes one of its own."""

    data: bytes
    uid: str = ""


class RemotePage(msgspec.Struct, frozen=True, eq=False):
    """See ``local.Page``."""

    records: Sequence[local.Stored]
    revision: int
    token: str
    remaining: int | None


class RemoteFeed:
    """Events of one watch; see ``local.Feed``."""

    def __init__(self, link: "Link", number: int) -> None:
        self._link: Final = link
        self._number: Final = number
        self._batches: Final[collections.deque[messages.Events | errors.DrachmaError]] = collections.deque()
        self._arrival: Final = asyncio.Event()
        self._handled = 0
        self._is_closed = False

    def put(self, batch: "messages.Events | errors.DrachmaError") -> None:
        """Add the next events, or the error that ends the watch."""
        self._batches.append(batch)
        self._arrival.set()

    async def batch(self) -> Sequence[tuple[str, local.Stored]]:
        while not self._batches and not self._is_closed:
            self._arrival.clear()
            await self._arrival.wait()
        if self._is_closed:
            return ()
        batch = self._batches[0]
        if isinstance(batch, errors.DrachmaError):
            raise batch
        if not batch.events:
            return ()
        self._batches.popleft()
        self._handled += 1
        if self._handled == _ANNOUNCED_BATCHES:
            self._link.send(messages.Consume(self._number, self._handled))
            self._handled = 0
        return [(change, RemoteStored(data)) for change, data in batch.events]

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._arrival.set()
            self._link.unwatch(self._number)


class Link:
    """Connection of a component's process to the API server's process."""

    def __init__(self) -> None:
        self._frames: Final = frames.Frames[messages.Answer](
            messages.decode_answer, receive=self._receive, lose=self._lose
        )
        self._numbers: Final = itertools.count(1)
        self._calls: Final[dict[int, asyncio.Future[messages.Answer]]] = {}
        self._feeds: Final[dict[int, RemoteFeed]] = {}
        self._lost: Final = asyncio.Event()

    async def attach(self, connection: socket.socket) -> None:
        """Use a connected socket."""
        await self._frames.attach(connection)

    async def wait_lost(self) -> None:
        """Return when the connection is lost."""
        await self._lost.wait()

    def close(self) -> None:
        """Close the connection after everything is sent."""
        self._frames.close()

    def send(self, message: messages.Request) -> None:
        """Send a message that has no answer."""
        self._frames.send(message)

    def number(self) -> int:
        """Return the number of a new request."""
        return next(self._numbers)

    async def ask(self, question: messages.Question) -> Any:
        """Send a question and return its answer. Raises the error that a refusal stands for."""
        if not self._frames.is_connected:
            raise _unreachable()
        self._frames.send(question)
        call = self._calls[question.number] = asyncio.get_running_loop().create_future()
        try:
            answer = await call
        finally:
            self._calls.pop(question.number, None)
        if isinstance(answer, messages.Refused):
            raise _error(answer)
        return answer

    async def watch(self, question: messages.Watch) -> RemoteFeed:
        """Open a watch."""
        feed = self._feeds[question.number] = RemoteFeed(self, question.number)
        try:
            await self.ask(question)
        except BaseException:
            self.unwatch(question.number)
            raise
        return feed

    def unwatch(self, number: int) -> None:
        """End a watch."""
        if self._feeds.pop(number, None) is not None:
            self.send(messages.Unwatch(number))

    def _receive(self, answer: messages.Answer) -> None:
        call = self._calls.pop(answer.number, None)
        if call is not None:
            if not call.done():
                call.set_result(answer)
            return
        feed = self._feeds.get(answer.number)
        if feed is None:
            # The call was cancelled or the watch closed meanwhile.
            return
        if isinstance(answer, messages.Events):
            feed.put(answer)
        elif isinstance(answer, messages.Refused):
            feed.put(_error(answer))

    def _lose(self) -> None:
        for call in self._calls.values():
            if not call.done():
                call.set_exception(_unreachable())
        for feed in self._feeds.values():
            feed.put(_unreachable())
        self._lost.set()


def _unreachable() -> errors.UnreachableError:
    return errors.UnreachableError("the process of the API server has closed the connection")


def _error(answer: messages.Refused) -> errors.DrachmaError:
    error = refusal.error(answer.document)
    return error if answer.position is None else errors.CommitRefusedError(error, answer.position)


def _texts(query: local.Query) -> dict[str, tuple[str, ...]]:
    return {name: tuple(values) for name, values in query.items()}


class RemoteBackend:
    """Backend of components in another process than the server, for one user."""

    def __init__(self, link: Link, *, user: str) -> None:
        self._link: Final = link
        self._user: Final = user

    async def get(self, place: local.Place) -> local.Stored:
        return RemoteStored(await self._get(place, is_document=False))

    async def get_document(self, place: local.Place) -> bytes:
        return await self._get(place, is_document=True)

    async def _get(self, place: local.Place, *, is_document: bool) -> bytes:
        answer = await self._link.ask(messages.Get(self._link.number(), self._user, place, is_document))
        return bytes(answer.data)

    async def list(self, place: local.Place, query: local.Query) -> local.Page:
        page = await self._link.ask(messages.List(self._link.number(), self._user, place, _texts(query)))
        return RemotePage([RemoteStored(each) for each in page.data], page.revision, page.token, page.remaining)

    async def watch(self, place: local.Place, query: local.Query) -> local.Feed:
        return await self._link.watch(messages.Watch(self._link.number(), self._user, place, _texts(query)))

    async def write(self, write: local.Write) -> local.Stored:
        return RemoteStored(await self._write(write, is_document=False))

    async def write_document(self, write: local.Write) -> bytes:
        return await self._write(write, is_document=True)

    async def _write(self, write: local.Write, *, is_document: bool) -> bytes:
        question = messages.Write(self._link.number(), self._user, messages.pack(write), is_document)
        return bytes((await self._link.ask(question)).data)

    async def commit(self, several: Sequence[local.Write]) -> Sequence[local.Stored]:
        writes = tuple(map(messages.pack, several))
        answer = await self._link.ask(messages.Commit(self._link.number(), self._user, writes))
        return [RemoteStored(each) for each in answer.data]

    async def resources(self) -> Sequence[target.Target[meta.Object]]:
        answer = await self._link.ask(messages.Resources(self._link.number(), self._user))
        return tuple(map(messages.unpack_resource, answer.resources))

    async def openapi(self, group: str, version: str) -> bytes | None:
        answer = await self._link.ask(messages.OpenApi(self._link.number(), self._user, group, version))
        data: bytes | None = answer.data
        return data
