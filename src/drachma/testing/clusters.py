"""A whole cluster in a test: API server, controllers, scheduler and nodes in one process, there in a moment.

::

    async with drachma.testing.cluster(nodes=3, profile="gpu-server") as c:
        await c.apply(POD)
        pod = await c.pod("train").running()
        assert c.devices_of("train") == ["gpu.simulation.drachma.dev/node-0/gpu-0"]

Nothing is written to disk and nothing listens on a port. Time stands still until somebody waits, and passes then as
fast as everything can happen: a test does not sleep, and is the same every time. With drivers of one's own, which are
called on real sockets, time is real.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import pathlib
import random
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, NamedTuple

from drachma import driver, errors
from drachma.api import (
    codec,
    deviceclass,
    devicetaintrule,
    gates,
    manifest,
    meta,
    namespace,
    node,
    resourceclaim,
    resourceslice,
)
from drachma.api import pod as pods
from drachma.claims import conditions, identity, podclaims, wellknown
from drachma.client import Client, patches
from drachma.driver.instance import NodeInstance, Place
from drachma.offline import claimallocation, clusterdump, machineprofiles, manifestfiles
from drachma.process import components, embedded, nodeagents
from drachma.runtime import Informer, Surroundings, clock
from drachma.store import memory
from drachma.testing import manualclock

_PATIENCE_SECONDS: Final = 120.0
"""How long a pod may take at most for what is waited for: of the cluster's time, where that stands still otherwise."""

_STEP_SECONDS: Final = 1.0
_REAL_STEP_SECONDS: Final = 0.02
_DEFAULT: Final = "default"
_DUMPED: Final = (
    deviceclass.DeviceClass,
    devicetaintrule.DeviceTaintRule,
    namespace.Namespace,
    node.Node,
    resourceclaim.ResourceClaim,
    resourceslice.ResourceSlice,
)

DriverFactory = Callable[[], driver.Driver]
"""Makes a driver for one node: a class, usually."""


class RunningPod(NamedTuple):
    """A pod as it was seen when it was waited for."""

    name: str
    node: str
    phase: str
    devices: tuple[str, ...]
    """What its claims were given, as ``driver/pool/device``."""


class Cluster:
    """A cluster under test. See :func:`cluster`."""

    def __init__(self, client: Client, time: clock.Clock) -> None:
        self.client: Final = client
        """For whatever is not here: the API as components see it."""
        self.clock: Final = time
        self._surroundings: Final = Surroundings(client, time=time)
        of = self._surroundings.informers.of
        self._pods: Final = of(pods.Pod)
        self._known: Final[dict[type[meta.Object], Informer[Any]]] = {kind: of(kind) for kind in _DUMPED}

    # What a test does

    async def apply(self, *manifests: str) -> None:
        """Creates or updates what manifests say, in the namespace "default" where they name none; with its status.

        Raises:
            errors.DecodeError: a manifest cannot be read, or its kind is not served.
            errors.RefusedError: the API server refuses an object.
        """
        resources = {(each.group, each.kind): each for each in await self.client.resources()}
        for document in [each.content for text in manifests for each in manifest.read(text)]:
            api_version, kind = codec.type_meta(document)
            target = resources.get((api_version.rpartition("/")[0], kind))
            if target is None:
                raise errors.DecodeError(f"{codec.title(document)}: {api_version} {kind} is not served")
            metadata = dict(document.get("metadata") or {})
            if target.namespaced:
                metadata.setdefault("namespace", _DEFAULT)
            place = str(metadata.get("namespace", ""))
            content = {**document, "metadata": metadata}
            if "name" not in metadata:
                await self.client.create_document(target, content)
                continue
            name = str(metadata["name"])
            apply = patches.apply({**content, "status": None} if "status" in content else content, force=True)
            await self.client.patch(target, name, patch=apply, namespace=place)
            if "status" in document:
                status = patches.merge({"status": document["status"]})
                await self.client.patch(target, name, patch=status, namespace=place, subresource="status")
        await self.settle()

    async def delete(self, kind: type[meta.Object], name: str, *, namespace: str = _DEFAULT) -> None:
        """Deletes an object, with the grace that it has."""
        is_namespaced = kind not in (node.Node, resourceslice.ResourceSlice, deviceclass.DeviceClass)
        await self.client.delete(kind, name, namespace=namespace if is_namespaced else "")
        await self.settle()

    async def advance(self, seconds: float) -> None:
        """Lets time pass, and everything happen that happens meanwhile."""
        if isinstance(self.clock, manualclock.ManualClock):
            await self.clock.advance(seconds)
            await self.settle()
        else:
            await self.clock.sleep(seconds)

    async def settle(self) -> None:
        """Lets everything come to rest, without letting time pass."""
        if isinstance(self.clock, manualclock.ManualClock):
            await manualclock.settle()

    # What a test sees

    def pod(self, name: str, *, namespace: str = _DEFAULT) -> PodHandle:
        """A pod, which need not be there yet."""
        return PodHandle(self, name, namespace)

    def get_pod(self, name: str, *, namespace: str = _DEFAULT) -> pods.Pod | None:
        """A pod as it is now."""
        return self._pods.cache.get(name, namespace=namespace)

    def devices_of(self, name: str, *, namespace: str = _DEFAULT) -> list[str]:
        """What the claims of a pod were given, as ``driver/pool/device``, in the order of its claims."""
        of = self.get_pod(name, namespace=namespace)
        if of is None:
            return []
        devices = []
        for claim_name in podclaims.all_names(of):
            claim = self._known[resourceclaim.ResourceClaim].cache.get(claim_name, namespace=namespace)
            if claim is not None and claim.status.allocation is not None:
                results = claim.status.allocation.devices.results
                devices += [str(identity.device_of(result)) for result in results]
        return devices

    def explain(self, name: str, *, namespace: str = _DEFAULT) -> str:
        """Why a pod is not where it should be: what became of every device, and what would help."""
        of = self.get_pod(name, namespace=namespace)
        if of is None:
            return f"pod {namespace}/{name}: there is none\n"
        lines = [f"pod {namespace}/{name}: {self._state(of)}\n"]
        dump = self._dump()
        allocator = claimallocation.ClaimAllocator(dump, gates.ALL, node=None)
        for claim_name in podclaims.all_names(of):
            dumped = dump.claims.get(f"{namespace}/{claim_name}")
            if dumped is None or dumped.defaulted.status.allocation is not None:
                continue
            outcome = allocator.allocate(dumped.name, explain=True)
            lines.append(f"{outcome.message}\n")
            lines += [explained.text for explained in outcome.explanations]
        return "".join(lines)

    def _state(self, of: pods.Pod) -> str:
        if of.spec.node_name:
            return f"{of.status.phase or 'Pending'} on node {of.spec.node_name}"
        condition = conditions.find(of.status.conditions, wellknown.POD_SCHEDULED)
        return f"waits: {condition.message}" if condition is not None and condition.message else "waits"

    def _dump(self) -> clusterdump.ClusterDump:
        dump = clusterdump.ClusterDump()
        for known in self._known.values():
            for each in known.cache:
                dump.add(manifestfiles.Source("cluster", codec.encode(each)))
        return dump

    # Waiting

    async def until(self, holds: Callable[[], bool], problem: Callable[[], str]) -> None:
        """Returns once something holds.

        Raises:
            AssertionError: it does not within two minutes of the cluster's time; with what the problem is then.
        """
        step = _STEP_SECONDS if isinstance(self.clock, manualclock.ManualClock) else _REAL_STEP_SECONDS
        deadline = self.clock.monotonic() + _PATIENCE_SECONDS
        await self.settle()
        while not holds():
            if self.clock.monotonic() >= deadline:
                raise AssertionError(problem())
            await self.advance(step)

    @contextlib.asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        async with self._surroundings.informers as informers:
            await informers.wait_synced()
            yield


class PodHandle:
    """A pod that a test waits for."""

    def __init__(self, of: Cluster, name: str, namespace: str) -> None:
        self._cluster: Final = of
        self._name: Final = name
        self._namespace: Final = namespace

    async def running(self) -> RunningPod:
        """Waits until all containers run; AssertionError with an explanation where they do not."""
        return await self._reached("Running")

    async def succeeded(self) -> RunningPod:
        """Waits until it has ended well."""
        return await self._reached("Succeeded")

    async def failed(self) -> RunningPod:
        """Waits until it has ended badly."""
        return await self._reached("Failed")

    async def waiting(self) -> str:
        """Waits until the scheduler has said that it cannot be placed; what it said."""
        message = ""

        def holds() -> bool:
            nonlocal message
            of = self._pod()
            if of is None or of.spec.node_name:
                return False
            condition = conditions.find(of.status.conditions, wellknown.POD_SCHEDULED)
            message = condition.message if condition is not None else ""
            return bool(message)

        await self._cluster.until(holds, lambda: self._problem("waits"))
        return message

    async def gone(self) -> None:
        """Waits until it is deleted."""
        await self._cluster.until(lambda: self._pod() is None, lambda: self._problem("gone"))

    async def _reached(self, phase: str) -> RunningPod:
        def holds() -> bool:
            of = self._pod()
            return of is not None and of.status.phase == phase

        await self._cluster.until(holds, lambda: self._problem(phase))
        of = self._pod()
        assert of is not None, "seen above, and nobody had a turn since"
        devices = self._cluster.devices_of(self._name, namespace=self._namespace)
        return RunningPod(self._name, of.spec.node_name, of.status.phase, tuple(devices))

    def _pod(self) -> pods.Pod | None:
        return self._cluster.get_pod(self._name, namespace=self._namespace)

    def _problem(self, wanted: str) -> str:
        return f"is not {wanted}: {self._cluster.explain(self._name, namespace=self._namespace)}"


@contextlib.asynccontextmanager
async def cluster(
    *,
    nodes: int = 1,
    profile: str = "gpu-server",
    drivers: Sequence[DriverFactory] = (),
    feature_gates: gates.Gates = gates.ALL,
    seed: int = 1,
) -> AsyncIterator[Cluster]:
    """A cluster of so many nodes of a profile; with ``drivers``, each node has these instead of simulated ones.

    A profile is one of those of ``drachma up``, or the path of a file with a Node and its ResourceSlices.

    Raises:
        errors.InvalidValueError: there is no such profile.
        errors.DecodeError: the file cannot be read.
    """
    machines = machineprofiles.build(profile, nodes)
    time: clock.Clock = clock.SystemClock() if drivers else manualclock.ManualClock()
    async with contextlib.AsyncExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="d"))) if drivers else None
        server = await stack.enter_async_context(
            embedded.server(memory.MemoryStore(), time=time, chance=random.Random(seed), gates=feature_gates)
        )
        made = Cluster(server.client, time)
        await stack.enter_async_context(made._watching())
        agents = functools.partial(nodeagents.simulated_machines, machines=machines, plugin_directory=folder)
        around = Surroundings(server.client, time=time, chance=random.Random(seed), gates=feature_gates)
        await stack.enter_async_context(embedded.running(around, components.controllers, components.scheduler, agents))
        await made.until(lambda: _are_ready(made, nodes), lambda: "the nodes do not become ready")
        if folder is not None:
            for machine in machines.machines:
                for factory in drivers:
                    await stack.enter_async_context(_installed(factory, server.client, folder, machine.name))
        yield made


def _are_ready(of: Cluster, count: int) -> bool:
    known = [each for each in of._known[node.Node].cache if not each.spec.taints]
    return len(known) == count


@contextlib.asynccontextmanager
async def _installed(
    factory: DriverFactory, client: Client, folder: pathlib.Path, node_name: str
) -> AsyncIterator[NodeInstance]:
    """A driver on a node, from the moment at which the agent has taken it and its slices are visible."""
    made = factory()
    root = folder / node_name
    around = Surroundings(client)
    instance = NodeInstance(
        made,
        around,
        place=Place(
            node=node_name,
            plugins=root / "plugins" / made.name,
            registry=root / "plugins_registry",
            cdi=root / "cdi",
        ),
    )
    async with around.informers:
        task = asyncio.create_task(instance.run(), name=f"driver {made.name} on {node_name}")
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while not instance.is_ready:
                    if task.done():
                        await task
                    await asyncio.sleep(_REAL_STEP_SECONDS)
            yield instance
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
