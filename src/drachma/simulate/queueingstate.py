"""The objects that admission depends on, as plain state: what the component would know if it saw just these.

Workloads are taken for what their controller would make of them, step by step, and queues are filled as admission fills
them, so that questions about one workload are asked of the very code that decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from drachma.api import (
    configmap,
    deviceclass,
    limitrange,
    meta,
    namespace,
    resourceclaim,
    resourceclaimtemplate,
    resourceslice,
)
from drachma.client import target
from drachma.queueing import (
    admissibility,
    explanation,
    podadjustment,
    queuestatus,
    workloadreconcile,
    workloadstate,
    workloadstep,
)
from drachma.queueing.admitter import Admitter
from drachma.queueing.component import ActiveConfiguration, configurationmap, resources
from drachma.queueing.component.caches import key_of
from drachma.queueing.configuration import DEFAULT_NAMESPACE
from drachma.queueing.deviceobjects import DeviceObjects
from drachma.queueing.explanation import WorkloadExplanation
from drachma.queueing.kinds import admissioncheck, clusterqueue, localqueue, resourceflavor, runtimeclass, workload

KINDS: Final[tuple[target.Of[Any], ...]] = (
    configmap.ConfigMap,
    namespace.Namespace,
    limitrange.LimitRange,
    deviceclass.DeviceClass,
    resourceslice.ResourceSlice,
    resourceclaimtemplate.ResourceClaimTemplate,
    resourceclaim.ResourceClaim,
    resources.RUNTIME_CLASSES,
    resources.FLAVORS,
    resources.CHECKS,
    resources.COHORTS,
    resources.CLUSTER_QUEUES,
    resources.LOCAL_QUEUES,
    resources.WORKLOADS,
)
"""What is looked at; of config maps, only that with the configuration."""

_MOST_STEPS: Final = 16
"""A workload settles after a few steps of its controller."""

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class QueueingState:
    """Queues, workloads and what is around them at a moment."""

    def __init__(
        self, objects: Iterable[meta.Object], now: datetime, *, configured: ActiveConfiguration | None = None
    ) -> None:
        """``configured``: under which configuration, where it is not that of the ConfigMap among the objects.

        Raises:
            RefusedConfigurationError: the configuration of the ConfigMap cannot be in force.
        """
        self._objects: Final = tuple(objects)
        self._now: Final = now
        self._configured: Final = configured or _configured(self._all(configmap.ConfigMap))
        self._places: Final = self._make_places()
        self._devices: Final = DeviceObjects.of(self._objects)
        self._claims: Final = _Claims(self._all(resourceclaim.ResourceClaim))
        self._flavors: Final = {each.metadata.name: each for each in self._all(resourceflavor.ResourceFlavor)}
        self._checks: Final = {each.metadata.name: each for each in self._all(admissioncheck.AdmissionCheck)}
        self._queues: Final = {each.metadata.name: each for each in self._all(clusterqueue.ClusterQueue)}
        self._local_queues: Final = {key_of(each): each for each in self._all(localqueue.LocalQueue)}
        self._obstacles: Final[dict[str, str]] = {}
        self.workloads: Final = {key_of(each): each for each in self._all(workload.Workload)}
        self.admitter: Final = self._make_admitter()

    def explain(self, place: str, name: str) -> list[WorkloadExplanation]:
        """What can be said about the workload of a namespace and name, or else about those of an owner of that name."""
        own = self.workloads.get(f"{place}/{name}")
        found = [own] if own is not None else self._owned(place, name)
        return [
            explanation.explain(self.admitter, each, self._now, obstacle=self._obstacles.get(key_of(each)))
            for each in found
        ]

    def _owned(self, place: str, name: str) -> list[workload.Workload]:
        return [
            each
            for each in self.workloads.values()
            if each.metadata.namespace == place and any(owner.name == name for owner in each.metadata.owner_references)
        ]

    def _all(self, model: type[ObjectT]) -> list[ObjectT]:
        return [each for each in self._objects if isinstance(each, model)]

    def _make_places(self) -> admissibility.Places:
        ranges: dict[str, list[limitrange.LimitRange]] = {}
        for each in self._all(limitrange.LimitRange):
            ranges.setdefault(each.metadata.namespace, []).append(each)
        return {
            each.metadata.name: admissibility.Place(
                each.metadata.labels, podadjustment.summarize(ranges.get(each.metadata.name, ()))
            )
            for each in self._all(namespace.Namespace)
        }

    def _make_admitter(self) -> Admitter:
        runtimes = {each.metadata.name: each for each in self._all(runtimeclass.RuntimeClass)}
        made = Admitter(
            settings=self._configured.settings, counting=self._configured.counting, runtime_classes=runtimes
        )
        made.set_places(self._places)
        made.set_queues(
            self._queues.values(),
            cohorts=self._all(clusterqueue.Cohort),
            local_queues=self._local_queues.values(),
            flavors=self._flavors.values(),
            inactive=[name for name, queue in self._queues.items() if not self._readiness(queue).is_active],
            holders=[each for each in self.workloads.values() if _holds_quota(each)],
        )
        for key, each in self.workloads.items():
            if not _holds_quota(each) and not workloadstate.is_finished(each):
                self._enqueue(made, key, each)
        return made

    def _readiness(self, of: clusterqueue.ClusterQueue) -> queuestatus.Readiness:
        return queuestatus.readiness(of, flavors=self._flavors, checks=self._checks)

    def _enqueue(self, admitter: Admitter, key: str, of: workload.Workload) -> None:
        """Puts a workload into its queue, as it is when its controller is done with it; or says why it is in none."""
        local = self._local_queues.get(f"{of.metadata.namespace}/{of.spec.queue_name}")
        queue = self._queues.get(local.spec.cluster_queue) if local is not None else None
        readiness = self._readiness(queue) if queue is not None else None
        around = workloadstep.Neighbourhood(
            local_queue=local,
            cluster_queue=queue,
            is_queue_active=readiness is not None and readiness.is_active,
            places=self._places,
            objects=self._devices,
            claims=self._claims,
            mappings=self._configured.mappings,
            patience=self._configured.patience,
            retention=self._configured.retention,
        )
        for _ in range(_MOST_STEPS):
            outcome = workloadreconcile.reconcile(of, around, self._now, settings=self._configured.settings)
            if outcome.workload is None or outcome.workload == of:
                break
            of = outcome.workload
        if readiness is not None and not readiness.is_active:
            self._obstacles[key] = f"cluster queue {local.spec.cluster_queue}: {readiness.message}" if local else ""
        elif local is not None and local.spec.stop_policy in (clusterqueue.HOLD, clusterqueue.HOLD_AND_DRAIN):
            self._obstacles[key] = f"local queue {key_of(local)} is stopped"
        elif outcome.is_refused:
            condition = next((each for each in of.status.conditions if each.type == "QuotaReserved"), None)
            self._obstacles[key] = condition.message if condition is not None else outcome.error
        elif workloadreconcile.is_admissible(of, self._configured.gates):
            admitter.enqueue(of, self._now, devices=outcome.devices)
        elif not workloadstate.is_active(of):
            self._obstacles[key] = "it is deactivated"


class _Claims:
    """Claims as they are looked up by everybody."""

    def __init__(self, claims: Iterable[resourceclaim.ResourceClaim]) -> None:
        self._claims: Final = {key_of(each): each for each in claims}

    def get(self, namespace_of: str, name: str) -> resourceclaim.ResourceClaim | None:
        return self._claims.get(f"{namespace_of}/{name}")


def _holds_quota(of: workload.Workload) -> bool:
    return workloadstate.has_reservation(of) and not workloadstate.is_finished(of)


def _configured(maps: Iterable[configmap.ConfigMap]) -> ActiveConfiguration:
    active = ActiveConfiguration()
    for each in maps:
        if (each.metadata.namespace, each.metadata.name) == (DEFAULT_NAMESPACE, configurationmap.NAME):
            active.offer(*configurationmap.documents(each))
    return active


def models() -> Mapping[tuple[str, str], target.Target[Any]]:
    """All kinds that are looked at, by group and name."""
    return {(each.group, each.kind): each for each in map(target.of, KINDS)}
