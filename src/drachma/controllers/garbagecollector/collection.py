"""Collection of one object: it is deleted if all its owners are gone, or it waits for, or orphans, its dependents.

The order is upstream's: an object with a remaining owner stays; an object that an owner waits for goes first; other
objects go as their own finalizers say. Every write requires the version that was examined.
"""

from collections.abc import Callable
from typing import Any, Final

from drachma import errors
from drachma.api import meta
from drachma.claims import wellknown
from drachma.client import Client, patches, protocol
from drachma.controllers.garbagecollector import graph, owners
from drachma.runtime import controller

_ATTEMPTS: Final = 5
"""Attempts to delete an object that other writers keep changing without changing its owners."""


class Collector:
    """Collects one object after another. ``enqueue`` queues further objects, ``cached`` returns their cached state."""

    def __init__(
        self,
        client: Client,
        object_graph: graph.Graph,
        registry: owners.Registry,
        *,
        enqueue: Callable[[graph.Node], None],
        cached: Callable[[graph.Node], meta.Object | None],
    ) -> None:
        self._client: Final = client
        self._graph: Final = object_graph
        self._registry: Final = registry
        self._enqueue: Final = enqueue
        self._cached: Final = cached

    async def collect(self, uid: str) -> controller.Again | None:
        """Collect an object, if it is due."""
        node = self._graph.get(uid)
        if node is None:
            return None
        if node.leaves_orphans:
            await self._orphan(node)
            return None
        if node.is_going and not node.waits_for_dependents:
            # Nothing more to do. Its dependents are collected when it is gone.
            return None
        if node.waits_for_dependents:
            await self._free_of_dependents(node)
            return None
        # The cached state is enough: writes require its version, and a conflict reads it from the server.
        latest = self._cached(node) or await self._latest(node)
        if latest is None:
            return None
        try:
            return await self._judge(node, latest)
        except owners.WrongScopeError:
            return None

    async def _judge(self, node: graph.Node, latest: meta.Object) -> controller.Again | None:
        references = latest.metadata.owner_references
        if not references:
            return None
        owners = await self._registry.classify(node, references)
        if owners.solid:
            if owners.dangling or owners.waiting:
                # An owner that waits must not wait for an object that another owner keeps.
                removable = {each.uid for each in (*owners.dangling, *owners.waiting)}
                await self._set_owners(node, latest, [each for each in references if each.uid not in removable])
            is_watched = all(self._graph.get(each.uid) is not None for each in owners.solid)
            return None if is_watched else controller.AGAIN
        if owners.waiting and (dependents := tuple(self._graph.dependents(node.uid))):
            if any(each.waits_for_dependents for each in dependents):
                # Possibly a cycle, in which all objects wait for each other.
                latest = await self._unblock(node, latest)
            await self._delete(node, latest, propagation="Foreground")
            return None
        await self._delete(node, latest, propagation=_own_policy(latest))
        return None

    async def _free_of_dependents(self, node: graph.Node) -> None:
        """Let an object go that waits for its dependents, once none of them blocks it."""
        blocking = tuple(self._graph.blocking_dependents(node.uid))
        if not blocking:
            await self._remove_finalizer(node, wellknown.FOREGROUND_FINALIZER)
        for each in blocking:
            if not each.waits_for_dependents:
                self._enqueue(each)

    async def _orphan(self, node: graph.Node) -> None:
        """Remove an object from the owners of its dependents, then let it go."""
        await controller.side_by_side(
            [lambda each=each: self._disown(each, node.uid) for each in self._graph.dependents(node.uid)]  # type: ignore[misc]
        )
        await self._remove_finalizer(node, wellknown.ORPHAN_FINALIZER)

    async def _disown(self, dependent: graph.Node, owner: str) -> None:
        latest = await self._latest(dependent)
        if latest is None:
            return
        references = [each for each in latest.metadata.owner_references if each.uid != owner]
        if len(references) < len(latest.metadata.owner_references):
            await self._set_owners(dependent, latest, references)

    # Requests

    async def _latest(self, node: graph.Node) -> meta.Object | None:
        """Return the current object, or None if it is gone."""
        try:
            current: meta.Object = await self._client.get(
                node.target, node.metadata.name, namespace=node.metadata.namespace
            )
        except errors.ObjectNotFoundError:
            return None
        return current if current.metadata.uid == node.uid else None

    async def _set_owners(
        self, node: graph.Node, latest: meta.Object, references: list[meta.OwnerReference]
    ) -> meta.Object:
        return await self._patch(node, latest, {"ownerReferences": references or None})

    async def _unblock(self, node: graph.Node, latest: meta.Object) -> meta.Object:
        references = [
            meta.OwnerReference(
                api_version=each.api_version,
                kind=each.kind,
                name=each.name,
                uid=each.uid,
                controller=each.controller,
                block_owner_deletion=False if each.block_owner_deletion else each.block_owner_deletion,
            )
            for each in latest.metadata.owner_references
        ]
        return await self._set_owners(node, latest, references)

    async def _remove_finalizer(self, node: graph.Node, finalizer: str) -> None:
        latest = await self._latest(node)
        if latest is not None and finalizer in latest.metadata.finalizers:
            finalizers = [each for each in latest.metadata.finalizers if each != finalizer]
            await self._patch(node, latest, {"finalizers": finalizers or None})

    async def _patch(self, node: graph.Node, latest: meta.Object, metadata: dict[str, Any]) -> meta.Object:
        changed: meta.Object = await self._client.patch(
            node.target,
            node.metadata.name,
            patch=patches.merge({"metadata": metadata}, patches.unchanged(latest)),
            namespace=node.metadata.namespace,
        )
        return changed

    async def _delete(self, node: graph.Node, latest: meta.Object, *, propagation: protocol.Propagation) -> None:
        """Delete an object unless it gets another owner."""
        for _ in range(_ATTEMPTS):
            try:
                return await self._client.delete(
                    node.target,
                    node.metadata.name,
                    namespace=node.metadata.namespace,
                    preconditions=patches.unchanged(latest),
                    propagation=propagation,
                )
            except errors.ObjectNotFoundError:
                return None
            except errors.ObjectConflictError:
                newer = await self._latest(node)
                if newer is None:
                    return None
                if newer.metadata.owner_references != latest.metadata.owner_references:
                    raise
                latest = newer
        raise errors.ReconcileError(f"{node}: changes too often to be deleted")


def _own_policy(latest: meta.Object) -> protocol.Propagation:
    if wellknown.ORPHAN_FINALIZER in latest.metadata.finalizers:
        return "Orphan"
    if wellknown.FOREGROUND_FINALIZER in latest.metadata.finalizers:
        return "Foreground"
    return "Background"
