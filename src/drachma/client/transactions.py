"""Transactions: several changes that an API server makes together or not at all.

Only drachma's own server in the same process does that, see :mod:`drachma.client.local`. A component asks for it once,
when it is wired, by :func:`offered`. Where it is not offered, as over HTTP, the component writes one change after the
other as upstream's components do, and whoever comes between them sees the states in between.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from drachma.api import meta, pod, resourceclaim
from drachma.client import patches, protocol, target


class Create(NamedTuple):
    """A new object, as by ``Client.create``."""

    made: meta.Object


class Update(NamedTuple):
    """An object of a complete kind in place of the one that is there, as by ``Client.update``."""

    changed: meta.Object
    subresource: str = ""


class Patch(NamedTuple):
    """A change of a part of an object, as by ``Client.patch``."""

    kind: target.Of[Any]
    name: str
    patch: patches.Patch
    namespace: str = ""
    subresource: str = ""


class Bind(NamedTuple):
    """The assignment of a pod to a node, as by ``Client.bind``."""

    bound: pod.Pod
    node: str


class Finalizers(NamedTuple):
    """Other finalizers for an object exactly as it is known, as by a merge patch of them with that precondition."""

    known: meta.Object
    finalizers: tuple[str, ...]


class ClaimState(NamedTuple):
    """Other finalizers and another status for a claim exactly as it is known, as one change.

    It comes to the same as ``Finalizers`` and ``Update`` of the status one after the other.
    """

    known: resourceclaim.ResourceClaim
    status: resourceclaim.ResourceClaimStatus
    finalizers: tuple[str, ...]


class ClaimNames(NamedTuple):
    """The names of the claims that were made for a pod, in its status, as by a strategic merge patch of this pod."""

    known: pod.Pod
    statuses: tuple[pod.PodResourceClaimStatus, ...]


class Delete(NamedTuple):
    """The deletion of this very object, as by ``Client.delete`` with its uid for a precondition."""

    known: meta.Object


Change: TypeAlias = Delete | Create | Update | Patch | Bind | Finalizers | ClaimState | ClaimNames


@runtime_checkable
class Transactions(Protocol):
    """What a client offers beside ``protocol.Client`` where its server can do it."""

    async def commit(self, changes: Sequence[Change]) -> Sequence[Any]:
        """The objects as they are then, in the order of the changes; None for bindings and deletions.

        Each change is made as if those before it had happened, and those to the same object become one version of it.

        Raises:
            errors.CommitRefusedError: the server said no to one of them, and nothing has been written.
        """


def offered(client: protocol.Client) -> Transactions | None:
    """The client, if it can make several changes at once."""
    return client if isinstance(client, Transactions) else None
