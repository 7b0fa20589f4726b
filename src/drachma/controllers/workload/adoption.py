"""Adoption: a workload adopts matching orphans, and releases objects that no longer match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

from drachma import errors
from drachma.api import meta
from drachma.claims import ownership
from drachma.client import Client, patches
from drachma.controllers.workload import expectations

ObjectT = TypeVar("ObjectT", bound=meta.Object)


CONTROLLER: Final = "controller"
"""Index of objects by the uid of their controller. Objects without one are found by :func:`orphans_in`."""

_NONE_IN: Final = "none in "


def index_controller(subject: meta.Object) -> tuple[str, ...]:
    """Return the values of an object in the index of controllers."""
    controller = ownership.controller_of(subject)
    return (controller.uid if controller is not None else _NONE_IN + subject.metadata.namespace,)


def orphans_in(namespace: str) -> str:
    """Return the value of objects of a namespace without a controller."""
    return _NONE_IN + namespace


class Adopter(Generic[ObjectT]):
    """Objects of one kind, and the workloads that may own them."""

    def __init__(
        self, client: Client, kind: type[ObjectT], *, expected_writes: expectations.Expectations, finalizer: str = ""
    ) -> None:
        """``finalizer`` is one that objects have as long as they belong to a workload."""
        self._client: Final = client
        self._kind: Final = kind
        self._expected: Final = expected_writes
        self._finalizer: Final = finalizer

    async def claim(
        self, owner: meta.Object, candidates: Iterable[ObjectT], *, matches: Callable[[ObjectT], bool]
    ) -> list[ObjectT]:
        """Return the objects of an owner after it adopted and released some. A deleted owner does neither.

        ``candidates`` may have any owner. Raises refusals of the API server, and ReconcileError if the owner is gone or
        being deleted, because the cache is outdated then.
        """
        mine, orphans = [], []
        is_going = owner.metadata.deletion_timestamp is not None
        for each in candidates:
            controller = ownership.controller_of(each)
            if controller is None:
                if not is_going and each.metadata.deletion_timestamp is None and matches(each):
                    orphans.append(each)
            elif controller.uid != owner.metadata.uid:
                continue
            elif matches(each):
                mine.append(each)
            elif not is_going:
                await self._release(owner, each)
        if orphans:
            await self._check_owner(owner)
            adopted = [await self._adopt(owner, each) for each in orphans]
            mine += [each for each in adopted if each is not None]
        return mine

    async def _check_owner(self, owner: meta.Object) -> None:
        """Check with the server that the owner exists and is not being deleted, because the cache may be behind."""
        place = f"{owner.metadata.namespace}/{owner.metadata.name}"
        try:
            fresh = await self._client.get(type(owner), owner.metadata.name, namespace=owner.metadata.namespace)
        except errors.ObjectNotFoundError as error:
            raise errors.ReconcileError(f"{place} adopts nothing: it is gone") from error
        if fresh.metadata.uid != owner.metadata.uid or fresh.metadata.deletion_timestamp is not None:
            raise errors.ReconcileError(f"{place} adopts nothing: it has just been deleted")

    async def _adopt(self, owner: meta.Object, orphan: ObjectT) -> ObjectT | None:
        owners = [*orphan.metadata.owner_references, ownership.reference(owner)]
        return await self._patch(
            owner, orphan, {"ownerReferences": owners, **self._finalizers(orphan, self._finalizer)}
        )

    async def _release(self, owner: meta.Object, former: ObjectT) -> None:
        uid = owner.metadata.uid
        owners = [each for each in former.metadata.owner_references if each.uid != uid]
        await self._patch(owner, former, {"ownerReferences": owners, **self._finalizers(former)})

    def _finalizers(self, subject: ObjectT, *own: str) -> dict[str, Any]:
        """Return the finalizers of an object with ``own`` instead of the finalizer of workloads."""
        if not self._finalizer:
            return {}
        foreign = [each for each in subject.metadata.finalizers if each != self._finalizer]
        return {"finalizers": [*foreign, *own]}

    async def _patch(self, owner: meta.Object, subject: ObjectT, metadata: Mapping[str, Any]) -> ObjectT | None:
        try:
            changed = await self._client.patch(
                self._kind,
                subject.metadata.name,
                patch=patches.merge({"metadata": metadata}, patches.unchanged(subject)),
                namespace=subject.metadata.namespace,
            )
        except errors.ObjectNotFoundError:
            return None
        self._expected.note(owner.metadata.uid, changed.metadata.resource_version)
        return changed
