"""The controllers of Endpoints and of EndpointSlices: one loop, and a plan of the objects of each kind.

A service is reconciled when it, one of its pods or one of its objects changes. The plan says which objects to create,
change and delete; it is carried out once the cache shows everything that was written for the service before.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from drachma import errors
from drachma.api import meta, node, pod, service
from drachma.client import patches, target
from drachma.controllers import objectwrites
from drachma.controllers.endpoints import servicepods, sliceplan, subsets
from drachma.controllers.workload import expectations
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

WORKERS: Final = 5

_MANAGER_LABEL: Final = "endpoints.kubernetes.io/managed-by"
_MANAGER: Final = "endpoint-controller"
_CAPACITY_ANNOTATION: Final = "endpoints.kubernetes.io/over-capacity"
_LEADER_ANNOTATION: Final = "control-plane.alpha.kubernetes.io/leader"
"""Old clients elect their leaders by Endpoints that belong to no service."""

ObjectT = TypeVar("ObjectT", bound=meta.Object)
Document = dict[str, Any]


class Plan(NamedTuple, Generic[ObjectT]):
    """Objects of a service to create, to change and to delete."""

    created: Sequence[Document] = ()
    changed: Sequence[tuple[ObjectT, Document]] = ()
    deleted: Sequence[ObjectT] = ()


class Planner(Protocol[ObjectT]):
    """Decides which objects of one kind a service has."""

    @property
    def annotations(self) -> Sequence[str]:
        """Annotations that only this controller sets."""

    def handler(self, add: Callable[[ObjectT], None]) -> informer.Handler[ObjectT]:
        """Make the handler that adds objects to the queue whose changes concern their service."""

    def service_key(self, subject: ObjectT) -> cache.Key | None:
        """Return the key of the service that an object belongs to, or None if it is not this controller's."""

    def plan(self, key: cache.Key, service: service.Service | None, pods: Sequence[pod.Pod]) -> Plan[ObjectT]:
        """Return the plan for a service, or for the objects that a deleted service has left."""


class ServiceEndpoints(Generic[ObjectT]):
    """Keeps the objects of one kind that list the endpoints of services."""

    def __init__(
        self, name: str, surroundings: Surroundings, objects: informer.Informer[ObjectT], *, planner: Planner[ObjectT]
    ) -> None:
        self.name: Final = name
        self._client: Final = surroundings.client
        self._objects: Final = objects
        self._planner: Final = planner
        self._writer: Final = objectwrites.Writer(surroundings.client, objects)
        self._expected: Final = expectations.Expectations(objects)
        self._triggers: Final = servicepods.TriggerTimes()
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            name, clock=surroundings.clock, metrics=surroundings.queues
        )
        services, pods = surroundings.informers.of(service.Service), surroundings.informers.of(pod.Pod)
        self._services: Final = services.cache
        self._pods: Final = servicepods.ServicePods(services, pods, enqueue=self._queue.add)
        services.add_handler(informer.Handler(deleted=self._forget))
        objects.add_handler(planner.handler(self._add_service_of))

    async def run(self) -> None:
        # A service may have been deleted while no controller ran.
        for each in self._objects.cache:
            self._add_service_of(each)
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _forget(self, service: service.Service) -> None:
        self._expected.forget(service.metadata.uid)
        self._triggers.forget(service)
        self._queue.add(cache.key_of(service))

    def _add_service_of(self, subject: ObjectT) -> None:
        key = self._planner.service_key(subject)
        if key is not None:
            self._queue.add(key)

    async def _reconcile(self, key: cache.Key) -> controller.Again | None:
        subject = self._services.get(key.name, namespace=key.namespace)
        if subject is None:
            await self._carry_out(self._planner.plan(key, None, ()), owner="", annotations={})
            return None
        if not servicepods.has_endpoints(subject):
            return None
        if not self._expected.are_met(subject.metadata.uid):
            return controller.AGAIN
        pods = self._pods.of(subject)
        annotations = self._triggers.annotation(subject, pods)
        await self._carry_out(
            self._planner.plan(key, subject, pods), owner=subject.metadata.uid, annotations=annotations
        )
        return None

    async def _carry_out(self, plan: Plan[ObjectT], *, owner: str, annotations: Mapping[str, str]) -> None:
        """Write a plan, with annotations that say which change caused it. ``owner`` is the uid of the service."""

        async def create(document: Document) -> None:
            own = {**annotations, **document["metadata"].get("annotations", {})}
            metadata = {**document["metadata"], "annotations": own}
            created = await self._client.create_document(self._objects.target, {**document, "metadata": metadata})
            self._expected.note(owner, created["metadata"]["resourceVersion"])

        async def change(subject: ObjectT, document: Document) -> None:
            current = self._writer.document(subject, only_if_unchanged=True)
            metadata = servicepods.rewritten(
                current["metadata"],
                labels=document["metadata"]["labels"],
                annotations={**annotations, **document["metadata"].get("annotations", {})},
                own=self._planner.annotations,
            )
            updated = await self._writer.replace({**current, **document, "metadata": metadata})
            self._expected.note(owner, updated.metadata.resource_version)

        async def delete(subject: ObjectT) -> None:
            name, namespace = subject.metadata.name, subject.metadata.namespace
            with contextlib.suppress(errors.ObjectNotFoundError):
                await self._client.delete(
                    self._objects.target, name, namespace=namespace, preconditions=patches.same(subject)
                )

        await asyncio.gather(
            *map(create, plan.created), *(change(*each) for each in plan.changed), *map(delete, plan.deleted)
        )


# Endpoints


class Endpoints(meta.Object, frozen=True, kw_only=True):
    """Core Endpoints, namespaced, with subsets as they are on the wire."""

    subsets: tuple[Document, ...] = ()


ENDPOINTS: Final = target.view_of(
    target.metadata_of("", "v1", plural="endpoints", kind="Endpoints", namespaced=True), Endpoints
)


class _EndpointsPlanner:
    annotations: Final = (_CAPACITY_ANNOTATION,)

    def __init__(self, endpoints: cache.Cache[Endpoints]) -> None:
        self._endpoints: Final = endpoints

    def handler(self, add: Callable[[Endpoints], None]) -> informer.Handler[Endpoints]:
        return informer.Handler(deleted=add)

    def service_key(self, endpoints: Endpoints) -> cache.Key | None:
        return None if _LEADER_ANNOTATION in endpoints.metadata.annotations else cache.key_of(endpoints)

    def plan(self, key: cache.Key, service: service.Service | None, pods: Sequence[pod.Pod]) -> Plan[Endpoints]:
        endpoints = self._endpoints.get(key.name, namespace=key.namespace)
        if service is None:
            return Plan(deleted=[endpoints] if endpoints is not None else [])
        content = subsets.service_subsets(service, pods)
        capacity = {_CAPACITY_ANNOTATION: "truncated"} if subsets.truncate(content) else {}
        labels = {**service.metadata.labels, _MANAGER_LABEL: _MANAGER}
        labels.pop(servicepods.HEADLESS_LABEL, None)
        if servicepods.is_headless(service):
            labels[servicepods.HEADLESS_LABEL] = ""
        metadata = {"name": key.name, "namespace": key.namespace, "labels": labels, "annotations": capacity}
        document = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": content}
        if endpoints is None:
            return Plan(created=[document])
        is_marked = _CAPACITY_ANNOTATION in endpoints.metadata.annotations
        is_same = list(endpoints.subsets) == content and dict(endpoints.metadata.labels) == labels
        return Plan() if is_same and is_marked is bool(capacity) else Plan(changed=[(endpoints, document)])


def endpoints_controller(surroundings: Surroundings) -> ServiceEndpoints[Endpoints]:
    """Make the controller of Endpoints."""
    objects = surroundings.informers.of(ENDPOINTS)
    return ServiceEndpoints("endpoint", surroundings, objects, planner=_EndpointsPlanner(objects.cache))


# Slices


class _SlicePlanner:
    annotations: Final = ()

    def __init__(self, slices: cache.Cache[sliceplan.EndpointSlice], nodes: cache.Cache[node.Node]) -> None:
        self._slices: Final = slices
        self._nodes: Final = nodes

    def handler(self, add: Callable[[sliceplan.EndpointSlice], None]) -> informer.Handler[sliceplan.EndpointSlice]:
        return informer.Handler.on_change(add)

    def service_key(self, subject: sliceplan.EndpointSlice) -> cache.Key | None:
        labels = subject.metadata.labels
        if labels.get(sliceplan.MANAGER_LABEL) != sliceplan.MANAGER:
            return None
        return cache.Key(subject.metadata.namespace, labels.get(sliceplan.SERVICE_LABEL, ""))

    def plan(
        self, key: cache.Key, service: service.Service | None, pods: Sequence[pod.Pod]
    ) -> Plan[sliceplan.EndpointSlice]:
        if service is None or service.metadata.deletion_timestamp is not None:
            # Garbage collection deletes the slices of a service.
            return Plan()
        slices = [each for each in self._slices.list_namespace(key.namespace) if self.service_key(each) == key]
        return Plan(*sliceplan.plan(service, pods, slices, zones=self._zones(pods)))

    def _zones(self, pods: Sequence[pod.Pod]) -> dict[str, str]:
        names = {each.spec.node_name for each in pods if each.spec.node_name}
        nodes = {name: self._nodes.get(name) for name in names}
        return {
            name: host.metadata.labels.get(sliceplan.ZONE_LABEL, "") for name, host in nodes.items() if host is not None
        }


def endpoint_slice_controller(surroundings: Surroundings) -> ServiceEndpoints[sliceplan.EndpointSlice]:
    """Make the controller of EndpointSlices."""
    objects = surroundings.informers.of(sliceplan.SLICES)
    planner = _SlicePlanner(objects.cache, surroundings.informers.of(node.Node).cache)
    return ServiceEndpoints("endpoint_slice", surroundings, objects, planner=planner)
