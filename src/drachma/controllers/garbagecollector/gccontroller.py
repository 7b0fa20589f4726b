"""The controller: watches every kind of object that can be deleted, and sees whom a change concerns.

Kinds that come later are found by asking the server again every half a minute. Differs from upstream: kinds that go
away are no longer deleted, but still asked for until the process ends; and what lost its owner while others have
finalizers on it is theirs first, for a second.
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
"""For how long an object that lost its owner is left to whoever has a finalizer on it.

They hear of the owner's end as well and are about to write the object: one after the other nobody has to try twice.
"""

_IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
"""Events own nothing, are owned by nothing, and are many."""

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
            "garbage_collector_attempt_to_delete", time=surroundings.clock, measured=surroundings.queues
        )
        self._graph: Final = graph.Graph()
        self._registry: Final = owners.Registry(surroundings.client)
        self._recorder: Final = surroundings.recorder("garbage-collector-controller")
        self._collector: Final = collection.Collector(
            surroundings.client, self._graph, self._registry, look_at=self._look_at, known=self._known
        )
        self._sync_errors: Final = prometheus_client.Counter(
            "garbagecollector_controller_resources_sync_error_total",
            "How often the kinds of the server could not be asked for.",
            registry=surroundings.registry,
        )

    async def run(self) -> None:
        while not await self._discover():
            await self._clock.sleep(1)
        # Without knowing all dependents, an owner that waits for them would go too soon.
        await self._informers.wait_synced()
        await controller.together(
            controller.work(self._queue, self._collector.collect, workers=WORKERS),
            controller.every(DISCOVERY_SECONDS, self._rediscover, time=self._clock, name=self.name),
        )

    # Kinds

    async def _rediscover(self) -> None:
        await self._discover()

    async def _discover(self) -> bool:
        """Watches all kinds that are not watched yet; False if they could not be asked for."""
        try:
            resources = await self._client.resources()
        except errors.DrachmaError as error:
            self._sync_errors.inc()
            _log.warning("%s: kinds cannot be asked for: %s", self.name, error)
            return False
        for each in resources:
            if (each.group, each.plural) not in _IGNORED and not self._registry.has(each):
                self._registry.add(self._watch(each))
        return True

    def _watch(self, resource: target.Target[meta.Object]) -> target.Target[Any]:
        """Watches a kind, by the informer that others use already where there may be one."""
        model = _TYPED.get((resource.group, resource.versions[0], resource.plural))
        kind: target.Target[Any] = resource if model is None else target.of(model)

        def see(new: meta.Object) -> None:
            self._see(graph.Node(kind, new.metadata))

        def see_changed(old: meta.Object, new: meta.Object) -> None:
            # Hardly any change is of what is asked about here.
            if not graph.is_alike(old.metadata, new.metadata):
                see(new)

        self._informers.of(kind).add_handler(informer.Handler(added=see, updated=see_changed, deleted=self._lose))
        return kind

    def _known(self, node: graph.Node) -> meta.Object | None:
        """The newest state of an object that was heard of."""
        metadata = node.metadata
        newest: meta.Object | None = self._informers.of(node.target).cache.get(
            metadata.name, namespace=metadata.namespace
        )
        return newest if newest is not None and newest.metadata.uid == node.uid else None

    # News

    def _see(self, node: graph.Node) -> None:
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
            self._look_at(node)
        elif node.waits_for_dependents:
            for dependent in self._graph.dependents(node.uid):
                self._look_at(dependent)
            self._look_at(node)

    def _lose(self, gone: meta.Object) -> None:
        node = self._graph.drop(gone.metadata.uid)
        if node is None:
            return
        dependents = tuple(self._graph.dependents(node.uid))
        if dependents:
            self._registry.note_absent(node)
        for dependent in dependents:
            if dependent.metadata.finalizers and not dependent.is_going:
                self._queue.add_after(dependent.uid, PATIENCE_SECONDS)
            else:
                self._look_at(dependent)
        self._free_owners(node.metadata.owner_references)

    def _check_references_of(self, node: graph.Node) -> None:
        """An owner that was not seen may not exist, and one that is named wrongly does not."""
        for reference in node.metadata.owner_references:
            owner = self._graph.get(reference.uid)
            if owner is None:
                self._look_at(node)
            elif not owner.is_meant_by(reference, node.metadata.namespace):
                self._report(node, reference, owner)
                self._look_at(node)

    def _check_references_to(self, owner: graph.Node) -> None:
        for dependent in self._graph.dependents(owner.uid):
            reference = dependent.reference_to(owner.uid)
            if reference is not None and not owner.is_meant_by(reference, dependent.metadata.namespace):
                self._report(dependent, reference, owner)
                self._look_at(dependent)

    def _lacks_owners(self, node: graph.Node) -> bool:
        return any(self._graph.get(each.uid) is None for each in node.metadata.owner_references)

    def _free_owners(self, references: tuple[meta.OwnerReference, ...]) -> None:
        """Owners that may have waited for just this."""
        for reference in references:
            owner = self._graph.get(reference.uid)
            if owner is not None and owner.waits_for_dependents:
                self._look_at(owner)

    def _look_at(self, node: graph.Node) -> None:
        self._queue.add(node.uid)

    def _report(self, node: graph.Node, reference: meta.OwnerReference, owner: graph.Node) -> None:
        namespace = node.metadata.namespace
        if owner.metadata.namespace in ("", namespace):
            return
        shown = (
            f"[{reference.api_version}/{reference.kind}, namespace: {namespace}, "
            f"name: {reference.name}, uid: {reference.uid}]"
        )
        about = event.ObjectReference(
            kind=node.target.kind,
            namespace=namespace,
            name=node.metadata.name,
            uid=node.uid,
            api_version=node.target.api_version(node.target.versions[0]),
        )
        message = f'ownerRef {shown} does not exist in namespace "{namespace}"'
        self._recorder.record(about, type=events.WARNING, reason="OwnerRefInvalidNamespace", message=message)
