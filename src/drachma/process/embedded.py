"""The embedded control plane: controllers and a scheduler on one event loop, next to the API server or on any client.

``drachma up`` runs them next to its server. Tests and benchmarks build a whole control plane in process, with the clock
and the random generator that they pass.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import pathlib
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Final

import msgspec
import prometheus_client
from prometheus_client import core, samples
from prometheus_client import registry as registries

from drachma import allocator
from drachma.api import gates as features
from drachma.client import Client, local
from drachma.node.runtimes.runtimename import RuntimeName
from drachma.node.simulation import hardware
from drachma.node.simulation.runtime import Defaults
from drachma.process import accountcredentials, apiserver, components, hosting, nodeagents
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
    """Run components with shared informers until cancelled. A component that fails ends all of them."""
    part_registries = [prometheus_client.CollectorRegistry() for _ in parts]
    metrics = MergedMetrics(part_registries)
    surroundings.registry.register(metrics)
    try:
        async with surroundings.informers as informers, asyncio.TaskGroup() as tasks:
            for part, registry in zip(parts, part_registries, strict=True):
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
    defaults: Defaults | None = None,
    policy: allocator.Preference = allocator.Policy.FIRST_FIT,
    filter_seconds: float = Settings().filter_seconds,
    recording_to: components.RecordingTo | None = None,
    scaling: nodeagents.Scaling | None = None,
    more: tuple[components.Component, ...] = (),
) -> None:
    """Run controllers, scheduler and simulated nodes in the process of a server, for :func:`hosting.run`.

    ``defaults`` are the runs of simulated containers that end by themselves. ``more`` are additional components.
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
        # The controllers bind volumes to claims, so pods can wait for volumes.
        settings = Settings(gates=gates, policy=policy, filter_seconds=filter_seconds, has_volume_controllers=True)
        scheduler = functools.partial(components.scheduler, settings=settings, recording_to=recording_to)
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
                        defaults=defaults or Defaults(),
                    ),
                ),
            )
        await run(surroundings, parts=parts, ready=host.ready)


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """An API server without a socket, and a client of it."""

    application: app.Application
    client: Client


@contextlib.asynccontextmanager
async def server(
    store: protocol.Store,
    *,
    time: clock.Clock | None = None,
    rng: random.Random | None = None,
    gates: features.Gates = features.ALL,
    manager: str = "drachma",
    additions: app.Additions | None = None,
) -> AsyncIterator[Server]:
    """Yield an API server on a store, with a client whose field manager is ``manager``; close the store at the end."""
    try:
        application = await apiserver.build(
            store,
            utc=(time or clock.SystemClock()).utc,
            chance=rng or random.Random(),
            gates=gates,
            additions=additions,
        )
        try:
            async with local.LocalClient(inprocess.InProcess(application.dispatcher), manager=manager) as client:
                yield Server(application=application, client=client)
        finally:
            await application.close()
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def running(surroundings: Surroundings, *parts: components.Component) -> AsyncIterator[None]:
    """Run components in the background: they are ready when the block begins, and end with it."""
    ready = asyncio.Event()
    task = asyncio.create_task(run(surroundings, parts=parts or components.ALL, ready=ready.set))
    ready_task = asyncio.create_task(ready.wait())
    await asyncio.wait({task, ready_task}, return_when=asyncio.FIRST_COMPLETED)
    ready_task.cancel()
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class MergedMetrics(registries.Collector):
    """Collector of several registries, which are read at every scrape."""

    def __init__(self, parts: Sequence[prometheus_client.CollectorRegistry]) -> None:
        self._parts: Final = parts

    def describe(self) -> Iterable[core.Metric]:
        """Return nothing, because the families of the parts are known only at a scrape."""
        return ()

    def collect(self) -> Iterable[core.Metric]:
        families: dict[str, core.Metric] = {}
        for part in self._parts:
            for family in part.collect():
                merged = families.get(family.name)
                if merged is None:
                    families[family.name] = merged = core.Metric(
                        family.name, family.documentation, family.type, family.unit
                    )
                _add(merged, family.samples)
        return families.values()


def _add(family: core.Metric, more: Iterable[samples.Sample]) -> None:
    """Add samples to a family; samples with the same name and labels are summed."""
    places = {(each.name, tuple(sorted(each.labels.items()))): number for number, each in enumerate(family.samples)}
    for sample in more:
        place = places.get((sample.name, tuple(sorted(sample.labels.items()))))
        if place is None:
            family.samples.append(sample)
        else:
            earlier = family.samples[place]
            is_date = sample.name.endswith("_created")
            value = min(earlier.value, sample.value) if is_date else earlier.value + sample.value
            family.samples[place] = earlier._replace(value=value)
