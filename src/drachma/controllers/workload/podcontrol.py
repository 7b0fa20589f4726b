"""Creation and deletion of pods of workloads, with events and expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.api import event, pod
from drachma.client import Client
from drachma.controllers import objectwrites
from drachma.controllers.workload import expectations
from drachma.runtime import controller, events

MOST_AT_ONCE: Final = 500
"""Most pods that one reconcile of a workload creates or deletes."""


class PodControl:
    """Pods of all workloads of one kind."""

    def __init__(
        self, client: Client, *, expected_writes: expectations.Expectations, recorder: events.Recorder
    ) -> None:
        self._client: Final = client
        self._expected: Final = expected_writes
        self._recorder: Final = recorder

    async def create(self, owner: event.ObjectReference, documents: Sequence[Mapping[str, Any]]) -> int:
        """Create pods in growing batches. Return their number.

        Pods that are refused because their namespace is being deleted are no error. Raises the first error of a batch.
        """
        names: list[str] = []

        def creating(document: Mapping[str, Any]) -> Callable[[], Any]:
            return lambda: self._create(owner, document, names)

        await controller.slow_start([creating(each) for each in documents])
        return len(names)

    async def _create(self, owner: event.ObjectReference, document: Mapping[str, Any], names: list[str]) -> None:
        try:
            created = await self._client.create_document(pod.Pod, document)
        except errors.RefusedError as error:
            if is_namespace_ending(error):
                return
            self._record(owner, events.WARNING, "FailedCreate", f"Error creating: {error}")
            raise
        metadata = created["metadata"]
        names.append(metadata["name"])
        self._expected.note(owner.uid, metadata["resourceVersion"])
        self._record(owner, events.NORMAL, "SuccessfulCreate", f"Created pod: {metadata['name']}")

    async def delete(self, owner: event.ObjectReference, pods: Iterable[pod.Pod]) -> None:
        """Delete pods. Those that are gone already count as deleted."""

        def deleting(each: pod.Pod) -> Callable[[], Any]:
            return lambda: self.delete_one(owner, each)

        await controller.side_by_side(map(deleting, pods))

    async def delete_one(self, owner: event.ObjectReference, pod: pod.Pod) -> None:
        try:
            if await objectwrites.delete_pod(self._client, pod):
                self._expected.note_deletion(owner.uid, pod)
                self._record(owner, events.NORMAL, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
        except errors.RefusedError as error:
            self._record(owner, events.WARNING, "FailedDelete", f"Error deleting: {error}")
            raise

    def _record(self, owner: event.ObjectReference, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(owner, type=kind, reason=reason, message=message)


def is_namespace_ending(error: errors.RefusedError) -> bool:
    """Return True if an object was refused because its namespace is being deleted."""
    return any(cause.get("reason") == "NamespaceTerminating" for cause in error.details.get("causes") or ())
