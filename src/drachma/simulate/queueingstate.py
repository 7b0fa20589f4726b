"""The objects that admission depends on, as plain state: what the component would know if it saw just these.

Workloads are taken for what their controller would make of them, step by step, and queues are filled as admission fills
them, so that questions about one workload are asked of the very code that decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

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
from drachma.queueing import explanation
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.component import ActiveConfiguration, configurationmap, resources
from drachma.queueing.component.caches import Caches, Source, key_of
from drachma.queueing.configuration.configuration import DEFAULT_NAMESPACE
from drachma.queueing.explanation import WorkloadExplanation
from drachma.queueing.kinds import clusterqueue, workload
from drachma.queueing.lifecycle import workloadreconcile
from drachma.queueing.workloads import workloadstate
from drachma.runtime.cache import Cache
from drachma.runtime.informer import Handler

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
        objects = tuple(objects)
        self._now: Final = now
        self._configured: Final = configured or _configured(objects)
        self._caches: Final = Caches(_Objects(objects), self._configured)
        self._obstacles: Final[dict[str, str]] = {}
        self.workloads: Final = {key_of(each): each for each in self._caches.workloads.cache}
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
        """The workloads of an owner, but for those of an elastic job that a larger one is to replace, or has."""
        owned = [
            each
            for each in self.workloads.values()
            if each.metadata.namespace == place and any(owner.name == name for owner in each.metadata.owner_references)
        ]
        replaced = {each.metadata.annotations.get(workload.REPLACES) for each in owned}
        return [each for each in owned if key_of(each) not in replaced]

    def _make_admitter(self) -> Admitter:
        caches, configured = self._caches, self._configured
        made = Admitter(
            settings=configured.settings,
            counting=configured.counting,
            runtime_classes=caches.runtime_classes_by_name,
        )
        made.set_places(caches.places)
        queues = tuple(caches.cluster_queues.cache)
        made.set_queues(
            queues,
            cohorts=caches.cohorts.cache,
            local_queues=caches.local_queues.cache,
            flavors=caches.flavors.cache,
            inactive=[each.metadata.name for each in queues if not caches.readiness(each).is_active],
            holders=[each for each in self.workloads.values() if _holds_quota(each)],
        )
        for key, each in self.workloads.items():
            if not _holds_quota(each) and not workloadstate.is_finished(each):
                self._enqueue(made, key, each)
        return made

    def _enqueue(self, admitter: Admitter, key: str, of: workload.Workload) -> None:
        """Puts a workload into its queue, as it is when its controller is done with it; or says why it is in none."""
        around = self._caches.neighbourhood(of, parked_reason=None)
        local, queue = around.local_queue, around.cluster_queue
        readiness = self._caches.readiness(queue) if queue is not None else None
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
            evicted = next((each for each in of.status.conditions if each.type == "Evicted"), None)
            said = evicted.message if evicted is not None and evicted.reason.startswith("Deactivated") else ""
            self._obstacles[key] = f"it {said.removeprefix('The workload ') or 'is deactivated'}"


class _Objects:
    """Objects by their kinds, which stay as they are."""

    def __init__(self, objects: Iterable[meta.Object]) -> None:
        self._objects: Final = tuple(objects)

    def of(self, kind: target.Of[ObjectT]) -> Source[ObjectT]:
        model = target.of(kind).model
        return _Still([each for each in self._objects if isinstance(each, model)])


class _Still(Generic[ObjectT]):
    """The objects of one kind."""

    def __init__(self, objects: Iterable[ObjectT]) -> None:
        self.cache: Final[Cache[ObjectT]] = Cache()
        for each in objects:
            self.cache.put(each)

    def add_handler(self, handler: Handler[ObjectT]) -> None:
        """Nobody will be told: nothing changes."""


def _holds_quota(of: workload.Workload) -> bool:
    return workloadstate.has_reservation(of) and not workloadstate.is_finished(of)


def _configured(objects: Iterable[meta.Object]) -> ActiveConfiguration:
    active = ActiveConfiguration()
    for each in objects:
        place = (each.metadata.namespace, each.metadata.name)
        if isinstance(each, configmap.ConfigMap) and place == (DEFAULT_NAMESPACE, configurationmap.NAME):
            active.offer(*configurationmap.documents(each))
    return active


def models() -> Mapping[tuple[str, str], target.Target[Any]]:
    """All kinds that are looked at, by group and name."""
    return {(each.group, each.kind): each for each in map(target.of, KINDS)}
