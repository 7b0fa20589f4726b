"""A whole cluster in a test: API server, controllers, scheduler and nodes in one process, started in a moment.

::

    async with drachma.testing.cluster(nodes=3, profile="gpu-server") as c:
        await c.apply(POD)
        pod = await c.pod("train").running()
        assert c.devices_of("train") == ["gpu.simulation.drachma.dev/node-0/gpu-0"]

Nothing is written to disk and nothing listens on a port. Time stands still until the test waits, and then passes as
fast as the cluster can work: a test does not sleep, and gives the same result every time. With drivers of your own,
which are called on real sockets, time is real.
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
    event,
    gates,
    manifest,
    meta,
    node,
    resourceclaim,
    resourcequota,
    resourceslice,
)
from drachma.api import pod as pods
from drachma.claims import conditions, identity, podclaims, podstate, wellknown
from drachma.client import Client, Selection, patches
from drachma.driver.instance import NodeInstance, Place
from drachma.offline import machineprofiles
from drachma.process import components, embedded, nodeagents
from drachma.runtime import Informer, Surroundings, clock
from drachma.scheduler import Settings
from drachma.simulate import ClusterState, Simulation, clusterstate, explanationlines, podexplanation
from drachma.store import memory
from drachma.testing import manualclock

_PATIENCE_SECONDS: Final = 120.0
"""Time limit of every wait, on the cluster's clock."""

_STEP_SECONDS: Final = 1.0
_REAL_STEP_SECONDS: Final = 0.02
_DEFAULT: Final = "default"

DriverFactory = Callable[[], driver.Driver]
"""Function that makes a driver for one node: usually a class."""


class RunningPod(NamedTuple):
    """State of a pod at the end of a wait."""

    name: str
    node: str
    phase: str
    devices: tuple[str, ...]
    """Devices of its claims, as ``driver/pool/device``."""


class Cluster:
    """Cluster under test. See :func:`cluster`."""

    def __init__(self, client: Client, clock: clock.Clock, *, feature_gates: gates.Gates = gates.ALL) -> None:
        self.client: Final = client
        """Client of the API, for everything that has no method here."""
        self.clock: Final = clock
        self._gates: Final = feature_gates
        self._surroundings: Final = Surroundings(client, clock=clock)
        kinds: tuple[type[meta.Object], ...] = (*clusterstate.served_kinds(feature_gates), resourcequota.ResourceQuota)
        self._informers: Final[dict[type[meta.Object], Informer[Any]]] = {
            kind: self._surroundings.informers.of(kind) for kind in kinds
        }

    # Actions of a test

    async def apply(self, *manifests: str) -> None:
        """Create or update the objects of manifests, with their status. The default namespace is "default".

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
            namespace = str(metadata.get("namespace", ""))
            content = {**document, "metadata": metadata}
            if "name" not in metadata:
                await self.client.create_document(target, content)
                continue
            name = str(metadata["name"])
            apply = patches.apply({**content, "status": None} if "status" in content else content, force=True)
            await self.client.patch(target, name, patch=apply, namespace=namespace)
            if "status" in document:
                status = patches.merge({"status": document["status"]})
                await self.client.patch(target, name, patch=status, namespace=namespace, subresource="status")
        await self.settle()

    async def delete(self, kind: type[meta.Object], name: str, *, namespace: str = _DEFAULT) -> None:
        """Delete an object, with its grace period."""
        is_namespaced = kind not in (node.Node, resourceslice.ResourceSlice, deviceclass.DeviceClass)
        await self.client.delete(kind, name, namespace=namespace if is_namespaced else "")
        await self.settle()

    async def advance(self, seconds: float) -> None:
        """Let time pass, with everything that the cluster does meanwhile."""
        if isinstance(self.clock, manualclock.ManualClock):
            await self.clock.advance(seconds)
            await self.settle()
        else:
            await self.clock.sleep(seconds)

    async def settle(self) -> None:
        """Let the cluster finish its work, without letting time pass."""
        if isinstance(self.clock, manualclock.ManualClock):
            await manualclock.settle()

    # Views of the cluster

    def pod(self, name: str, *, namespace: str = _DEFAULT) -> PodHandle:
        """Return a handle for a pod, which need not exist yet."""
        return PodHandle(self, name, namespace)

    def get_pod(self, name: str, *, namespace: str = _DEFAULT) -> pods.Pod | None:
        """Return a pod in its current state, or None."""
        current: pods.Pod | None = self._informers[pods.Pod].cache.get(name, namespace=namespace)
        return current

    def devices_of(self, name: str, *, namespace: str = _DEFAULT) -> list[str]:
        """Return the devices of a pod's claims as ``driver/pool/device``, in the order of the claims."""
        user = self.get_pod(name, namespace=namespace)
        if user is None:
            return []
        devices = []
        for claim_name in podclaims.all_names(user):
            claim = self._informers[resourceclaim.ResourceClaim].cache.get(claim_name, namespace=namespace)
            if claim is not None and claim.status.allocation is not None:
                results = claim.status.allocation.devices.results
                devices += [str(identity.device_of(result)) for result in results]
        return devices

    def explain(self, name: str, *, namespace: str = _DEFAULT) -> str:
        """Return why a pod has no node, device by device, and what would help, as ``drachma explain`` does."""
        explained = self.get_pod(name, namespace=namespace)
        if explained is None:
            return f"pod {namespace}/{name}: does not exist\n"
        lines = [f"pod {namespace}/{name}: {_describe(explained)}"]
        if not explained.spec.node_name:
            objects = (each for informer in self._informers.values() for each in informer.cache)
            simulation = Simulation(ClusterState.of(objects), settings=Settings(gates=self._gates))
            quotas = tuple(self._informers[resourcequota.ResourceQuota].cache)
            lines += explanationlines.pod_lines(podexplanation.explain(simulation, explained, quotas=quotas))
        return "".join(f"{line}\n" for line in lines)

    # Waiting

    async def until(
        self, holds: Callable[[], bool], problem: Callable[[], str], *, timeout: float = _PATIENCE_SECONDS
    ) -> None:
        """Return once a condition holds.

        Raises:
            AssertionError: it does not hold within ``timeout`` seconds of the cluster's time, two minutes by default;
                the message is the problem.
        """
        step = _STEP_SECONDS if isinstance(self.clock, manualclock.ManualClock) else _REAL_STEP_SECONDS
        deadline = self.clock.monotonic() + timeout
        await self.settle()
        while not holds():
            if self.clock.monotonic() >= deadline:
                raise AssertionError(problem())
            await self.advance(step)

    async def warnings(self, name: str, *, namespace: str = _DEFAULT) -> list[str]:
        """Return the warning events of a pod, such as an error of its driver, without repetitions."""
        listed = await self.client.list(event.Event, Selection(namespace=namespace))
        own = (each for each in listed.items if each.type == "Warning" and each.involved_object.name == name)
        return list(dict.fromkeys(f"{each.reason}: {each.message}" for each in own))

    @contextlib.asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        async with self._surroundings.informers as informers:
            await informers.wait_synced()
            yield


class PodHandle:
    """Pod that a test waits for."""

    def __init__(self, cluster: Cluster, name: str, namespace: str) -> None:
        self._cluster: Final = cluster
        self._name: Final = name
        self._namespace: Final = namespace

    async def running(self, *, timeout: float = _PATIENCE_SECONDS) -> RunningPod:
        """Wait until all containers run.

        Raises AssertionError with an explanation and the pod's warning events if they do not run within ``timeout``
        seconds, or if the pod ends before.
        """
        return await self._reached("Running", timeout)

    async def succeeded(self, *, timeout: float = _PATIENCE_SECONDS) -> RunningPod:
        """Wait until the pod has succeeded."""
        return await self._reached("Succeeded", timeout)

    async def failed(self, *, timeout: float = _PATIENCE_SECONDS) -> RunningPod:
        """Wait until the pod has failed."""
        return await self._reached("Failed", timeout)

    async def waiting(self) -> str:
        """Wait until the scheduler has found no node for the pod, and return its message."""
        message = ""

        def holds() -> bool:
            nonlocal message
            current = self._pod()
            if current is None or current.spec.node_name:
                return False
            condition = conditions.find(current.status.conditions, wellknown.POD_SCHEDULED)
            message = condition.message if condition is not None else ""
            return bool(message)

        await self._cluster.until(holds, lambda: self._problem("waits"))
        return message

    async def gone(self) -> None:
        """Wait until the pod is deleted."""
        await self._cluster.until(lambda: self._pod() is None, lambda: self._problem("gone"))

    async def _reached(self, phase: str, timeout: float) -> RunningPod:
        def is_decided() -> bool:
            current = self._pod()
            return current is not None and (current.status.phase == phase or podstate.has_ended(current))

        try:
            await self._cluster.until(is_decided, lambda: self._problem(phase), timeout=timeout)
            reached = self._pod()
            assert reached is not None, "the check above has seen it"
            assert reached.status.phase == phase, self._problem(phase)
        except AssertionError as error:
            warnings = await self._cluster.warnings(self._name, namespace=self._namespace)
            raise AssertionError("\n".join((str(error).rstrip(), *(f"  {each}" for each in warnings)))) from None
        devices = self._cluster.devices_of(self._name, namespace=self._namespace)
        return RunningPod(self._name, reached.spec.node_name, reached.status.phase, tuple(devices))

    def _pod(self) -> pods.Pod | None:
        return self._cluster.get_pod(self._name, namespace=self._namespace)

    def _problem(self, state: str) -> str:
        return f"is not {state}: {self._cluster.explain(self._name, namespace=self._namespace)}"


@contextlib.asynccontextmanager
async def cluster(
    *,
    nodes: int = 1,
    profile: str = "gpu-server",
    drivers: Sequence[DriverFactory] = (),
    feature_gates: gates.Gates = gates.ALL,
    seed: int = 1,
) -> AsyncIterator[Cluster]:
    """Run a cluster with nodes of one profile. ``drivers`` replace the simulated drivers on every node.

    A profile is one of those of ``drachma up``, or the path of a file with a Node and its ResourceSlices.

    Raises:
        errors.InvalidValueError: the profile does not exist.
        errors.DecodeError: the file cannot be read.
    """
    machines = machineprofiles.build(profile, nodes)
    time: clock.Clock = clock.SystemClock() if drivers else manualclock.ManualClock()
    async with contextlib.AsyncExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="d"))) if drivers else None
        server = await stack.enter_async_context(
            embedded.server(memory.MemoryStore(), time=time, rng=random.Random(seed), gates=feature_gates)
        )
        started_cluster = Cluster(server.client, time, feature_gates=feature_gates)
        await stack.enter_async_context(started_cluster._watching())
        agents = functools.partial(nodeagents.simulated_machines, machines=machines, plugin_directory=folder)
        surroundings = Surroundings(server.client, clock=time, rng=random.Random(seed), gates=feature_gates)
        await stack.enter_async_context(
            embedded.running(surroundings, components.controllers, components.scheduler, agents)
        )
        await started_cluster.until(lambda: _are_ready(started_cluster, nodes), lambda: "the nodes do not become ready")
        if folder is not None:
            for machine in machines.machines:
                for factory in drivers:
                    await stack.enter_async_context(_installed(factory, server.client, folder, machine.name))
        yield started_cluster


def _describe(explained: pods.Pod) -> str:
    if explained.spec.node_name:
        return f"{explained.status.phase or 'Pending'} on node {explained.spec.node_name}"
    condition = conditions.find(explained.status.conditions, wellknown.POD_SCHEDULED)
    return f"waits: {condition.message}" if condition is not None and condition.message else "waits"


def _are_ready(cluster: Cluster, count: int) -> bool:
    return sum(not each.spec.taints for each in cluster._informers[node.Node].cache) == count


@contextlib.asynccontextmanager
async def _installed(
    factory: DriverFactory, client: Client, folder: pathlib.Path, node_name: str
) -> AsyncIterator[NodeInstance]:
    """Run a driver on a node. Enter once the agent has registered it and its slices are visible."""
    installed = factory()
    root = folder / node_name
    surroundings = Surroundings(client)
    instance = NodeInstance(
        installed,
        surroundings,
        place=Place(
            node=node_name,
            plugins=root / "plugins" / installed.name,
            registry=root / "plugins_registry",
            cdi=root / "cdi",
        ),
    )
    async with surroundings.informers:
        task = asyncio.create_task(instance.run(), name=f"driver {installed.name} on {node_name}")
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
