"""A pod, or a group of pods that are admitted together, as a GenericJob.

A pod cannot be suspended once it runs: stopping a pod deletes it, and a finalizer keeps it until its workload has
been updated. Pods are documents, which keep every field that this package does not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from drachma import errors
from drachma.queueing import conditions
from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.integrations import pods
from drachma.queueing.jobs import construction, topologyrequest
from drachma.queueing.jobs.interface import (
    Candidates,
    Completion,
    ConstructedWorkload,
    Document,
    RetryError,
    Session,
    UnretryableError,
    controller_of,
    owner_reference,
    with_metadata,
)
from drachma.queueing.jobs.settings import QUEUE_LABEL
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import podsetinfo, transitions, workloadstate
from drachma.queueing.workloads.podsetinfo import PodSetInfo
from drachma.queueing.workloads.workloadevents import WARNING
from drachma.values import quotation

GROUP_WORKLOAD: Final = "kueue.x-k8s.io/is-group-workload"
_REPLACEMENT: Final = "WaitingForReplacementPods"
_MAX_ROLES: Final = 18


class GroupError(errors.DrachmaError):
    """A pod of a group lacks a label or annotation that its group needs, or has a wrong one."""


class PodGroup:
    """A GenericJob over one pod, or over all pods of a group. The first pod represents the group."""

    kind: ClassVar = frameworks.KINDS[frameworks.POD]
    has_ancestors: Final = False

    def __init__(
        self,
        namespace: str,
        name: str,
        documents: Sequence[Document],
        *,
        is_group: bool,
        now: datetime,
        releases_early: bool = False,
    ) -> None:
        """Without documents the pods are gone. ``name`` is that of the group or of the single pod.

        With ``releases_early``, pods that are being deleted give their quota back at once.
        """
        self.is_group: Final = is_group
        self.pods: Final = {each["metadata"]["name"]: each for each in documents}
        """Pods by name as the reconcile changes them; pods that are gone are missing."""
        self.absent = 0
        """Number of pods that have to be replaced."""
        self._namespace: Final = namespace
        self._name: Final = name
        self._lead: Final[Document] = documents[0] if documents else {"metadata": {"name": name}}
        self._members: Sequence[Document] = documents
        self._is_gone: Final = not documents
        self._now: Final = now
        self._releases_early: Final = releases_early

    # Identity

    @property
    def metadata(self) -> Document:
        metadata: Document = self._lead["metadata"]
        return metadata

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def key(self) -> str:
        return pods.key(self._lead)

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def pod_priority_class(self) -> str:
        return ""

    @property
    def event_keys(self) -> Iterable[str]:
        return map(pods.key, self._members)

    # State

    @property
    def is_gone(self) -> bool:
        return self._is_gone

    @property
    def is_deleted(self) -> bool:
        return not self.is_group and pods.is_deleted(self._lead)

    @property
    def is_dispatched(self) -> bool:
        return False

    @property
    def is_on_hold(self) -> bool:
        return False

    @property
    def is_skipped(self) -> bool:
        return self.labels.get(pods.FINALIZER) != "true"

    @property
    def is_suspended(self) -> bool:
        return any(map(pods.is_suspended, self._members))

    @property
    def is_serving(self) -> bool:
        """True if the group runs without end and pods that end are replaced."""
        return self.is_group and self.annotations.get(pods.SERVING) == "true"

    @property
    def is_fast(self) -> bool:
        """True if the group is admitted before all of its pods exist."""
        return self.annotations.get(pods.FAST) == "true"

    @property
    def follows_queue(self) -> bool:
        return not self.is_serving

    @property
    def is_active(self) -> bool:
        """True if a pod of the group runs; a pod past its grace period does not count."""
        return self.is_group and any(map(self._is_active, self._members))

    def _is_active(self, pod: Document) -> bool:
        if pods.phase(pod) != "Running":
            return False
        deleted = pods.parse_time(pod["metadata"].get("deletionTimestamp"))
        grace = pod["metadata"].get("deletionGracePeriodSeconds")
        if deleted is None:
            return True
        return not self._releases_early and (grace is None or self._now <= deleted + timedelta(seconds=grace))

    @property
    def total(self) -> int:
        """Number of pods that the group has when it is complete. Raises GroupError if the annotation is wrong."""
        if pods.TOTAL not in self.annotations:
            raise GroupError(f"failed to extract '{pods.TOTAL}' annotation")
        text = self.annotations[pods.TOTAL]
        total = parse_int(text)
        if total is None:
            raise GroupError(f"strconv.Atoi: parsing {quotation.quote(text)}: invalid syntax")
        if total < 1:
            rule = "group total count should be greater than zero"
            raise GroupError(f"incorrect annotation value '{pods.TOTAL}={text}': {rule}")
        return total

    @property
    def completion(self) -> Completion | None:
        if self.is_serving:
            return None
        if not self.is_group:
            if not pods.is_terminated(self._lead):
                return None
            is_success = pods.phase(self._lead) == "Succeeded"
            return Completion(is_success, (self._lead.get("status") or {}).get("message", ""))
        try:
            total = self.total
        except GroupError:
            return None
        succeeded = sum(pods.phase(each) == "Succeeded" for each in self._members)
        is_final = any(map(pods.is_final_attempt, self._members))
        if succeeded == total or (is_final and all(map(pods.is_terminated, self._members))):
            return Completion(is_success=True, message=f"Pods succeeded: {succeeded}/{total}.")
        return None

    @property
    def are_pods_ready(self) -> bool:
        if not self.is_group:
            return pods.is_ready(self._lead)
        try:
            return len(self._members) >= self.total and all(map(pods.is_ready, self._members))
        except GroupError:
            return False

    @property
    def reclaimable_pods(self) -> Mapping[str, int]:
        """Number of succeeded pods by role."""
        counts: dict[str, int] = {}
        if self.is_group and not self.is_serving:
            for pod in self._members:
                if pods.phase(pod) == "Succeeded":
                    role = pods.role(pod)
                    counts[role] = counts.get(role, 0) + 1
        return counts

    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        if not self.is_group:
            return [_pod_set(self._lead, podsetinfo.DEFAULT_POD_SET, gates)]
        if self.is_fast:
            first = next(filter(pods.is_runnable, self._members), None)
            if first is None:
                raise GroupError("failed to find a runnable pod in the group")
            return [{**_pod_set(first, pods.role(first), gates), "count": self.total}]
        return _role_sets(self._members, gates)

    def can_requeue(self, wl: workload.Workload, gates: Gates) -> bool:
        """Return False for the workload of a single pod, which ends with the pod."""
        is_single = len(wl.metadata.owner_references) == 1 and not _is_group_workload(wl)
        return not (is_single and gates.on(Gate.SKIP_REASSIGNMENT_FOR_PODS))

    # Changes of the pods

    def run(self, infos: Sequence[PodSetInfo], message: str, session: Session) -> None:
        if not self.is_group and len(infos) != 1:
            raise podsetinfo.PodSetConflictError(f"invalid podset infos: expecting 1 pod set got {len(infos)}")
        for pod in filter(pods.is_gated, self._members):
            role = pods.role(pod) if self.is_group else infos[0].name
            info = next((each for each in infos if each.name == role), None)
            if info is None:
                problem = f"podSetInfo with the name '{role}' is not found"
                raise podsetinfo.PodSetConflictError(f"invalid podset infos: {problem}")
            self._put(pods.ungated(pod, info))
            session.record(pods.key(pod), "Started", message)

    def suspend(self) -> None:
        """Do nothing: no owner is admitted in place of pods."""

    def stop(self, wl: workload.Workload | None, message: str, *, reason: str, session: Session) -> None:
        for pod in self._members:
            if pods.is_deleted(pod) or (reason != "WorkloadDeleted" and pods.is_suspended(pod)):
                continue
            current = self.pods.get(pod["metadata"]["name"])
            if current is not None:
                self.pods[pod["metadata"]["name"]] = _with_termination_target(current, reason, message, self._now)
                self._delete(current)
            session.record(pods.key(pod), "Stopped", message)
        if self.is_group and reason == "WorkloadDeleted":
            self.finalize()

    def finalize(self) -> None:
        for pod in tuple(self.pods.values()):
            self._remove_finalizer(pod)

    def delete(self) -> bool:
        is_present = self.metadata["name"] in self.pods
        self._delete(self._lead)
        return is_present

    def _put(self, pod: Document) -> None:
        """Note the new state of a pod. A deleted pod is gone with its last finalizer."""
        name = pod["metadata"]["name"]
        if pods.is_deleted(pod) and not pod["metadata"].get("finalizers"):
            self.pods.pop(name, None)
        else:
            self.pods[name] = pod

    def _remove_finalizer(self, pod: Document) -> None:
        pod = self.pods.get(pod["metadata"]["name"], pod)
        if pods.has_finalizer(pod):
            finalizers = [each for each in pod["metadata"]["finalizers"] if each != pods.FINALIZER]
            self._put({**pod, "metadata": {**pod["metadata"], "finalizers": finalizers}})

    def _delete(self, pod: Document) -> None:
        pod = self.pods.get(pod["metadata"]["name"], pod)
        if not pods.is_deleted(pod):
            self._put({**pod, "metadata": {**pod["metadata"], "deletionTimestamp": _time_text(self._now)}})

    def _delete_excess(self, excess: Iterable[Document], session: Session) -> None:
        """Delete pods beyond the group's total, except those that this reconcile has stopped already."""
        for pod in excess:
            is_deleted = pods.is_deleted(self.pods.get(pod["metadata"]["name"], pod))
            self._remove_finalizer(pod)
            if not is_deleted:
                self._delete(pod)
                session.record(pods.key(pod), "ExcessPodDeleted", "Excess pod deleted")

    # Workloads

    def child_workloads(self, session: Session) -> list[workload.Workload]:
        if not self.is_group:
            return session.owned_by(self.kind, self._name)
        wl = session.workloads.get(f"{self._namespace}/{self._name}")
        if wl is None:
            return []
        is_foreign = not _is_group_workload(wl) and controller_of(wl) is not None
        if is_foreign and session.gates.on(Gate.POD_INTEGRATION_VALIDATE_GROUP_OWNER):
            return []
        return [wl]

    def find_workloads(self, session: Session) -> Candidates:
        if not self.is_group:
            owned = session.owned_by(self.kind, self.name)
            match = next((each for each in owned if self.is_equivalent(each, session)), None)
            return Candidates(match, [each for each in owned if each is not match])
        wl = session.workloads.get(f"{self._namespace}/{self._name}")
        if wl is None:
            return Candidates(None, [])
        if not _is_group_workload(wl) and session.gates.on(Gate.POD_INTEGRATION_VALIDATE_GROUP_OWNER):
            self._refuse_foreign_workload(session)
        if wl.spec.maximum_execution_time_seconds != construction.seconds_limit(self):
            return Candidates(None, [wl])
        selection = pods.select(self._members, wl.spec.pod_sets, is_fast=self.is_fast, now=self._now)
        role_sets = _role_sets(selection.kept, session.gates)
        if not selection.kept or not self._has_roles(wl, role_sets, session.gates):
            return Candidates(None, [wl])
        self._members, self.absent = selection.kept, selection.absent
        wl = self.own(wl, session)
        self._delete_excess(selection.excess, session)
        for pod in selection.replaced:
            self._remove_finalizer(pod)
        return Candidates(wl, [])

    def _refuse_foreign_workload(self, session: Session) -> None:
        message = (
            f"A Workload named {quotation.quote(self._name)} already exists but is not a pod group workload; "
            "this pod group cannot be admitted"
        )
        session.record(self.key, "WorkloadNameConflict", message, event_type=WARNING)
        self._release_inactive()
        raise UnretryableError(message)

    def _release_inactive(self) -> None:
        for pod in self._members:
            if not pods.is_runnable(pod):
                self._remove_finalizer(pod)

    def is_equivalent(self, wl: workload.Workload, session: Session) -> bool:
        if not self.is_group:
            return construction.is_equivalent(self, wl, session)
        return self._has_roles(wl, self.pod_sets(session.gates), session.gates)

    def _has_roles(self, wl: workload.Workload, role_sets: Sequence[Document], gates: Gates) -> bool:
        """Return True if a workload has the roles of pod sets, in their order and with room for all of their pods."""
        if wl.metadata.name != (construction.prebuilt_name(self.labels, self.annotations, gates) or self._name):
            return False
        is_finished = workloadstate.is_finished(wl)
        workload_sets = wl.spec.pod_sets
        if not is_finished and len(workload_sets) < len(role_sets):
            return False
        remaining_sets = iter(workload_sets)
        for role_set in role_sets:
            same = next((each for each in remaining_sets if each.name == role_set["name"]), None)
            if same is None or (not is_finished and same.count < role_set["count"]):
                return False
        return True

    def own(self, wl: workload.Workload, session: Session) -> workload.Workload:
        if not self.is_group:
            if controller_of(wl) is not None:
                return wl
            return session.put(construction.with_controller(wl, self))
        after = _owned_by_all(wl, self._members)
        count = len(after.metadata.owner_references) - len(wl.metadata.owner_references)
        if count <= 0:
            return wl
        session.record(workloadstate.key(wl), "OwnerReferencesAdded", f"Added {count} owner reference(s)")
        return session.put(after)

    def construct_workload(self, session: Session) -> ConstructedWorkload:
        settings = session.settings
        if not self.is_group:
            wl, pod_sets = construction.construct(
                self,
                session,
                name=construction.workload_name(self.name, uid=self.uid, kind=self.kind, gates=session.gates),
                label_keys=settings.label_keys,
                annotation_keys=settings.annotation_keys,
            )
            return ConstructedWorkload(construction.with_controller(wl, self), pod_sets)
        runnable = [pod for pod in self._members if pods.is_runnable(pod)]
        self._release_inactive()
        self._check_members(runnable, session)
        if len(runnable) > self.total:
            runnable.sort(key=pods.preference)
            self._delete_excess(runnable[self.total :], session)
            self._members = runnable[: self.total]
        if len(self.pod_sets(session.gates)) > _MAX_ROLES:
            raise UnretryableError(f"pod group can't include more than {_MAX_ROLES} roles")
        name = construction.prebuilt_name(self.labels, self.annotations, session.gates) or self._name
        wl, pod_sets = construction.construct(self, session, name=name)
        labels = self._common_values("labels", settings.label_keys)
        annotations = {**wl.metadata.annotations, GROUP_WORKLOAD: "true"}
        if session.gates.on(Gate.CUSTOM_METRIC_LABELS):
            annotations |= self._common_values("annotations", settings.annotation_keys)
        wl = with_metadata(wl, labels=labels, annotations=annotations)
        return ConstructedWorkload(_owned_by_all(wl, self._members), pod_sets)

    def _check_members(self, runnable: Sequence[Document], session: Session) -> None:
        """Raise an error unless the group is complete and its pods agree on its queue and total."""
        total = self.total
        self._check_index()
        if not self.is_fast and len(runnable) < total:
            message = f"'{self._name}' group has fewer runnable pods than expected"
            session.record(self.key, "ErrWorkloadCompose", message, event_type=WARNING)
            raise UnretryableError(message)
        queue = self.labels.get(QUEUE_LABEL, "")
        for pod in self._members:
            if pods.phase(pod) == "Failed":
                continue
            metadata = pod["metadata"]
            subjects = f"pods '{self.name}' and '{metadata['name']}' has different"
            pod_queue = (metadata.get("labels") or {}).get(QUEUE_LABEL, "")
            if pod_queue != queue:
                raise UnretryableError(f"{subjects} queue names: {queue}!={pod_queue}")
            text = (metadata.get("annotations") or {}).get(pods.TOTAL, "")
            count = parse_int(text)
            if count is None:
                problem = f"strconv.Atoi: parsing {quotation.quote(text)}: invalid syntax"
                raise RetryError(
                    f"failed to extract '{pods.TOTAL}' annotation from the pod '{metadata['name']}': {problem}"
                )
            if count != total:
                raise UnretryableError(f"{subjects} '{pods.TOTAL}' values: {total}!={count}")

    def _check_index(self) -> None:
        """Raise GroupError if the pod's index in its group is not a number below the total."""
        text = self.labels.get(pods.INDEX_LABEL)
        if text is None:
            return
        problem = ""
        if not (text.isascii() and text.isdigit()):
            problem = f"invalid unsigned integer: strconv.ParseUint: parsing {quotation.quote(text)}: invalid syntax"
        elif int(text) >= self.total:
            problem = f"validation error: value should be less than {self.total}"
        if problem:
            key = quotation.quote(self.key)
            raise GroupError(f"incorrect label value {quotation.quote(text)} for  {key}: {problem}")

    def _common_values(self, field: str, keys: Iterable[str]) -> dict[str, str]:
        """Return labels or annotations for the workload. Raises RetryError if pods differ about one."""
        common: dict[str, str] = {}
        for pod in self._members:
            values = pod["metadata"].get(field) or {}
            for key in keys:
                if key in values and common.setdefault(key, values[key]) != values[key]:
                    kind = field.removesuffix("s")
                    raise RetryError(f"constructing workload: pods have different {kind} values")
        return common

    def update_conditions(self, wl: workload.Workload, session: Session) -> bool:
        """Update the condition that tells whether pods have to be replaced."""
        before = conditions.find(wl.status.conditions, _REPLACEMENT)
        if not self.is_group or (before is None and not self.absent):
            return False
        status: conditions.Status = "True" if self.absent else "False"
        reason = before.reason if before is not None else ""
        message = before.message if before is not None else ""
        evicted = conditions.find(wl.status.conditions, conditions.EVICTED)
        if self.absent and evicted is not None and evicted.status == "True":
            reason, message = evicted.reason, evicted.message
        elif before is None or before.status != status:
            reason, message = (
                ("PodsFailed", "Some Failed pods need replacement")
                if self.absent
                else ("PodsReady", "No pods need replacement")
            )
        if before is not None and (before.status, before.reason, before.message) == (status, reason, message):
            return False
        session.put(transitions.condition(wl, _REPLACEMENT, status, reason=reason, message=message, now=session.now))
        return True


def parse_int(text: str) -> int | None:
    """Return the number that Go's Atoi reads, or None if it reads none."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    return int(text) if digits.isascii() and digits.isdigit() else None


def _role_sets(members: Sequence[Document], gates: Gates) -> list[dict[str, Any]]:
    """Return a pod set for each role, of the runnable pods."""
    by_role: dict[str, dict[str, Any]] = {}
    for pod in filter(pods.is_runnable, members):
        role = pods.role(pod)
        if role in by_role:
            by_role[role]["count"] += 1
        else:
            by_role[role] = _pod_set(pod, role, gates)
    return [by_role[role] for role in sorted(by_role)]


def _pod_set(pod: Document, name: str, gates: Gates) -> dict[str, Any]:
    pod_set: dict[str, Any] = {"name": name, "count": 1, "template": podsetinfo.sanitized({"spec": pod["spec"]})}
    if gates.on(Gate.TAS):
        annotations = pod["metadata"].get("annotations") or {}
        pod_set["topologyRequest"] = topologyrequest.build(annotations, gates, index_label=pods.INDEX_LABEL)
    return pod_set


def _is_group_workload(wl: workload.Workload) -> bool:
    return wl.metadata.annotations.get(GROUP_WORKLOAD) == "true"


def _owned_by_all(wl: workload.Workload, members: Iterable[Document]) -> workload.Workload:
    """Return a workload with every pod of the group among its owners."""
    owners = list(wl.metadata.owner_references)
    for pod in members:
        reference = owner_reference(PodGroup.kind, pod["metadata"])
        if not any((each.kind, each.name) == (reference.kind, reference.name) for each in owners):
            owners.append(reference)
    return with_metadata(wl, owner_references=tuple(owners))


def _with_termination_target(pod: Document, reason: str, message: str, now: datetime) -> Document:
    """Return a pod with a condition that tells why it is deleted."""
    kind = "TerminationTarget"
    status = dict(pod.get("status") or {})
    condition = {"type": kind, "status": "True", "reason": reason, "message": message}
    condition["lastTransitionTime"] = _time_text(now)
    status["conditions"] = [*(each for each in status.get("conditions") or () if each["type"] != kind), condition]
    return {**pod, "status": status}


def _time_text(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")
