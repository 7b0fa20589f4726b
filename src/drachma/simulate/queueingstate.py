"""Objects that the admission of workloads depends on, as a value.

Workloads get the state that their controller would give them, step by step, and queues are filled as admission fills
them. So questions about a workload are answered by the code that decides.
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
    node,
    pod,
    podgroup,
    resourceclaim,
    resourceclaimtemplate,
    resourceslice,
)
from drachma.client import target
from drachma.queueing import explanation
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.admission.entry import Status
from drachma.queueing.component import ActiveConfiguration, configurationmap, resources
from drachma.queueing.component.caches import Caches, Source, key_of
from drachma.queueing.component.nodefollower import NodeFollower
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
    node.Node,
    pod.Pod,
    podgroup.PodGroup,
    resources.RUNTIME_CLASSES,
    resources.TOPOLOGIES,
    resources.FLAVORS,
    resources.CHECKS,
    resources.COHORTS,
    resources.CLUSTER_QUEUES,
    resources.LOCAL_QUEUES,
    resources.WORKLOADS,
)
"""Kinds that are read; of ConfigMaps, only those with the configuration."""

_MOST_CYCLES: Final = 100_000
"""Limit for cycles of admission. Each takes at least one workload out of its queue."""

_MOST_STEPS: Final = 16
"""Limit for steps. A workload settles after a few steps of its controller."""

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class QueueingState:
    """Queues, workloads and related objects at one moment."""

    def __init__(
        self, objects: Iterable[meta.Object], now: datetime, *, configured: ActiveConfiguration | None = None
    ) -> None:
        """``configured`` replaces the configuration of the ConfigMap among the objects.

        Raises:
            RefusedConfigurationError: the configuration of the ConfigMap is refused.
        """
        objects = tuple(objects)
        self._now: Final = now
        self._configured: Final = configured or _configured(objects)
        self._caches: Final = Caches(_Objects(objects), self._configured, has_group_claims=_has_group_claims(objects))
        self._obstacles: Final[dict[str, str]] = {}
        self.workloads: Final = {key_of(each): each for each in self._caches.workloads.cache}
        self.admitter: Final = self._make_admitter()

    def explain(self, namespace: str, name: str) -> list[WorkloadExplanation]:
        """Return explanations of the workload with this name, or else of the workloads of an owner with this name."""
        own = self.workloads.get(f"{namespace}/{name}")
        workloads = [own] if own is not None else self._owned(namespace, name)
        return [
            explanation.explain(self.admitter, each, self._now, obstacle=self._obstacles.get(key_of(each)))
            for each in workloads
        ]

    def admit_all(self) -> dict[str, str]:
        """Admit pending workloads in memory until no more get quota, and return the reasons of the others."""
        reasons = dict(self._obstacles)
        pending_workloads = [
            each for each in self.workloads.values() if not _holds_quota(each) and not workloadstate.is_finished(each)
        ]
        for each in pending_workloads:
            explained = explanation.explain(self.admitter, each, self._now, obstacle=self._obstacles.get(key_of(each)))
            if explained.outcome is explanation.Outcome.NOT_QUEUED:
                reasons[key_of(each)] = explained.message
        for _ in range(_MOST_CYCLES):
            report = self.admitter.run_cycle(self._now)
            if report is None:
                break
            for entry in report.entries:
                if entry.status is Status.ADMITTED:
                    reasons.pop(entry.info.key, None)
                else:
                    reasons[entry.info.key] = entry.message
        return reasons

    @property
    def local_queues(self) -> frozenset[str]:
        """Local queues, as namespace/name."""
        return frozenset(key_of(each) for each in self._caches.local_queues.cache)

    def submit(self, queued: workload.Workload, now: datetime) -> str:
        """Put a workload into its queue. Return the reason why it is in none, or an empty text."""
        key = key_of(queued)
        self.workloads[key] = queued
        self._obstacles.pop(key, None)
        self._enqueue(self.admitter, key, queued, now)
        return self._obstacles.get(key, "")

    def _owned(self, namespace: str, name: str) -> list[workload.Workload]:
        """Return the workloads of an owner, without slices of an elastic job that a larger slice replaces."""
        owned = [
            each
            for each in self.workloads.values()
            if each.metadata.namespace == namespace
            and any(owner.name == name for owner in each.metadata.owner_references)
        ]
        replaced = {each.metadata.annotations.get(workload.REPLACES) for each in owned}
        return [each for each in owned if key_of(each) not in replaced]

    def _make_admitter(self) -> Admitter:
        caches, configured = self._caches, self._configured
        admitter = Admitter(
            settings=configured.settings,
            counting=configured.counting,
            runtime_classes=caches.runtime_classes_by_name,
        )
        admitter.set_places(caches.places)
        queues = tuple(caches.cluster_queues.cache)
        NodeFollower(caches, admitter=lambda: admitter, on_room=lambda: None).fill()
        admitter.set_queues(
            queues,
            cohorts=caches.cohorts.cache,
            local_queues=caches.local_queues.cache,
            flavors=caches.flavors.cache,
            topologies=caches.topologies.cache,
            checks=caches.checks.cache,
            inactive=[each.metadata.name for each in queues if not caches.readiness(each).is_active],
            holders=[each for each in self.workloads.values() if _holds_quota(each)],
        )
        for key, each in self.workloads.items():
            if not _holds_quota(each) and not workloadstate.is_finished(each):
                self._enqueue(admitter, key, each, self._now)
        return admitter

    def _enqueue(self, admitter: Admitter, key: str, queued: workload.Workload, now: datetime) -> None:
        """Put a workload into its queue in the state that its controller would give it, or note why it is in none."""
        around = self._caches.neighbourhood(queued, parked_reason=None)
        local, queue = around.local_queue, around.cluster_queue
        readiness = self._caches.readiness(queue) if queue is not None else None
        for _ in range(_MOST_STEPS):
            outcome = workloadreconcile.reconcile(queued, around, now, settings=self._configured.settings)
            if outcome.workload is None or outcome.workload == queued:
                break
            queued = outcome.workload
        if readiness is not None and not readiness.is_active:
            self._obstacles[key] = f"cluster queue {local.spec.cluster_queue}: {readiness.message}" if local else ""
        elif local is not None and local.spec.stop_policy in (clusterqueue.HOLD, clusterqueue.HOLD_AND_DRAIN):
            self._obstacles[key] = f"local queue {key_of(local)} is stopped"
        elif outcome.is_refused:
            condition = next((each for each in queued.status.conditions if each.type == "QuotaReserved"), None)
            self._obstacles[key] = condition.message if condition is not None else outcome.error
        elif workloadreconcile.is_admissible(queued, self._configured.gates):
            admitter.enqueue(queued, now, devices=outcome.devices)
        elif not workloadstate.is_active(queued):
            evicted = next((each for each in queued.status.conditions if each.type == "Evicted"), None)
            message = evicted.message if evicted is not None and evicted.reason.startswith("Deactivated") else ""
            self._obstacles[key] = f"it {message.removeprefix('The workload ') or 'is deactivated'}"


class _Objects:
    """Objects by kind, which never change."""

    def __init__(self, objects: Iterable[meta.Object]) -> None:
        self._objects: Final = tuple(objects)

    def of(self, kind: target.Of[ObjectT], *, with_documents: bool = False) -> Source[ObjectT]:
        model = target.of(kind).model
        return _StaticSource([each for each in self._objects if isinstance(each, model)])


class _StaticSource(Generic[ObjectT]):
    """Objects of one kind."""

    def __init__(self, objects: Iterable[ObjectT]) -> None:
        self.cache: Final[Cache[ObjectT]] = Cache()
        for each in objects:
            self.cache.put(each)

    def add_handler(self, handler: Handler[ObjectT]) -> None:
        """Ignore the handler, since nothing changes."""


def _holds_quota(queued: workload.Workload) -> bool:
    return workloadstate.has_reservation(queued) and not workloadstate.is_finished(queued)


def _has_group_claims(objects: Iterable[meta.Object]) -> bool:
    """Return True if groups have claims, which an API server keeps only if groups share claims."""
    return any(isinstance(each, podgroup.PodGroup) and each.spec.resource_claims for each in objects)


def _configured(objects: Iterable[meta.Object]) -> ActiveConfiguration:
    active = ActiveConfiguration()
    maps = {
        each.metadata.name: each
        for each in objects
        if isinstance(each, configmap.ConfigMap) and each.metadata.namespace == DEFAULT_NAMESPACE
    }
    config_map = next(
        (maps[name] for name in (configurationmap.PUBLISHED, *configurationmap.NAMES) if name in maps), None
    )
    if config_map is not None:
        active.offer(*configurationmap.documents(config_map))
    return active


def models() -> Mapping[tuple[str, str], target.Target[Any]]:
    """Return all kinds that are read, by group and name."""
    return {(each.group, each.kind): each for each in map(target.of, KINDS)}
