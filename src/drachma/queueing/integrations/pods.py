"""Queued pods as documents: their state, their role in a group, and the pods of a group that its workload keeps.

A role is a hash of the fields that matter for admission, so that equal pods share a pod set. The hash is taken over
Go's JSON of upstream's structs: fields stand in their declared order, maps are sorted by key, and absent fields are
null.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec

from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.kinds import workload
from drachma.queueing.workloads.podsetinfo import PodSetInfo
from drachma.values.quantity import Quantity

Document: TypeAlias = Mapping[str, Any]

FINALIZER: Final = "kueue.x-k8s.io/managed"
GATE: Final = "kueue.x-k8s.io/admission"
GROUP: Final = "kueue.x-k8s.io/pod-group-name"
TOTAL: Final = "kueue.x-k8s.io/pod-group-total-count"
RETRIABLE: Final = "kueue.x-k8s.io/retriable-in-group"
ROLE: Final = "kueue.x-k8s.io/role-hash"
PARENT: Final = "kueue.x-k8s.io/pod-suspending-parent"
"""Annotation with the kind of the object, as configurations name it, whose pods are gated."""
FAST: Final = "kueue.x-k8s.io/pod-group-fast-admission"
"""Annotation of pods whose group is admitted before all of them exist."""
SERVING: Final = "kueue.x-k8s.io/pod-group-serving"
"""Annotation of pods whose group runs without end."""
TOPOLOGY_GATE: Final = "kueue.x-k8s.io/topology"
INDEX_LABEL: Final = "kueue.x-k8s.io/pod-group-pod-index"
INDEX_LABEL_ANNOTATION: Final = "kueue.x-k8s.io/pod-group-pod-index-label"
"""Annotation with the name of the label that numbers the pods of a group."""

_HASH_LENGTH: Final = 8
_FIELDS: Final = (
    "name", "hostPort", "containerPort", "protocol", "hostIP",
    "resourceClaimName", "resourceClaimTemplateName",
    "nodeAffinity", "podAffinity", "podAntiAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution",
    "weight", "preference", "podAffinityTerm", "nodeSelectorTerms",
    "maxSkew",
)  # fmt: skip
"""Fields of structs in their order. No two structs order the same fields differently."""
_TERMS: Final = (
    "labelSelector", "namespaces", "topologyKey", "namespaceSelector", "whenUnsatisfiable",
    "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys", "mismatchLabelKeys",
    "matchLabels", "matchExpressions", "matchFields",
    "key", "operator", "value", "values", "effect", "tolerationSeconds",
)  # fmt: skip
_RANKS: Final = {field: rank for rank, field in enumerate((*_FIELDS, *_TERMS))}
_SPREAD_FIELDS: Final = (
    "maxSkew", "topologyKey", "whenUnsatisfiable", "labelSelector",
    "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys",
)  # fmt: skip
_SPREAD_RANKS: Final = {field: rank for rank, field in enumerate(_SPREAD_FIELDS)}
_MAPS: Final = frozenset({"matchLabels"})


# State


def key(pod: Document) -> str:
    """Return ``namespace/name`` of a pod."""
    return f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"


def phase(pod: Document) -> str:
    """Return the phase of a pod, or an empty text if it has none."""
    return str((pod.get("status") or {}).get("phase", ""))


def group_name(labels: Mapping[str, str], annotations: Mapping[str, str], gates: Gates) -> str:
    """Return the name of a pod's group, or an empty text if it belongs to none."""
    label = labels.get(GROUP, "")
    return annotations.get(GROUP, "") or label if gates.on(Gate.WORKLOAD_IDENTIFIER_ANNOTATIONS) else label


def has_parent(pod: Document) -> bool:
    """Return True if the pod is queued as a pod of its parent."""
    return bool((pod["metadata"].get("annotations") or {}).get(PARENT))


def is_final_attempt(pod: Document) -> bool:
    """Return True if the pod must not be replaced in its group."""
    return (pod["metadata"].get("annotations") or {}).get(RETRIABLE) == "false"


def is_terminated(pod: Document) -> bool:
    """Return True if the pod has succeeded or failed."""
    return phase(pod) in ("Failed", "Succeeded")


def is_gated(pod: Document) -> bool:
    """Return True if the pod has Kueue's scheduling gate."""
    return has_gate(pod, GATE)


def has_gate(pod: Document, name: str) -> bool:
    """Return True if the pod has a scheduling gate."""
    return any(each["name"] == name for each in pod["spec"].get("schedulingGates") or ())


def is_suspended(pod: Document) -> bool:
    """Return True if the pod is gated or terminated."""
    return is_terminated(pod) or is_gated(pod)


def is_runnable(pod: Document) -> bool:
    """Return True if the pod runs, can run or has succeeded."""
    if is_deleted(pod) and not pod["spec"].get("nodeName"):
        return False
    return phase(pod) != "Failed"


def is_ready(pod: Document) -> bool:
    """Return True if the pod has a true Ready condition."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def is_deleted(pod: Document) -> bool:
    """Return True if the pod has a deletion timestamp."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def has_finalizer(pod: Document) -> bool:
    """Return True if the pod has Kueue's finalizer."""
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def ungated(pod: Document, info: PodSetInfo) -> Document:
    """Return a pod without its gate and with the changes of admission. Raises PodSetConflictError."""
    after = dict(info.applied(pod))
    removed = {GATE} if {"name": TOPOLOGY_GATE} in info.scheduling_gates else {GATE, TOPOLOGY_GATE}
    spec = dict(after["spec"])
    gates = [each for each in spec.pop("schedulingGates", ()) if each["name"] not in removed]
    after["spec"] = {**spec, "schedulingGates": gates} if gates else spec
    return after


def without_gates(pod: Document) -> Document:
    """Return a pod without Kueue's gates, which may run whatever becomes of its workload."""
    gates = pod["spec"].get("schedulingGates") or ()
    gates_left = [each for each in gates if each["name"] not in (GATE, TOPOLOGY_GATE)]
    return pod if len(gates_left) == len(gates) else {**pod, "spec": {**pod["spec"], "schedulingGates": gates_left}}


def parse_time(text: str | None) -> datetime | None:
    """Return the time that a field of a document has, if it is set."""
    return None if text is None else datetime.fromisoformat(text)


# Roles


def role(pod: Document) -> str:
    """Return the role that a pod's annotation names, or the hash of its spec."""
    annotations = pod.get("metadata", {}).get("annotations") or {}
    return annotations[ROLE] if ROLE in annotations else role_hash(pod.get("spec", {}))


def role_hash(spec: Document) -> str:
    """Return the hash of a pod spec."""
    text = json.dumps({"spec": shape(spec)}, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


def shape(spec: Document) -> dict[str, Any]:
    """Return the fields of a pod spec that matter for admission."""
    fields: dict[str, Any] = {
        "initContainers": _containers(spec.get("initContainers")),
        "containers": _containers(spec.get("containers")),
        "nodeSelector": _sorted(spec.get("nodeSelector")),
        "affinity": _structs(spec.get("affinity")),
        "tolerations": _structs(spec.get("tolerations")),
        "runtimeClassName": spec.get("runtimeClassName"),
        "priority": spec.get("priority"),
        "topologySpreadConstraints": _structs(spec.get("topologySpreadConstraints"), _SPREAD_RANKS),
        "overhead": _amounts(spec.get("overhead")),
        "resourceClaims": _structs(spec.get("resourceClaims")),
    }
    if spec.get("resources") is not None:
        fields["resources"] = _amounts(spec["resources"].get("requests"))
    if any(each.get("resourceClaimTemplateName") for each in spec.get("resourceClaims") or ()):
        # Differs from upstream: pods of two groups do not share claims, so that they are charged for two.
        fields |= {"schedulingGroup": spec["schedulingGroup"]} if spec.get("schedulingGroup") else {}
    return {name: fields[name] for name in sorted(fields)}


def _containers(containers: Any) -> Any:
    return [
        {
            "ports": _structs(each.get("ports")),
            "resources": {"requests": _amounts((each.get("resources") or {}).get("requests"))},
        }
        for each in containers or ()
    ] or None


def _amounts(amounts: Document | None) -> Any:
    return {name: str(Quantity.parse(str(amounts[name]))) for name in sorted(amounts)} if amounts else None


def _sorted(mapping: Document | None) -> Any:
    return {name: mapping[name] for name in sorted(mapping)} if mapping else None


def _structs(value: Any, ranks: Mapping[str, int] = _RANKS) -> Any:
    """Return a value with fields in the order of their structs, without empty fields."""
    if isinstance(value, list | tuple):
        return [_structs(each, ranks) for each in value] or None
    if isinstance(value, Mapping):
        fields = sorted(value, key=lambda field: (ranks.get(field, len(ranks)), field))
        return {
            field: _sorted(value[field]) if field in _MAPS else _structs(value[field])
            for field in fields
            if value[field] not in (None, "", [], {}, 0) or field in ("maxSkew", "containerPort", "weight")
        }
    return value


# Selection


class Selection(msgspec.Struct, frozen=True):
    """Pods of a group, sorted out by the counts of its workload's pod sets."""

    kept: list[Document]
    excess: list[Document]
    """Runnable pods beyond the counts."""
    replaced: list[Document]
    """Terminated pods that another pod has replaced."""
    absent: int
    """Number of pods that have to be replaced."""


def select(
    members: Sequence[Document], pod_sets: Iterable[workload.PodSet], *, is_fast: bool, now: datetime
) -> Selection:
    """Sort out the pods of a group; with ``is_fast``, one runnable pod stands for its whole pod set."""
    member_pods: list[Document] = []
    excess: list[Document] = []
    replaced: list[Document] = []
    absent = 0
    for pod_set in pod_sets:
        pods = [each for each in members if role(each) == pod_set.name]
        runnable = [each for each in pods if is_runnable(each)]
        inactive = [each for each in pods if not is_runnable(each)]
        if is_fast:
            absent += 1 if pod_set.count > 0 and not runnable else 0
        else:
            absent += max(0, pod_set.count - len(runnable))
        if len(runnable) > pod_set.count:
            runnable.sort(key=preference)
            excess += runnable[pod_set.count :]
        member_pods += runnable[: pod_set.count]
        surplus = min(len(inactive), len(inactive) + len(runnable) - pod_set.count)
        if surplus > 0:
            inactive.sort(key=_latest_first(now))
            replaced += inactive[len(inactive) - surplus :]
            inactive = inactive[: len(inactive) - surplus]
        member_pods += inactive
    return Selection(member_pods, excess, replaced, absent)


def preference(pod: Document) -> tuple[bool, bool, datetime]:
    """Return a sort key that puts pods to keep first: with the finalizer, ungated, older."""
    return not has_finalizer(pod), is_gated(pod), _created(pod)


def _latest_first(now: datetime) -> Callable[[Document], tuple[bool, float, datetime]]:
    """Return a sort key function that puts pods first that were active later."""

    def rank(pod: Document) -> tuple[bool, float, datetime]:
        return not has_finalizer(pod), -last_active(pod, now).timestamp(), _created(pod)

    return rank


def last_active(pod: Document, now: datetime) -> datetime:
    """Return the time at which a pod was last active: its failure, its deletion, or ``now``."""
    failed = now
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "ContainersReady":
            if condition["status"] == "False" and condition.get("reason") == "Failed":
                failed = parse_time(condition.get("lastTransitionTime")) or now
            break
    deleted = parse_time(pod["metadata"].get("deletionTimestamp")) or now
    return min(failed, deleted)


def _created(pod: Document) -> datetime:
    return parse_time(pod["metadata"].get("creationTimestamp")) or datetime.fromisoformat("0001-01-01T00:00:00Z")
