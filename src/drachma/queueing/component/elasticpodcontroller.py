"""The controller of pods of elastic jobs: removes their gates as far as the job's workload has quota for them."""

from __future__ import annotations

from typing import Final, NamedTuple

from drachma.api import meta, pod
from drachma.client import patches, protocol
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import BY_OWNER, Caches, owner_value
from drachma.queueing.jobs import elastic
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from drachma.runtime import Surroundings, controller, workqueue
from drachma.runtime.informer import Handler

_WORKERS: Final = 2
_SLICES: Final = "queueing-slices"


class _Owner(NamedTuple):
    """The job that owns workloads and pods."""

    kind: str
    namespace: str
    name: str


class ElasticPodController:
    """Reconciles elastic jobs when their pods or workloads change."""

    name: Final = "elastic pod"

    def __init__(self, surroundings: Surroundings, caches: Caches, configured: ActiveConfiguration) -> None:
        self._client: Final[protocol.Client] = surroundings.client
        self._caches: Final = caches
        self._configured: Final = configured
        self._queue: Final[workqueue.Queue[_Owner]] = workqueue.Queue(
            "kueue_elastic_pod", clock=surroundings.clock, metrics=surroundings.queues
        )
        caches.pods.cache.add_index(_SLICES, lambda each: (_slices(each),) if elastic.slice_name(each) else ())
        caches.pods.add_handler(Handler.on_change(self._handle_pod))
        caches.workloads.add_handler(Handler.on_write(self._handle_workload))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    def _handle_pod(self, subject: pod.Pod) -> None:
        # A pod that ends or is deleted makes room for another.
        if workload.SLICE_NAME in subject.metadata.annotations:
            self._wake(subject)

    def _handle_workload(self, wl: workload.Workload) -> None:
        if workloadstate.is_elastic(wl, self._configured.gates):
            self._wake(wl)

    def _wake(self, obj: meta.Object) -> None:
        for owner in obj.metadata.owner_references:
            if owner.controller:
                self._queue.hasten(_Owner(owner.kind, obj.metadata.namespace, owner.name))

    async def _reconcile(self, owner: _Owner) -> None:
        owned = self._caches.workloads.cache.by(BY_OWNER, owner_value(*owner))
        active = elastic.active(owned)
        if (
            active is None
            or not workloadstate.is_elastic(active, self._configured.gates)
            or not workloadstate.is_admitted(active)
        ):
            return
        pods = self._caches.pods.cache.by(_SLICES, f"{owner.namespace}/{workloadstate.slice_name(active)}")
        for each in elastic.pods_to_ungate(active, pods):
            gates = [{"name": gate.name} for gate in each.spec.scheduling_gates if gate.name != elastic.GATE]
            await self._client.patch(
                pod.Pod,
                each.metadata.name,
                namespace=each.metadata.namespace,
                patch=patches.merge({"spec": {"schedulingGates": gates or None}}, patches.unchanged(each)),
            )


def _slices(subject: pod.Pod) -> str:
    return f"{subject.metadata.namespace}/{elastic.slice_name(subject)}"
