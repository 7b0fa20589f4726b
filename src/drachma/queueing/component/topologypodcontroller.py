"""The controller of pods that are placed on a topology: gives them the node selectors of their places.

A pod is created with Kueue's topology gate. Once its workload is admitted with places, the gate is removed and the
labels of the pod's place are added to its node selector.
"""

from __future__ import annotations

import logging
from typing import Final

from drachma import errors
from drachma.api import pod
from drachma.client import patches, protocol
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import Caches, key_of
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.kinds import workload
from drachma.queueing.topology import ungating
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.podsetinfo import WORKLOAD_ANNOTATION
from drachma.runtime import Surroundings, controller, workqueue
from drachma.runtime.informer import Handler

_WORKERS: Final = 2
_MEMBERS: Final = "queueing-topology-members"

_log = logging.getLogger(__name__)


class TopologyPodController:
    """Reconciles a workload when it or its gated pods change."""

    name: Final = "topology pod"

    def __init__(self, surroundings: Surroundings, caches: Caches, configured: ActiveConfiguration) -> None:
        self._client: Final[protocol.Client] = surroundings.client
        self._informers: Final = surroundings.informers
        self._caches: Final = caches
        self._configured: Final = configured
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            "kueue_topology_ungater", clock=surroundings.clock, metrics=surroundings.queues
        )
        caches.pods.cache.add_index(_MEMBERS, lambda each: (_members_key(each),) if _is_member(each) else ())
        caches.pods.add_handler(Handler.on_change(self._handle_pod))
        caches.workloads.add_handler(Handler.on_write(self._handle_workload))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    def _handle_pod(self, subject: pod.Pod) -> None:
        # A pod that ends or is deleted may leave its place to a gated one.
        if _is_member(subject):
            self._queue.hasten(f"{subject.metadata.namespace}/{subject.metadata.annotations[WORKLOAD_ANNOTATION]}")

    def _handle_workload(self, wl: workload.Workload) -> None:
        admission = wl.status.admission
        if admission is not None and any(each.topology_assignment for each in admission.pod_set_assignments):
            self._queue.hasten(key_of(wl))

    async def _reconcile(self, key: str) -> controller.Again | None:
        if not self._configured.gates.on(Gate.TAS):
            return None
        namespace, _, name = key.partition("/")
        wl = self._caches.workloads.cache.get(name, namespace=namespace)
        if wl is None or workloadstate.is_finished(wl) or workloadstate.is_evicted(wl):
            return None
        members = self._caches.pods.cache.by(_MEMBERS, _members_key(wl))
        try:
            ungatings = ungating.find_pods(wl, sorted(members, key=lambda each: each.metadata.name))
        except errors.InvalidValueError as error:
            _log.warning("workload %s: %s", key, error)
            return controller.AGAIN
        for each in ungatings:
            await self._ungate(each)
        return None

    async def _ungate(self, one: ungating.Ungating) -> None:
        gates = [{"name": gate.name} for gate in one.pod.spec.scheduling_gates if gate.name != ungating.GATE]
        spec = {"schedulingGates": gates or None, "nodeSelector": one.node_selector}
        try:
            document = await self._client.patch_document(
                pod.Pod,
                one.pod.metadata.name,
                namespace=one.pod.metadata.namespace,
                patch=patches.merge({"spec": spec}, patches.unchanged(one.pod)),
            )
        except errors.ObjectNotFoundError:
            return
        # The next reconcile must count this pod in its place.
        self._informers.observe(pod.Pod, document)


def _is_member(subject: pod.Pod) -> bool:
    return WORKLOAD_ANNOTATION in subject.metadata.annotations and ungating.POD_SET_LABEL in subject.metadata.labels


def _members_key(member: pod.Pod | workload.Workload) -> str:
    return f"{member.metadata.namespace}/{ungating.workload_name(member)}"
