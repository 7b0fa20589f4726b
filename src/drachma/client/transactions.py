"""Transactions: several changes that an API server makes together or not at all.

Only drachma's own server in the same process offers them, see :mod:`drachma.client.local`. A component asks for them
once, when it is built, by :func:`offered`. If they are not offered, as over HTTP, the component writes one change after
the other as upstream's components do, and other clients see the states in between.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import msgspec

from drachma import errors
from drachma.api import meta, pod, struct
from drachma.client import patches, protocol, target


class Create(msgspec.Struct, frozen=True):
    """Creation of an object, as by ``Client.create``."""

    made: meta.Object


class Update(msgspec.Struct, frozen=True):
    """Replacement of an object of a complete kind, as by ``Client.update``."""

    changed: meta.Object
    subresource: str = ""


class Patch(msgspec.Struct, frozen=True):
    """Patch of an object, as by ``Client.patch``."""

    kind: target.Of[Any]
    name: str
    patch: patches.Patch
    namespace: str = ""
    subresource: str = ""


class CreateDocument(msgspec.Struct, frozen=True):
    """Creation of an object from its document, as by ``Client.create_document``."""

    kind: target.Of[Any]
    document: Mapping[str, Any]


class UpdateDocument(msgspec.Struct, frozen=True):
    """Replacement of an object by its document, as by ``Client.update_document``."""

    kind: target.Of[Any]
    document: Mapping[str, Any]
    subresource: str = ""


class PatchStored(msgspec.Struct, frozen=True):
    """Patch of an object, as by ``Client.patch_stored``."""

    kind: target.Of[Any]
    name: str
    patch: patches.Patch
    namespace: str = ""
    subresource: str = ""


DocumentChange: TypeAlias = CreateDocument | UpdateDocument | PatchStored
"""Changes whose results are ``protocol.StoredObject``: the object with the JSON that it was decoded from."""


class Bind(msgspec.Struct, frozen=True):
    """Binding of a pod to a node, as by ``Client.bind``."""

    bound: pod.Pod
    node: str


class Finalizers(msgspec.Struct, frozen=True):
    """Replacement of the finalizers of an unchanged object, as by a merge patch with its uid and resource version."""

    known: meta.Object
    finalizers: tuple[str, ...]


class StatusChange(msgspec.Struct, frozen=True):
    """Another status for an object, and other finalizers in the same change.

    Without ``fields``, the whole status of a complete kind is replaced, and the object must still be exactly
    ``base``. The result is that of ``Finalizers`` and an ``Update`` of the status one after the other.

    With ``fields``, named as in JSON, only these fields of the status are merged into the stored status, and the object
    must still have the uid of ``base``. The result is that of a strategic merge patch. The finalizers must be None.
    """

    base: meta.Object
    status: struct.Struct
    finalizers: tuple[str, ...] | None = None
    fields: tuple[str, ...] = ()


class Delete(msgspec.Struct, frozen=True):
    """Deletion of an object, as by ``Client.delete`` with its uid as precondition."""

    known: meta.Object


Change: TypeAlias = Delete | Create | Update | Patch | Bind | Finalizers | StatusChange | DocumentChange


@runtime_checkable
class Transactions(Protocol):
    """Additional methods of a client whose server makes several changes at once."""

    async def commit(self, changes: Sequence[Change]) -> Sequence[Any]:
        """Make changes together. Return the objects afterwards, in the order of the changes; None for bindings and
        deletions.

        Each change is made as if those before it had happened, and changes to the same object become one version of it.

        Raises:
            errors.CommitRefusedError: the server refuses one of them, and nothing has been written.
        """


def offered(client: protocol.Client) -> Transactions | None:
    """Return the client if it can make several changes at once, else None."""
    return cast("Transactions", client) if hasattr(client, "commit") else None


async def patch_together(client: protocol.Client, patch: PatchStored) -> protocol.StoredObject[Any]:
    """Make a patch like ``Client.patch_stored``, in one commit with others that begin at the same time if possible."""
    server = offered(client)
    if server is None:
        return await client.patch_stored(
            patch.kind, patch.name, patch=patch.patch, namespace=patch.namespace, subresource=patch.subresource
        )
    try:
        (stored,) = await server.commit([patch])
    except errors.CommitRefusedError as error:
        raise error.refusal from None
    return cast("protocol.StoredObject[Any]", stored)
