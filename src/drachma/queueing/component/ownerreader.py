"""Owners of jobs and pods, and objects that jobs refer to, read from the API server; most kinds have no cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.client import protocol, target
from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.jobs import ancestry
from drachma.queueing.jobs.interface import Reference
from drachma.queueing.jobs.settings import Document, Owners


class OwnerReader:
    """Reads the chain of owners above an object."""

    def __init__(self, client: protocol.Client) -> None:
        self._client: Final = client

    async def read(self, document: Document, namespace: str) -> Owners:
        """Return the owners of an object, as far up as they are followed, with one GET for each."""
        owners: dict[tuple[str, str, str], Document] = {}
        while len(owners) <= ancestry.MAX_DEPTH:
            reference = ancestry.controller(document)
            if reference is None or (reference["apiVersion"], reference["kind"]) not in ancestry.FOLLOWED_KINDS:
                break
            key = (reference["apiVersion"], reference["kind"], reference["name"])
            group, _, version = reference["apiVersion"].rpartition("/")
            kind = GroupVersionKind(group, version, reference["kind"])
            owner = await self._get(Reference(kind, namespace, reference["name"]))
            if owner is None or key in owners:
                break
            owners[key] = document = owner
        return owners

    async def read_references(self, references: Sequence[Reference]) -> Owners:
        """Return the objects that a job refers to, as far as they exist, with one GET for each."""
        objects = [(each, await self._get(each)) for each in references]
        return {
            (each.kind.api_version, each.kind.kind, each.name): document
            for each, document in objects
            if document is not None
        }

    async def _get(self, reference: Reference) -> Document | None:
        kind, namespace = reference.kind, reference.namespace
        resource = target.metadata_of(
            kind.group,
            kind.version,
            plural=f"{kind.kind.lower()}s",
            kind=kind.kind,
            namespaced=bool(namespace),
        )
        try:
            return await self._client.get_document(resource, reference.name, namespace=namespace)
        except errors.ObjectNotFoundError:
            return None
