"""Owners of jobs and pods, read from the API server: queueing keeps no cache of most kinds that own jobs."""

from __future__ import annotations

from typing import Final

from drachma import errors
from drachma.client import protocol, target
from drachma.queueing.jobs import ancestry
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
            owner = await self._get(reference, namespace)
            if owner is None or key in owners:
                break
            owners[key] = document = owner
        return owners

    async def _get(self, reference: Document, namespace: str) -> Document | None:
        group, _, version = reference["apiVersion"].rpartition("/")
        plural = f"{reference['kind'].lower()}s"
        kind = target.metadata_of(group, version, plural=plural, kind=reference["kind"], namespaced=True)
        try:
            return await self._client.get_document(kind, reference["name"], namespace=namespace)
        except errors.ObjectNotFoundError:
            return None
