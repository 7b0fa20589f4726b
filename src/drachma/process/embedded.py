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
from typing import Final, Protocol

import msgspec
import prometheus_client
from prometheus_client import core, samples
from prometheus_client import registry as registries

from drachma import allocator
from drachma.api import gates as features
from drachma.client import Client, local
from drachma.node.runtimes import mixed
from drachma.node.runtimes.runtimename import RuntimeName
from drachma.node.simulation import hardware
from drachma.node.simulation.runtime import Defaults
from drachma.process import accountcredentials, apiserver, components, hosting, nodeagents
from drachma.runtime import Credentials, Surroundings, clock, defects
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
    other_metrics: Iterable[MetricSource] = (),
) -> None:
    """Run components with shared informers until cancelled. A component that fails ends all of them.

    ``other_metrics`` are those of components in other processes.
    """
    part_registries = [prometheus_client.CollectorRegistry() for _ in parts]
    metrics = MergedMetrics([*part_registries, *other_metrics, defects.PROCESS])
    surroundings.registry.register(metrics)
    try:
        async with surroundings.informers as informers, asyncio.TaskGroup() as tasks:
            for part, registry in zip(parts, part_registries, strict=True):
                tasks.create_task(part(surroundings.with_registry(registry))())
            await informers.wait_synced()
            ready()
    finally:
        surroundings.registry.unregister(metrics)


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about an API server that components need, in its process or in another one."""

    url: str
    authority: bytes
    """Certificate of the server's authority, as PEM."""
    folder: pathlib.Path
    """Folder of the files of nodes and their pods."""
    families: tuple[str, ...] = ("IPv4",)
    """IP families of the cluster, the primary one first."""

    @classmethod
    def of(cls, host: hosting.Host) -> ServerFacts:
        """Return the facts about a server of this process."""
        return cls(
            url=host.url,
            authority=host.authority,
            folder=(host.folder / "nodes").absolute(),
            families=host.application.service_ranges.families,
        )


class ControlPlane(msgspec.Struct, frozen=True, kw_only=True):
    """Components next to an API server: controllers, a scheduler, and simulated nodes if there are any."""

    gates: features.Gates = features.ALL
    simulated: hardware.Hardware | None = None
    pretends_nodes: bool = False
    plugin_directory: pathlib.Path | None = None
    runtime: RuntimeName = RuntimeName.SIMULATED
    simulated_containers: tuple[mixed.Rule, ...] = ()
    """Containers that are simulated although the runtime is another one."""
    allows_unenforced_security: bool = False
    defaults: Defaults = Defaults()
    """Runs of simulated containers that end by themselves."""
    policy: allocator.Preference = allocator.Policy.FIRST_FIT
    filter_seconds: float = Settings().filter_seconds
    recording_to: components.RecordingTo | None = None
    scaling: nodeagents.Scaling | None = None

    @property
    def has_nodes(self) -> bool:
        return self.simulated is not None or self.pretends_nodes or self.scaling is not None

    def scheduler(self) -> components.Component:
        """Return the scheduler. The controllers bind volumes to claims, so pods can wait for volumes."""
        settings = Settings(
            gates=self.gates, policy=self.policy, filter_seconds=self.filter_seconds, has_volume_controllers=True
        )
        return functools.partial(components.scheduler, settings=settings, recording_to=self.recording_to)

    def nodes(self, server: ServerFacts, endpoints: nodeagents.EndpointRegistry) -> components.Component:
        """Return the simulated nodes."""
        return functools.partial(
            nodeagents.simulated_machines,
            machines=self.simulated or hardware.Hardware((), ()),
            pretends_nodes=self.pretends_nodes,
            scaling=self.scaling,
            plugin_directory=self.plugin_directory,
            served=nodeagents.Served(
                client_authority=server.authority,
                apiserver=server.url,
                local_endpoints=endpoints,
                root=server.folder,
                runtime=self.runtime,
                simulated=self.simulated_containers,
                allows_unenforced_security=self.allows_unenforced_security,
                defaults=self.defaults,
                families=server.families,
            ),
        )


_DEFAULT_PLANE: Final = ControlPlane()


async def beside(
    host: hosting.Host, plane: ControlPlane = _DEFAULT_PLANE, *, more: tuple[components.Component, ...] = ()
) -> None:
    """Run controllers, scheduler and simulated nodes in the process of a server, for :func:`hosting.run`.

    ``more`` are additional components.
    """
    mint = accountcredentials.mint(host.application.dispatcher.services.issuer.signer)
    credentials = Credentials(host.authority.decode(), mint, host.signing)
    parts: tuple[components.Component, ...] = (components.controllers, plane.scheduler(), *more)
    if plane.has_nodes:
        parts = (*parts, plane.nodes(ServerFacts.of(host), host.local_endpoints))
    async with surroundings_in(host, gates=plane.gates, credentials=credentials) as surroundings:
        await run(surroundings, parts=parts, ready=host.ready)


@contextlib.asynccontextmanager
async def surroundings_in(
    host: hosting.Host, *, gates: features.Gates, credentials: Credentials | None = None
) -> AsyncIterator[Surroundings]:
    """Yield the surroundings of components in the process of a server."""
    backends = backends_of(host)

    def client_of(user: str) -> Client:
        return local.LocalClient(backends(user))

    async with local.LocalClient(backends(components.MANAGER)) as client:
        yield Surroundings(
            client,
            gates=gates,
            registry=host.application.metrics.registry,
            credentials=credentials,
            clients=client_of,
        )


def backends_of(host: hosting.Host) -> Callable[[str], local.Backend]:
    """Return the function from the name of a component's user to its access to the server."""
    dispatcher = host.application.dispatcher
    return lambda user: inprocess.InProcess(dispatcher, user=authentication.component(user))


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


class MetricSource(Protocol):
    """A registry, or something like it."""

    def collect(self) -> Iterable[core.Metric]: ...


class MergedMetrics(registries.Collector):
    """Collector of several registries, which are read at every scrape."""

    def __init__(self, parts: Sequence[MetricSource]) -> None:
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
