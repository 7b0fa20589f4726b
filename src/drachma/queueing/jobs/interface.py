"""GenericJob: the interface through which one reconciler queues jobs of every kind, after Kueue's interface.

A kind implements :class:`GenericJob`, mostly by deriving from
:class:`drachma.queueing.jobs.suspendable.SuspendableJob`. A GenericJob stands for one job during one reconcile.
Its methods change it in memory and note changes of workloads in the :class:`Session`; the controller writes both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import meta
from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.configuration.gates import Gates
from drachma.queueing.jobs.settings import Environment, JobSettings
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.lifecycle.workloadreconcile import IN_USE
from drachma.queueing.workloads import transitions, workloadstate
from drachma.queueing.workloads.podsetinfo import PodSetInfo
from drachma.queueing.workloads.workloadevents import NORMAL, Event

Document: TypeAlias = Mapping[str, Any]

_MESSAGE_LENGTH: Final = 1024
_NO_METADATA: Final = meta.ObjectMeta()
_NO_SPEC: Final = workload.WorkloadSpec()


class RetryError(errors.DrachmaError):
    """The reconcile ends here and is to be repeated."""


class UnretryableError(errors.DrachmaError):
    """The reconcile ends here. Only a change of the job or its pods can help."""


class Completion(msgspec.Struct, frozen=True):
    """Result of a job that has ended."""

    is_success: bool
    message: str


class Reference(NamedTuple):
    """An object that the pod sets of a job depend on; without a namespace it belongs to the cluster."""

    kind: GroupVersionKind
    namespace: str
    name: str


class Candidates(NamedTuple):
    """Workloads of a job: the one that matches its spec, and the rest."""

    match: workload.Workload | None
    unmatched: list[workload.Workload]


class ConstructedWorkload(NamedTuple):
    """A new workload, and its pod sets as whole documents."""

    workload: workload.Workload
    pod_sets: Sequence[Document]


class Session:
    """One reconcile of a job: its workloads as changed so far, and the events to record."""

    def __init__(self, environment: Environment, now: datetime, settings: JobSettings) -> None:
        self.environment: Final = environment
        self.now: Final = now
        self.settings: Final = settings
        self.gates: Final = settings.gates
        self.workloads: Final = {workloadstate.key(each): each for each in environment.workloads}
        self.new_pod_sets: Final[dict[str, Sequence[Document]]] = {}
        """Pod sets of workloads that the reconcile created or gave other pod sets, by key."""
        self.events: Final[list[Event]] = []
        self.requeue_after = timedelta()

    def record(self, key: str, reason: str, message: str, *, event_type: str = NORMAL) -> None:
        """Record an event about the object with this key."""
        text = message if len(message) <= _MESSAGE_LENGTH else f"{message[: _MESSAGE_LENGTH - 4]} ..."
        self.events.append(Event(key, event_type, reason, text))

    # Workloads

    def pod_sets(self, wl: workload.Workload) -> Sequence[Document]:
        """Return the pod sets of a workload as whole documents."""
        new = self.new_pod_sets.get(workloadstate.key(wl))
        return self.environment.pod_sets(wl) if new is None else new

    def put(self, wl: workload.Workload) -> workload.Workload:
        """Note the new state of a workload whose pod sets have not changed, and return it."""
        self.workloads[workloadstate.key(wl)] = wl
        return wl

    def put_with_pod_sets(self, wl: workload.Workload, pod_sets: Sequence[Document]) -> workload.Workload:
        """Note the new state of a workload with other pod sets, and return it."""
        views = decoding.decode({"podSets": pod_sets}, workload.WorkloadSpec).pod_sets
        self.new_pod_sets[workloadstate.key(wl)] = pod_sets
        return self.put(structs.replace(wl, spec=structs.replace(wl.spec, pod_sets=views)))

    def remove(self, wl: workload.Workload) -> None:
        """Note that a workload is gone."""
        del self.workloads[workloadstate.key(wl)]

    def owned_by(self, kind: GroupVersionKind, name: str) -> list[workload.Workload]:
        """Return the workloads that an object of the namespace owns."""
        owner = (kind.api_version, kind.kind, name)
        return [
            each
            for each in self.workloads.values()
            if any((ref.api_version, ref.kind, ref.name) == owner for ref in each.metadata.owner_references)
        ]

    def release(self, wl: workload.Workload) -> None:
        """Remove the finalizer of a workload. A deleted workload is gone with its last finalizer."""
        after = without_finalizer(wl)
        if after.metadata.deletion_timestamp is not None and not after.metadata.finalizers:
            self.remove(wl)
        else:
            self.put(after)

    def finish(self, wl: workload.Workload, reason: str, message: str) -> workload.Workload:
        """Mark a workload as finished, unless it is, and return it."""
        if workloadstate.is_finished(wl):
            return wl
        return self.put(transitions.finished(wl, reason=reason, message=message, now=self.now))


class WorkloadSource(Protocol):
    """An object for which workloads are constructed."""

    @property
    def kind(self) -> GroupVersionKind: ...
    @property
    def metadata(self) -> Document: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def key(self) -> str:
        """``namespace/name`` of the object, under which events are recorded."""

    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...
    @property
    def pod_priority_class(self) -> str:
        """Priority class of pods that the job names outside of its pod templates, or an empty text."""

    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        """Return the pod sets of the workload. Raises errors.InvalidValueError for wrong annotations."""


class GenericJob(WorkloadSource, Protocol):
    """A job of any kind during one reconcile."""

    # State

    @property
    def is_gone(self) -> bool:
        """True if the job does not exist."""

    @property
    def is_deleted(self) -> bool:
        """True if the job has a deletion timestamp."""

    @property
    def is_skipped(self) -> bool:
        """True if the reconciler must leave the job alone."""

    @property
    def is_suspended(self) -> bool: ...
    @property
    def is_active(self) -> bool:
        """True if pods of the job run."""

    @property
    def are_pods_ready(self) -> bool:
        """True if all pods are ready or have succeeded."""

    @property
    def completion(self) -> Completion | None:
        """Result of the job, or None if it has not ended."""

    @property
    def is_dispatched(self) -> bool:
        """True if MultiKueue runs the job in another cluster, so that no pods of it run here."""

    @property
    def is_on_hold(self) -> bool:
        """True if the job's own controller refuses to run it, so that it needs no quota."""

    @property
    def reclaimable_pods(self) -> Mapping[str, int]:
        """Number of pods that no longer need their quota, by pod set."""

    @property
    def has_ancestors(self) -> bool:
        """True if an owner may be admitted in place of the job."""

    @property
    def follows_queue(self) -> bool:
        """True if the workload changes queues with the job's label."""

    @property
    def event_keys(self) -> Iterable[str]:
        """Keys of the objects that get events about admission checks."""

    def can_requeue(self, wl: workload.Workload, gates: Gates) -> bool:
        """Return True if the workload may go back to its queue after an eviction."""

    # Changes of the job

    def run(self, infos: Sequence[PodSetInfo], message: str, session: Session) -> None:
        """Start the job with the changes that admission makes to its pods. Raises PodSetConflictError."""

    def suspend(self) -> None:
        """Suspend the job and leave its pod templates alone."""

    def stop(self, wl: workload.Workload | None, message: str, *, reason: str, session: Session) -> None:
        """Stop the job and restore its pod templates from the workload, if there is one."""

    def finalize(self) -> None:
        """Release the objects of a job that has ended."""

    def delete(self) -> bool:
        """Delete the job, and return True if it still existed."""

    # Workloads of the job

    def child_workloads(self, session: Session) -> list[workload.Workload]:
        """Return the workloads that the job leaves behind when it is gone."""

    def find_workloads(self, session: Session) -> Candidates:
        """Return the workloads of the job."""

    def construct_workload(self, session: Session) -> ConstructedWorkload:
        """Return a new workload for the job. Raises ClassMissingError and errors.InvalidValueError."""

    def is_equivalent(self, wl: workload.Workload, session: Session) -> bool:
        """Return True if a workload matches the job's spec, running or suspended."""

    def own(self, wl: workload.Workload, session: Session) -> workload.Workload:
        """Make the job the owner of a prebuilt workload, and return the workload."""

    def update_conditions(self, wl: workload.Workload, session: Session) -> bool:
        """Update conditions that only this kind has, and return True if any changed."""


def controller_of(wl: workload.Workload) -> meta.OwnerReference | None:
    """Return the reference to the controlling owner of a workload, if it has one."""
    return next((each for each in wl.metadata.owner_references if each.controller), None)


def with_metadata(wl: workload.Workload, **fields: Any) -> workload.Workload:
    """Return a workload with other fields of the metadata; empty ones become absent."""
    present = {name: value or getattr(_NO_METADATA, name) for name, value in fields.items()}
    return structs.replace(wl, metadata=structs.replace(wl.metadata, **present))


def with_spec(wl: workload.Workload, **fields: Any) -> workload.Workload:
    """Return a workload with other fields of the spec; empty texts become absent."""
    present = {name: getattr(_NO_SPEC, name) if value == "" else value for name, value in fields.items()}
    return structs.replace(wl, spec=structs.replace(wl.spec, **present))


def without_finalizer(wl: workload.Workload) -> workload.Workload:
    """Return a workload without Kueue's finalizer."""
    finalizers = wl.metadata.finalizers
    if IN_USE not in finalizers:
        return wl
    return with_metadata(wl, finalizers=tuple(each for each in finalizers if each != IN_USE))


def owner_reference(kind: GroupVersionKind, metadata: Document, *, is_controller: bool = False) -> meta.OwnerReference:
    """Return a reference to an object as the owner of a workload."""
    flag = True if is_controller else None
    return meta.OwnerReference(
        api_version=kind.api_version,
        kind=kind.kind,
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        controller=flag,
        block_owner_deletion=flag,
    )
