"""The embedded control plane: controllers and a scheduler on one event loop, beside the API server or on any client.

``drachma up`` runs them beside its server; tests and benchmarks put a whole control plane together in process, on the
clock and the chance that they pass in.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeAlias

import msgspec
import prometheus_client

from drachma.api import gates as feature
from drachma.client import Client, local
from drachma.controllers import catalog, environment, group
from drachma.process import mergedmetrics
from drachma.runtime import Informers, clock
from drachma.scheduler import Scheduler, Settings
from drachma.server import bootstrap, inprocess
from drachma.server.access import authentication
from drachma.server.wire import app
from drachma.store import protocol


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What components get from the process that they run in."""

    clock: clock.Clock = msgspec.field(default_factory=clock.SystemClock)
    chance: random.Random = msgspec.field(default_factory=random.Random)
    registry: prometheus_client.CollectorRegistry = msgspec.field(default_factory=prometheus_client.CollectorRegistry)
    gates: feature.Gates = feature.ALL


Part: TypeAlias = Callable[[environment.Environment], Coroutine[Any, Any, None]]
"""Builds a component on informers that do not run yet; what it returns runs until cancelled."""


def controllers(made: environment.Environment) -> Coroutine[Any, Any, None]:
    """All controllers of a cluster."""
    chosen = catalog.chosen("*", gates=made.gates)
    return group.run(made, [make(made) for make in chosen.values()])


def scheduler(made: environment.Environment, settings: Settings | None = None) -> Coroutine[Any, Any, None]:
    """A scheduler, for the pods that name none unless settings say otherwise."""
    return Scheduler(
        made.client,
        made.informers,
        chosen=settings or Settings(gates=made.gates),
        time=made.clock,
        chance=made.chance,
        registry=made.registry,
    ).run()


async def run(
    client: Client,
    given: Surroundings,
    *,
    parts: tuple[Part, ...] = (controllers, scheduler),
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Runs components that share what they know of the cluster, until cancelled; one that fails ends them all."""
    registries = [prometheus_client.CollectorRegistry() for _ in parts]
    metrics = mergedmetrics.MergedMetrics(registries)
    given.registry.register(metrics)
    try:
        async with (
            Informers(client, time=given.clock, chance=given.chance) as informers,
            asyncio.TaskGroup() as tasks,
        ):
            for part, registry in zip(parts, registries, strict=True):
                made = environment.Environment(
                    client, informers, time=given.clock, chance=given.chance, registry=registry, gates=given.gates
                )
                tasks.create_task(part(made))
            await informers.wait_synced()
            ready()
    finally:
        given.registry.unregister(metrics)


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """An API server without a socket, and the client to it."""

    application: app.Application
    client: Client


@contextlib.asynccontextmanager
async def server(store: protocol.Store, given: Surroundings) -> AsyncIterator[Server]:
    """The API on a store, in process; the store is closed in the end."""
    application = app.Application(
        store,
        authentication.Authenticator({}),
        clock=given.clock.utc,
        chance=given.chance,
        gates=given.gates,
    )
    try:
        await bootstrap.populate(application.dispatcher)
        async with local.LocalClient(inprocess.InProcess(application.dispatcher)) as client:
            yield Server(application=application, client=client)
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def running(client: Client, given: Surroundings, *parts: Part) -> AsyncIterator[None]:
    """Components that run in the background: ready at the beginning, ended in the end."""
    ready = asyncio.Event()
    task = asyncio.create_task(run(client, given, parts=parts or (controllers, scheduler), ready=ready.set))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
