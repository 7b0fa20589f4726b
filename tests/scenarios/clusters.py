"""A whole API server in the test's own process, with the client that a test runs on: local, or HTTP over loopback."""

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncIterator, Generator
from datetime import UTC, datetime

import msgspec
import uvicorn

from drachma.client import Client, access, http, local
from drachma.server import app, authentication, bootstrap, inprocess
from drachma.store import memory, protocol

TOKEN = "sesame"


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A client, and what is behind it for tests that reach around it."""

    client: Client
    application: app.Application
    store: protocol.Store


class _Server(uvicorn.Server):
    """Leaves the signals of the process to pytest."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def _application() -> tuple[app.Application, memory.MemoryStore]:
    store = memory.MemoryStore()
    made = app.Application(
        store,
        authentication.Authenticator({TOKEN: authentication.ADMIN}),
        clock=lambda: datetime.now(UTC),
        chance=random.Random(7),
    )
    await bootstrap.populate(made.services.registry)
    return made, store


@contextlib.asynccontextmanager
async def serving(application: app.Application) -> AsyncIterator[str]:
    """The application behind a port of loopback; yields its address."""
    # Named as TCP, because asyncio switches off Nagle's algorithm only where it is: without, answers take 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
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
    async with store, local.LocalClient(inprocess.InProcess(application.services), manager="tester") as client:
        yield Cluster(client=client, application=application, store=store)


@contextlib.asynccontextmanager
async def http_cluster() -> AsyncIterator[Cluster]:
    """With the client over HTTP."""
    application, store = await _application()
    async with store, serving(application) as address:
        reached = access.Access(server=address, source="test", token=TOKEN)
        async with http.HttpClient(reached, manager="tester") as client:
            yield Cluster(client=client, application=application, store=store)
