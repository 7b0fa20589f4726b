"""A pod, or several that are admitted together, as queueing sees them: held back by a gate, let go, ended by deletion.

Pods are documents, of which every field is kept that is not changed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

import msgspec

from drachma import errors
from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.jobs import rolehash, topologyrequest
from drachma.queueing.jobs.jobdocument import Ending
from drachma.queueing.workloads import podsetinfo
from drachma.queueing.workloads.podsetinfo import PodSetInfo
from drachma.values import quotation

Document = Mapping[str, Any]

FINALIZER: Final = "kueue.x-k8s.io/managed"
GATE: Final = "kueue.x-k8s.io/admission"
_TOPOLOGY_GATE: Final = "kueue.x-k8s.io/topology"
GROUP: Final = "kueue.x-k8s.io/pod-group-name"
TOTAL: Final = "kueue.x-k8s.io/pod-group-total-count"
_INDEX: Final = "kueue.x-k8s.io/pod-group-pod-index"
_FAST: Final = "kueue.x-k8s.io/pod-group-fast-admission"
_SERVING: Final = "kueue.x-k8s.io/pod-group-serving"
RETRIABLE: Final = "kueue.x-k8s.io/retriable-in-group"


class GroupError(errors.DrachmaError):
    """A pod of a group does not say of its group what it has to."""


def group_name(pod: Document, gates: Gates) -> str:
    """The name of the group that a pod belongs to, if it belongs to one."""
    metadata = pod["metadata"]
    annotation = (metadata.get("annotations") or {}).get(GROUP, "")
    label: str = (metadata.get("labels") or {}).get(GROUP, "")
    return annotation or label if gates.on(Gate.WORKLOAD_IDENTIFIER_ANNOTATIONS) else label


def is_final_attempt(pod: Document) -> bool:
    """Whether a pod says that none may take its place in its group."""
    return (pod["metadata"].get("annotations") or {}).get(RETRIABLE) == "false"


def is_terminated(pod: Document) -> bool:
    """Whether it ended."""
    return _phase(pod) in ("Failed", "Succeeded")


def is_gated(pod: Document) -> bool:
    """Whether it is held back."""
    return any(each["name"] == GATE for each in pod["spec"].get("schedulingGates") or ())


def is_suspended(pod: Document) -> bool:
    """Whether it does not run."""
    return is_terminated(pod) or is_gated(pod)


def can_count(pod: Document) -> bool:
    """Whether it runs, may run or has succeeded."""
    if is_deleted(pod) and not pod["spec"].get("nodeName"):
        return False
    return _phase(pod) != "Failed"


def is_deleted(pod: Document) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def has_finalizer(pod: Document) -> bool:
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def started(pod: Document, info: PodSetInfo) -> Document:
    """Let go, with what it is to get; a PodSetConflictError where it has something else."""
    after = dict(info.applied(pod))
    gone = {GATE} if {"name": _TOPOLOGY_GATE} in info.scheduling_gates else {GATE, _TOPOLOGY_GATE}
    spec = dict(after["spec"])
    gates = [each for each in spec.pop("schedulingGates", ()) if each["name"] not in gone]
    after["spec"] = {**spec, "schedulingGates": gates} if gates else spec
    return after


def last_active(pod: Document, now: datetime) -> datetime:
    """When a pod was last seen running."""
    failed = deleted = now
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "ContainersReady":
            if condition["status"] == "False" and condition.get("reason") == "Failed":
                failed = _time(condition.get("lastTransitionTime")) or now
            break
    deleted = _time(pod["metadata"].get("deletionTimestamp")) or now
    return min(failed, deleted)


def created(pod: Document) -> datetime:
    return _time(pod["metadata"].get("creationTimestamp")) or datetime.fromisoformat("0001-01-01T00:00:00Z")


class PodGroup(msgspec.Struct, frozen=True):
    """Pods that are admitted together."""

    kind: ClassVar = frameworks.KINDS[frameworks.POD]

    lead: Document
    """The pod that stands for all."""
    members: Sequence[Document] = ()
    """All of a group; none if the pod stands for itself."""
    group: str = ""
    absent: int = 0
    """How many pods have to be replaced."""
    now: datetime = datetime.min.replace(tzinfo=UTC)
    releases_early: bool = False
    """Whether pods that are being deleted give their quota back at once."""

    @property
    def is_group(self) -> bool:
        return bool(self.group)

    @property
    def pods(self) -> Sequence[Document]:
        return self.members if self.is_group else (self.lead,)

    @property
    def metadata(self) -> Document:
        metadata: Document = self.lead["metadata"]
        return metadata

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def key(self) -> str:
        return pod_key(self.lead)

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def is_suspended(self) -> bool:
        return any(map(is_suspended, self.pods))

    @property
    def is_serving(self) -> bool:
        """Whether it runs for ever, and pods that end are replaced."""
        return self.is_group and self.annotations.get(_SERVING) == "true"

    @property
    def is_fast(self) -> bool:
        """Whether it is admitted before all of its pods are there."""
        return self.annotations.get(_FAST) == "true"

    @property
    def is_active(self) -> bool:
        """Whether a pod of the group runs; one that should be gone already does not count."""
        return any(map(self._is_active, self.members))

    def _is_active(self, pod: Document) -> bool:
        if _phase(pod) != "Running":
            return False
        deleted = _time(pod["metadata"].get("deletionTimestamp"))
        grace = pod["metadata"].get("deletionGracePeriodSeconds")
        if deleted is None:
            return True
        return not self.releases_early and (grace is None or self.now <= deleted + timedelta(seconds=grace))

    @property
    def total(self) -> int:
        """How many pods the group is to have; a GroupError if it does not say."""
        if TOTAL not in self.annotations:
            raise GroupError(f"failed to extract '{TOTAL}' annotation")
        text = self.annotations[TOTAL]
        total = parse_int(text)
        if total is None:
            raise GroupError(f"strconv.Atoi: parsing {quotation.quote(text)}: invalid syntax")
        if total < 1:
            rule = "group total count should be greater than zero"
            raise GroupError(f"incorrect annotation value '{TOTAL}={text}': {rule}")
        return total

    def check_index(self) -> None:
        """A GroupError if the pod's number in its group is none."""
        text = self.labels.get(_INDEX)
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

    @property
    def ending(self) -> Ending | None:
        """How it ended, if it did."""
        if self.is_serving:
            return None
        if not self.is_group:
            if not is_terminated(self.lead):
                return None
            return Ending(_phase(self.lead) == "Succeeded", (self.lead.get("status") or {}).get("message", ""))
        try:
            total = self.total
        except GroupError:
            return None
        succeeded = sum(_phase(each) == "Succeeded" for each in self.members)
        is_final = any(map(is_final_attempt, self.members))
        if succeeded == total or (is_final and all(map(is_terminated, self.members))):
            return Ending(is_success=True, message=f"Pods succeeded: {succeeded}/{total}.")
        return None

    @property
    def are_pods_ready(self) -> bool:
        if not self.is_group:
            return _is_ready(self.lead)
        try:
            return len(self.members) >= self.total and all(map(_is_ready, self.members))
        except GroupError:
            return False

    @property
    def reclaimable_pods(self) -> Mapping[str, int]:
        """How many pods of each role need their quota no more."""
        counts: dict[str, int] = {}
        if self.is_group and not self.is_serving:
            for pod in self.members:
                if _phase(pod) == "Succeeded":
                    role = rolehash.of_pod(pod)
                    counts[role] = counts.get(role, 0) + 1
        return counts

    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        """Its pods, as pod sets of a workload, one for each role."""
        if not self.is_group:
            return [_pod_set(self.lead, podsetinfo.DEFAULT_POD_SET, gates)]
        if self.is_fast:
            first = next(filter(can_count, self.members), None)
            if first is None:
                raise GroupError("failed to find a runnable pod in the group")
            return [{**_pod_set(first, rolehash.of_pod(first), gates), "count": self.total}]
        return role_sets(self.members, gates)


def role_sets(pods: Sequence[Document], gates: Gates) -> list[dict[str, Any]]:
    """Pod sets by role, of pods that run or may."""
    by_role: dict[str, dict[str, Any]] = {}
    for pod in filter(can_count, pods):
        role = rolehash.of_pod(pod)
        if role in by_role:
            by_role[role]["count"] += 1
        else:
            by_role[role] = _pod_set(pod, role, gates)
    return [by_role[role] for role in sorted(by_role)]


def pod_key(pod: Document) -> str:
    return f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"


def parse_int(text: str) -> int | None:
    """A number as Go's Atoi reads it."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    return int(text) if digits.isascii() and digits.isdigit() else None


def _pod_set(pod: Document, name: str, gates: Gates) -> dict[str, Any]:
    pod_set: dict[str, Any] = {"name": name, "count": 1, "template": podsetinfo.sanitized({"spec": pod["spec"]})}
    if gates.on(Gate.TAS):
        annotations = pod["metadata"].get("annotations") or {}
        pod_set["topologyRequest"] = topologyrequest.of_annotations(annotations, index_label=_INDEX)
    return pod_set


def _phase(pod: Document) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _is_ready(pod: Document) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
