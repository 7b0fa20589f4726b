"""The controller: watches every kind of object that can be deleted, and queues the objects that a change concerns.

New kinds are discovered every half a minute. Differs from upstream: kinds that are removed are no longer collected, but
still watched until the process ends; and an object that lost its owner and has finalizers of other controllers is left
to them for a second.
"""

import logging
from typing import Any, Final

import prometheus_client

from drachma import errors
from drachma.api import event, meta, scheme
from drachma.client import target
from drachma.controllers.garbagecollector import collection, graph, owners
from drachma.runtime import Surroundings, controller, events, informer, workqueue

WORKERS: Final = 20
DISCOVERY_SECONDS: Final = 30.0

PATIENCE_SECONDS: Final = 1.0
"""Seconds for which an object that lost its owner is left to the controllers of its finalizers.

They see the deletion of the owner as well and are about to write the object, so waiting avoids conflicts.
"""

_IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
"""Kinds that own nothing, are owned by nothing, and are many."""

_TYPED: Final = {(kind.group, version, kind.plural): kind.model for kind in scheme.KINDS for version in kind.versions}

_log = logging.getLogger(__name__)


class GarbageCollector:
    """Deletes objects whose owners are gone."""

    name: Final = "garbage_collector"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._informers: Final = surroundings.informers
        self._clock: Final = surroundings.clock
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            "garbage_collector_attempt_to_delete", clock=surroundings.clock, metrics=surroundings.queues
        )
        self._graph: Final = graph.Graph()
        self._registry: Final = owners.Registry(surroundings.client)
        self._recorder: Final = surroundings.recorder("garbage-collector-controller")
        self._collector: Final = collection.Collector(
            surroundings.client, self._graph, self._registry, enqueue=self._enqueue, cached=self._cached
        )
        self._sync_errors: Final = prometheus_client.Counter(
            "garbagecollector_controller_resources_sync_error_total",
            "Failed discoveries of the kinds of the server.",
            registry=surroundings.registry,
        )

    async def run(self) -> None:
        while not await self._discover():
            await self._clock.sleep(1)
        # An owner that waits for its dependents must not go before all of them are known.
        await self._informers.wait_synced()
        await controller.together(
            controller.work(self._queue, self._collector.collect, workers=WORKERS),
            controller.every(DISCOVERY_SECONDS, self._rediscover, clock=self._clock, name=self.name),
        )

    # Kinds

    async def _rediscover(self) -> None:
        await self._discover()

    async def _discover(self) -> bool:
        """Watch all kinds that are not watched yet. Return False if discovery failed."""
        try:
            resources = await self._client.resources()
        except errors.DrachmaError as error:
            self._sync_errors.inc()
            _log.warning("%s: discovery failed: %s", self.name, error)
            return False
        for each in resources:
            if (each.group, each.plural) not in _IGNORED and not self._registry.has(each):
                self._registry.add(each, self._watch(each))
        self._registry.serve(resources)
        return True

    def _watch(self, resource: target.Target[meta.Object]) -> target.Target[Any]:
        """Watch a kind, with the informer of other components if possible."""
        model = _TYPED.get((resource.group, resource.versions[0], resource.plural))
        kind: target.Target[Any] = resource if model is None else target.of(model)

        def handle(new: meta.Object) -> None:
            self._handle_node(graph.Node(kind, new.metadata))

        def handle_update(old: meta.Object, new: meta.Object) -> None:
            # Few changes concern owners and dependents.
            if not graph.is_alike(old.metadata, new.metadata):
                handle(new)

        self._informers.of(kind).add_handler(
            informer.Handler(added=handle, updated=handle_update, deleted=self._handle_deletion)
        )
        return kind

    def _cached(self, node: graph.Node) -> meta.Object | None:
        """Return the newest cached state of an object."""
        metadata = node.metadata
        newest: meta.Object | None = self._informers.of(node.target).cache.get(
            metadata.name, namespace=metadata.namespace
        )
        return newest if newest is not None and newest.metadata.uid == node.uid else None

    # Handlers

    def _handle_node(self, node: graph.Node) -> None:
        old = self._graph.put(node)
        if old is None:
            self._check_references_to(node)
        before = old.metadata.owner_references if old is not None else ()
        if node.metadata.owner_references != before:
            self._check_references_of(node)
            self._free_owners(before)
        elif old is not None and old.metadata.finalizers and not node.metadata.finalizers and self._lacks_owners(node):
            self._queue.hasten(node.uid)
        if not node.is_going:
            return
        if node.leaves_orphans:
            self._enqueue(node)
        elif node.waits_for_dependents:
            for dependent in self._graph.dependents(node.uid):
                self._enqueue(dependent)
            self._enqueue(node)

    def _handle_deletion(self, subject: meta.Object) -> None:
        node = self._graph.drop(subject.metadata.uid)
        if node is None:
            return
        dependents = tuple(self._graph.dependents(node.uid))
        if dependents:
            self._registry.note_absent(node)
        for dependent in dependents:
            if dependent.metadata.finalizers and not dependent.is_going:
                self._queue.add_after(dependent.uid, PATIENCE_SECONDS)
            else:
                self._enqueue(dependent)
        self._free_owners(node.metadata.owner_references)

    def _check_references_of(self, node: graph.Node) -> None:
        """Queue an object whose owner is not in the graph, or is referred to with a wrong name or kind."""
        for reference in node.metadata.owner_references:
            owner = self._graph.get(reference.uid)
            if owner is None:
                self._enqueue(node)
            elif not owner.is_meant_by(reference, node.metadata.namespace):
                self._report(node, reference, owner)
                self._enqueue(node)

    def _check_references_to(self, owner: graph.Node) -> None:
        for dependent in self._graph.dependents(owner.uid):
            reference = dependent.reference_to(owner.uid)
            if reference is not None and not owner.is_meant_by(reference, dependent.metadata.namespace):
                self._report(dependent, reference, owner)
                self._enqueue(dependent)

    def _lacks_owners(self, node: graph.Node) -> bool:
        return any(self._graph.get(each.uid) is None for each in node.metadata.owner_references)

    def _free_owners(self, references: tuple[meta.OwnerReference, ...]) -> None:
        """Queue owners that may have waited for this object."""
        for reference in references:
            owner = self._graph.get(reference.uid)
            if owner is not None and owner.waits_for_dependents:
                self._enqueue(owner)

    def _enqueue(self, node: graph.Node) -> None:
        self._queue.add(node.uid)

    def _report(self, node: graph.Node, reference: meta.OwnerReference, owner: graph.Node) -> None:
        namespace = node.metadata.namespace
        if owner.metadata.namespace in ("", namespace):
            return
        owner_text = (
            f"[{reference.api_version}/{reference.kind}, namespace: {namespace}, "
            f"name: {reference.name}, uid: {reference.uid}]"
        )
        involved = event.ObjectReference(
            kind=node.target.kind,
            namespace=namespace,
            name=node.metadata.name,
            uid=node.uid,
            api_version=node.target.api_version(node.target.versions[0]),
        )
        message = f'ownerRef {owner_text} does not exist in namespace "{namespace}"'
        self._recorder.record(involved, type=events.WARNING, reason="OwnerRefInvalidNamespace", message=message)
