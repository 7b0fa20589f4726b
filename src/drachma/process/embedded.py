"""The embedded control plane: controllers and a scheduler on one event loop, beside the API server or on any client.

``drachma up`` runs them beside its server; tests and benchmarks put a whole control plane together in process, on the
clock and the chance that they pass in.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import pathlib
import random
from collections.abc import AsyncIterator, Callable

import msgspec
import prometheus_client

from drachma import allocator
from drachma.api import gates as features
from drachma.client import Client, local
from drachma.node import hardware
from drachma.node.runtimes.runtimename import RuntimeName
from drachma.process import accountcredentials, apiserver, components, hosting, mergedmetrics, nodeagents
from drachma.runtime import Credentials, Surroundings, clock
from drachma.scheduler import Settings
from drachma.server import inprocess
from drachma.server.access import authentication
from drachma.server.wire import app
from drachma.store import protocol


async def run(
    surroundings: Surroundings,
    *,
    parts: tuple[components.Component, ...] = components.ALL,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Runs components that share what they know of the cluster, until cancelled; one that fails ends them all."""
    registries = [prometheus_client.CollectorRegistry() for _ in parts]
    metrics = mergedmetrics.MergedMetrics(registries)
    surroundings.registry.register(metrics)
    try:
        async with surroundings.informers as informers, asyncio.TaskGroup() as tasks:
            for part, registry in zip(parts, registries, strict=True):
                tasks.create_task(part(surroundings.with_registry(registry))())
            await informers.wait_synced()
            ready()
    finally:
        surroundings.registry.unregister(metrics)


async def beside(
    host: hosting.Host,
    *,
    gates: features.Gates = features.ALL,
    simulated: hardware.Hardware | None = None,
    pretends_nodes: bool = False,
    plugin_directory: pathlib.Path | None = None,
    runtime: RuntimeName = RuntimeName.SIMULATED,
    allows_unenforced_security: bool = False,
    policy: allocator.Preference = allocator.Policy.FIRST_FIT,
    filter_seconds: float = Settings().filter_seconds,
    recording_to: components.RecordingTo | None = None,
    scaling: nodeagents.Scaling | None = None,
    more: tuple[components.Component, ...] = (),
) -> None:
    """Controllers, scheduler and simulated nodes in a server's process: what :func:`hosting.run` runs beside it.

    ``more`` are components beside those.
    """
    dispatcher = host.application.dispatcher

    def client_of(user: str) -> Client:
        return local.LocalClient(inprocess.InProcess(dispatcher, user=authentication.component(user)))

    async with local.LocalClient(
        inprocess.InProcess(dispatcher, user=authentication.component(components.MANAGER))
    ) as client:
        mint = accountcredentials.mint(dispatcher.services.issuer.signer)
        surroundings = Surroundings(
            client,
            gates=gates,
            registry=host.application.metrics.registry,
            credentials=Credentials(host.authority.decode(), mint, host.signing),
            clients=client_of,
        )
        # Here volumes are bound to claims, so that pods can wait for it.
        chosen = Settings(gates=gates, policy=policy, filter_seconds=filter_seconds, has_volume_controllers=True)
        scheduler = functools.partial(components.scheduler, settings=chosen, recording_to=recording_to)
        parts: tuple[components.Component, ...] = (components.controllers, scheduler, *more)
        if simulated is not None or pretends_nodes or scaling is not None:
            parts = (
                *parts,
                functools.partial(
                    nodeagents.simulated_machines,
                    machines=simulated or hardware.Hardware((), ()),
                    pretends_nodes=pretends_nodes,
                    scaling=scaling,
                    plugin_directory=plugin_directory,
                    served=nodeagents.Served(
                        client_authority=host.authority,
                        apiserver=host.url,
                        local_endpoints=host.local_endpoints,
                        root=(host.folder / "nodes").absolute(),
                        runtime=runtime,
                        allows_unenforced_security=allows_unenforced_security,
                    ),
                ),
            )
        await run(surroundings, parts=parts, ready=host.ready)


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """An API server without a socket, and the client to it."""

    application: app.Application
    client: Client


@contextlib.asynccontextmanager
async def server(
    store: protocol.Store,
    *,
    time: clock.Clock | None = None,
    chance: random.Random | None = None,
    gates: features.Gates = features.ALL,
    manager: str = "drachma",
    additions: app.Additions | None = None,
) -> AsyncIterator[Server]:
    """The API on a store, in process, with a client that owns fields as ``manager``; the store is closed in the end."""
    try:
        application = await apiserver.build(
            store,
            utc=(time or clock.SystemClock()).utc,
            chance=chance or random.Random(),
            gates=gates,
            additions=additions,
        )
        async with local.LocalClient(inprocess.InProcess(application.dispatcher), manager=manager) as client:
            yield Server(application=application, client=client)
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def running(surroundings: Surroundings, *parts: components.Component) -> AsyncIterator[None]:
    """Components that run in the background: ready at the beginning, ended in the end."""
    ready = asyncio.Event()
    task = asyncio.create_task(run(surroundings, parts=parts or components.ALL, ready=ready.set))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
