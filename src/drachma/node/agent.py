"""The agents of nodes (:mod:`drachma.node.nodeagent`), of which one process can have one or thousands.

They share the informer of pods.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from drachma import errors
from drachma.api import deviceclass, node, pod, resourceslice
from drachma.client import Selection
from drachma.client.protocol import EVERYTHING
from drachma.node import (
    hardware,
    nodelease,
    nodemetrics,
    podsetup,
    simulatedfaults,
    slicepublishing,
)
from drachma.node.directories import Directories
from drachma.node.endpoint.addresses import Addresses, NodeAddress
from drachma.node.nodeagent import INDEX, Agent, PodFiles, Simulation
from drachma.node.runtimes import protocol as runtimes
from drachma.runtime import Surroundings, controller, informer

_log = logging.getLogger(__name__)

_COMPONENT: Final = "kubelet"
_OFFER_SECONDS: Final = 1.0
"""Pause before a device class is offered again that could not be created."""

_USER_PREFIX: Final = "system:node:"
"""As whom each node acts, where components are somebody."""

_ADMIN: Final = "kubernetes-admin"
"""Who offers device classes: that is not for nodes to do."""


class Agents:
    """All agents of a process, as one component of it."""

    name: Final = "node agents"

    def __init__(
        self,
        around: Surroundings,
        machines: hardware.Hardware,
        runtime: runtimes.Runtime,
        *,
        only: str = "",
        directories: Callable[[str], Directories] | None = None,
        addresses: Addresses | None = None,
        files: PodFiles | None = None,
        pretends_nodes: bool = False,
    ) -> None:
        """``only`` is the node whose objects may be read, where the client is that node's; else there is no limit.

        Where it ``pretends_nodes``, nodes that others create get an agent too, while no other agent keeps their lease.

        ``directories`` are those of a node by its name; without any, drivers are simulated. ``addresses`` say
        where nodes are reached, if they are; ``files`` are for containers that see any.
        """
        self._addresses = addresses
        self._around = around
        self._runtime = runtime
        self._machines = machines
        self._files = files
        self._simulation = None if directories is not None else _simulate(around)
        self._pods = around.informers.of(pod.Pod, Selection(fields=f"spec.nodeName={only}") if only else EVERYTHING)
        nodes = around.informers.of(node.Node, Selection(fields=f"metadata.name={only}") if only else EVERYTHING)
        self._pods.cache.add_index(INDEX, lambda of: (of.spec.node_name,) if of.spec.node_name else ())
        metrics = nodemetrics.NodeMetrics(around.registry)
        recorder = around.recorder(_COMPONENT)

        def build(machine: hardware.Machine, address: NodeAddress | None = None) -> Agent:
            return Agent(
                around.acting_as(f"{_USER_PREFIX}{machine.name}"),
                machine,
                runtime=runtime,
                directories=None if directories is None else directories(machine.name),
                simulation=self._simulation,
                address=address,
                files=files,
                metrics=metrics,
                recorder=recorder,
                pods=self._pods,
                nodes=nodes,
            )

        self._build = build
        self._agents: Final = {
            each.name: build(each, None if addresses is None else addresses.of(each.name)) for each in machines.machines
        }
        self._group: asyncio.TaskGroup | None = None
        self._has_group: Final = asyncio.Event()
        self._started: Final[dict[str, asyncio.Task[None]]] = {}
        self._nodes: Final = nodes
        self._newcomers: Final[asyncio.Queue[str] | None] = asyncio.Queue() if pretends_nodes else None
        if self._newcomers is not None:
            nodes.add_handler(informer.Handler(added=self._see_node, deleted=self._see_node))
        nodes.add_handler(
            informer.Handler(
                added=self._hear_node, updated=lambda _old, new: self._hear_node(new), deleted=self._miss_node
            )
        )
        self._pods.add_handler(
            informer.Handler(added=self._heard, updated=lambda _old, new: self._heard(new), deleted=self._removed)
        )

    async def run(self) -> None:
        """Registers all nodes and runs their pods until cancelled."""
        await self._offer()
        await controller.side_by_side([agent.register for agent in self._agents.values()])
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._has_group.set()
                group.create_task(self._remove_leftovers(), name="what is left of pods that are gone")
                for agent in self._agents.values():
                    group.create_task(agent.run(), name=f"agent of {agent.name}")
                if self._simulation is not None:
                    group.create_task(self._simulation.faults.run(), name="faults of devices")
                    group.create_task(self._publish_fabric(self._simulation.publishers), name="slices of no node")
                if self._newcomers is not None:
                    group.create_task(self._pretend(self._newcomers, group), name="agents of other nodes")
        finally:
            await self._runtime.close()

    def _remove_leftovers(self) -> Coroutine[Any, Any, None]:
        """Remove the containers and files that agents before this one left of pods that are gone."""
        uids = {of.metadata.uid for of in self._pods.cache}
        # Listed before any pod begins, so that none of a pod that comes later is among them.
        folders = [] if self._files is None else podsetup.find_leftovers(self._files.folder, uids)

        async def remove() -> None:
            await self._runtime.retain(uids)
            await podsetup.remove_folders(folders)

        return remove()

    async def start(self, machine: hardware.Machine) -> None:
        """Has one more machine, once all run; returns when its node is registered.

        Raises:
            errors.InvalidValueError: there is one of its name, or nothing can listen for it.
        """
        await self._has_group.wait()
        assert self._group is not None, "was waited for"
        agent = await self._add(machine)
        await agent.register()
        self._started[machine.name] = self._group.create_task(agent.run(), name=f"agent of {machine.name}")

    async def stop(self, name: str) -> None:
        """Switches off a machine that was started; nothing happens if there is none. What the API has of it stays."""
        task = self._started.pop(name, None)
        if task is None:
            return
        task.cancel()
        await asyncio.wait([task])
        agent = self._agents.pop(name, None)
        if agent is None:
            # It was not the turn of this process yet to look after the node.
            return
        for of in self._pods.cache.by(INDEX, name):
            agent.clean_up(of)
        if self._addresses is not None:
            self._addresses.remove(name)

    async def _add(self, machine: hardware.Machine) -> Agent:
        """Build the agent of one more machine, at the address that its node had before if that is free.

        Raises:
            errors.InvalidValueError: there is one of its name, or nothing can listen for it.
        """
        before = "" if self._addresses is None else await self._address_before(machine.name)
        if machine.name in self._agents:
            raise errors.InvalidValueError(f"machine {machine.name}: there is one of this name")
        address = None if self._addresses is None else self._addresses.add(machine.name, before=before)
        agent = self._agents[machine.name] = self._build(machine, address)
        return agent

    async def _address_before(self, name: str) -> str:
        try:
            stored = await self._around.acting_as(_ADMIN).client.get_document(node.Node, name)
        except (errors.RefusedError, errors.UnreachableError):
            return ""
        addresses = (stored.get("status") or {}).get("addresses") or ()
        return next((str(each["address"]) for each in addresses if each["type"] == "InternalIP"), "")

    async def _offer(self) -> None:
        """Create device classes, as soon as the API server answers; classes that exist stay as they are."""
        admin = self._around.acting_as(_ADMIN).client
        for document in self._machines.classes:
            while True:
                try:
                    await admin.create_document(deviceclass.DeviceClass, document)
                    break
                except errors.ObjectExistsError:
                    break
                except errors.UnreachableError as error:
                    _log.warning("device class %s: is not created yet: %s", document["metadata"]["name"], error)
                await self._around.clock.sleep(_OFFER_SECONDS)

    async def _publish_fabric(self, publishers: slicepublishing.SlicePublishers) -> None:
        """Publishes devices that belong to no node alone, which no driver of a node does."""
        admin = self._around.acting_as(_ADMIN).client
        slices = self._machines.slices
        await slicepublishing.SlicePublisher(slicepublishing.FABRIC, slices, client=admin, shared=publishers).run()

    def _hear_node(self, stored: node.Node) -> None:
        agent = self._agents.get(stored.metadata.name)
        if agent is not None:
            agent.hear_node(stored)

    def _miss_node(self, gone: node.Node) -> None:
        agent = self._agents.get(gone.metadata.name)
        if agent is not None:
            agent.miss_node()

    def _see_node(self, of: node.Node) -> None:
        if self._newcomers is not None:
            self._newcomers.put_nowait(of.metadata.name)

    async def _pretend(self, names: asyncio.Queue[str], group: asyncio.TaskGroup) -> None:
        """Gives nodes that others made an agent each, for as long as there is the Node."""
        pretended: dict[str, str] = {}
        while True:
            name = await names.get()
            stored = self._nodes.cache.get(name)
            uid = None if stored is None else stored.metadata.uid
            if name in pretended and pretended[name] != uid:
                del pretended[name]
                await self.stop(name)
            if uid is not None and name not in pretended and name not in self._agents:
                pretended[name] = uid
                self._started[name] = group.create_task(self._adopt(name), name=f"agent of {name}")

    async def _adopt(self, name: str) -> None:
        """Looks after a node from the moment that no other agent does."""
        await nodelease.wait_until_free(self._around.acting_as(_ADMIN).client, name, time=self._around.clock)
        try:
            agent = await self._add(hardware.pretended(name))
        except errors.InvalidValueError as error:
            _log.warning("node %s: is not pretended: %s", name, error)
            return
        await agent.register()
        await agent.run()

    def at(self, address: str) -> Agent | None:
        """The agent of the node that is reached at an address."""
        name = None if self._addresses is None else self._addresses.node_at(address)
        return None if name is None else self._agents.get(name)

    def _heard(self, of: pod.Pod) -> None:
        agent = self._agents.get(of.spec.node_name)
        if agent is not None:
            agent.take(of)

    def _removed(self, of: pod.Pod) -> None:
        agent = self._agents.get(of.spec.node_name)
        if agent is not None:
            agent.drop(of)


def _simulate(around: Surroundings) -> Simulation:
    slices = around.informers.of(resourceslice.ResourceSlice)
    return Simulation(
        faults=simulatedfaults.SimulatedFaults(slices, client=around.acting_as(_ADMIN).client, time=around.clock),
        publishers=slicepublishing.SlicePublishers(slices, gates=around.gates, time=around.clock),
    )
