"""The controller of pods of elastic jobs: lets them go when the workload of their job has quota for them."""

from __future__ import annotations

from typing import Final, NamedTuple

from drachma.api import meta, pod
from drachma.client import patches, protocol
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import BY_OWNER, Caches, owner_value
from drachma.queueing.jobs import elasticpods, workloadslices
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from drachma.runtime import Surroundings, controller, workqueue
from drachma.runtime.informer import Handler

_WORKERS: Final = 2
_SLICES: Final = "queueing-slices"


class _Owner(NamedTuple):
    """The job that workloads and pods belong to."""

    kind: str
    namespace: str
    name: str


class ElasticPodController:
    """Wakes up for pods and workloads of elastic jobs."""

    name: Final = "elastic pod"

    def __init__(self, surroundings: Surroundings, caches: Caches, configured: ActiveConfiguration) -> None:
        self._client: Final[protocol.Client] = surroundings.client
        self._caches: Final = caches
        self._configured: Final = configured
        self._queue: Final[workqueue.Queue[_Owner]] = workqueue.Queue(
            "kueue_elastic_pod", time=surroundings.clock, measured=surroundings.queues
        )
        caches.pods.cache.add_index(_SLICES, lambda each: (_slices(each),) if elasticpods.slice_name(each) else ())
        caches.pods.add_handler(
            Handler(added=self._on_pod, updated=lambda _, new: self._on_pod(new), deleted=self._on_pod)
        )
        caches.workloads.add_handler(Handler(added=self._on_workload, updated=lambda _, new: self._on_workload(new)))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    def _on_pod(self, of: pod.Pod) -> None:
        # One that ends or goes leaves room to another.
        if workload.SLICE_NAME in of.metadata.annotations:
            self._wake(of)

    def _on_workload(self, of: workload.Workload) -> None:
        if workloadstate.is_elastic(of, self._configured.gates):
            self._wake(of)

    def _wake(self, of: meta.Object) -> None:
        for owner in of.metadata.owner_references:
            if owner.controller:
                self._queue.hasten(_Owner(owner.kind, of.metadata.namespace, owner.name))

    async def _reconcile(self, of: _Owner) -> None:
        owned = self._caches.workloads.cache.by(BY_OWNER, owner_value(*of))
        active = workloadslices.active(owned)
        if (
            active is None
            or not workloadstate.is_elastic(active, self._configured.gates)
            or not workloadstate.is_admitted(active)
        ):
            return
        pods = self._caches.pods.cache.by(_SLICES, f"{of.namespace}/{workloadstate.slice_name(active)}")
        for each in elasticpods.let_go(active, pods):
            gates = [{"name": gate.name} for gate in each.spec.scheduling_gates if gate.name != elasticpods.GATE]
            await self._client.patch(
                pod.Pod,
                each.metadata.name,
                namespace=each.metadata.namespace,
                patch=patches.merge({"spec": {"schedulingGates": gates or None}}, patches.unchanged(each)),
            )


def _slices(of: pod.Pod) -> str:
    return f"{of.metadata.namespace}/{elasticpods.slice_name(of)}"
