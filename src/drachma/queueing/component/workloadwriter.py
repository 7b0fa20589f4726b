"""Statuses of workloads and events about them, as the controllers of checks and node failures write them."""

from __future__ import annotations

from typing import Final

from drachma import errors
from drachma.api import event
from drachma.queueing.component import resources, workloadwrites
from drachma.queueing.component.workloadwrites import WorkloadLocks
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from drachma.runtime import Surroundings, events


class WorkloadWriter:
    """Writes one status of a workload at a time. The cache has each of them at once."""

    def __init__(self, surroundings: Surroundings, recorder: events.Recorder, *, locks: WorkloadLocks) -> None:
        self.recorder: Final = recorder
        self._clock: Final = surroundings.clock
        self._workloads: Final = surroundings.informers.of(resources.WORKLOADS, with_documents=True)
        self._locks: Final = locks

    async def write_status(self, before: workload.Workload, after: workload.Workload) -> None:
        """Write the status of ``after``, if it differs from that of ``before``.

        Raises:
            errors.ObjectConflictError, errors.ObjectNotFoundError: the workload has changed since ``before``.
        """
        if after is before:
            return
        after = workloadwrites.with_times(after, workloadwrites.current_time(self._clock))
        async with self._locks.hold(workloadstate.key(before)):
            self._check_unchanged(before)
            stored_workload = await workloadwrites.write_status(self.recorder, before, after)
            if stored_workload is not None:
                self._workloads.observe(stored_workload)

    def _check_unchanged(self, wl: workload.Workload) -> None:
        """Raise ObjectConflictError if the cache has another version, which makes the write pointless."""
        metadata = wl.metadata
        cached = self._workloads.cache.get(metadata.name, namespace=metadata.namespace)
        if cached is not None and cached.metadata.resource_version != metadata.resource_version:
            raise errors.ObjectConflictError({"message": f"workload {workloadstate.key(wl)}: has changed meanwhile"})

    def record(self, wl: workload.Workload, reason: str, message: str, *, is_warning: bool = False) -> None:
        """Record an event about a workload."""
        kind: events.Type = events.WARNING if is_warning else events.NORMAL
        self.recorder.record(workload_reference(wl), type=kind, reason=reason, message=message)


def workload_reference(wl: workload.Workload) -> event.ObjectReference:
    """Return the reference to a workload that events about it have."""
    return event.ObjectReference(
        kind="Workload",
        namespace=wl.metadata.namespace,
        name=wl.metadata.name,
        uid=wl.metadata.uid,
        api_version=f"{resources.GROUP}/{resources.VERSION}",
        resource_version=wl.metadata.resource_version,
    )
