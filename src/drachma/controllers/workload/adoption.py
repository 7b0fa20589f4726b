"""Whose objects are whose: those that match and belong to nobody are adopted, those that no longer match are let go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

from drachma import errors
from drachma.api import meta
from drachma.claims import ownership
from drachma.client import Client, patches
from drachma.controllers.workload import expectations

ObjectT = TypeVar("ObjectT", bound=meta.Object)


ORPHANS: Final = "orphans"
"""The index of those that belong to nobody, by namespace."""


def orphans_of(of: meta.Object) -> tuple[str, ...]:
    """Where the index of orphans has an object."""
    return (of.metadata.namespace,) if ownership.controller_of(of) is None else ()


class Adopter(Generic[ObjectT]):
    """Objects of one kind, and the workloads that may have them."""

    def __init__(
        self, client: Client, kind: type[ObjectT], *, expected: expectations.Expectations, finalizer: str = ""
    ) -> None:
        """``finalizer`` is one that objects have as long as they belong to a workload."""
        self._client: Final = client
        self._kind: Final = kind
        self._expected: Final = expected
        self._finalizer: Final = finalizer

    async def claim(
        self, owner: meta.Object, candidates: Iterable[ObjectT], *, matches: Callable[[ObjectT], bool]
    ) -> list[ObjectT]:
        """The objects that are an owner's after it adopted and released some; one that goes away does neither.

        ``candidates`` may belong to anybody. Raises what the API server refuses, and ReconcileError where the owner
        turns out to be gone or going: nothing is to be decided on what the cache says then.
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
        """Makes sure that the owner is still there and stays: the cache may be behind somebody who deletes it."""
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

    def _finalizers(self, of: ObjectT, *own: str) -> dict[str, Any]:
        """The finalizers of an object with these of workloads, and no others of them."""
        if not self._finalizer:
            return {}
        others = [each for each in of.metadata.finalizers if each != self._finalizer]
        return {"finalizers": [*others, *own]}

    async def _patch(self, owner: meta.Object, of: ObjectT, metadata: Mapping[str, Any]) -> ObjectT | None:
        try:
            changed = await self._client.patch(
                self._kind,
                of.metadata.name,
                patch=patches.merge({"metadata": metadata}, patches.unchanged(of)),
                namespace=of.metadata.namespace,
            )
        except errors.ObjectNotFoundError:
            return None
        self._expected.note(owner.metadata.uid, changed.metadata.resource_version)
        return changed
