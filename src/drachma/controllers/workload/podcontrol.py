"""Pods of workloads made and deleted, with the events that people look for, and noted as expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.api import event, pod
from drachma.client import Client
from drachma.controllers import podwrites
from drachma.controllers.workload import expectations
from drachma.runtime import controller, events

MOST_AT_ONCE: Final = 500
"""Pods that one look at a workload makes or deletes at most."""


class PodControl:
    """The pods of all workloads of one kind."""

    def __init__(self, client: Client, *, expected: expectations.Expectations, recorder: events.Recorder) -> None:
        self._client: Final = client
        self._expected: Final = expected
        self._recorder: Final = recorder

    async def create(self, owner: event.ObjectReference, documents: Sequence[Mapping[str, Any]]) -> int:
        """Makes pods, in growing batches; how many.

        None of those that a namespace refuses because it comes to its end is made, and that is no error. Raises the
        first error of the batch that had one.
        """
        made: list[str] = []

        def creating(document: Mapping[str, Any]) -> Callable[[], Any]:
            return lambda: self._create(owner, document, made)

        await controller.slow_start([creating(each) for each in documents])
        return len(made)

    async def _create(self, owner: event.ObjectReference, document: Mapping[str, Any], made: list[str]) -> None:
        try:
            created = await self._client.create_document(pod.Pod, document)
        except errors.RefusedError as error:
            if is_namespace_ending(error):
                return
            self._tell(owner, events.WARNING, "FailedCreate", f"Error creating: {error}")
            raise
        metadata = created["metadata"]
        made.append(metadata["name"])
        self._expected.note(owner.uid, metadata["resourceVersion"])
        self._tell(owner, events.NORMAL, "SuccessfulCreate", f"Created pod: {metadata['name']}")

    async def delete(self, owner: event.ObjectReference, pods: Iterable[pod.Pod]) -> None:
        """Deletes pods; those that are gone already count as deleted."""

        def deleting(each: pod.Pod) -> Callable[[], Any]:
            return lambda: self.delete_one(owner, each)

        await controller.side_by_side(map(deleting, pods))

    async def delete_one(self, owner: event.ObjectReference, of: pod.Pod) -> None:
        try:
            if await podwrites.delete(self._client, of):
                self._expected.note_deletion(owner.uid, of)
                self._tell(owner, events.NORMAL, "SuccessfulDelete", f"Deleted pod: {of.metadata.name}")
        except errors.RefusedError as error:
            self._tell(owner, events.WARNING, "FailedDelete", f"Error deleting: {error}")
            raise

    def _tell(self, owner: event.ObjectReference, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(owner, type=kind, reason=reason, message=message)


def is_namespace_ending(error: errors.RefusedError) -> bool:
    """Whether something cannot be made because its namespace comes to its end."""
    return any(cause.get("reason") == "NamespaceTerminating" for cause in error.details.get("causes") or ())
