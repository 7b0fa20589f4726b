"""The controller of node failures: marks nodes that workloads have to leave, and fails pods that wait for them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from drachma import errors
from drachma.api import node, pod
from drachma.claims import conditions as statusconditions
from drachma.client import patches, protocol
from drachma.queueing import conditions
from drachma.queueing.component import workloadwrites
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import Caches, workload_of
from drachma.queueing.component.workloadwriter import WorkloadWriter
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.kinds import workload
from drachma.queueing.topology import assignment, nodefailures
from drachma.queueing.topology.tree import is_usable
from drachma.queueing.workloads import workloadstate
from drachma.runtime import Surroundings, controller, events, workqueue
from drachma.runtime.informer import Handler

_WORKERS: Final = 2
_WORKLOADS_OF_NODE: Final = "queueing-node-workloads"
_PODS_OF_NODE: Final = "queueing-node-pods"


class NodeFailureController:
    """Reconciles a node when it, its placed workloads or their pods change."""

    name: Final = "node failure"

    def __init__(
        self,
        surroundings: Surroundings,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        writer: WorkloadWriter,
    ) -> None:
        self._client: Final[protocol.Client] = surroundings.client
        self._clock: Final = surroundings.clock
        self._caches: Final = caches
        self._configured: Final = configured
        self._writer: Final = writer
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            "kueue_tas_node", clock=surroundings.clock, metrics=surroundings.queues
        )
        caches.workloads.cache.add_index(_WORKLOADS_OF_NODE, _assigned_nodes)
        caches.pods.cache.add_index(_PODS_OF_NODE, _nodes_of_pod)
        caches.nodes.add_handler(Handler.on_change(self._handle_node))
        caches.pods.add_handler(Handler.on_change(self._handle_pod))
        caches.workloads.add_handler(Handler(added=self._handle_workload, updated=self._handle_change))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    def _handle_node(self, subject: node.Node) -> None:
        if self._caches.workloads.cache.by(_WORKLOADS_OF_NODE, subject.metadata.name):
            self._queue.hasten(subject.metadata.name)

    def _handle_pod(self, subject: pod.Pod) -> None:
        for name in _nodes_of_pod(subject):
            if self._is_doubtful(name):
                self._queue.hasten(name)

    def _handle_change(self, old: workload.Workload, new: workload.Workload) -> None:
        if old.status.admission != new.status.admission:
            self._handle_workload(new)

    def _handle_workload(self, wl: workload.Workload) -> None:
        """Reconcile nodes that failed before the places of the workload were observed."""
        for name in _assigned_nodes(wl):
            if self._is_doubtful(name):
                self._queue.hasten(name)

    def _is_doubtful(self, name: str) -> bool:
        subject = self._caches.nodes.cache.get(name)
        return subject is None or not is_usable(subject) or bool(subject.spec.taints)

    async def _reconcile(self, name: str) -> controller.After | None:
        gates = self._configured.gates
        if not gates.on(Gate.TAS) or not gates.on(Gate.TAS_REPLACE_NODES):
            return None
        now = workloadwrites.current_time(self._clock)
        pods = list(self._caches.pods.cache.by(_PODS_OF_NODE, name))
        cluster = nodefailures.Cluster(
            workloads=self._workloads(name, pods), pods=pods, flavors=self._caches.flavors_by_name
        )
        outcome = nodefailures.check(name, self._caches.nodes.cache.get(name), cluster, gates=gates, now=now)
        for each in outcome.failed_pods:
            await self._fail(each, now)
        for after in outcome.workloads:
            await self._write(after, name)
        seconds = outcome.requeue_after.total_seconds()
        return controller.After(seconds) if seconds > 0 else None

    def _workloads(self, name: str, pods: Iterable[pod.Pod]) -> list[workload.Workload]:
        cache = self._caches.workloads.cache
        by_key = {workloadstate.key(each): each for each in cache.by(_WORKLOADS_OF_NODE, name)}
        for key in filter(None, map(workload_of, pods)):
            namespace, _, workload_name = key.partition("/")
            wl = cache.get(workload_name, namespace=namespace)
            if wl is not None:
                by_key.setdefault(key, wl)
        return list(by_key.values())

    async def _write(self, after: workload.Workload, node_name: str) -> None:
        """Write the nodes that a workload has to leave, or its eviction.

        Raises errors.ObjectConflictError if the workload has changed; then the node is reconciled again.
        """
        metadata = after.metadata
        before = self._caches.workloads.cache.get(metadata.name, namespace=metadata.namespace)
        if before is None or before.metadata.resource_version != metadata.resource_version:
            # Another write of this process came first.
            self._queue.hasten(node_name)
            return
        await self._writer.write_status(before, after)
        evicted = conditions.find(after.status.conditions, conditions.EVICTED)
        if evicted is not None and evicted.status == "True" and not workloadstate.is_evicted(before):
            self._writer.record(before, f"EvictedDueTo{evicted.reason}", evicted.message)

    async def _fail(self, subject: pod.Pod, now: datetime) -> None:
        """Fail a pod that waits for a node on which it will not run, so that its job creates another."""
        condition = statusconditions.document(
            nodefailures.POD_CONDITION,
            "True",
            reason=nodefailures.POD_REASON,
            message=nodefailures.POD_MESSAGE,
            now=now,
        )
        try:
            await self._client.patch(
                pod.Pod,
                subject.metadata.name,
                namespace=subject.metadata.namespace,
                subresource="status",
                patch=patches.strategic(
                    {"status": {"phase": "Failed", "conditions": [condition]}}, patches.unchanged(subject)
                ),
            )
        except errors.ObjectNotFoundError:
            return
        self._writer.recorder.record(
            events.reference_to(subject),
            type=events.NORMAL,
            reason=nodefailures.POD_EVENT,
            message=nodefailures.POD_MESSAGE,
        )


def _assigned_nodes(wl: workload.Workload) -> list[str]:
    """Return the nodes that a workload's pods are placed on."""
    admission = wl.status.admission
    if admission is None or workloadstate.is_finished(wl):
        return []
    names: dict[str, None] = {}
    for each in admission.pod_set_assignments:
        if each.topology_assignment is not None:
            decoded = assignment.decode(each.topology_assignment)
            if decoded.levels[-1:] == (assignment.HOSTNAME,):
                names.update((domain.values[-1], None) for domain in decoded.domains)
    return list(names)


def _nodes_of_pod(subject: pod.Pod) -> list[str]:
    """Return the nodes that a pod of a workload runs on or waits for."""
    if not workload_of(subject):
        return []
    names = (subject.spec.node_name, subject.spec.node_selector.get(assignment.HOSTNAME, ""))
    return list(dict.fromkeys(name for name in names if name))
