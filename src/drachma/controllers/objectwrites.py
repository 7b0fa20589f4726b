"""Updates of whole objects, for controllers whose roles upstream allow updating a kind and not patching it.

The document to change comes from the informer's cache, so an update reads nothing from the server. It carries the
resource version of that document: if the cache is behind, the server refuses the update as a conflict, the controller's
queue repeats the key, and the watch brings the newer version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar

from drachma import errors
from drachma.api import meta, pod
from drachma.client import Client, patches, protocol, transactions
from drachma.runtime import Informer, cache, events

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Writer(Generic[ObjectT]):
    """Updates objects of one kind. Its informer observes every update."""

    def __init__(self, client: Client, informer: Informer[ObjectT], *, recorder: events.Recorder | None = None) -> None:
        """Have the informer keep documents; it must not have listed yet.

        New events of ``recorder``, which the controller records before an update, are written with the update.
        """
        informer.keep_documents()
        self._client: Final = client
        self._recorder: Final = recorder
        self._informer: Final = informer

    def document(self, subject: ObjectT, *, only_if_unchanged: bool = False) -> protocol.Document:
        """Return the newest document of an object in the cache.

        Raises:
            errors.ObjectNotFoundError: the object is gone, or another one has its name.
            errors.ObjectConflictError: the cache has a newer version than ``subject``, which must be unchanged.
        """
        metadata = subject.metadata
        entry = self._informer.cache.entry(metadata.name, namespace=metadata.namespace)
        name = f"{self._informer.target.qualified} {cache.key_of(subject)}"
        if entry is None or entry.object.metadata.uid != metadata.uid:
            raise errors.ObjectNotFoundError({"message": f"{name}: is gone", "reason": "NotFound", "code": 404})
        if only_if_unchanged and entry.object.metadata.resource_version != metadata.resource_version:
            raise errors.ObjectConflictError({"message": f"{name}: has changed", "reason": "Conflict", "code": 409})
        return entry.document()

    async def replace(self, document: protocol.Document, *, subresource: str = "") -> ObjectT:
        """Write a whole document. Return the stored object."""
        kind = self._informer.target
        if self._recorder is None:
            return self._informer.observe(await self._client.update_document(kind, document, subresource=subresource))
        change = transactions.UpdateDocument(kind, document, subresource)
        return self._informer.observe(await self._recorder.write(change))

    async def update(self, subject: ObjectT, change: Mapping[str, Any], *, only_if_unchanged: bool = False) -> ObjectT:
        """Change fields as a merge patch does. Return the stored object. Raises like document()."""
        return await self.replace(merge(self.document(subject, only_if_unchanged=only_if_unchanged), change))

    async def annotate(self, subject: ObjectT, annotations: Mapping[str, str]) -> ObjectT:
        """Set annotations with a status update, which counts no generation. Return the stored object. Raises like
        document().
        """
        change = {"metadata": {"annotations": annotations}}
        return await self.replace(merge(self.document(subject), change), subresource="status")

    async def update_status(
        self, subject: ObjectT, change: Mapping[str, Any], *, only_if_unchanged: bool = False
    ) -> ObjectT:
        """Change fields of the status as a merge patch does. Return the stored object. Raises like document()."""
        document = self.document(subject, only_if_unchanged=only_if_unchanged)
        document["status"] = merge(document.get("status") or {}, change)
        return await self.replace(document, subresource="status")


def merge(old: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields after a merge patch: None removes a field, a mapping is merged, any other value replaces."""
    result = dict(old)
    for field, value in change.items():
        if value is None:
            result.pop(field, None)
        elif isinstance(value, Mapping):
            before = result.get(field)
            result[field] = merge(before if isinstance(before, Mapping) else {}, value)
        else:
            result[field] = value
    return result


# Pods


async def write_pod_status(client: Client, subject: pod.Pod, content: dict[str, Any]) -> pod.Pod:
    """Change the status of a pod; conditions are merged by their type."""
    return await client.patch(
        pod.Pod,
        subject.metadata.name,
        patch=patches.strategic({"status": content}, patches.same(subject)),
        namespace=subject.metadata.namespace,
        subresource="status",
    )


async def delete_pod(client: Client, subject: meta.Object, *, grace_period_seconds: int | None = None) -> bool:
    """Delete a pod. Return False if it was deleted already, perhaps replaced by another one of its name."""
    try:
        await client.delete(
            pod.Pod,
            subject.metadata.name,
            namespace=subject.metadata.namespace,
            preconditions=patches.same(subject),
            grace_period_seconds=grace_period_seconds,
        )
    except (errors.ObjectNotFoundError, errors.ObjectConflictError):
        return False
    return True
