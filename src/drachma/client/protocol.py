"""The contract of a client. Components are written against ``Client`` and never know which one they have.

Results are the immutable structs of :mod:`drachma.api` in their v1 form, without managedFields: who wants to see
them reads the document. Those of core kinds are partial views, so writing one back would lose fields: components patch
what they change, with the preconditions that :mod:`drachma.client.patches` puts into patches, or handle whole
documents. Only complete kinds can be updated.

Every method may raise a branch of ``errors.RefusedError`` (the server said no), ``errors.UnreachableError`` (nobody
answered), ``errors.DecodeError`` (an answer makes no sense) and ``errors.InvalidValueError`` (the call makes none).
Cancelling a call leaves open whether a write happened.
"""

import enum
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from drachma.api import meta, pod
from drachma.client import patches, target

ObjectT = TypeVar("ObjectT", bound=meta.Object)

Document: TypeAlias = dict[str, Any]
"""A whole object as JSON has it, with the fields that no partial view knows."""

Propagation = Literal["Background", "Foreground", "Orphan"]
"""What becomes of the objects that a deleted one owns."""


class Selection(msgspec.Struct, frozen=True):
    """Which objects of a kind are meant: all namespaces unless one is named, all objects unless selectors say less.

    Selectors are in the text form that the API takes: ``app=web,tier!=db`` and ``spec.nodeName=worker``.
    """

    namespace: str = ""
    labels: str = ""
    fields: str = ""


EVERYTHING = Selection()


class Listing(msgspec.Struct, Generic[ObjectT], frozen=True, kw_only=True):
    """Objects as they were at one ``resource_version``, from which a watch goes on without a gap.

    ``continue_token`` is set where a limit cut the list; pass it on to get the next page. ``remaining`` is how many
    objects are left, where the server counts them.
    """

    items: tuple[ObjectT, ...]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


class Change(enum.StrEnum):
    """What an event says; a bookmark only tells how far the watch has come."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class Event(NamedTuple, Generic[ObjectT]):
    """One event of a watch. A deleted object is as it was last; of a bookmark only the resource version counts."""

    change: Change
    object: ObjectT

    @property
    def resource_version(self) -> str:
        return self.object.metadata.resource_version


class Watch(Protocol[ObjectT]):
    """The events of a selection in order, without gaps or repeats."""

    async def batch(self) -> Sequence[Event[ObjectT]]:
        """The next events, at least one; empty once the server has ended the watch, as it does after a while.

        Raises:
            errors.HistoryGoneError: the watch is too old or too slow; list again.
        """


class Client(Protocol):
    """What an API server does for components."""

    async def get(self, kind: target.Of[ObjectT], name: str, *, namespace: str = "") -> ObjectT:
        """One object."""

    async def list(
        self,
        kind: target.Of[ObjectT],
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
    ) -> Listing[ObjectT]:
        """The newest state of a selection, in order of namespace and name, at most ``limit`` objects of it."""

    def watch(
        self,
        kind: target.Of[ObjectT],
        selection: Selection = EVERYTHING,
        *,
        resource_version: str,
        timeout_seconds: int | None = None,
    ) -> AbstractAsyncContextManager[Watch[ObjectT]]:
        """The events after the resource version of a list or an event, for at most so many seconds.

        Over HTTP there are bookmarks among them; in process nothing can be missed, and there are none.
        """

    async def create(self, made: ObjectT) -> ObjectT:
        """A new object in the namespace that its metadata names; only what a view has can be created through it."""

    async def update(self, changed: ObjectT, *, subresource: str = "") -> ObjectT:
        """Replaces an object of a complete kind, if it still has the resource version of ``changed``."""

    async def patch(
        self,
        kind: target.Of[ObjectT],
        name: str,
        *,
        patch: patches.Patch,
        namespace: str = "",
        subresource: str = "",
    ) -> ObjectT:
        """The object after a patch of it, or of a subresource such as ``status``."""

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
        """Asks for an object to go; with finalizers or a grace period it is still there afterwards."""

    async def delete_collection(
        self, kind: target.Of[Any], selection: Selection, *, propagation: Propagation | None = None
    ) -> None:
        """The same for all objects of a selection."""

    async def bind(self, bound: pod.Pod, *, node: str) -> None:
        """Assigns a pod, this very one by its uid, to a node."""

    async def evict(self, evicted: pod.Pod, *, grace_period_seconds: int | None = None) -> None:
        """Asks for a pod, this very one by its uid, to go, if disruption budgets allow it.

        Raises:
            errors.ThrottledError: a budget does not allow it now; it is not tried again here.
        """

    async def request_token(self, namespace: str, account: str, *, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The status of a TokenRequest for a service account: ``token`` and ``expirationTimestamp``."""

    async def get_document(self, kind: target.Of[Any], name: str, *, namespace: str = "") -> Document:
        """One object with all its fields, in the newest version that both sides know; the caller may change it."""

    async def create_document(self, kind: target.Of[Any], document: Mapping[str, Any]) -> Document:
        """A new object with all its fields, in the namespace that its metadata names."""

    async def update_document(
        self, kind: target.Of[Any], document: Mapping[str, Any], *, subresource: str = ""
    ) -> Document:
        """Replaces a whole object that was read by ``get_document``."""

    async def resources(self) -> Sequence[target.Target[meta.Object]]:
        """All resources that can be listed, watched and deleted, each in its preferred version, as metadata."""

    async def openapi(self, group: str, version: str) -> Document | None:
        """The OpenAPI document, version 3, of a group version; None where it is not served."""

    async def close(self) -> None:
        """Lets go of connections; calls under way fail with ``errors.UnreachableError``."""
