"""Contract of a client. Components are written against ``Client`` and never know which implementation they have.

Results are the immutable structs of :mod:`drachma.api` in their v1 form, without managedFields; read the document to
see those. Core kinds are partial views, and writing one back would lose fields. So components patch their changes, with
the preconditions that :mod:`drachma.client.patches` puts into patches, or use whole documents. Only complete kinds can
be updated.

Every method may raise a branch of ``errors.RefusedError`` (the server refuses), ``errors.UnreachableError`` (no
answer), ``errors.DecodeError`` (the answer cannot be decoded) and ``errors.InvalidValueError`` (the call is invalid).
Cancelling a call leaves open whether a write was made.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from drachma.api import meta, pod
from drachma.client import patches, target

ObjectT = TypeVar("ObjectT", bound=meta.Object)

Document: TypeAlias = dict[str, Any]
"""A whole object as JSON, with the fields that no partial view has."""

Propagation = Literal["Background", "Foreground", "Orphan"]
"""Treatment of the objects that a deleted object owns."""


class Selection(msgspec.Struct, frozen=True):
    """Objects of a kind: all namespaces unless one is named, all objects unless selectors narrow them.

    Selectors are in the text form of the API: ``app=web,tier!=db`` and ``spec.nodeName=worker``.
    """

    namespace: str = ""
    labels: str = ""
    fields: str = ""


EVERYTHING = Selection()


class Source(Protocol):
    """JSON that an object was decoded from."""

    @property
    def data(self) -> bytes:
        """The whole object with its apiVersion and kind; over HTTP it is copied from the answer on each access."""


class StoredObject(msgspec.Struct, Generic[ObjectT], frozen=True):
    """An object that a write has stored, and the JSON that it was decoded from."""

    object: ObjectT
    source: Source


class Listing(msgspec.Struct, Generic[ObjectT], frozen=True, kw_only=True):
    """Objects at one ``resource_version``, from which a watch continues without a gap.

    ``continue_token`` is set if a limit cut the list; pass it on to get the next page. ``remaining`` is the number of
    objects left, if the server counts them. ``sources`` has the JSON of each item, in the order of items.
    """

    items: tuple[ObjectT, ...]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None
    sources: Iterable[Source] = ()


class Change(enum.StrEnum):
    """Type of an event. A bookmark only tells how far the watch has come."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class Event(msgspec.Struct, Generic[ObjectT], frozen=True):
    """One event of a watch. A deleted object is in its last state; of a bookmark only the resource version counts."""

    change: Change
    object: ObjectT
    source: Source | None = None

    @property
    def resource_version(self) -> str:
        """Resource version of the event's object."""
        return self.object.metadata.resource_version


class Watch(Protocol[ObjectT]):
    """Events of a selection in order, without gaps or repeats."""

    async def batch(self) -> Sequence[Event[ObjectT]]:
        """Return the next events, at least one; empty once the server has ended the watch, as it does after a while.

        Raises:
            errors.HistoryGoneError: the watch is too old or too slow; list again.
        """


class Client(Protocol):
    """An API server, as components use it."""

    async def get(self, kind: target.Of[ObjectT], name: str, *, namespace: str = "") -> ObjectT:
        """Return one object."""

    async def list(
        self,
        kind: target.Of[ObjectT],
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
    ) -> Listing[ObjectT]:
        """Return the newest state of a selection, in order of namespace and name, at most ``limit`` objects of it."""

    def watch(
        self,
        kind: target.Of[ObjectT],
        selection: Selection = EVERYTHING,
        *,
        resource_version: str,
        timeout_seconds: int | None = None,
    ) -> AbstractAsyncContextManager[Watch[ObjectT]]:
        """Watch for events after the resource version of a list or an event, for at most so many seconds.

        Over HTTP the events include bookmarks. In process there are none, because no event can be missed.
        """

    async def create(self, new: ObjectT) -> ObjectT:
        """Create an object in the namespace that its metadata names. Only the fields of the view can be set."""

    async def update(self, updated: ObjectT, *, subresource: str = "") -> ObjectT:
        """Replace an object of a complete kind, if it still has the resource version of ``updated``."""

    async def patch(
        self,
        kind: target.Of[ObjectT],
        name: str,
        *,
        patch: patches.Patch,
        namespace: str = "",
        subresource: str = "",
    ) -> ObjectT:
        """Patch an object, or a subresource such as ``status``. Return the object afterwards."""

    async def delete(
        self,
        kind: target.Of[Any],
        name: str,
        *,
        namespace: str = "",
        preconditions: patches.Preconditions = patches.NONE,
        grace_period_seconds: int | None = None,
        propagation: Propagation | None = None,
    ) -> None:
        """Delete an object. With finalizers or a grace period it still exists afterwards."""

    async def delete_collection(
        self, kind: target.Of[Any], selection: Selection, *, propagation: Propagation | None = None
    ) -> None:
        """Delete all objects of a selection."""

    async def bind(self, subject: pod.Pod, *, node: str) -> None:
        """Assign a pod, identified by its uid, to a node."""

    async def evict(self, subject: pod.Pod, *, grace_period_seconds: int | None = None) -> None:
        """Evict a pod, identified by its uid, if disruption budgets allow it.

        Raises:
            errors.ThrottledError: a budget does not allow it now; the eviction is not retried here.
        """

    async def request_token(self, namespace: str, account: str, *, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the status of a TokenRequest for a service account: ``token`` and ``expirationTimestamp``."""

    async def get_document(
        self, kind: target.Of[Any], name: str, *, namespace: str = "", subresource: str = ""
    ) -> Document:
        """Return one object with all its fields, in the newest version that both sides know. The caller owns it.

        With a subresource such as ``scale``, return that of the object.
        """

    async def create_document(self, kind: target.Of[Any], document: Mapping[str, Any]) -> Document:
        """Create an object with all its fields, in the namespace that its metadata names."""

    async def update_document(
        self, kind: target.Of[Any], document: Mapping[str, Any], *, subresource: str = ""
    ) -> Document:
        """Replace a whole object that was read by ``get_document`` or comes from a cache entry."""

    async def patch_document(
        self,
        kind: target.Of[Any],
        name: str,
        *,
        patch: patches.Patch,
        namespace: str = "",
        subresource: str = "",
    ) -> Document:
        """Like ``patch``, but return all fields of the object."""

    async def patch_stored(
        self,
        kind: target.Of[ObjectT],
        name: str,
        *,
        patch: patches.Patch,
        namespace: str = "",
        subresource: str = "",
    ) -> StoredObject[ObjectT]:
        """Like ``patch``, but return the JSON of the object too, for an informer that keeps documents."""

    async def resources(self) -> Sequence[target.Target[meta.Object]]:
        """Return all resources that can be listed, watched and deleted, each in its preferred version, as metadata."""

    async def openapi(self, group: str, version: str) -> Document | None:
        """Return the OpenAPI v3 document of a group version, or None if it is not served."""

    async def close(self) -> None:
        """Close connections. Calls under way fail with ``errors.UnreachableError``."""
