"""The door of the API server for the processes of its components: answers their requests on one connection each.

The other end is :class:`drachma.client.remote.Link`. Requests reach the server through the backend of the user that
they name, so they take the path of components in the server's own process. A process gets its connection from the
process that starts it, and no other process can open one.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final

from drachma import errors
from drachma.client import frames, local, messages

_log = logging.getLogger(__name__)

_MOST_BATCHES: Final = 64
"""Batches of a watch that may be on their way to a component. The server ends a watch that falls behind further, as it
does in its own process."""

Backends = Callable[[str], local.Backend]
"""Function that returns the backend of a user by name."""


class _Flow:
    """Credit of one watch: the number of batches that may still be sent."""

    def __init__(self) -> None:
        self._left = _MOST_BATCHES
        self._grown: Final = asyncio.Event()

    def grow(self, batches: int) -> None:
        self._left += batches
        self._grown.set()

    async def take(self) -> None:
        """Take one batch of credit, and wait while there is none."""
        while self._left <= 0:
            self._grown.clear()
            await self._grown.wait()
        self._left -= 1


class Door:
    """One connection. ``report`` gets what the process reports about itself."""

    def __init__(self, backends: Backends, *, report: Callable[[messages.Report], None]) -> None:
        self._make_backend: Final = backends
        self._report: Final = report
        self._backends: Final[dict[str, local.Backend]] = {}
        self._frames: Final = frames.Frames[messages.Request](
            messages.decode_request, receive=self._receive, lose=self._lose
        )
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._watches: Final[dict[int, asyncio.Task[None]]] = {}
        self._flows: Final[dict[int, _Flow]] = {}
        self._lost: Final = asyncio.Event()

    async def attach(self, connection: socket.socket) -> None:
        """Answer requests on a connected socket."""
        await self._frames.attach(connection)

    def send_plan(self, data: bytes) -> None:
        """Send what the other process needs to know before its first request."""
        self._frames.send_data(data)

    async def wait_lost(self) -> None:
        """Return when the other process has closed the connection."""
        await self._lost.wait()

    async def close(self) -> None:
        """Close the connection and end all requests. Whether a write under way was made is left open."""
        self._frames.close()
        self._lose()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _lose(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._lost.set()

    def _backend(self, user: str) -> local.Backend:
        if user not in self._backends:
            self._backends[user] = self._make_backend(user)
        return self._backends[user]

    def _receive(self, request: messages.Request) -> None:
        match request:
            case messages.Consume(number, batches):
                if number in self._flows:
                    self._flows[number].grow(batches)
            case messages.Unwatch(number):
                if number in self._watches:
                    self._watches[number].cancel()
            case messages.Watch():
                self._watches[request.number] = self._spawn(self._answer(request, self._watch(request)))
            case (
                messages.Ready()
                | messages.Failed()
                | messages.Measures()
                | messages.EndpointCertificate()
                | messages.EndpointAddress()
            ):
                self._report(request)
            case _:
                self._spawn(self._answer(request, self._carry_out(request)))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _answer(self, request: messages.Question, work: Coroutine[Any, Any, None]) -> None:
        """Carry out a request, and answer with the error that it raises."""
        try:
            await work
        except errors.CommitRefusedError as error:
            self._frames.send(messages.Refused(request.number, dict(error.refusal.document), error.position))
        except errors.RefusedError as error:
            self._frames.send(messages.Refused(request.number, dict(error.document)))
        except errors.DrachmaError as error:
            self._frames.send(messages.Refused(request.number, _fault(str(error))))
        except Exception:
            _log.exception("request of a component's process failed")
            self._frames.send(messages.Refused(request.number, _fault("the API server has a defect; see its log")))

    async def _carry_out(self, request: messages.Question) -> None:
        backend, send = self._backend(request.user), self._frames.send
        match request:
            case messages.Write(number, _, write, is_document):
                change = messages.unpack(write)
                data = await backend.write_document(change) if is_document else (await backend.write(change)).data
                send(messages.Object(number, data))
            case messages.Commit(number, _, writes):
                stored = await backend.commit([messages.unpack(each) for each in writes])
                send(messages.Objects(number, tuple(each.data for each in stored)))
            case messages.Get(number, _, place, is_document):
                data = await backend.get_document(place) if is_document else (await backend.get(place)).data
                send(messages.Object(number, data))
            case messages.List(number, _, place, query):
                page = await backend.list(place, query)
                records = tuple(each.data for each in page.records)
                send(messages.Page(number, records, page.revision, page.token, page.remaining))
                await self._frames.wait_writable()
            case messages.Resources(number, _):
                served = tuple(map(messages.pack_resource, await backend.resources()))
                send(messages.ServedResources(number, served))
            case messages.OpenApi(number, _, group, version):
                send(messages.Text(number, await backend.openapi(group, version)))

    async def _watch(self, request: messages.Watch) -> None:
        number = request.number
        flow = self._flows[number] = _Flow()
        try:
            feed = await self._backend(request.user).watch(request.place, request.query)
            try:
                self._frames.send(messages.Watching(number))
                while True:
                    batch = await feed.batch()
                    events = tuple((change, stored.data) for change, stored in batch)
                    self._frames.send(messages.Events(number, events))
                    if not events:
                        return
                    await flow.take()
                    await self._frames.wait_writable()
            finally:
                feed.close()
        finally:
            del self._flows[number], self._watches[number]


def _fault(message: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": "InternalError",
        "code": 500,
    }
