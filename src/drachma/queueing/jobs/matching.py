"""The workload of a job: found, created, and updated to match the job; workloads that do not match are deleted."""

from __future__ import annotations

from typing import Final

from drachma import errors
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.jobs import construction, elastic
from drachma.queueing.jobs.interface import (
    ConstructedWorkload,
    GenericJob,
    RetryError,
    Session,
    UnretryableError,
    WorkloadSource,
    controller_of,
    with_metadata,
    with_spec,
    without_finalizer,
)
from drachma.queueing.jobs.settings import GROUP, PRIORITY_LABEL, WORKLOAD_PRIORITY, ClassMissingError
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.workloadevents import WARNING
from drachma.values import quotation


class WorkloadMatcher:
    """Keeps the workloads of one job in step with it, in one session."""

    def __init__(self, job: GenericJob, session: Session) -> None:
        self._job: Final = job
        self._session: Final = session

    def ensure_one(self) -> workload.Workload | None:
        """Return the workload of the job, or None if it has none; other workloads are deleted.

        Raises RetryError after deleting workloads.
        """
        job, session = self._job, self._session
        prebuilt = self._prebuilt_name()
        if prebuilt:
            return self._prebuilt_workload(prebuilt)
        if elastic.is_elastic(job.annotations, session.gates):
            current, is_compatible = self._sync_slices()
            if is_compatible:
                return current
        match, unmatched = job.find_workloads(session)
        outdated: workload.Workload | None = None
        if match is None and unmatched and job.is_suspended and not workloadstate.has_reservation(unmatched[0]):
            outdated = unmatched.pop(0)
        if match is None and not job.is_suspended and job.completion is None:
            self._stop_unmatched(unmatched)
        self._delete(unmatched, has_match=match is not None)
        if outdated is not None:
            return self._update(outdated)
        return (
            None
            if match is None
            else sync_priority(self._job, sync_admission_gates(job, match, session), self._session)
        )

    def create(self) -> None:
        """Create the workload of a job that has none. Raises RetryError if that is not possible now."""
        job, session = self._job, self._session
        is_prebuilt = bool(self._prebuilt_name())
        if is_prebuilt:
            job.stop(None, "missing workload", reason="NoMatchingWorkload", session=session)
        if job.is_active and not elastic.is_elastic(job.annotations, session.gates):
            return
        if is_prebuilt:
            raise RetryError("prebuilt workload not found")
        new, pod_sets = self._construct()
        if workloadstate.key(new) in session.workloads:
            name = quotation.quote(new.metadata.name)
            raise RetryError(f"workloads.kueue.x-k8s.io {name} already exists")
        session.put_with_pod_sets(new, pod_sets)
        session.record(job.key, "CreatedWorkload", f"Created Workload: {workloadstate.key(new)}")

    # Prebuilt workloads

    def _prebuilt_name(self) -> str:
        return construction.prebuilt_name(self._job.labels, self._job.annotations, self._session.gates)

    def _prebuilt_workload(self, name: str) -> workload.Workload | None:
        job, session = self._job, self._session
        wl = session.workloads.get(f"{job.namespace}/{name}")
        if wl is None:
            return None
        owner = controller_of(wl)
        if owner is not None and owner.uid != job.uid:
            return None
        wl = job.own(wl, session)
        if not job.is_equivalent(wl, session):
            session.finish(wl, "OutOfSync", "The prebuilt workload is out of sync with its user job")
            return None
        return wl

    # Slices of elastic jobs

    def _sync_slices(self) -> tuple[workload.Workload | None, bool]:
        """Return the slice that matches the job's size, or None if the job needs a new slice.

        The second value is False if the job has changed in more than its size, so that slices are of no use.
        """
        session = self._session
        slices = self._slices()
        current = slices[0] if slices else None
        if len(slices) > 1:
            current, retired = elastic.select_slice(slices)
            for each in retired:
                session.finish(*each)
        if current is not None:
            requested = elastic.job_counts(self._job.pod_sets(session.gates))
            present = elastic.slice_counts(current)
            if present.keys() != requested.keys():
                return None, False
            if present != requested:
                is_reserved = workloadstate.has_reservation(current)
                if is_reserved and not elastic.is_smaller(requested, present):
                    current = None
                else:
                    current = self._resize(current, requested)
        # Preemption compares the running slice and its replacement with other workloads: they need one priority.
        running_slice = elastic.active(self._slices())
        if current is not None:
            current = sync_priority(self._job, current, self._session)
        if running_slice is not None and (
            current is None or workloadstate.key(current) != workloadstate.key(running_slice)
        ):
            sync_priority(self._job, session.workloads[workloadstate.key(running_slice)], self._session)
        return current, True

    def _slices(self) -> list[workload.Workload]:
        return elastic.unfinished(self._session.owned_by(self._job.kind, self._job.name))

    def _resize(self, current: workload.Workload, counts: elastic.Counts) -> workload.Workload:
        pod_sets = [{**each, "count": counts[each["name"]]} for each in self._session.pod_sets(current)]
        return self._session.put_with_pod_sets(current, pod_sets)

    # Workloads that do not match

    def _stop_unmatched(self, unmatched: list[workload.Workload]) -> None:
        wl, message = None, "Missing Workload; unable to restore pod templates"
        if len(unmatched) == 1:
            wl = unmatched[0]
            message = "No matching Workload; restoring pod templates according to existent Workload"
        self._job.stop(wl, message, reason="NoMatchingWorkload", session=self._session)

    def _delete(self, unmatched: list[workload.Workload], *, has_match: bool) -> None:
        session = self._session
        is_deleted = False
        for each in unmatched:
            after = without_finalizer(each)
            if after.metadata.deletion_timestamp is not None:
                session.release(each)
                continue
            is_deleted = True
            if after.metadata.finalizers:
                session.put(with_metadata(after, deletion_timestamp=session.now))
            else:
                session.remove(each)
            key = workloadstate.key(each)
            session.record(self._job.key, "DeletedWorkload", f"Deleted not matching Workload: {key}")
        if is_deleted:
            problem = "extra workloads" if has_match else "no matching workloads"
            raise RetryError(f"{problem}: deleted {len(unmatched)} workloads")

    # Changes

    def _construct(self) -> ConstructedWorkload:
        try:
            return self._job.construct_workload(self._session)
        except ClassMissingError:
            record_missing_class(self._job, self._session)
            raise

    def _update(self, wl: workload.Workload) -> workload.Workload:
        """Update the spec of a workload without quota to that of its suspended job."""
        try:
            new, pod_sets = self._construct()
        except UnretryableError:
            raise
        except errors.DrachmaError as error:
            raise RetryError(f"can't construct workload for update: {error}") from None
        is_active = wl.spec.active
        new = new if is_active is None else with_spec(new, active=is_active)
        after = self._session.put_with_pod_sets(_replace_spec(wl, new), pod_sets)
        key = workloadstate.key(wl)
        message = f"Updated not matching Workload for suspended job: {key}"
        self._session.record(self._job.key, "UpdatedWorkload", message)
        return after


def sync_admission_gates(job: WorkloadSource, wl: workload.Workload, session: Session) -> workload.Workload:
    """Update the admission gates of a workload to those of its job, and return the workload."""
    gates = job.annotations.get(workload.ADMISSION_GATES, "")
    annotations = dict(wl.metadata.annotations)
    if not session.gates.on(Gate.ADMISSION_GATED_BY) or annotations.get(workload.ADMISSION_GATES, "") == gates:
        return wl
    annotations.pop(workload.ADMISSION_GATES, None)
    if gates:
        annotations[workload.ADMISSION_GATES] = gates
    message = f"Updated workload AdmissionGatedBy to {quotation.quote(gates)}"
    session.record(job.key, "UpdatedWorkload", message)
    return session.put(with_metadata(wl, annotations=annotations))


def sync_priority(job: WorkloadSource, wl: workload.Workload, session: Session) -> workload.Workload:
    """Update the priority to that of the job's label, unless it came from the pods, and return the workload."""
    class_ref = wl.spec.priority_class_ref
    if class_ref is None and workloadstate.has_reservation(wl):
        return wl
    if class_ref is not None and (class_ref.group, class_ref.kind) != (GROUP, WORKLOAD_PRIORITY):
        return wl
    if (class_ref.name if class_ref is not None else "") == job.labels.get(PRIORITY_LABEL, ""):
        return wl
    try:
        new_ref, priority = session.environment.priorities.resolve(
            job.labels, session.pod_sets(wl), pod_class=job.pod_priority_class
        )
    except ClassMissingError as error:
        record_missing_class(job, session)
        raise RetryError(f"prepare workload priority: {error}") from None
    view = None if new_ref is None else decoding.decode(new_ref, workload.PriorityClassRef)
    after = with_spec(wl, priority_class_ref=view, priority=priority)
    if after == wl:
        return wl
    key = workloadstate.key(wl)
    session.record(job.key, "UpdatedWorkload", f"Updated workload priority class: {key}")
    return session.put(after)


def record_missing_class(job: WorkloadSource, session: Session) -> None:
    """Record that the priority class of a job does not exist."""
    name = job.labels.get(PRIORITY_LABEL, "")
    if name:
        message = f"WorkloadPriorityClass {quotation.quote(name)} not found"
        session.record(job.key, "WorkloadPriorityClassNotFound", message, event_type=WARNING)


def _replace_spec(wl: workload.Workload, other: workload.Workload) -> workload.Workload:
    return workload.Workload(metadata=wl.metadata, spec=other.spec, status=wl.status)
