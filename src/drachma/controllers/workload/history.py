"""History of the templates of stateful sets and daemon sets, as ControllerRevisions.

A revision holds a patch that restores a template, and a number that grows. Returning to an older template gives its
revision a new number, and nothing is stored twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import controllerrevision, meta
from drachma.claims import ownership
from drachma.client import patches
from drachma.controllers.workload import adoption, expectations
from drachma.runtime import Surroundings
from drachma.values import labels

Revision = controllerrevision.ControllerRevision

HASH: Final = "controller-revision-hash"
"""Label of pods, and of the revisions of daemon sets, with the revision."""


def content(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a revision of a template."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def template(revision: Revision) -> dict[str, Any]:
    """Return the template of a revision."""
    patch = ((revision.data or {}).get("spec") or {}).get("template") or {}
    return {field: value for field, value in patch.items() if field != "$patch"}


def newest(revisions: Iterable[Revision]) -> int:
    """Return the highest number, or 0."""
    return max((each.revision for each in revisions), default=0)


class History:
    """Revisions of all workloads of one kind."""

    def __init__(self, surroundings: Surroundings) -> None:
        informer = surroundings.informers.of(Revision)
        self._client: Final = surroundings.client
        self._revisions: Final = informer.cache
        self._expected: Final = expectations.Expectations(informer)
        self._adopter: Final = adoption.Adopter(surroundings.client, Revision, expected_writes=self._expected)

    def is_up_to_date(self, owner: str) -> bool:
        """Return True if the cache has seen all writes for a workload, by its uid."""
        return self._expected.are_met(owner)

    def forget(self, owner: str) -> None:
        self._expected.forget(owner)

    async def of(self, owner: meta.Object, selector: labels.Selector) -> list[Revision]:
        """Return the revisions of a workload, oldest first, after it adopted those that match."""
        owned = await self._adopter.claim(
            owner,
            self._revisions.list_namespace(owner.metadata.namespace),
            matches=lambda each: selector.matches(each.metadata.labels),
        )
        return sorted(
            owned, key=lambda each: (each.revision, str(each.metadata.creation_timestamp), each.metadata.name)
        )

    async def create(
        self,
        owner: meta.Object,
        data: Mapping[str, Any],
        *,
        name: str,
        number: int,
        marks: Mapping[str, str],
    ) -> Revision | None:
        """Create a revision with these labels, or return an equal one of this name; None if the name is taken."""
        metadata = meta.ObjectMeta(
            name=name,
            namespace=owner.metadata.namespace,
            labels=dict(marks),
            annotations=dict(owner.metadata.annotations),
            owner_references=(ownership.workload_reference(owner),),
        )
        try:
            created = await self._client.create(Revision(metadata=metadata, data=dict(data), revision=number))
        except errors.ObjectExistsError:
            existing = await self._client.get(Revision, name, namespace=owner.metadata.namespace)
            return existing if existing.data == data else None
        self._expected.note(owner.metadata.uid, created.metadata.resource_version)
        return created

    async def renumber(self, owner: meta.Object, revision: Revision, number: int) -> Revision:
        """Give a revision another number."""
        changed = await self._client.patch(
            Revision,
            revision.metadata.name,
            patch=patches.merge({"revision": number}, patches.same(revision)),
            namespace=revision.metadata.namespace,
        )
        self._expected.note(owner.metadata.uid, changed.metadata.resource_version)
        return changed

    async def delete(self, revision: Revision) -> None:
        """Delete a revision."""
        try:
            await self._client.delete(
                Revision,
                revision.metadata.name,
                namespace=revision.metadata.namespace,
                preconditions=patches.same(revision),
            )
        except (errors.ObjectNotFoundError, errors.ObjectConflictError):
            return
