"""Graph of owners and dependents: all known objects by uid, and the dependents of every owner, known or not.

The controller keeps it from its informers. It may lag behind, so a deletion because of it asks the server first.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from drachma.api import meta
from drachma.claims import wellknown
from drachma.client import target


class Node(msgspec.Struct, frozen=True):
    """An object in the graph, with the fields that matter for ownership."""

    target: target.Target[Any]
    metadata: meta.ObjectMeta

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def is_going(self) -> bool:
        """True if the object is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def waits_for_dependents(self) -> bool:
        return self.is_going and wellknown.FOREGROUND_FINALIZER in self.metadata.finalizers

    @property
    def leaves_orphans(self) -> bool:
        return self.is_going and wellknown.ORPHAN_FINALIZER in self.metadata.finalizers

    def reference_to(self, owner: str) -> meta.OwnerReference | None:
        """Return its reference to an owner."""
        return next((each for each in self.metadata.owner_references if each.uid == owner), None)

    def is_meant_by(self, reference: meta.OwnerReference, namespace: str) -> bool:
        """Return True if a reference in a namespace names this object correctly in all fields, not only by uid."""
        group = reference.api_version.rpartition("/")[0]
        is_named = (group, reference.kind, reference.name) == (
            self.target.group,
            self.target.kind,
            self.metadata.name,
        )
        return is_named and self.metadata.namespace in ("", namespace)

    def __str__(self) -> str:
        place = f"{self.metadata.namespace}/" if self.metadata.namespace else ""
        return f"{self.target.qualified} {place}{self.metadata.name}"


def is_alike(old: meta.ObjectMeta, new: meta.ObjectMeta) -> bool:
    """Return True if two states of one object are equal in ownership."""
    return (
        old.owner_references == new.owner_references
        and old.finalizers == new.finalizers
        and old.deletion_timestamp == new.deletion_timestamp
    )


class Graph:
    """All nodes and the edges between them."""

    def __init__(self) -> None:
        self._nodes: Final[dict[str, Node]] = {}
        self._dependents: Final[dict[str, dict[str, None]]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def dependents(self, owner: str) -> Iterator[Node]:
        """Return all objects that refer to an owner by its uid."""
        if owner in self._dependents:
            for uid in tuple(self._dependents[owner]):
                yield self._nodes[uid]

    def blocking_dependents(self, owner: str) -> Iterator[Node]:
        """Return the dependents that must be gone before their owner, if it waits."""
        for node in self.dependents(owner):
            reference = node.reference_to(owner)
            if reference is not None and reference.block_owner_deletion:
                yield node

    def put(self, node: Node) -> Node | None:
        """Add or replace a node. Return the previous one."""
        uid = node.metadata.uid
        old = self._nodes.get(uid)
        if old is not None:
            self._unlink(old)
        self._nodes[uid] = node
        for owner in node.metadata.owner_references:
            self._dependents.setdefault(owner.uid, {})[uid] = None
        return old

    def drop(self, uid: str) -> Node | None:
        """Remove a node. Its dependents are still found by its uid."""
        old = self._nodes.pop(uid, None)
        if old is not None:
            self._unlink(old)
        return old

    def _unlink(self, node: Node) -> None:
        for owner in node.metadata.owner_references:
            siblings = self._dependents.get(owner.uid)
            if siblings is not None:
                siblings.pop(node.uid, None)
                if not siblings:
                    del self._dependents[owner.uid]
