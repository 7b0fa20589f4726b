"""Caches of the component: objects of all kinds, and values derived from them until they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from drachma.api import (
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
from drachma.api.v1alpha2 import parameters, resourceclass
from drachma.api.v1alpha2 import resourceclaimtemplate as alpha_template
from drachma.client import target
from drachma.queueing.admission import queuestatus
from drachma.queueing.component import resources
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.devices.measure import Measure
from drachma.queueing.devices.objects import DeviceObjects, devices_by_id
from drachma.queueing.jobs import construction
from drachma.queueing.jobs.interface import GenericJob
from drachma.queueing.jobs.settings import Document, Environment, Owners, Priorities
from drachma.queueing.kinds import classes, clusterqueue, localqueue, resourceflavor, workload
from drachma.queueing.lifecycle import workloadstep
from drachma.queueing.workloads import admissibility, podadjustment, settlement
from drachma.queueing.workloads.podsetinfo import WORKLOAD_ANNOTATION
from drachma.runtime.cache import Cache
from drachma.runtime.informer import Handler
from drachma.structured import claims as structuredclaims
from drachma.structured import resolution

BY_LOCAL_QUEUE: Final = "queueing-local-queue"
LOCAL_BY_CLUSTER_QUEUE: Final = "queueing-local-by-cluster-queue"
BY_CLUSTER_QUEUE: Final = "queueing-cluster-queue"
BY_OWNER: Final = "queueing-owner"
BY_TEMPLATE: Final = "queueing-template"
BY_GROUP: Final = "queueing-group"
WITH_CLAIMS: Final = "queueing-claims"
BY_CLAIM: Final = "queueing-claim"
BY_WORKLOAD: Final = "queueing-workload"
BY_POD_GROUP: Final = "queueing-pod-group"

ObjectT = TypeVar("ObjectT", bound=meta.Object)
_ValueT = TypeVar("_ValueT")
_Listener = Callable[[], None]


class Source(Protocol[ObjectT]):
    """Objects of one kind and notification of their changes: an informer."""

    @property
    def cache(self) -> Cache[ObjectT]: ...
    def add_handler(self, handler: Handler[ObjectT]) -> None:
        """Call a handler for every object and for every change from now on."""


class Sources(Protocol):
    """Informers of all kinds."""

    def of(self, kind: target.Of[ObjectT], *, with_documents: bool = False) -> Source[ObjectT]: ...


class _Derived(Generic[_ValueT]):
    """A value derived from caches, computed again after one of them changes."""

    def __init__(self, make: Callable[[], _ValueT]) -> None:
        self._make = make
        self._value: _ValueT | None = None

    def get(self) -> _ValueT:
        if self._value is None:
            self._value = self._make()
        return self._value

    def expire(self) -> None:
        self._value = None


class FirstAlpha:
    """Claim templates and resource classes of v1alpha2, in the terms of v1. Their resource classes can be mapped."""

    def __init__(self, sources: Sources) -> None:
        self.templates: Final = sources.of(alpha_template.ResourceClaimTemplate)
        self._classes: Final = sources.of(resourceclass.ResourceClass)
        self._claim_parameters: Final = sources.of(parameters.ResourceClaimParameters)
        self._class_parameters: Final = sources.of(parameters.ResourceClassParameters)
        self._objects: Final = resolution.CachedObjects(
            self._classes.cache, self._claim_parameters.cache, self._class_parameters.cache
        )

    @property
    def sources(self) -> tuple[Source[Any], ...]:
        return (self.templates, self._classes, self._claim_parameters, self._class_parameters)

    def translate(self) -> Iterator[meta.Object]:
        """Yield the classes, and the templates whose parameters exist."""
        yield from map(structuredclaims.class_of, self._classes.cache)
        for each in self.templates.cache:
            template = structuredclaims.template_of(each, self._objects)
            if template is not None:
                yield template


class Caches:
    """All objects that the component reads. Callers must not keep values beyond the next ``await``."""

    def __init__(
        self,
        sources: Sources,
        configured: ActiveConfiguration,
        *,
        has_first_alpha: bool = False,
        has_group_claims: bool = False,
    ) -> None:
        informer_of = sources.of
        self._configured: Final = configured
        self.workloads: Final = informer_of(resources.WORKLOADS, with_documents=True)
        self.cluster_queues: Final = informer_of(resources.CLUSTER_QUEUES, with_documents=True)
        self.cohorts: Final = informer_of(resources.COHORTS, with_documents=True)
        self.local_queues: Final = informer_of(resources.LOCAL_QUEUES, with_documents=True)
        self.flavors: Final = informer_of(resources.FLAVORS)
        self.topologies: Final = informer_of(resources.TOPOLOGIES)
        self.nodes: Final = informer_of(node.Node)
        self.checks: Final = informer_of(resources.CHECKS)
        self.workload_priorities: Final = informer_of(resources.WORKLOAD_PRIORITIES)
        self.pod_priorities: Final = informer_of(resources.POD_PRIORITIES)
        self.runtime_classes: Final = informer_of(resources.RUNTIME_CLASSES)
        self.namespaces: Final = informer_of(namespace.Namespace)
        self.limit_ranges: Final = informer_of(limitrange.LimitRange)
        self.templates: Final = informer_of(resourceclaimtemplate.ResourceClaimTemplate)
        self.classes: Final = informer_of(deviceclass.DeviceClass)
        self.slices: Final = informer_of(resourceslice.ResourceSlice)
        self.claims: Final = informer_of(resourceclaim.ResourceClaim)
        self.pods: Final = informer_of(pod.Pod)
        self.groups: Final = informer_of(podgroup.PodGroup) if has_group_claims else None
        self.first_alpha: Final = FirstAlpha(sources) if has_first_alpha else None
        self._index()
        self._places: Final = _Derived(self._make_places)
        self._devices: Final = _Derived(self._make_devices)
        self._devices_by_id: Final = _Derived(lambda: devices_by_id(self.devices))
        self._priorities: Final = _Derived(self._make_priorities)
        self._flavors: Final = _Derived(self._make_flavors)
        self._readiness: Final = _Derived(dict[str, tuple[clusterqueue.ClusterQueue, queuestatus.Readiness]])
        for value, changing in (
            (self._places, (self.namespaces, self.limit_ranges)),
            (self._devices, (self.templates, self.classes, self.slices)),
            (self._devices_by_id, (self.slices,)),
            (self._priorities, (self.workload_priorities, self.pod_priorities)),
            (self._flavors, (self.flavors,)),
            (self._readiness, (self.flavors, self.topologies, self.checks)),
        ):
            for source in changing:
                call_on_change(source, value.expire)
        for source in self.first_alpha.sources if self.first_alpha is not None else ():
            call_on_change(source, self._devices.expire)
        if self.groups is not None:
            call_on_change(self.groups, self._devices.expire)

    def _index(self) -> None:
        cache = self.workloads.cache
        cache.add_index(BY_LOCAL_QUEUE, lambda each: (f"{each.metadata.namespace}/{each.spec.queue_name}",))
        cache.add_index(BY_CLUSTER_QUEUE, _reserved_in)
        cache.add_index(BY_OWNER, _owners)
        cache.add_index(BY_TEMPLATE, _templates)
        cache.add_index(BY_CLAIM, _claim_names)
        cache.add_index(BY_GROUP, _groups)
        cache.add_index(WITH_CLAIMS, lambda each: ("yes",) if _has_claims(each) else ())
        self.local_queues.cache.add_index(LOCAL_BY_CLUSTER_QUEUE, lambda each: (each.spec.cluster_queue,))
        self.pods.cache.add_index(BY_WORKLOAD, lambda each: (key,) if (key := workload_of(each)) else ())
        self.pods.cache.add_index(BY_POD_GROUP, lambda each: _group_of(each.metadata.namespace, each.spec))

    # Values

    @property
    def places(self) -> admissibility.Places:
        """Namespaces, with their limit ranges."""
        return self._places.get()

    @property
    def devices(self) -> DeviceObjects:
        """Claim templates, device classes, slices, and groups of pods if they share claims."""
        return self._devices.get()

    @property
    def priorities(self) -> Priorities:
        """All priority classes."""
        return self._priorities.get()

    @property
    def flavors_by_name(self) -> Mapping[str, resourceflavor.ResourceFlavor]:
        return self._flavors.get()

    @property
    def runtime_classes_by_name(self) -> Mapping[str, classes.RuntimeClass]:
        return {each.metadata.name: each for each in self.runtime_classes.cache}

    def _make_places(self) -> admissibility.Places:
        return {
            each.metadata.name: admissibility.Place(
                each.metadata.labels,
                podadjustment.summarize(self.limit_ranges.cache.list_namespace(each.metadata.name)),
            )
            for each in self.namespaces.cache
        }

    def _make_devices(self) -> DeviceObjects:
        translated = self.first_alpha.translate() if self.first_alpha is not None else ()
        # Objects of v1 take precedence over objects of v1alpha2 with the same name.
        groups = self.groups.cache if self.groups is not None else ()
        return DeviceObjects.of(
            [*translated, *self.templates.cache, *self.classes.cache, *self.slices.cache, *groups],
            has_groups=self.groups is not None,
        )

    def _make_priorities(self) -> Priorities:
        return Priorities(
            workload_classes={each.metadata.name: each.value for each in self.workload_priorities.cache},
            pod_classes={each.metadata.name: each.value for each in self.pod_priorities.cache},
            defaults=[each.metadata.name for each in self.pod_priorities.cache if each.global_default],
        )

    def _make_flavors(self) -> Mapping[str, resourceflavor.ResourceFlavor]:
        return {each.metadata.name: each for each in self.flavors.cache}

    # Queues

    def cluster_queue_of(self, local: localqueue.LocalQueue) -> clusterqueue.ClusterQueue | None:
        """Return the cluster queue of a local queue."""
        return self.cluster_queues.cache.get(local.spec.cluster_queue)

    def local_queue_of(self, wl: workload.Workload) -> localqueue.LocalQueue | None:
        """Return the local queue that a workload names."""
        return self.local_queues.cache.get(wl.spec.queue_name, namespace=wl.metadata.namespace)

    def measures_queue_of(self, wl: workload.Workload) -> bool:
        """Return True if the local queue of a workload has metrics of its own."""
        queue = self.local_queue_of(wl)
        return queue is not None and self._configured.measures_local_queue(queue.metadata.labels)

    def readiness(self, cluster_queue: clusterqueue.ClusterQueue) -> queuestatus.Readiness:
        """Return the readiness of a cluster queue."""
        by_name = self._readiness.get()
        queue, readiness = by_name.get(cluster_queue.metadata.name, (None, None))
        if readiness is None or queue is not cluster_queue:
            checks = {each.metadata.name: each for each in self.checks.cache}
            readiness = queuestatus.readiness(
                cluster_queue,
                flavors=self.flavors_by_name,
                checks=checks,
                missing_topologies=self._missing_topologies(),
            )
            by_name[cluster_queue.metadata.name] = cluster_queue, readiness
        return readiness

    def _missing_topologies(self) -> dict[str, str]:
        """Return the topologies that do not exist, by the flavors that name them."""
        if not self._configured.gates.on(Gate.TAS):
            return {}
        return {
            name: flavor.spec.topology_name
            for name, flavor in self.flavors_by_name.items()
            if flavor.spec.topology_name is not None and self.topologies.cache.get(flavor.spec.topology_name) is None
        }

    def uses(self, wl: workload.Workload) -> tuple[settlement.PodUse, ...]:
        """Return the charges for the devices of a workload's pods, if they have to be settled."""
        account = deviceaccount.read(wl) if wl.status.admission is not None else None
        if account is None:
            return ()
        measure = Measure(self._configured.mappings, self._configured.gates, self._configured.policy)
        claims, devices = _Claims(self.claims), self._devices_by_id.get()
        pods = sorted(self.pods.cache.by(BY_WORKLOAD, key_of(wl)), key=lambda each: each.metadata.name)
        uses = (settlement.use(each, claims, devices, measure=measure, account=account) for each in pods)
        return tuple(each for each in uses if each is not None)

    # Jobs

    def pod_sets(self, wl: workload.Workload) -> Sequence[Document]:
        """Return the pod sets of a workload as whole documents."""
        entry = self.workloads.cache.entry(wl.metadata.name, namespace=wl.metadata.namespace)
        return () if entry is None else entry.document()["spec"].get("podSets") or ()

    def job_workloads(self, job: GenericJob, *, owners: Owners) -> list[workload.Workload]:
        """Return the workloads of a job: its own, its prebuilt one, and those of its owners."""
        cache = self.workloads.cache
        workloads = list(cache.by(BY_OWNER, owner_value(job.kind.kind, job.namespace, job.name)))
        prebuilt = (job.labels.get(construction.PREBUILT, ""), job.annotations.get(construction.PREBUILT, ""))
        prebuilt_workloads = (cache.get(name, namespace=job.namespace) for name in prebuilt if name)
        workloads += [each for each in prebuilt_workloads if each is not None]
        workloads.sort(key=lambda each: each.metadata.name)
        for owner in owners.values():
            workloads += cache.by(BY_OWNER, owner_value(owner["kind"], job.namespace, owner["metadata"]["name"]))
        return list({each.metadata.name: each for each in workloads}.values())

    def workload_document(self, wl: workload.Workload) -> Document:
        """Return a cached workload as a whole document."""
        entry = self.workloads.cache.entry(wl.metadata.name, namespace=wl.metadata.namespace)
        assert entry is not None, "the workload is in the cache"
        return entry.document()

    def environment(self, namespace_name: str, workloads: Sequence[workload.Workload], owners: Owners) -> Environment:
        """Return the objects that the reconcile of a job reads."""
        place = self.places.get(namespace_name)
        return Environment(
            namespace_labels=None if place is None else place.labels,
            pod_sets=self.pod_sets,
            workloads=workloads,
            owners=owners,
            flavors=self.flavors_by_name,
            priorities=self.priorities,
        )

    # Workloads

    def neighbourhood(self, wl: workload.Workload, *, parked_reason: str | None) -> workloadstep.Neighbourhood:
        """Return the objects that the reconcile of a workload reads."""
        local = self.local_queue_of(wl)
        queue = self.cluster_queue_of(local) if local is not None else None
        return workloadstep.Neighbourhood(
            local_queue=local,
            cluster_queue=queue,
            is_queue_active=queue is not None and self.readiness(queue).is_active,
            places=self.places,
            objects=self.devices,
            claims=_Claims(self.claims),
            mappings=self._configured.mappings,
            uses=self.uses(wl),
            patience=self._configured.patience,
            retention=self._configured.retention,
            parked_reason=parked_reason,
        )


class _Claims:
    """Lookup of claims by namespace and name."""

    def __init__(self, source: Source[resourceclaim.ResourceClaim]) -> None:
        self._cache: Final = source.cache

    def get(self, namespace: str, name: str) -> resourceclaim.ResourceClaim | None:
        return self._cache.get(name, namespace=namespace)


def workload_of(subject: pod.Pod) -> str:
    """Return the key of the workload that a pod's annotation names, or an empty text."""
    name = subject.metadata.annotations.get(WORKLOAD_ANNOTATION)
    return f"{subject.metadata.namespace}/{name}" if name else ""


def call_on_change(source: Source[Any], listener: _Listener) -> None:
    """Call a function whenever an object is added, changed or deleted."""
    source.add_handler(Handler.on_change(lambda _: listener()))


def is_spec_changed(old: clusterqueue.ClusterQueue | clusterqueue.Cohort | localqueue.LocalQueue, new: Any) -> bool:
    """Return True if a queue has changed in more than its status."""
    return bool(old.spec != new.spec or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp)


def owner_value(kind: str, namespace_of: str, name: str) -> str:
    """Return the value under which the index of owners has the workloads of an object."""
    return f"{kind}/{namespace_of}/{name}"


def _owners(wl: workload.Workload) -> Iterable[str]:
    return [owner_value(each.kind, wl.metadata.namespace, each.name) for each in wl.metadata.owner_references]


def _reserved_in(wl: workload.Workload) -> Iterable[str]:
    return (wl.status.admission.cluster_queue,) if wl.status.admission is not None else ()


def _claims(wl: workload.Workload) -> Iterable[Any]:
    return (claim for each in wl.spec.pod_sets for claim in each.template.spec.resource_claims)


def _has_claims(wl: workload.Workload) -> bool:
    return next(iter(_claims(wl)), None) is not None


def _claim_names(wl: workload.Workload) -> Iterable[str]:
    names = {claim.resource_claim_name for claim in _claims(wl)}
    return [f"{wl.metadata.namespace}/{name}" for name in names if name]


def _groups(wl: workload.Workload) -> Iterable[str]:
    return {key for each in wl.spec.pod_sets for key in _group_of(wl.metadata.namespace, each.template.spec)}


def _group_of(namespace_of: str, spec: pod.PodSpec) -> Iterable[str]:
    """Return the key of the group that pods name, if they name one."""
    name = spec.scheduling_group.pod_group_name if spec.scheduling_group is not None else None
    return (f"{namespace_of}/{name}",) if name else ()


def _templates(wl: workload.Workload) -> Iterable[str]:
    names = {claim.resource_claim_template_name for claim in _claims(wl)}
    return [f"{wl.metadata.namespace}/{name}" for name in names if name]


def key_of(obj: meta.Object) -> str:
    """Return ``namespace/name`` of an object."""
    return f"{obj.metadata.namespace}/{obj.metadata.name}"
