"""The agent of one node: it composes registration, drivers, claims and the workers of the node's pods."""

from __future__ import annotations

import asyncio
import logging
import pathlib
from collections.abc import Coroutine, Mapping
from typing import Any, Final, NamedTuple, Protocol

from drachma.api import codec, node, resourceclaim
from drachma.api import gates as feature
from drachma.api.pod import Pod
from drachma.client import Client
from drachma.node import agentmetrics
from drachma.node.claims import checkpoint, devicehealth, podresourcesocket, preparation
from drachma.node.claims.nodeclaims import NoClaims, NodeClaims
from drachma.node.directories import Directories
from drachma.node.drivers import plugins
from drachma.node.pods import services
from drachma.node.pods.noderesources import NodeResources
from drachma.node.pods.podaddresses import PodAddresses
from drachma.node.pods.podclient import PodClient
from drachma.node.pods.podworkers import PodWorkers
from drachma.node.registration import noderegistration, nodestatus
from drachma.node.registration.addresses import NodeAddress
from drachma.node.registration.machine import Machine
from drachma.node.runtimes import protocol
from drachma.node.setup.podsetup import PodSetups, UnenforcedSecurity
from drachma.node.simulation import drivers, faults, podnotices, slicepublishing
from drachma.runtime import Surroundings, controller, events, informer
from drachma.runtime.clock import sleep_unless

_log = logging.getLogger(__name__)

INDEX: Final = "agent-node"
"""Index of pods by their nodes."""

_CLEAN_UP_SECONDS: Final = 60.0


class PodFiles(NamedTuple):
    """Folder of the files of pods, and the environment of all containers."""

    folder: pathlib.Path
    environment: Mapping[str, str]
    allows_unenforced: bool = False
    """True if containers run although the runtime cannot enforce their security context; an event warns of it."""


class Simulation(NamedTuple):
    """State that all simulated drivers of a process share."""

    faults: faults.SimulatedFaults
    publishers: slicepublishing.SlicePublishers
    admin: Client
    """Client that may read the slices of all nodes."""


class NodeInformers(NamedTuple):
    """Informers that the agents of a process share; pods are indexed by :data:`INDEX`."""

    pods: informer.Informer[Pod]
    nodes: informer.Informer[node.Node]


class Drivers(Protocol):
    """Drivers of a node: :class:`drachma.node.drivers.plugins.Plugins`, or simulated drivers."""

    @property
    def health(self) -> devicehealth.HealthReports: ...

    def get(self, driver: str, /) -> preparation.Driver:
        """Return a driver by its name. Raises NodeError if it is not registered."""

    async def run(self, owner: slicepublishing.Owner, /) -> None:
        """Serve the drivers of a registered node. Return when nothing is left to do."""


class Agent:
    """Agent of one node."""

    def __init__(
        self,
        surroundings: Surroundings,
        machine: Machine,
        *,
        runtime: protocol.Runtime,
        directories: Directories | None,
        simulation: Simulation | None,
        address: NodeAddress | None,
        files: PodFiles | None,
        metrics: agentmetrics.NodeMetrics,
        recorder: events.Recorder,
        informers: NodeInformers,
    ) -> None:
        """Without directories the node's drivers are simulated, and prepared claims are not stored."""
        self.name: Final = machine.name
        self.metrics: Final = metrics
        self.client: Final[Client] = surroundings.client
        self._clock: Final = surroundings.clock
        self._directories: Final = directories
        self._pods: Final = informers.pods
        self._stored_node: node.Node | None = None
        self._has_new_driver: Final = asyncio.Event()
        self._has_claims: Final = surroundings.gates.on(feature.Gate.CORE)
        self._drivers: Final = self._make_drivers(surroundings, machine, metrics, simulation)
        self._preparation: Final = preparation.Preparation(
            get_claim=self._get_claim,
            find_driver=self._drivers.get,
            store=drivers.NoCheckpoint() if directories is None else checkpoint.Checkpoint(directories.root),
            metrics=metrics,
            clock=surroundings.clock,
            gates=surroundings.gates,
        )
        described = codec.decode(machine.node)
        assert isinstance(described, node.Node), "machines are described by nodes"
        api = PodClient(surroundings.client, recorder, clock=surroundings.clock)
        self._resources: Final = NodeResources(
            described, gates=surroundings.gates, running_pods=self._running_pods, has_bounds=runtime.has_files
        )
        self._addresses: Final = PodAddresses(
            "" if address is None else address.host,
            # Containers that really run use the network of their machine.
            common=address.pods if address is not None and runtime.has_files else "",
            families=() if address is None else address.families,
        )
        self._setups: PodSetups | None = None
        if files is not None and runtime.has_files:
            self._setups = PodSetups(
                surroundings.client,
                files.folder,
                base=files.environment,
                allocatable=described.status.allocatable,
                unenforced=UnenforcedSecurity(
                    runtime,
                    is_allowed=files.allows_unenforced,
                    warn=lambda pod, message: api.record(
                        pod, reason="UnenforcedSecurity", message=message, is_warning=True
                    ),
                ),
                clock=surroundings.clock,
            )
        self.pods: Final = PodWorkers(
            machine.name,
            services.PodServices(
                clock=surroundings.clock,
                runtime=runtime,
                api=api,
                claims=NodeClaims(self._preparation, self._drivers.health, gates=surroundings.gates)
                if self._has_claims
                else NoClaims(),
                setups=podnotices.SimulatedSetups(
                    lambda pod, reason, message: api.record(pod, reason=reason, message=message, is_warning=True)
                )
                if self._setups is None
                else self._setups,
                resources=self._resources,
                addresses=self._addresses,
                metrics=metrics,
            ),
        )
        features = self._resources.declared_features
        self._registration: Final = noderegistration.NodeRegistration(
            machine,
            client=surroundings.client,
            clock=surroundings.clock,
            recorder=recorder,
            status=nodestatus.NodeStatus(
                machine,
                address=address,
                runtime=runtime.name,
                features=features if address is None else [*features, "ExtendWebSocketsToKubelet"],
            ),
            nodes=informers.nodes,
        )

    def _make_drivers(
        self,
        surroundings: Surroundings,
        machine: Machine,
        metrics: agentmetrics.NodeMetrics,
        simulation: Simulation | None,
    ) -> Drivers:
        if self._directories is None:
            assert simulation is not None, "an agent without directories simulates its drivers"
            simulation.faults.health.listen(self.name, self._report_devices)
            return drivers.SimulatedDrivers(
                machine,
                self._get_claim,
                client=self.client,
                faults=simulation.faults,
                publishers=simulation.publishers,
                admin=simulation.admin,
                metrics=metrics,
                clock=self._clock,
            )
        self._directories.make()
        return plugins.Plugins(
            self.name,
            self._directories.registry,
            client=self.client,
            metrics=metrics,
            queues=surroundings.queues,
            clock=self._clock,
            on_driver=self._retry,
            on_health=self._report_devices,
            gates=surroundings.gates,
        )

    async def register(self) -> None:
        """Create the Node or update it, and retry until that succeeds."""
        self._stored_node = await self._registration.register(self._preparation.damage)
        self._resources.update(self._stored_node)

    def update_node(self, stored_node: node.Node) -> None:
        """Take over a change of the stored Node."""
        self._stored_node = stored_node
        self._registration.update(stored_node)

    def remove_node(self) -> None:
        """Take note that the Node was deleted."""
        self._stored_node = None

    async def run(self) -> None:
        """Run the node's pods until cancelled."""
        pods = self._pods.cache.by(INDEX, self.name)
        self._addresses.recall(pods)
        self.pods.start(pods)
        parts: list[Coroutine[Any, Any, None]] = [] if self._setups is None else [self._setups.run()]
        parts.append(self._registration.keep())
        if self._has_claims:
            parts.append(self._drivers.run(lambda: self._stored_node))
        if self._has_claims and self._directories is not None:
            path = self._directories.pod_resources
            socket = podresourcesocket.PodResourceSocket(path, self._preparation.claims, pods=self._running_pods)
            parts += [self._unprepare_leftovers(), socket.run()]
        try:
            await controller.together(*parts)
        finally:
            await self.pods.stop()

    def _retry(self) -> None:
        """Retry at once what failed because a driver was missing."""
        self._has_new_driver.set()
        self.pods.retry()

    def _report_devices(self, driver: str, devices: set[devicehealth.DeviceID]) -> None:
        self.pods.report(devicehealth.affected_pods(self._preparation.claims, driver, devices))

    async def _unprepare_leftovers(self) -> None:
        """Unprepare periodically the claims of pods that went away while no agent ran."""
        while True:
            self._has_new_driver.clear()
            problems = await self._preparation.unprepare_leftovers(self.pods.uids)
            for uid, problem in problems.items():
                _log.warning("node %s: claims of the pod of uid %s, which is gone: %s", self.name, uid, problem)
            await sleep_unless(self._has_new_driver, _CLEAN_UP_SECONDS, clock=self._clock)

    def _running_pods(self) -> list[Pod]:
        return [worker.allocated for worker in self.pods.all()]

    async def _get_claim(self, namespace: str, name: str) -> resourceclaim.ResourceClaim:
        return await self.client.get(resourceclaim.ResourceClaim, name, namespace=namespace)
