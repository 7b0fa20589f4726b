"""The agents of a process (:mod:`drachma.node.agent`): one, or thousands for simulated nodes.

They share the informers of pods and nodes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from drachma import errors
from drachma.api import deviceclass, node, resourceslice
from drachma.api import gates as feature
from drachma.api.pod import Pod
from drachma.client import Selection
from drachma.client.protocol import EVERYTHING
from drachma.node import agentmetrics
from drachma.node.agent import INDEX, Agent, NodeInformers, PodFiles, Simulation
from drachma.node.directories import Directories
from drachma.node.registration import noderegistration
from drachma.node.registration.addresses import Addresses, NodeAddress
from drachma.node.registration.machine import Machine, pretended
from drachma.node.runtimes import protocol
from drachma.node.setup import podsetup
from drachma.node.simulation import faults, hardware, slicepublishing
from drachma.runtime import Surroundings, controller, informer

_log = logging.getLogger(__name__)

_COMPONENT: Final = "kubelet"
_RETRY_SECONDS: Final = 1.0
"""Pause before the next attempt to create a device class."""

_USER_PREFIX: Final = "system:node:"
"""Prefix of the user that each node acts as, if components have users."""

_ADMIN: Final = "kubernetes-admin"
"""User that creates device classes, which nodes may not do."""


class Agents:
    """All agents of a process, as one component of it."""

    name: Final = "node agents"

    def __init__(
        self,
        surroundings: Surroundings,
        machines: hardware.Hardware,
        runtime: protocol.Runtime,
        *,
        only: str = "",
        directories: Callable[[str], Directories] | None = None,
        addresses: Addresses | None = None,
        files: PodFiles | None = None,
        pretends_nodes: bool = False,
    ) -> None:
        """``only`` is the node whose objects the client may read; without it the client may read all objects.

        With ``pretends_nodes``, nodes that other clients create get an agent too, while no other agent renews their
        lease.

        ``directories`` returns the directories of a node by its name; without it, drivers are simulated. ``addresses``
        are the addresses of nodes with an endpoint; ``files`` is for containers that see files.
        """
        self._addresses: Final = addresses
        self._surroundings: Final = surroundings
        self._runtime: Final = runtime
        self._machines: Final = machines
        self._files: Final = files
        self._simulation: Final = None if directories is not None else _simulate(surroundings)
        pods = surroundings.informers.of(Pod, Selection(fields=f"spec.nodeName={only}") if only else EVERYTHING)
        nodes = surroundings.informers.of(node.Node, Selection(fields=f"metadata.name={only}") if only else EVERYTHING)
        pods.cache.add_index(INDEX, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())
        self._metrics: Final = agentmetrics.AgentMetrics(surroundings.registry, labels_nodes=not only)
        recorder = surroundings.recorder(_COMPONENT)

        def build(machine: Machine, address: NodeAddress | None = None) -> Agent:
            return Agent(
                surroundings.acting_as(f"{_USER_PREFIX}{machine.name}"),
                machine,
                runtime=runtime,
                directories=None if directories is None else directories(machine.name),
                simulation=self._simulation,
                address=address,
                files=files,
                metrics=self._metrics.node_metrics(machine.name),
                recorder=recorder,
                informers=NodeInformers(pods, nodes),
            )

        self._build: Final = build
        self._agents: Final = {
            each.name: build(each, None if addresses is None else addresses.of(each.name)) for each in machines.machines
        }
        self._group: asyncio.TaskGroup | None = None
        self._has_group: Final = asyncio.Event()
        self._started: Final[dict[str, asyncio.Task[None]]] = {}
        self._pods: Final = pods
        self._nodes: Final = nodes
        self._node_changes: Final[asyncio.Queue[str] | None] = asyncio.Queue() if pretends_nodes else None
        if self._node_changes is not None:
            nodes.add_handler(informer.Handler(added=self._queue_node, deleted=self._queue_node))
        nodes.add_handler(informer.Handler.on_write(self._update_node, deleted=self._remove_node))
        pods.add_handler(informer.Handler.on_write(self._update_pod, deleted=self._remove_pod))

    async def run(self) -> None:
        """Register all nodes and run their pods until cancelled."""
        has_claims = self._surroundings.gates.on(feature.Gate.CORE)
        if has_claims:
            await self._create_classes()
        await controller.side_by_side([agent.register for agent in self._agents.values()])
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._has_group.set()
                group.create_task(self._remove_leftovers(), name="leftovers of pods that are gone")
                for agent in self._agents.values():
                    group.create_task(agent.run(), name=f"agent of {agent.name}")
                if self._simulation is not None and has_claims:
                    group.create_task(self._simulation.faults.run(), name="faults of devices")
                    group.create_task(self._publish_fabric(self._simulation.publishers), name="slices of no node")
                if self._node_changes is not None:
                    group.create_task(self._pretend(self._node_changes, group), name="agents of pretended nodes")
        finally:
            await self._runtime.close()

    def _remove_leftovers(self) -> Coroutine[Any, Any, None]:
        """Remove the containers and files that earlier agents left of pods that are gone."""
        uids = {pod.metadata.uid for pod in self._pods.cache}
        # Listed before any pod starts, so that the list has no folder of a later pod.
        folders = [] if self._files is None else podsetup.find_leftovers(self._files.folder, uids)

        async def remove() -> None:
            await self._runtime.retain(uids)
            await podsetup.remove_folders(folders)

        return remove()

    async def start(self, machine: Machine) -> None:
        """Add a machine while the agents run. Return when its node is registered.

        Raises:
            errors.InvalidValueError: the name is taken, or its address cannot be listened on.
        """
        await self._has_group.wait()
        assert self._group is not None, "was waited for"
        agent = await self._add(machine)
        await agent.register()
        self._started[machine.name] = self._group.create_task(agent.run(), name=f"agent of {machine.name}")

    async def stop(self, name: str) -> None:
        """Switch off a machine that was started, if there is one. Its objects at the API server stay."""
        task = self._started.pop(name, None)
        if task is None:
            return
        task.cancel()
        await asyncio.wait([task])
        agent = self._agents.pop(name, None)
        if agent is None:
            # This process was still waiting for the node's lease.
            return
        self._metrics.forget(name)
        for pod in self._pods.cache.by(INDEX, name):
            agent.pods.clean_up(pod)
        if self._addresses is not None:
            self._addresses.remove(name)

    async def _add(self, machine: Machine) -> Agent:
        """Build the agent of a new machine, at the previous address of its node if that is free.

        Raises:
            errors.InvalidValueError: the name is taken, or its address cannot be listened on.
        """
        previous = "" if self._addresses is None else await self._previous_address(machine.name)
        if machine.name in self._agents:
            raise errors.InvalidValueError(f"machine {machine.name}: there is one of this name")
        address = None if self._addresses is None else self._addresses.add(machine.name, previous=previous)
        agent = self._agents[machine.name] = self._build(machine, address)
        return agent

    async def _previous_address(self, name: str) -> str:
        try:
            document = await self._surroundings.acting_as(_ADMIN).client.get_document(node.Node, name)
        except (errors.RefusedError, errors.UnreachableError):
            return ""
        addresses = (document.get("status") or {}).get("addresses") or ()
        return next((str(each["address"]) for each in addresses if each["type"] == "InternalIP"), "")

    async def _create_classes(self) -> None:
        """Create device classes as soon as the API server answers. Existing classes stay as they are."""
        admin = self._surroundings.acting_as(_ADMIN).client
        for document in self._machines.classes:
            while True:
                try:
                    await admin.create_document(deviceclass.DeviceClass, document)
                    break
                except errors.ObjectExistsError:
                    break
                except errors.UnreachableError as error:
                    _log.warning("device class %s: is not created yet: %s", document["metadata"]["name"], error)
                await self._surroundings.clock.sleep(_RETRY_SECONDS)

    async def _publish_fabric(self, publishers: slicepublishing.SlicePublishers) -> None:
        """Publish the devices that belong to no single node."""
        admin = self._surroundings.acting_as(_ADMIN).client
        slices = self._machines.slices
        await slicepublishing.SlicePublisher(slicepublishing.FABRIC, slices, client=admin, publishers=publishers).run()

    def _update_node(self, stored_node: node.Node) -> None:
        agent = self._agents.get(stored_node.metadata.name)
        if agent is not None:
            agent.update_node(stored_node)

    def _remove_node(self, old_node: node.Node) -> None:
        agent = self._agents.get(old_node.metadata.name)
        if agent is not None:
            agent.remove_node()

    def _queue_node(self, stored_node: node.Node) -> None:
        if self._node_changes is not None:
            self._node_changes.put_nowait(stored_node.metadata.name)

    async def _pretend(self, names: asyncio.Queue[str], group: asyncio.TaskGroup) -> None:
        """Give each node that another client created an agent, for the lifetime of the Node."""
        adopted: dict[str, str] = {}
        while True:
            name = await names.get()
            stored_node = self._nodes.cache.get(name)
            uid = None if stored_node is None else stored_node.metadata.uid
            if name in adopted and adopted[name] != uid:
                del adopted[name]
                await self.stop(name)
            if uid is not None and name not in adopted and name not in self._agents:
                adopted[name] = uid
                self._started[name] = group.create_task(self._adopt(name), name=f"agent of {name}")

    async def _adopt(self, name: str) -> None:
        """Run the agent of a node once no other agent renews its lease."""
        admin = self._surroundings.acting_as(_ADMIN).client
        await noderegistration.wait_until_free(admin, name, clock=self._surroundings.clock)
        try:
            agent = await self._add(pretended(name))
        except errors.InvalidValueError as error:
            _log.warning("node %s: is not pretended: %s", name, error)
            return
        await agent.register()
        await agent.run()

    def at(self, address: str) -> Agent | None:
        """Return the agent of the node with an address, or None."""
        name = None if self._addresses is None else self._addresses.node_at(address)
        return None if name is None else self._agents.get(name)

    def _update_pod(self, pod: Pod) -> None:
        agent = self._agents.get(pod.spec.node_name)
        if agent is not None:
            agent.pods.update(pod)

    def _remove_pod(self, pod: Pod) -> None:
        agent = self._agents.get(pod.spec.node_name)
        if agent is not None:
            agent.pods.remove(pod)


def _simulate(surroundings: Surroundings) -> Simulation:
    slices = surroundings.informers.of(resourceslice.ResourceSlice)
    admin = surroundings.acting_as(_ADMIN).client
    return Simulation(
        faults=faults.SimulatedFaults(slices, client=admin, clock=surroundings.clock),
        publishers=slicepublishing.SlicePublishers(slices, gates=surroundings.gates, clock=surroundings.clock),
        admin=admin,
    )
