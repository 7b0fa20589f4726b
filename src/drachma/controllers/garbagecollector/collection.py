"""Work on one object: it is deleted if all its owners are gone, or it waits for, or leaves, its dependents.

The order is upstream's: whoever has an owner left stays; what an owner waits for goes first; what is left over goes as
its own finalizers say. Every write is for the very version that was looked at.
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
"""How often a delete is tried on an object that others keep changing without changing its owners."""


class Collector:
    """Collects one object after another; ``look_at`` has others looked at, ``known`` has what was heard of them."""

    def __init__(
        self,
        client: Client,
        seen: graph.Graph,
        registry: owners.Registry,
        *,
        look_at: Callable[[graph.Node], None],
        known: Callable[[graph.Node], meta.Object | None],
    ) -> None:
        self._client: Final = client
        self._graph: Final = seen
        self._registry: Final = registry
        self._look_at: Final = look_at
        self._known: Final = known

    async def collect(self, uid: str) -> controller.Again | None:
        """Does what is due for an object."""
        node = self._graph.get(uid)
        if node is None:
            return None
        if node.leaves_orphans:
            await self._orphan(node)
            return None
        if node.is_going and not node.waits_for_dependents:
            # Nothing more is to be done about it. Its end will be news to its dependents.
            return None
        if node.waits_for_dependents:
            await self._free_of_dependents(node)
            return None
        # What was heard will do: writes ask for that very version, and where it is outdated the server is asked.
        latest = self._known(node) or await self._latest(node)
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
        found = await self._registry.classify(node, references)
        if found.solid:
            if found.dangling or found.waiting:
                # An owner that waits would wait for ever for what somebody else keeps.
                gone = {each.uid for each in (*found.dangling, *found.waiting)}
                await self._set_owners(node, latest, [each for each in references if each.uid not in gone])
            is_watched = all(self._graph.get(each.uid) is not None for each in found.solid)
            return None if is_watched else controller.AGAIN
        if found.waiting and (dependents := tuple(self._graph.dependents(node.uid))):
            if any(each.waits_for_dependents for each in dependents):
                # Perhaps a circle, in which everybody waits for everybody.
                latest = await self._unblock(node, latest)
            await self._delete(node, latest, propagation="Foreground")
            return None
        await self._delete(node, latest, propagation=_own_policy(latest))
        return None

    async def _free_of_dependents(self, node: graph.Node) -> None:
        """An object that waits for its dependents: goes when none of them blocks it any more."""
        blocking = tuple(self._graph.blocking_dependents(node.uid))
        if not blocking:
            await self._remove_finalizer(node, wellknown.FOREGROUND_FINALIZER)
        for each in blocking:
            if not each.waits_for_dependents:
                self._look_at(each)

    async def _orphan(self, node: graph.Node) -> None:
        """An object whose dependents stay: they forget it, then it goes."""
        await controller.side_by_side(
            [lambda each=each: self._disown(each, node.uid) for each in self._graph.dependents(node.uid)]  # type: ignore[misc]
        )
        await self._remove_finalizer(node, wellknown.ORPHAN_FINALIZER)

    async def _disown(self, dependent: graph.Node, owner: str) -> None:
        latest = await self._latest(dependent)
        if latest is None:
            return
        kept = [each for each in latest.metadata.owner_references if each.uid != owner]
        if len(kept) < len(latest.metadata.owner_references):
            await self._set_owners(dependent, latest, kept)

    # Requests

    async def _latest(self, node: graph.Node) -> meta.Object | None:
        """The object as it is now, or None if this one is gone."""
        try:
            found: meta.Object = await self._client.get(
                node.target, node.metadata.name, namespace=node.metadata.namespace
            )
        except errors.ObjectNotFoundError:
            return None
        return found if found.metadata.uid == node.uid else None

    async def _set_owners(self, node: graph.Node, latest: meta.Object, kept: list[meta.OwnerReference]) -> meta.Object:
        return await self._patch(node, latest, {"ownerReferences": kept or None})

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
            kept = [each for each in latest.metadata.finalizers if each != finalizer]
            await self._patch(node, latest, {"finalizers": kept or None})

    async def _patch(self, node: graph.Node, latest: meta.Object, metadata: dict[str, Any]) -> meta.Object:
        changed: meta.Object = await self._client.patch(
            node.target,
            node.metadata.name,
            patch=patches.merge({"metadata": metadata}, patches.unchanged(latest)),
            namespace=node.metadata.namespace,
        )
        return changed

    async def _delete(self, node: graph.Node, latest: meta.Object, *, propagation: protocol.Propagation) -> None:
        """Deletes an object as long as nobody gives it another owner."""
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
