"""Drives the application in process: requests go in as ASGI messages, answers come out; no sockets."""

import asyncio
import json
import random
import urllib.parse
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from drachma.api import gates as feature
from drachma.server import bootstrap
from drachma.server.access import access, authentication, authorization
from drachma.server.admission import pluginnames
from drachma.server.admission.podsecurity import configuration
from drachma.server.pipeline import phases
from drachma.server.user import User
from drachma.server.wire import app, nodeproxy
from drachma.server.wire import limits as requestlimits
from drachma.store import memory, protocol

TOKEN = "sesame"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PODS = "/api/v1/namespaces/default/pods"


class Clock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Answer(NamedTuple):
    """Response; ``body`` is decoded if it is JSON."""

    code: int
    body: Any
    headers: list[tuple[str, str]]

    def header(self, name: str) -> str | None:
        """The last header of that name."""
        return next((value for key, value in reversed(self.headers) if key.lower() == name), None)


class Raw(NamedTuple):
    """Response, undecoded."""

    code: int
    data: bytes
    headers: list[tuple[str, str]]


class Client:
    """Talks to one application, as its admin unless it shows another token."""

    def __init__(
        self, application: app.Application, clock: Clock, store: protocol.Store, *, token: str = TOKEN
    ) -> None:
        self.app = application
        self.clock = clock
        self.store = store
        self._token = token

    def showing(self, token: str) -> "Client":
        """A client of the same application that shows another token."""
        return Client(self.app, self.clock, self.store, token=token)

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        data = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        return await self.send(method, path, data, content_type=content_type, headers=headers)

    async def send(
        self,
        method: str,
        path: str,
        data: bytes,
        *,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request with a body of any bytes."""
        answer = await self.raw(method, path, data, content_type=content_type, headers=headers)
        try:
            content = json.loads(answer.data)
        except ValueError:
            content = answer.data.decode()
        return Answer(answer.code, content, answer.headers)

    async def raw(
        self,
        method: str,
        path: str,
        data: bytes,
        *,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> "Raw":
        """Send a request and return the response undecoded."""
        sent: list[Any] = []
        inbox = [{"type": "http.request", "body": data, "more_body": False}]

        async def receive() -> Any:
            if inbox:
                return inbox.pop(0)
            return await asyncio.get_running_loop().create_future()

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(self.scope(method, path, content_type=content_type, headers=headers), receive, send)
        found = [(key.decode(), value.decode()) for key, value in sent[0]["headers"]]
        return Raw(sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:]), found)

    def scope(
        self, method: str, path: str, *, content_type: str = "", headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        path, _, query = path.partition("?")
        given = {"authorization": f"Bearer {self._token}", "content-type": content_type, **(headers or {})}
        return {
            "type": "http",
            "method": method,
            "path": urllib.parse.unquote(path),
            "query_string": query.encode(),
            "client": ("127.0.0.1", 50000),
            "headers": [(key.encode(), value.encode()) for key, value in given.items() if value],
        }

    @asynccontextmanager
    async def watch(self, path: str, *, headers: Mapping[str, str] | None = None) -> AsyncIterator["Stream"]:
        """A watch that is open; its events are read one by one."""
        stream = Stream()
        task = asyncio.create_task(self.app(self.scope("GET", path, headers=headers), stream.receive, stream.send))
        try:
            yield stream
        finally:
            stream.hang_up()
            await task


class Stream:
    """The client's end of a watch."""

    def __init__(self) -> None:
        self.code = 0
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._lines: list[bytes] = []
        self._gone = asyncio.Event()
        self._asked = False
        self._reads = asyncio.Event()
        self._reads.set()

    def stall(self) -> None:
        """Stops reading, so that what is sent has to wait."""
        self._reads.clear()

    def resume(self) -> None:
        self._reads.set()

    async def receive(self) -> Any:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message.get("body"):
            await self._reads.wait()
        if message["type"] == "http.response.start":
            self.code = message["status"]
            return
        if message.get("body"):
            self._chunks.put_nowait(message["body"])
        if not message.get("more_body"):
            self._chunks.put_nowait(None)

    def hang_up(self) -> None:
        self._gone.set()

    async def event(self) -> Any:
        """The next event; None at the end of the stream."""
        async with asyncio.timeout(60):
            while not self._lines:
                chunk = await self._chunks.get()
                if chunk is None:
                    return None
                self._lines += chunk.splitlines()
        return json.loads(self._lines.pop(0))

    async def events(self, count: int) -> list[Any]:
        return [await self.event() for _ in range(count)]


async def start(
    *,
    gates: feature.Gates = feature.ALL,
    store: protocol.Store | None = None,
    limits: requestlimits.Limits | None = None,
    authoriser: authorization.Authoriser | None = None,
    disabled_plugins: Collection[str] = pluginnames.PLUGINS,
    pod_security: configuration.Configuration = configuration.STANDARD,
    users: Mapping[str, User] | None = None,
    audit: Callable[[Clock], phases.Auditor] | None = None,
    additions: app.Additions | None = None,
    nodes: nodeproxy.NodeProxy | None = None,
) -> Client:
    """Start a server with the initial objects of every cluster, and return a client of it.

    ``users`` are users other than the admin, by token; ``audit`` makes an auditor that has the server's clock.
    """
    clock = Clock()
    place = store if store is not None else memory.MemoryStore()
    application = app.Application(
        place,
        access.plain(place, clock=clock, tokens={TOKEN: authentication.ADMIN, **(users or {})}, authoriser=authoriser),
        clock=clock,
        rng=random.Random(7),
        gates=gates,
        limits=limits,
        disabled_plugins=disabled_plugins,
        pod_security=pod_security,
        audit=() if audit is None else (audit(clock),),
        additions=additions,
        nodes=nodes,
    )
    await bootstrap.populate(application.dispatcher)
    return Client(application, clock, place)


def claim(name: str = "c", **metadata: Any) -> dict[str, Any]:
    """A claim that asks for one device."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, **metadata},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
    }


def pod(name: str = "p", **metadata: Any) -> dict[str, Any]:
    """A pod with one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "main", "image": "registry.example/pause:3.10"}]},
    }
