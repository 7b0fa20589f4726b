"""Whose objects are whose: those that match and belong to nobody are adopted, those that no longer match are let go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from drachma import errors
from drachma.api import meta
from drachma.claims import ownership
from drachma.client import Client, patches
from drachma.controllers.workload import expectations

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Adopter(Generic[ObjectT]):
    """Objects of one kind, and the workloads that may have them."""

    def __init__(self, client: Client, kind: type[ObjectT], *, expected: expectations.Expectations) -> None:
        self._client: Final = client
        self._kind: Final = kind
        self._expected: Final = expected

    async def claim(
        self, owner: meta.Object, candidates: Iterable[ObjectT], *, matches: Callable[[ObjectT], bool]
    ) -> list[ObjectT]:
        """The objects that are an owner's after it adopted and released some; one that goes away does neither.

        ``candidates`` may belong to anybody. Raises what the API server refuses.
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
        if orphans and await self._may_adopt(owner):
            mine += [each for each in orphans if await self._adopt(owner, each)]
        return mine

    async def _may_adopt(self, owner: meta.Object) -> bool:
        """Whether the owner is still there and stays: the cache may be behind somebody who deletes it."""
        try:
            fresh = await self._client.get(type(owner), owner.metadata.name, namespace=owner.metadata.namespace)
        except errors.ObjectNotFoundError:
            return False
        return fresh.metadata.uid == owner.metadata.uid and fresh.metadata.deletion_timestamp is None

    async def _adopt(self, owner: meta.Object, orphan: ObjectT) -> bool:
        owners = [*orphan.metadata.owner_references, ownership.reference(owner)]
        return await self._patch(owner, orphan, owners)

    async def _release(self, owner: meta.Object, former: ObjectT) -> None:
        uid = owner.metadata.uid
        await self._patch(owner, former, [each for each in former.metadata.owner_references if each.uid != uid])

    async def _patch(self, owner: meta.Object, of: ObjectT, owners: Sequence[Any]) -> bool:
        try:
            changed = await self._client.patch(
                self._kind,
                of.metadata.name,
                patch=patches.merge({"metadata": {"ownerReferences": list(owners)}}, patches.unchanged(of)),
                namespace=of.metadata.namespace,
            )
        except (errors.ObjectNotFoundError, errors.ObjectConflictError):
            # Gone, or changed since: the news of that are under way.
            return False
        self._expected.note(owner.metadata.uid, changed.metadata.resource_version)
        return True
