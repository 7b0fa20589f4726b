"""What the server says about the owners of an object: which exist, which are gone, which wait for it to go.

Deleting on hearsay would be fatal, so every owner that counts is asked for by its name and compared by its uid. Owners
that are known to be gone are remembered: a uid never comes back.
"""

from collections import OrderedDict
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import meta
from drachma.claims import wellknown
from drachma.client import Client, target
from drachma.controllers.garbagecollector import graph

_ABSENT: Final = 500
"""Owners that are remembered as gone."""


class UnknownKindError(errors.ReconcileError):
    """A reference names a kind that the server does not have, or does not have now."""


class WrongScopeError(errors.ReconcileError):
    """An object of cluster scope refers to an owner in a namespace, which makes no sense."""


class Owners(NamedTuple):
    """The references of an object: to owners that keep it, that are gone, and that wait for it to go."""

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
    """Asks for owners, of the resources that the controller adds."""

    def __init__(self, client: Client) -> None:
        self._targets: Final[dict[tuple[str, str], dict[str, target.Target[Any]]]] = {}
        self._client: Final = client
        self._absent: Final[OrderedDict[_Absent, None]] = OrderedDict()

    def has(self, resource: target.Target[Any]) -> bool:
        """Whether a resource was added in its most wanted version."""
        return resource.versions[0] in self._targets.get((resource.group, resource.kind), ())

    def add(self, resource: target.Target[Any]) -> None:
        """A resource whose objects may be owners, under all its versions."""
        known = self._targets.setdefault((resource.group, resource.kind), {})
        for version in resource.versions:
            known.setdefault(version, resource)

    async def classify(self, node: graph.Node, references: tuple[meta.OwnerReference, ...]) -> Owners:
        """What became of the owners that an object refers to.

        Raises:
            UnknownKindError: one is of a kind that cannot be asked for.
            WrongScopeError: one cannot be an owner of this object at all.
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

    def note_absent(self, gone: graph.Node) -> None:
        """An object that was seen to go, as its dependents would refer to it."""
        for version in gone.target.versions:
            self._remember(_absent(gone, gone.target.api_version(version)))

    async def _find(self, reference: meta.OwnerReference, node: graph.Node) -> meta.Object | None:
        """The owner, or None if it is gone."""
        at = node.metadata.namespace
        key = _Absent(reference.api_version, reference.kind, reference.name, reference.uid, "")
        if key in self._absent or key._replace(namespace=at) in self._absent:
            return None
        wanted = self._target(reference)
        if wanted.namespaced and not at:
            raise WrongScopeError(f"{node}: owner {reference.kind} {reference.name} is in a namespace")
        namespace = at if wanted.namespaced else ""
        try:
            found: meta.Object = await self._client.get(wanted, reference.name, namespace=namespace)
        except errors.ObjectNotFoundError:
            found = meta.Object()
        if found.metadata.uid == reference.uid:
            return found
        self._remember(key._replace(namespace=namespace))
        return None

    def _target(self, reference: meta.OwnerReference) -> target.Target[Any]:
        """The resource that an owner is one of; in a version that is not known, the first of its kind."""
        group, _, version = reference.api_version.rpartition("/")
        known = self._targets.get((group, reference.kind))
        if not known:
            raise UnknownKindError(f"owner {reference.kind} {reference.name}: no such kind in {reference.api_version}")
        return known.get(version) or next(iter(known.values()))

    def _remember(self, key: _Absent) -> None:
        self._absent[key] = None
        if len(self._absent) > _ABSENT:
            self._absent.popitem(last=False)


def _absent(gone: graph.Node, api_version: str) -> _Absent:
    metadata = gone.metadata
    return _Absent(api_version, gone.target.kind, metadata.name, metadata.uid, metadata.namespace)
