"""The history of stateful sets and daemon sets: what their templates were, as ControllerRevisions.

A revision holds a patch that puts a template back in place, and a number that grows. Going back to an older template
gives its revision a new number, and nothing is kept twice.
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
"""The label by which pods, and the revisions of daemon sets, say of which revision they are."""


def content(template: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a revision that holds a template."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def template(of: Revision) -> dict[str, Any]:
    """The template that a revision holds."""
    held = ((of.data or {}).get("spec") or {}).get("template") or {}
    return {field: value for field, value in held.items() if field != "$patch"}


def newest(revisions: Iterable[Revision]) -> int:
    """The highest number; 0 where there is none."""
    return max((each.revision for each in revisions), default=0)


class History:
    """The revisions of all workloads of one kind."""

    def __init__(self, surroundings: Surroundings) -> None:
        informer = surroundings.informers.of(Revision)
        self._client: Final = surroundings.client
        self._revisions: Final = informer.cache
        self._expected: Final = expectations.Expectations(informer)
        self._adopter: Final = adoption.Adopter(surroundings.client, Revision, expected=self._expected)

    def is_up_to_date(self, owner: str) -> bool:
        """Whether the cache has seen all that was written for a workload, by its uid."""
        return self._expected.are_met(owner)

    def forget(self, owner: str) -> None:
        self._expected.forget(owner)

    async def of(self, owner: meta.Object, selector: labels.Selector) -> list[Revision]:
        """The revisions of a workload, the oldest first, after it adopted those that match and belong to nobody."""
        owned = await self._adopter.claim(
            owner,
            self._revisions.in_namespace(owner.metadata.namespace),
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
        """Makes a revision with these labels; one of the same name and content counts. None: the name is taken."""
        metadata = meta.ObjectMeta(
            name=name,
            namespace=owner.metadata.namespace,
            labels=dict(marks),
            annotations=dict(owner.metadata.annotations),
            owner_references=(ownership.by_workload(owner),),
        )
        try:
            made = await self._client.create(Revision(metadata=metadata, data=dict(data), revision=number))
        except errors.ObjectExistsError:
            existing = await self._client.get(Revision, name, namespace=owner.metadata.namespace)
            return existing if existing.data == data else None
        self._expected.note(owner.metadata.uid, made.metadata.resource_version)
        return made

    async def renumber(self, owner: meta.Object, of: Revision, number: int) -> Revision:
        """Gives a revision another number."""
        changed = await self._client.patch(
            Revision,
            of.metadata.name,
            patch=patches.merge({"revision": number}, patches.same(of)),
            namespace=of.metadata.namespace,
        )
        self._expected.note(owner.metadata.uid, changed.metadata.resource_version)
        return changed

    async def delete(self, of: Revision) -> None:
        """Forgets a revision."""
        try:
            await self._client.delete(
                Revision, of.metadata.name, namespace=of.metadata.namespace, preconditions=patches.same(of)
            )
        except (errors.ObjectNotFoundError, errors.ObjectConflictError):
            return
