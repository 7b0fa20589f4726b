"""What pods, alone or in groups, and their workload become when they are looked at.

Called whenever a pod of a group or its workload changes. Pods cannot be held back once they run: stopping them is
deleting them, and a finalizer keeps them until their workload has taken note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import structs

from drachma.queueing import conditions
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.jobs import jobworkload, podgroup, podselection, rolehash
from drachma.queueing.jobs.jobmatching import RetryError, UnretryableError
from drachma.queueing.jobs.jobsettings import JobSettings, Surroundings
from drachma.queueing.jobs.jobstep import JobStep
from drachma.queueing.jobs.jobworkload import QUEUE_LABEL, WorkloadRecord
from drachma.queueing.jobs.podgroup import PodGroup
from drachma.queueing.workloads import podsetinfo, transitions, workloadstate
from drachma.queueing.workloads.podsetinfo import PodSetInfo
from drachma.queueing.workloads.workloadevents import WARNING, Event
from drachma.values import quotation

Document = Mapping[str, Any]

_GROUP_WORKLOAD: Final = "kueue.x-k8s.io/is-group-workload"
_REPLACEMENT: Final = "WaitingForReplacementPods"
_MOST_ROLES: Final = 18


class Outcome(msgspec.Struct, frozen=True):
    """What became of the pods and of the workloads of their namespace."""

    pods: Mapping[str, Document]
    """By name; those that are gone are not there."""
    workloads: Mapping[str, WorkloadRecord]
    events: tuple[Event, ...] = ()
    look_again_after: timedelta = timedelta()
    error: str = ""
    """What went wrong and is tried again."""


def reconcile_pod(
    name: str, pod: Document | None, around: Surroundings, now: datetime, *, settings: JobSettings
) -> Outcome:
    """One look at a pod that stands for itself, and may be gone."""
    if pod is not None and podgroup.group_name(pod, settings.gates):
        error = "event handler error: got a single pod reconcile request for a pod group"
        return Outcome({name: pod}, {each.key: each for each in around.workloads}, error=error)
    group = None if pod is None else PodGroup(pod, now=now)
    return _PodStep("", name, group, around, now, settings).run()


def reconcile_group(
    namespace: str, name: str, pods: Sequence[Document], around: Surroundings, now: datetime, *, settings: JobSettings
) -> Outcome:
    """One look at all pods of a group, of which there may be none any more."""
    group = None
    if pods:
        releases = settings.gates.on(Gate.FAST_QUOTA_RELEASE)
        group = PodGroup(pods[0], pods, name, now=now, releases_early=releases)
    return _PodStep(namespace, name, group, around, now, settings).run()


class _PodStep(JobStep[PodGroup]):
    def __init__(
        self,
        namespace: str,
        name: str,
        job: PodGroup | None,
        around: Surroundings,
        now: datetime,
        settings: JobSettings,
    ) -> None:
        super().__init__(job, around, now, settings)
        self._group_key = f"{namespace}/{name}" if namespace else ""
        self._name = name
        self._pods = {each["metadata"]["name"]: each for each in (job.pods if job is not None else ())}

    def run(self) -> Outcome:
        error = ""
        if self._job is None or self._job.labels.get(podgroup.FINALIZER) == "true":
            error = self._take()
        return Outcome(self._pods, self._workloads, tuple(self._events), self._look_again_after, error)

    # Pods

    def _put(self, pod: Document) -> None:
        """A pod that is deleted is gone with its last finalizer."""
        name = pod["metadata"]["name"]
        if podgroup.is_deleted(pod) and not pod["metadata"].get("finalizers"):
            self._pods.pop(name, None)
        else:
            self._pods[name] = pod

    def _strip(self, pod: Document) -> None:
        """Let a pod go."""
        pod = self._pods.get(pod["metadata"]["name"], pod)
        if podgroup.has_finalizer(pod):
            finalizers = [each for each in pod["metadata"]["finalizers"] if each != podgroup.FINALIZER]
            self._put({**pod, "metadata": {**pod["metadata"], "finalizers": finalizers}})

    def _delete_pod(self, pod: Document) -> None:
        pod = self._pods.get(pod["metadata"]["name"], pod)
        if not podgroup.is_deleted(pod):
            self._put({**pod, "metadata": {**pod["metadata"], "deletionTimestamp": _text(self._now)}})

    # What is different for pods

    def _is_deleted(self, job: PodGroup) -> bool:
        return not job.is_group and podgroup.is_deleted(job.lead)

    def _left_behind(self) -> list[WorkloadRecord]:
        if not self._group_key:
            return self._of_owner(self._name, PodGroup.kind.kind, PodGroup.kind.api_version)
        record = self._workloads.get(self._group_key)
        if record is None:
            return []
        is_foreign = not _is_group_workload(record) and record.controller is not None
        if is_foreign and self._gates.on(Gate.POD_INTEGRATION_VALIDATE_GROUP_OWNER):
            return []
        return [record]

    def _is_queued(self, job: PodGroup) -> bool:
        return self._is_in_scope() and self._has_queue(job)

    def _close(self, job: PodGroup) -> None:
        for pod in tuple(self._pods.values()):
            self._strip(pod)

    def _discard(self, job: PodGroup) -> bool:
        is_there = job.lead["metadata"]["name"] in self._pods
        self._delete_pod(job.lead)
        return is_there

    def _told(self, job: PodGroup) -> Iterable[str]:
        return map(podgroup.pod_key, job.pods)

    def _follows_queue(self, job: PodGroup) -> bool:
        return not job.is_serving

    def _comes_back(self, record: WorkloadRecord, reason: str) -> bool:
        """The workload of a single pod ends with it."""
        is_single = len(record.view.metadata.owner_references) == 1 and not _is_group_workload(record)
        ends = is_single and self._gates.on(Gate.SKIP_REASSIGNMENT_FOR_PODS)
        return super()._comes_back(record, reason) and not ends

    def _stop(self, job: PodGroup, record: WorkloadRecord | None, message: str, *, reason: str) -> None:
        for pod in job.pods:
            if podgroup.is_deleted(pod) or (reason != "WorkloadDeleted" and podgroup.is_suspended(pod)):
                continue
            stored = self._pods.get(pod["metadata"]["name"])
            if stored is not None:
                self._pods[pod["metadata"]["name"]] = _marked(stored, reason, message, self._now)
                self._delete_pod(stored)
            self._tell(podgroup.pod_key(pod), "Stopped", message)
        if job.is_group and reason == "WorkloadDeleted":
            self._close(job)

    def _run(self, job: PodGroup, infos: Sequence[PodSetInfo], message: str) -> None:
        if not job.is_group and len(infos) != 1:
            raise podsetinfo.PodSetConflictError(f"invalid podset infos: expecting 1 pod set got {len(infos)}")
        for pod in filter(podgroup.is_gated, job.pods):
            role = rolehash.of_pod(pod) if job.is_group else infos[0].name
            info = next((each for each in infos if each.name == role), None)
            if info is None:
                problem = f"podSetInfo with the name '{role}' is not found"
                raise podsetinfo.PodSetConflictError(f"invalid podset infos: {problem}")
            self._put(podgroup.started(pod, info))
            self._tell(podgroup.pod_key(pod), "Started", message)

    def _own(self, job: PodGroup, record: WorkloadRecord) -> WorkloadRecord:
        if not job.is_group:
            return super()._own(job, record)
        after = _owned_by_all(record, job.members)
        count = len(after.view.metadata.owner_references) - len(record.view.metadata.owner_references)
        if count <= 0:
            return record
        self._tell(record.key, "OwnerReferencesAdded", f"Added {count} owner reference(s)")
        return self._keep(after)

    def _is_equivalent(self, job: PodGroup, record: WorkloadRecord) -> bool:
        if not job.is_group:
            return super()._is_equivalent(job, record)
        return self._has_roles(job, record, job.pod_sets(self._gates))

    def _has_roles(self, job: PodGroup, record: WorkloadRecord, pod_sets: Sequence[Document]) -> bool:
        """Whether a workload has the roles of pod sets, in their order and with room for all of their pods."""
        if record.view.metadata.name != (self._prebuilt(job) or job.group):
            return False
        is_over = workloadstate.is_finished(record.view)
        theirs = record.view.spec.pod_sets
        if not is_over and len(theirs) < len(pod_sets):
            return False
        rest = iter(theirs)
        for pod_set in pod_sets:
            same = next((each for each in rest if each.name == pod_set["name"]), None)
            if same is None or (not is_over and same.count < pod_set["count"]):
                return False
        return True

    def _candidates(self, job: PodGroup) -> tuple[WorkloadRecord | None, list[WorkloadRecord]]:
        if not job.is_group:
            records = self._of_owner(job.name, job.kind.kind, job.kind.api_version)
            match = next((each for each in records if self._is_equivalent(job, each)), None)
            return match, [each for each in records if each is not match]
        record = self._workloads.get(f"{job.metadata.get('namespace', '')}/{job.group}")
        if record is None:
            return None, []
        if not _is_group_workload(record) and self._gates.on(Gate.POD_INTEGRATION_VALIDATE_GROUP_OWNER):
            self._refuse(job)
        if record.view.spec.maximum_execution_time_seconds != jobworkload.seconds_limit(job):
            return None, [record]
        selection = podselection.Selection.of(job, record, self._now)
        if not selection.kept or not self._has_roles(job, record, podgroup.role_sets(selection.kept, self._gates)):
            return None, [record]
        job = structs.replace(job, members=selection.kept, absent=selection.absent)
        self._job = job
        record = self._own(job, record)
        self._remove(selection.excess)
        for pod in selection.replaced:
            self._strip(pod)
        return record, []

    def _refuse(self, job: PodGroup) -> None:
        """A workload of the group's name belongs to somebody else."""
        message = (
            f"A Workload named {quotation.quote(job.group)} already exists but is not a pod group workload; "
            "this pod group cannot be admitted"
        )
        self._tell(job.key, "WorkloadNameConflict", message, kind=WARNING)
        for pod in job.members:
            if not podgroup.can_count(pod):
                self._strip(pod)
        raise UnretryableError(message)

    def _remove(self, pods: Iterable[Document]) -> None:
        """Pods that are too many; those that were stopped a moment ago are on their way already."""
        for pod in pods:
            is_deleted = podgroup.is_deleted(self._pods.get(pod["metadata"]["name"], pod))
            self._strip(pod)
            if not is_deleted:
                self._delete_pod(pod)
                self._tell(podgroup.pod_key(pod), "ExcessPodDeleted", "Excess pod deleted")

    def _construct(self, job: PodGroup) -> WorkloadRecord:
        if not job.is_group:
            return self._make_of(job, self._settings.label_keys).owned_by(job)
        active = [pod for pod in job.members if podgroup.can_count(pod)]
        for pod in job.members:
            if not podgroup.can_count(pod):
                self._strip(pod)
        self._check(job, active)
        if len(active) > job.total:
            active.sort(key=podselection.preference)
            self._remove(active[job.total :])
            job = structs.replace(job, members=active[: job.total])
            self._job = job
        if len(job.pod_sets(self._gates)) > _MOST_ROLES:
            raise UnretryableError(f"pod group can't include more than {_MOST_ROLES} roles")
        record = self._make_of(job, (), name=self._prebuilt(job) or job.group)
        copied = self._common(job, "labels", self._settings.label_keys)
        annotations = {**record.view.metadata.annotations, _GROUP_WORKLOAD: "true"}
        if self._gates.on(Gate.CUSTOM_METRIC_LABELS):
            annotations |= self._common(job, "annotations", self._settings.annotation_keys)
        return _owned_by_all(record.with_metadata(labels=copied, annotations=annotations), job.members)

    def _make_of(self, job: PodGroup, label_keys: Sequence[str], name: str = "") -> WorkloadRecord:
        return jobworkload.make(
            job,
            name=name,
            priorities=self._around.priorities,
            gates=self._gates,
            label_keys=label_keys,
            annotation_keys=() if job.is_group else self._settings.annotation_keys,
        )

    def _check(self, job: PodGroup, active: Sequence[Document]) -> None:
        """What pods of a group have to agree about."""
        total = job.total
        job.check_index()
        if not job.is_fast and len(active) < total:
            message = f"'{job.group}' group has fewer runnable pods than expected"
            self._tell(job.key, "ErrWorkloadCompose", message, kind=WARNING)
            raise UnretryableError(message)
        queue = job.labels.get(QUEUE_LABEL, "")
        for pod in job.members:
            if (pod.get("status") or {}).get("phase") == "Failed":
                continue
            metadata = pod["metadata"]
            both = f"pods '{job.name}' and '{metadata['name']}' has different"
            theirs = (metadata.get("labels") or {}).get(QUEUE_LABEL, "")
            if theirs != queue:
                raise UnretryableError(f"{both} queue names: {queue}!={theirs}")
            text = (metadata.get("annotations") or {}).get(podgroup.TOTAL, "")
            count = podgroup.parse_int(text)
            if count is None:
                problem = f"strconv.Atoi: parsing {quotation.quote(text)}: invalid syntax"
                raise RetryError(
                    f"failed to extract '{podgroup.TOTAL}' annotation from the pod '{metadata['name']}': {problem}"
                )
            if count != total:
                raise UnretryableError(f"{both} '{podgroup.TOTAL}' values: {total}!={count}")

    def _common(self, job: PodGroup, field: str, keys: Iterable[str]) -> dict[str, str]:
        """Labels or annotations that the workload takes over, which pods must not differ about."""
        common: dict[str, str] = {}
        for pod in job.members:
            values = pod["metadata"].get(field) or {}
            for key in keys:
                if key in values and common.setdefault(key, values[key]) != values[key]:
                    kind = field.removesuffix("s")
                    raise RetryError(f"constructing workload: pods have different {kind} values")
        return common

    def _noted(self, job: PodGroup, record: WorkloadRecord) -> bool:
        """Whether pods of the group have to be replaced is said before anything else."""
        before = conditions.find(record.view.status.conditions, _REPLACEMENT)
        if not job.is_group or (before is None and not job.absent):
            return False
        status: conditions.Status = "True" if job.absent else "False"
        reason = before.reason if before is not None else ""
        message = before.message if before is not None else ""
        evicted = conditions.find(record.view.status.conditions, conditions.EVICTED)
        if job.absent and evicted is not None and evicted.status == "True":
            reason, message = evicted.reason, evicted.message
        elif before is None or before.status != status:
            reason, message = (
                ("PodsFailed", "Some Failed pods need replacement")
                if job.absent
                else ("PodsReady", "No pods need replacement")
            )
        if before is not None and (before.status, before.reason, before.message) == (status, reason, message):
            return False
        after = transitions.condition(record.view, _REPLACEMENT, status, reason=reason, message=message, now=self._now)
        self._become(record, after)
        return True


def _is_group_workload(record: WorkloadRecord) -> bool:
    return record.view.metadata.annotations.get(_GROUP_WORKLOAD) == "true"


def _owned_by_all(record: WorkloadRecord, pods: Iterable[Document]) -> WorkloadRecord:
    owners = list(record.document["metadata"].get("ownerReferences") or ())
    for pod in pods:
        reference = jobworkload.reference(PodGroup.kind, pod["metadata"])
        if not any((each["kind"], each["name"]) == (reference["kind"], reference["name"]) for each in owners):
            owners.append(reference)
    return record.with_metadata(ownerReferences=owners)


def _marked(pod: Document, reason: str, message: str, now: datetime) -> Document:
    """A pod that says why it is ended."""
    status = dict(pod.get("status") or {})
    kind = "TerminationTarget"
    said = {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": _text(now)}
    status["conditions"] = [*(each for each in status.get("conditions") or () if each["type"] != kind), said]
    return {**pod, "status": status}


def _text(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")
