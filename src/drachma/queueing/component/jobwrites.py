"""What a look at a job leaves, written down: objects, their workloads, and what is told about them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.api import event
from drachma.client import patches, target
from drachma.queueing.component import resources, wholeseconds, workloadwrites
from drachma.queueing.jobs.jobworkload import WorkloadRecord
from drachma.queueing.workloads.workloadevents import Event
from drachma.runtime import Surroundings, events

Document = Mapping[str, Any]


class JobWrites:
    """Writes with the versions that were looked at; a conflict is for the next look to settle."""

    def __init__(self, surroundings: Surroundings, recorder: events.Recorder) -> None:
        self._client: Final = surroundings.client
        self._informers: Final = surroundings.informers
        self._recorder: Final = recorder
        self._clock: Final = surroundings.clock

    async def document(self, kind: target.Of[Any], before: Document, after: Document) -> Document:
        """Makes one document of another; as it is stored then."""
        return await workloadwrites.write_object(
            self._client, kind, before, after=after, observe=functools.partial(self._informers.observe, kind)
        )

    async def delete(self, kind: target.Of[Any], of: Document) -> None:
        """Has an object go, with all that it owns."""
        metadata = of["metadata"]
        with contextlib.suppress(errors.ObjectNotFoundError):
            await self._client.delete(
                kind,
                metadata["name"],
                namespace=metadata.get("namespace", ""),
                preconditions=patches.Preconditions(uid=metadata["uid"]),
                propagation="Background",
            )

    async def workloads(self, before: Sequence[WorkloadRecord], after: Mapping[str, WorkloadRecord]) -> None:
        """Makes, changes and deletes workloads."""
        known = {each.key: each for each in before}
        for key, record in after.items():
            old = known.get(key)
            if old is None:
                stored = await self._client.create_document(resources.WORKLOADS, record.document)
                self._informers.observe(resources.WORKLOADS, WorkloadRecord.of(stored).view)
            elif record is not old:
                await self._workload(old, record)
        for key, old in known.items():
            if key not in after:
                await self._remove(old)

    async def _workload(self, old: WorkloadRecord, new: WorkloadRecord) -> None:
        is_deleted = new.document["metadata"].get("deletionTimestamp") and not old.document["metadata"].get(
            "deletionTimestamp"
        )
        if is_deleted:
            await self._remove(old)
            return
        dated = new.with_status(workloadwrites.with_times(new.view, wholeseconds.now(self._clock)))
        await self.document(resources.WORKLOADS, old.document, dated.document)

    async def _remove(self, record: WorkloadRecord) -> None:
        free = record.without_finalizer()
        try:
            await self.document(resources.WORKLOADS, record.document, free.document)
        except errors.ObjectNotFoundError:
            return
        if record.view.metadata.deletion_timestamp is None:
            await self.delete(resources.WORKLOADS, record.document)

    def tell(self, objects: Mapping[str, Document], told: Iterable[Event]) -> None:
        """Records events about objects, by the keys that they name."""
        for each in told:
            about = objects.get(each.key)
            if about is not None:
                self._recorder.record(
                    reference(about),
                    type=events.WARNING if each.type == events.WARNING else events.NORMAL,
                    reason=each.reason,
                    message=each.message,
                )


def reference(of: Document) -> event.ObjectReference:
    """How events name an object."""
    metadata = of["metadata"]
    return event.ObjectReference(
        kind=of["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        api_version=of["apiVersion"],
        resource_version=metadata.get("resourceVersion", ""),
    )
