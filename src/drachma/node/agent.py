"""The agents of nodes: each registers its node, keeps its lease, and has a worker for every pod that is bound to it.

One process can have one of them or thousands: they share the informer of pods.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.api import codec, deviceclass, lease, meta, node, pod, resourceclaim, resourceslice
from drachma.api import gates as feature
from drachma.client import patches
from drachma.node import admission, containerdevices, hardware, health, nodemetrics, simulateddrivers
from drachma.node.podworker import PodWorker
from drachma.node.preparation import Preparation
from drachma.node.runtimes import protocol as runtimes
from drachma.runtime import Surroundings, controller, events, informer

_log = logging.getLogger(__name__)

_INDEX: Final = "agent-node"
_LEASE_NAMESPACE: Final = "kube-node-lease"
_LEASE_SECONDS: Final = 40
_RENEW_SECONDS: Final = 10.0
_COMPONENT: Final = "kubelet"
_USER_PREFIX: Final = "system:node:"
"""As whom each node acts, where components are somebody."""

_ADMIN: Final = "kubernetes-admin"
"""Who offers device classes: that is not for nodes to do."""


class Agents:
    """All agents of a process, as one component of it."""

    name: Final = "node agents"

    def __init__(self, around: Surroundings, simulated: hardware.Hardware, runtime: runtimes.Runtime) -> None:
        self._around = around
        self._classes = simulated.classes
        self._pods = around.informers.of(pod.Pod)
        self._pods.cache.add_index(_INDEX, lambda of: (of.spec.node_name,) if of.spec.node_name else ())
        metrics = nodemetrics.NodeMetrics(around.registry)
        recorder = around.recorder(_COMPONENT)
        self._agents: Final = {
            each.name: Agent(
                around.acting_as(f"{_USER_PREFIX}{each.name}"),
                each,
                runtime=runtime,
                metrics=metrics,
                recorder=recorder,
                pods=self._pods,
            )
            for each in simulated.machines
        }
        self._pods.add_handler(
            informer.Handler(added=self._heard, updated=lambda _old, new: self._heard(new), deleted=self._removed)
        )

    async def run(self) -> None:
        """Registers all nodes and runs their pods until cancelled."""
        admin = self._around.acting_as(_ADMIN).client
        for document in self._classes:
            with contextlib.suppress(errors.ObjectExistsError):
                await admin.create_document(deviceclass.DeviceClass, document)
        await controller.side_by_side([agent.register for agent in self._agents.values()])
        async with asyncio.TaskGroup() as group:
            for agent in self._agents.values():
                group.create_task(agent.run(), name=f"agent of {agent.name}")

    def _heard(self, of: pod.Pod) -> None:
        agent = self._agents.get(of.spec.node_name)
        if agent is not None:
            agent.take(of)

    def _removed(self, of: pod.Pod) -> None:
        agent = self._agents.get(of.spec.node_name)
        if agent is not None:
            agent.drop(of)


class Agent:
    """One node."""

    def __init__(
        self,
        around: Surroundings,
        machine: hardware.Machine,
        *,
        runtime: runtimes.Runtime,
        metrics: nodemetrics.NodeMetrics,
        recorder: events.Recorder,
        pods: informer.Informer[pod.Pod],
    ) -> None:
        self.name: Final = machine.name
        self.clock: Final = around.clock
        self.runtime: Final = runtime
        self._client = around.client
        self._machine = machine
        described = codec.decode(machine.node)
        assert isinstance(described, node.Node), "machines are described by nodes"
        self._node = described
        self._recorder = recorder
        self._pods = pods
        self._with_claims = around.gates.on(feature.Gate.NODE_ALLOCATABLE_RESOURCES)
        self._health: Final = health.DeviceHealth(around.clock)
        self._preparation = Preparation(
            get=self._claim,
            registered=simulateddrivers.SimulatedDrivers(machine.drivers, self._claim),
            file=simulateddrivers.Forgetful(),
            metrics=metrics,
            time=around.clock,
            gates=around.gates,
        )
        self._workers: Final[dict[str, PodWorker]] = {}
        self._tasks: Final[dict[str, asyncio.Task[None]]] = {}
        self._is_running = False

    # Its node

    async def register(self) -> None:
        """Makes the Node and what its drivers publish, or brings both up to date."""
        document = self._machine.node
        try:
            made = await self._client.create_document(node.Node, document)
        except errors.ObjectExistsError:
            made = await self._client.get_document(node.Node, self.name)
        await self._client.patch(
            node.Node,
            self.name,
            patch=patches.strategic({"status": self._status()}),
            subresource="status",
        )
        await self._publish(str(made["metadata"]["uid"]))
        await self._renew()

    async def run(self) -> None:
        """Runs the node's pods until cancelled."""
        self._is_running = True
        for of in self._pods.cache.by(_INDEX, self.name):
            self.take(of)
        try:
            await controller.every(_RENEW_SECONDS, self._renew, time=self.clock, name=f"lease of {self.name}")
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _status(self) -> dict[str, Any]:
        now = self.clock.utc().strftime("%Y-%m-%dT%H:%M:%SZ")
        facts = {
            "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
        }
        conditions = [
            {
                "type": kind,
                "status": value,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, (value, reason, message) in facts.items()
        ]
        given: dict[str, Any] = self._machine.node.get("status") or {}
        info = {"containerRuntimeVersion": self.runtime.name, **(given.get("nodeInfo") or {})}
        return {**given, "conditions": conditions, "nodeInfo": info}

    async def _publish(self, uid: str) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": self.name, "uid": uid, "controller": True}
        for document in self._machine.slices:
            metadata = {**document["metadata"], "ownerReferences": [owner]}
            with contextlib.suppress(errors.ObjectExistsError):
                await self._client.create_document(resourceslice.ResourceSlice, {**document, "metadata": metadata})

    async def _renew(self) -> None:
        now = self.clock.utc().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = lease.LeaseSpec(holder_identity=self.name, lease_duration_seconds=_LEASE_SECONDS, renew_time=now)
        try:
            await self._client.patch(
                lease.Lease, self.name, patch=patches.merge({"spec": spec}), namespace=_LEASE_NAMESPACE
            )
        except errors.ObjectNotFoundError:
            metadata = meta.ObjectMeta(name=self.name, namespace=_LEASE_NAMESPACE)
            with contextlib.suppress(errors.ObjectExistsError):
                await self._client.create(lease.Lease(metadata=metadata, spec=spec))

    # Its pods

    def take(self, of: pod.Pod) -> None:
        """A pod of this node is new, or another version of it."""
        uid = of.metadata.uid
        if uid in self._workers:
            self._workers[uid].update(of)
        elif self._is_running:
            worker = self._workers[uid] = PodWorker(self, of)
            task = self._tasks[uid] = asyncio.create_task(worker.run(), name=f"pod {of.metadata.name}")
            task.add_done_callback(lambda ended: self._ended(uid, ended))

    def drop(self, of: pod.Pod) -> None:
        """A pod of this node is gone; whatever it left is cleaned up."""
        task = self._tasks.get(of.metadata.uid)
        if task is not None:
            task.cancel()

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        del self._tasks[uid]
        del self._workers[uid]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("node %s: pod of uid %s: failed unexpectedly", self.name, uid, exc_info=error)

    def judge(self, of: pod.Pod) -> admission.Verdict:
        others = [
            each
            for each in self._pods.cache.by(_INDEX, self.name)
            if each.metadata.uid in self._workers and each.metadata.uid != of.metadata.uid
        ]
        return admission.judge(of, self._node, others, with_claims=self._with_claims)

    async def prepare(self, of: pod.Pod) -> None:
        await self._preparation.prepare(of)

    async def unprepare(self, of: pod.Pod) -> None:
        await self._preparation.unprepare(of)

    def devices(self, of: pod.Pod, container: pod.Container) -> Sequence[str]:
        return containerdevices.cdi_devices(self._preparation.claims, of, container)

    async def setup(self, of: pod.Pod, container: pod.Container) -> runtimes.Setup:
        return runtimes.Setup(
            command=container.command,
            args=container.args,
            environment={each.name: each.value for each in container.env},
        )

    def health(self, of: pod.Pod) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        if not of.spec.resource_claims:
            return {}
        return {
            each.name: health.statuses(self._preparation.claims, self._health, of, each) for each in of.spec.containers
        }

    async def write_status(self, of: pod.Pod, content: dict[str, Any]) -> None:
        await self._client.patch(
            pod.Pod,
            of.metadata.name,
            patch=patches.strategic({"status": content}, patches.same(of)),
            namespace=of.metadata.namespace,
            subresource="status",
        )

    async def delete(self, of: pod.Pod) -> None:
        await self._client.delete(
            pod.Pod,
            of.metadata.name,
            namespace=of.metadata.namespace,
            preconditions=patches.same(of),
            grace_period_seconds=0,
        )

    def record(self, of: pod.Pod, *, reason: str, message: str, is_warning: bool = False) -> None:
        self._recorder.record(of, type="Warning" if is_warning else "Normal", reason=reason, message=message)

    async def _claim(self, namespace: str, name: str) -> resourceclaim.ResourceClaim:
        return await self._client.get(resourceclaim.ResourceClaim, name, namespace=namespace)
