"""What the component knows of the cluster: objects of all kinds, and values made of them until they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from drachma.api import (
    deviceclass,
    limitrange,
    meta,
    namespace,
    pod,
    resourceclaim,
    resourceclaimtemplate,
    resourceslice,
)
from drachma.client import target
from drachma.queueing.admission import queuestatus
from drachma.queueing.component import resources
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.devices import deviceaccount
from drachma.queueing.devices.devicemeasure import Measure
from drachma.queueing.devices.deviceobjects import DeviceObjects, by_id
from drachma.queueing.jobs.jobworkload import Priorities
from drachma.queueing.kinds import clusterqueue, localqueue, resourceflavor, runtimeclass, workload
from drachma.queueing.lifecycle import workloadstep
from drachma.queueing.workloads import admissibility, podadjustment, settlement
from drachma.queueing.workloads.podsetinfo import WORKLOAD_ANNOTATION
from drachma.runtime.cache import Cache
from drachma.runtime.informer import Handler

BY_LOCAL_QUEUE: Final = "queueing-local-queue"
BY_CLUSTER_QUEUE: Final = "queueing-cluster-queue"
BY_OWNER: Final = "queueing-owner"
BY_TEMPLATE: Final = "queueing-template"
WITH_CLAIMS: Final = "queueing-claims"
BY_CLAIM: Final = "queueing-claim"
BY_WORKLOAD: Final = "queueing-workload"

ObjectT = TypeVar("ObjectT", bound=meta.Object)
_ValueT = TypeVar("_ValueT")
_Listener = Callable[[], None]


class Source(Protocol[ObjectT]):
    """The objects of a kind, and somebody who tells of changes: an informer."""

    @property
    def cache(self) -> Cache[ObjectT]: ...
    def add_handler(self, handler: Handler[ObjectT]) -> None:
        """Has somebody told from now on."""


class Sources(Protocol):
    """Those of all kinds."""

    def of(self, kind: target.Of[ObjectT]) -> Source[ObjectT]: ...


class _Derived(Generic[_ValueT]):
    """A value made of caches, until one of them changes."""

    def __init__(self, make: Callable[[], _ValueT]) -> None:
        self._make = make
        self._value: _ValueT | None = None

    def get(self) -> _ValueT:
        if self._value is None:
            self._value = self._make()
        return self._value

    def expire(self) -> None:
        self._value = None


class Caches:
    """All that is read. Whoever asks must not keep what it gets beyond the next ``await``."""

    def __init__(self, sources: Sources, configured: ActiveConfiguration) -> None:
        of = sources.of
        self._configured: Final = configured
        self.workloads: Final = of(resources.WORKLOADS)
        self.cluster_queues: Final = of(resources.CLUSTER_QUEUES)
        self.cohorts: Final = of(resources.COHORTS)
        self.local_queues: Final = of(resources.LOCAL_QUEUES)
        self.flavors: Final = of(resources.FLAVORS)
        self.checks: Final = of(resources.CHECKS)
        self.workload_priorities: Final = of(resources.WORKLOAD_PRIORITIES)
        self.pod_priorities: Final = of(resources.POD_PRIORITIES)
        self.runtime_classes: Final = of(resources.RUNTIME_CLASSES)
        self.namespaces: Final = of(namespace.Namespace)
        self.limit_ranges: Final = of(limitrange.LimitRange)
        self.templates: Final = of(resourceclaimtemplate.ResourceClaimTemplate)
        self.classes: Final = of(deviceclass.DeviceClass)
        self.slices: Final = of(resourceslice.ResourceSlice)
        self.claims: Final = of(resourceclaim.ResourceClaim)
        self.pods: Final = of(pod.Pod)
        self._index()
        self._places: Final = _Derived(self._make_places)
        self._devices: Final = _Derived(self._make_devices)
        self._devices_by_id: Final = _Derived(lambda: by_id(self.devices))
        self._priorities: Final = _Derived(self._make_priorities)
        self._flavors: Final = _Derived(self._make_flavors)
        self._readiness: Final = _Derived(dict[str, tuple[clusterqueue.ClusterQueue, queuestatus.Readiness]])
        for value, changing in (
            (self._places, (self.namespaces, self.limit_ranges)),
            (self._devices, (self.templates, self.classes, self.slices)),
            (self._devices_by_id, (self.slices,)),
            (self._priorities, (self.workload_priorities, self.pod_priorities)),
            (self._flavors, (self.flavors,)),
            (self._readiness, (self.flavors, self.checks)),
        ):
            for source in changing:
                on_change(source, value.expire)

    def _index(self) -> None:
        cache = self.workloads.cache
        cache.add_index(BY_LOCAL_QUEUE, lambda each: (f"{each.metadata.namespace}/{each.spec.queue_name}",))
        cache.add_index(BY_CLUSTER_QUEUE, _reserved_in)
        cache.add_index(BY_OWNER, _owners)
        cache.add_index(BY_TEMPLATE, _templates)
        cache.add_index(BY_CLAIM, _named_claims)
        cache.add_index(WITH_CLAIMS, lambda each: ("yes",) if _has_claims(each) else ())
        self.pods.cache.add_index(BY_WORKLOAD, lambda each: (key,) if (key := workload_of(each)) else ())

    # Values

    @property
    def places(self) -> admissibility.Places:
        """Namespaces, with their limit ranges."""
        return self._places.get()

    @property
    def devices(self) -> DeviceObjects:
        """What there is of templates, classes and slices."""
        return self._devices.get()

    @property
    def priorities(self) -> Priorities:
        """All priority classes."""
        return self._priorities.get()

    @property
    def flavors_by_name(self) -> Mapping[str, resourceflavor.ResourceFlavor]:
        return self._flavors.get()

    @property
    def runtime_classes_by_name(self) -> Mapping[str, runtimeclass.RuntimeClass]:
        return {each.metadata.name: each for each in self.runtime_classes.cache}

    def _make_places(self) -> admissibility.Places:
        return {
            each.metadata.name: admissibility.Place(
                each.metadata.labels,
                podadjustment.summarize(self.limit_ranges.cache.in_namespace(each.metadata.name)),
            )
            for each in self.namespaces.cache
        }

    def _make_devices(self) -> DeviceObjects:
        return DeviceObjects.of([*self.templates.cache, *self.classes.cache, *self.slices.cache])

    def _make_priorities(self) -> Priorities:
        return Priorities(
            of_workloads={each.metadata.name: each.value for each in self.workload_priorities.cache},
            of_pods={each.metadata.name: each.value for each in self.pod_priorities.cache},
            defaults=[each.metadata.name for each in self.pod_priorities.cache if each.global_default],
        )

    def _make_flavors(self) -> Mapping[str, resourceflavor.ResourceFlavor]:
        return {each.metadata.name: each for each in self.flavors.cache}

    # Queues

    def cluster_queue_of(self, local: localqueue.LocalQueue) -> clusterqueue.ClusterQueue | None:
        """The cluster queue behind a local one."""
        return self.cluster_queues.cache.get(local.spec.cluster_queue)

    def local_queue_of(self, of: workload.Workload) -> localqueue.LocalQueue | None:
        """The local queue that a workload names."""
        return self.local_queues.cache.get(of.spec.queue_name, namespace=of.metadata.namespace)

    def measures_queue_of(self, of: workload.Workload) -> bool:
        """Whether the local queue of a workload is measured by itself."""
        queue = self.local_queue_of(of)
        return queue is not None and self._configured.measures_local_queue(queue.metadata.labels)

    def readiness(self, of: clusterqueue.ClusterQueue) -> queuestatus.Readiness:
        """Whether a cluster queue admits workloads."""
        known = self._readiness.get()
        queue, readiness = known.get(of.metadata.name, (None, None))
        if readiness is None or queue is not of:
            checks = {each.metadata.name: each for each in self.checks.cache}
            readiness = queuestatus.readiness(of, flavors=self.flavors_by_name, checks=checks)
            known[of.metadata.name] = of, readiness
        return readiness

    def uses(self, of: workload.Workload) -> tuple[settlement.PodUse, ...]:
        """What the devices of a workload's pods count for, if that is to be settled."""
        if of.status.admission is None or deviceaccount.ANNOTATION not in of.metadata.annotations:
            return ()
        measure = Measure(self._configured.mappings, self._configured.gates, self._configured.policy)
        claims, devices = _Claims(self.claims), self._devices_by_id.get()
        pods = sorted(self.pods.cache.by(BY_WORKLOAD, key_of(of)), key=lambda each: each.metadata.name)
        uses = (settlement.use(each, claims, devices, measure=measure) for each in pods)
        return tuple(each for each in uses if each is not None)

    def neighbourhood(self, of: workload.Workload, *, parked_reason: str | None) -> workloadstep.Neighbourhood:
        """What a workload has around it."""
        local = self.local_queue_of(of)
        queue = self.cluster_queue_of(local) if local is not None else None
        return workloadstep.Neighbourhood(
            local_queue=local,
            cluster_queue=queue,
            is_queue_active=queue is not None and self.readiness(queue).is_active,
            places=self.places,
            objects=self.devices,
            claims=_Claims(self.claims),
            mappings=self._configured.mappings,
            uses=self.uses(of),
            patience=self._configured.patience,
            retention=self._configured.retention,
            parked_reason=parked_reason,
        )


class _Claims:
    """Claims as they are looked up by everybody."""

    def __init__(self, source: Source[resourceclaim.ResourceClaim]) -> None:
        self._cache: Final = source.cache

    def get(self, namespace: str, name: str) -> resourceclaim.ResourceClaim | None:
        return self._cache.get(name, namespace=namespace)


def workload_of(of: pod.Pod) -> str:
    """Which workload a pod says that it belongs to; empty if to none."""
    name = of.metadata.annotations.get(WORKLOAD_ANNOTATION)
    return f"{of.metadata.namespace}/{name}" if name else ""


def on_change(source: Source[Any], listener: _Listener) -> None:
    """Calls a function whenever an object comes, changes or goes."""
    source.add_handler(
        Handler(added=lambda _: listener(), updated=lambda _old, _new: listener(), deleted=lambda _: listener())
    )


def is_news(old: clusterqueue.ClusterQueue | clusterqueue.Cohort | localqueue.LocalQueue, new: Any) -> bool:
    """Whether more of a queue changed than its status."""
    return bool(old.spec != new.spec or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp)


def owner_value(kind: str, namespace_of: str, name: str) -> str:
    """Where the index of owners has the workloads of an object."""
    return f"{kind}/{namespace_of}/{name}"


def _owners(of: workload.Workload) -> Iterable[str]:
    return [owner_value(each.kind, of.metadata.namespace, each.name) for each in of.metadata.owner_references]


def _reserved_in(of: workload.Workload) -> Iterable[str]:
    return (of.status.admission.cluster_queue,) if of.status.admission is not None else ()


def _claims(of: workload.Workload) -> Iterable[Any]:
    return (claim for each in of.spec.pod_sets for claim in each.template.spec.resource_claims)


def _has_claims(of: workload.Workload) -> bool:
    return next(iter(_claims(of)), None) is not None


def _named_claims(of: workload.Workload) -> Iterable[str]:
    names = {claim.resource_claim_name for claim in _claims(of)}
    return [f"{of.metadata.namespace}/{name}" for name in names if name]


def _templates(of: workload.Workload) -> Iterable[str]:
    names = {claim.resource_claim_template_name for claim in _claims(of)}
    return [f"{of.metadata.namespace}/{name}" for name in names if name]


def key_of(of: meta.Object) -> str:
    """How decisions name a workload or a local queue."""
    return f"{of.metadata.namespace}/{of.metadata.name}"
