"""Owners of an object according to the server: existing ones, missing ones, and those that wait for it.

A deletion must not rest on the cache alone, so every owner that counts is read by its name and compared by its uid.
Missing owners are cached, because a uid never comes back. An owner in a version that the server does not serve cannot
be read, so its dependents stay: the version may be switched off for a while, and its objects still exist.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import meta
from drachma.claims import wellknown
from drachma.client import Client, target
from drachma.controllers.garbagecollector import graph

_ABSENT: Final = 500
"""Number of missing owners that are cached."""


class UnknownKindError(errors.ReconcileError):
    """A reference names a kind, or a version of it, that the server does not have at present."""


class WrongScopeError(errors.ReconcileError):
    """A cluster-scoped object refers to a namespaced owner, which is invalid."""


class Owners(NamedTuple):
    """References of an object: to owners that keep it, that are gone, and that wait for it to go."""

    solid: tuple[meta.OwnerReference, ...]
    dangling: tuple[meta.OwnerReference, ...]
    waiting: tuple[meta.OwnerReference, ...]


class _Absent(NamedTuple):
    api_version: str
    kind: str
    name: str
    uid: str
    namespace: str


class Registry:
    """Reads owners, of the resources that the controller adds."""

    def __init__(self, client: Client) -> None:
        self._watched: Final[dict[tuple[str, str, str], target.Target[Any]]] = {}
        self._served: dict[tuple[str, str, str], target.Target[Any]] = {}
        self._client: Final = client
        self._absent: Final[OrderedDict[_Absent, None]] = OrderedDict()

    def has(self, resource: target.Target[Any]) -> bool:
        """Return True if a resource is watched in its preferred version."""
        return (resource.group, resource.versions[0], resource.kind) in self._watched

    def add(self, resource: target.Target[Any], watched: target.Target[Any]) -> None:
        """Add a resource as the server has it, and the target through which its objects are watched and read."""
        self._watched[resource.group, resource.versions[0], resource.kind] = watched

    def serve(self, resources: Iterable[target.Target[Any]]) -> None:
        """Replace the kinds and versions that references may name by those of the server."""
        self._served = {
            (each.group, version, each.kind): self._watched[each.group, each.versions[0], each.kind]
            for each in resources
            for version in each.versions
            if self.has(each)
        }

    async def classify(self, node: graph.Node, references: tuple[meta.OwnerReference, ...]) -> Owners:
        """Classify the owners that an object refers to.

        Raises:
            UnknownKindError: an owner is of a kind that cannot be read.
            WrongScopeError: an owner cannot own this object.
        """
        solid, dangling, waiting = [], [], []
        for reference in references:
            owner = await self._find(reference, node)
            if owner is None:
                dangling.append(reference)
            elif (
                owner.metadata.deletion_timestamp is not None
                and wellknown.FOREGROUND_FINALIZER in owner.metadata.finalizers
            ):
                waiting.append(reference)
            else:
                solid.append(reference)
        return Owners(tuple(solid), tuple(dangling), tuple(waiting))

    def note_absent(self, node: graph.Node) -> None:
        """Note a deleted object as its dependents refer to it, in every version that is served."""
        for version in node.target.versions:
            if (node.target.group, version, node.target.kind) in self._served:
                self._remember(_absent(node, node.target.api_version(version)))

    async def _find(self, reference: meta.OwnerReference, node: graph.Node) -> meta.Object | None:
        """Return the owner, or None if it is gone."""
        at = node.metadata.namespace
        key = _Absent(reference.api_version, reference.kind, reference.name, reference.uid, "")
        if key in self._absent or key._replace(namespace=at) in self._absent:
            return None
        resource = self._target(reference)
        if resource.namespaced and not at:
            raise WrongScopeError(f"{node}: owner {reference.kind} {reference.name} is in a namespace")
        namespace = at if resource.namespaced else ""
        try:
            owner: meta.Object = await self._client.get(resource, reference.name, namespace=namespace)
        except errors.ObjectNotFoundError:
            owner = meta.Object()
        if owner.metadata.uid == reference.uid:
            return owner
        self._remember(key._replace(namespace=namespace))
        return None

    def _target(self, reference: meta.OwnerReference) -> target.Target[Any]:
        """Return the resource of an owner in the version that a reference names."""
        group, _, version = reference.api_version.rpartition("/")
        resource = self._served.get((group, version, reference.kind))
        if resource is None:
            raise UnknownKindError(f"owner {reference.kind} {reference.name}: no such kind in {reference.api_version}")
        return resource

    def _remember(self, key: _Absent) -> None:
        self._absent[key] = None
        if len(self._absent) > _ABSENT:
            self._absent.popitem(last=False)


def _absent(node: graph.Node, api_version: str) -> _Absent:
    metadata = node.metadata
    return _Absent(api_version, node.target.kind, metadata.name, metadata.uid, metadata.namespace)
