"""A whole API server in the test's own process, with the client of a test: local, on a socket, or over HTTP."""

import asyncio
import contextlib
import pathlib
import random
import socket
from collections.abc import AsyncIterator, Generator
from datetime import UTC, datetime
from typing import Any

import msgspec
import uvicorn

from drachma.api import manifest
from drachma.client import Client, access, http, local, remote
from drachma.listening import addresses
from drachma.process import apiserver, door
from drachma.runtime import clock
from drachma.server import inprocess
from drachma.server.access import certificates, kubeconfig
from drachma.server.wire import app, serving
from drachma.store import memory, protocol
from tests import ports

TOKEN = "sesame"


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A client, and what is behind it for tests that reach around it."""

    client: Client
    application: app.Application
    store: protocol.Store


class SecureCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A server with TLS, and its certificates."""

    url: str
    files: certificates.Files

    def kubeconfig(self, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> str:
        """A kubeconfig with the admin's token and the server's authority, unless told otherwise."""
        content = kubeconfig.document(self.url, authority=self.files.authority.read_bytes(), token=TOKEN)
        if cluster is not None:
            content["clusters"][0]["cluster"] = {"server": self.url, **cluster}
        if user is not None:
            content["users"][0]["user"] = user
        return manifest.write_yaml([content])


class _Server(uvicorn.Server):
    """Leaves the signals of the process to pytest."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def _application(store: memory.MemoryStore | None = None) -> tuple[app.Application, memory.MemoryStore]:
    store = store if store is not None else memory.MemoryStore()
    made = await apiserver.build(store, utc=clock.SystemClock().utc, chance=random.Random(7), admin_tokens=(TOKEN,))
    return made, store


@contextlib.asynccontextmanager
async def open_server(application: app.Application, *, port: int = 0) -> AsyncIterator[str]:
    """The application behind a port of loopback, any unless told; yields its address."""
    # Named as TCP, because asyncio switches off Nagle's algorithm only where it is: without, answers take 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        config = uvicorn.Config(application, log_level="error", lifespan="off", timeout_graceful_shutdown=5)
        server = _Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            application.drain()
            server.should_exit = True
            await task


@contextlib.asynccontextmanager
async def local_cluster() -> AsyncIterator[Cluster]:
    """With the client in process."""
    application, store = await _application()
    async with store, local.LocalClient(inprocess.InProcess(application.dispatcher), manager="tester") as client:
        yield Cluster(client=client, application=application, store=store)


@contextlib.asynccontextmanager
async def socket_cluster() -> AsyncIterator[Cluster]:
    """With the client over a socket, as components in processes of their own have it."""
    application, store = await _application()
    ours, theirs = socket.socketpair()
    entrance = door.Door(lambda _: inprocess.InProcess(application.dispatcher), report=lambda _: None)
    link = remote.Link()
    await entrance.attach(ours)
    await link.attach(theirs)
    backend = remote.RemoteBackend(link, user="kubernetes-admin")
    async with store, local.LocalClient(backend, manager="tester") as client:
        try:
            yield Cluster(client=client, application=application, store=store)
        finally:
            link.close()
            await entrance.close()


@contextlib.asynccontextmanager
async def http_cluster() -> AsyncIterator[Cluster]:
    """With the client over HTTP."""
    application, store = await _application()
    async with store, open_server(application) as address:
        reached = access.Access(server=address, source="test", token=TOKEN)
        async with http.HttpClient(reached, clock=clock.SystemClock(), manager="tester") as client:
            yield Cluster(client=client, application=application, store=store)


class RestartingCluster:
    """A server that goes away and comes back on the same store and port; ``inside`` writes to it even while away."""

    def __init__(self, store: memory.MemoryStore, inside: Client, *, port: int, client: Client) -> None:
        self.store = store
        self.inside = inside
        self.client = client
        self._port = port
        self._running: contextlib.AsyncExitStack | None = None

    async def start(self) -> None:
        application, _ = await _application(self.store)
        self._running = contextlib.AsyncExitStack()
        await self._running.enter_async_context(open_server(application, port=self._port))

    async def stop(self) -> None:
        if self._running is not None:
            await self._running.aclose()
        self._running = None


@contextlib.asynccontextmanager
async def restarting_cluster() -> AsyncIterator[RestartingCluster]:
    """Not started yet; with a client over HTTP."""
    application, store = await _application()
    with ports.reserved() as port:
        reached = access.Access(server=f"http://127.0.0.1:{port}", source="test", token=TOKEN)
        async with store, http.HttpClient(reached, clock=clock.SystemClock()) as client:
            inside = local.LocalClient(inprocess.InProcess(application.dispatcher))
            cluster = RestartingCluster(store, inside, port=port, client=client)
            try:
                yield cluster
            finally:
                await cluster.stop()


class _SecureServer(serving.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


@contextlib.asynccontextmanager
async def secure_cluster(folder: pathlib.Path) -> AsyncIterator[SecureCluster]:
    """The server as users run it, but for the process: TLS, certificates in a folder."""
    application, store = await _application()
    opened, bound = addresses.bind(addresses.Address("127.0.0.1", 0))
    files = certificates.ensure(folder / "pki", hosts=bound.hosts, now=datetime.now(UTC))
    async with store:
        with opened:
            opened.listen()
            server = _SecureServer(application, files)
            task = asyncio.create_task(server.serve(sockets=[opened]))
            try:
                yield SecureCluster(url=bound.url, files=files)
            finally:
                server.should_exit = True
                await task
