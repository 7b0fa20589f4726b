"""Changes of the pods of a set when a workload starts, and their removal when it stops.

Flavors add node labels and tolerations, admission checks add their updates. Pod templates are documents here, which
keep the fields that this package does not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from drachma import errors
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.kinds import decoding, resourceflavor, workload
from drachma.queueing.workloads import workloadstate
from drachma.values import names, quotation

Document = Mapping[str, Any]
Flavors = Mapping[str, resourceflavor.ResourceFlavor]

DEFAULT_POD_SET: Final = "main"
WORKLOAD_ANNOTATION: Final = "kueue.x-k8s.io/workload"
POD_SET_LABEL: Final = "kueue.x-k8s.io/podset"
_LOCAL_QUEUE: Final = "kueue.x-k8s.io/local-queue-name"
_CLUSTER_QUEUE: Final = "kueue.x-k8s.io/cluster-queue-name"
_UNCONSTRAINED: Final = "kueue.x-k8s.io/podset-unconstrained-topology"
_TOPOLOGY_GATE: Final = "kueue.x-k8s.io/topology"


_SLICE_ANNOTATIONS: Final = frozenset({workload.SLICE_NAME, WORKLOAD_ANNOTATION})


class PodSetConflictError(errors.DrachmaError):
    """A change contradicts the pod template; a retry does not help."""


class FlavorMissingError(errors.DrachmaError):
    """An assigned flavor does not exist."""


class PodSetInfo(msgspec.Struct, frozen=True):
    """Labels, node selectors, tolerations and gates of the pods of a set."""

    name: str = ""
    count: int = 0
    annotations: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Document, ...] = ()
    scheduling_gates: tuple[Document, ...] = ()

    def merged(self, other: PodSetInfo) -> PodSetInfo:
        """Return both merged. Raises PodSetConflictError if they differ about a key."""
        tolerations = list(self.tolerations)
        for each in other.tolerations:
            if not any(is_same_toleration(each, present) for present in tolerations):
                tolerations.append(each)
        gates = [
            *self.scheduling_gates,
            *(each for each in other.scheduling_gates if each not in self.scheduling_gates),
        ]
        return structs.replace(
            self,
            annotations=_united("annotations", self.annotations, other.annotations),
            labels=_united("labels", self.labels, other.labels),
            node_selector=_united("nodeSelector", self.node_selector, other.node_selector),
            tolerations=tuple(tolerations),
            scheduling_gates=tuple(gates),
        )

    def applied(self, template: Document) -> Document:
        """Return a pod template with this added. Templates of elastic jobs may name an earlier workload."""
        present = template_info(template)
        if workload.SLICE_NAME in self.annotations:
            present = structs.replace(present, annotations=_without(present.annotations, _SLICE_ANNOTATIONS))
        return present.merged(self).restored(template)

    def restored(self, template: Document) -> Document:
        """Return a pod template with exactly these fields."""
        metadata = {**template.get("metadata", {}), "annotations": dict(self.annotations), "labels": dict(self.labels)}
        spec = {
            **template.get("spec", {}),
            "nodeSelector": dict(self.node_selector),
            "tolerations": list(self.tolerations),
            "schedulingGates": list(self.scheduling_gates),
        }
        return _filled({**template, "metadata": _filled(metadata), "spec": _filled(spec)})


def check_count(infos: Sequence[PodSetInfo], count: int) -> None:
    """Raise PodSetConflictError unless there are infos for this number of pod sets."""
    if len(infos) != count:
        raise PodSetConflictError(f"invalid podset infos: expecting {count} podset, got {len(infos)}")


def template_info(template: Document, *, name: str = "", count: int = 0) -> PodSetInfo:
    """Return the info of a pod template."""
    metadata, spec = template.get("metadata", {}), template.get("spec", {})
    return PodSetInfo(
        name=name,
        count=count,
        annotations=metadata.get("annotations") or {},
        labels=metadata.get("labels") or {},
        node_selector=spec.get("nodeSelector") or {},
        tolerations=tuple(spec.get("tolerations") or ()),
        scheduling_gates=tuple(spec.get("schedulingGates") or ()),
    )


def sanitized(template: Document) -> dict[str, Any]:
    """Return a pod template for a workload, in which the last of duplicate environment variables is kept."""
    spec = dict(template.get("spec", {}))
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [_without_duplicates(each) for each in spec[field] or ()]
    return {**template, "spec": spec}


def admission_infos(wl: workload.Workload, flavors: Flavors, gates: Gates) -> tuple[PodSetInfo, ...]:
    """Return the changes for the pods of each set of an admitted workload."""
    admission = wl.status.admission
    if admission is None:
        return ()
    infos = []
    for assignment, pod_set in zip(admission.pod_set_assignments, wl.spec.pod_sets, strict=False):
        info = _assignment_info(assignment, pod_set, flavors, gates)
        labels = {POD_SET_LABEL: assignment.name}
        if gates.on(Gate.ASSIGN_QUEUE_LABELS_FOR_PODS):
            labels[_LOCAL_QUEUE] = wl.spec.queue_name
            if not names.dns1123_label(admission.cluster_queue):
                labels[_CLUSTER_QUEUE] = admission.cluster_queue
        annotations = {WORKLOAD_ANNOTATION: wl.metadata.name} if gates.on(Gate.TAS) else {}
        if workloadstate.is_elastic(wl, gates):
            annotations[workload.SLICE_NAME] = workloadstate.slice_name(wl)
        info = structs.replace(info, labels=labels, annotations={**info.annotations, **annotations})
        infos.append(_with_updates(info, wl.status.admission_checks))
    return tuple(infos)


def _assignment_info(
    assignment: workload.PodSetAssignment, pod_set: workload.PodSet, flavors: Flavors, gates: Gates
) -> PodSetInfo:
    node_selector: dict[str, str] = {}
    tolerations: list[Document] = []
    for name in dict.fromkeys(flavor for _, flavor in sorted(assignment.flavors.items())):
        flavor = flavors.get(name)
        if flavor is None:
            raise FlavorMissingError(f"resourceflavors.kueue.x-k8s.io {quotation.quote(name)} not found")
        node_selector.update(flavor.spec.node_labels)
        tolerations += map(decoding.document, flavor.spec.tolerations)
    info = PodSetInfo(
        name=assignment.name,
        count=pod_set.count if assignment.count is None else assignment.count,
        node_selector=node_selector,
        tolerations=tuple(tolerations),
    )
    if not gates.on(Gate.TAS) or assignment.topology_assignment is None:
        return info
    request = pod_set.topology_request
    is_implicit = request is None or (request.preferred, request.required, request.unconstrained) == (None, None, None)
    return structs.replace(
        info,
        annotations={_UNCONSTRAINED: "true"} if is_implicit else {},
        scheduling_gates=({"name": _TOPOLOGY_GATE},),
    )


def update_info(update: workload.PodSetUpdate) -> PodSetInfo:
    """Return the changes that an admission check makes."""
    return PodSetInfo(
        annotations=update.annotations,
        labels=update.labels,
        node_selector=update.node_selector,
        tolerations=tuple(map(decoding.document, update.tolerations)),
    )


def _with_updates(info: PodSetInfo, checks: tuple[workload.AdmissionCheckState, ...]) -> PodSetInfo:
    for check in checks:
        update = next((each for each in check.pod_set_updates if each.name == info.name), None)
        if update is None:
            continue
        try:
            info = info.merged(update_info(update))
        except PodSetConflictError as error:
            raise PodSetConflictError(f"in admission check {quotation.quote(check.name)}: {error}") from None
    return info


def _without_duplicates(container: Document) -> Document:
    variables = container.get("env")
    if not variables:
        return container
    return {**container, "env": list({each.get("name", ""): each for each in variables}.values())}


def _united(field: str, present: Mapping[str, str], added: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in sorted(present.items()):
        if added.get(key, value) != value:
            raise PodSetConflictError(
                f"invalid admission check PodSetUpdate: conflict for {field}: "
                f"conflict for key={key}, value1={value}, value2={added[key]}"
            )
    return {**present, **added}


def _without(present: Mapping[str, str], keys: frozenset[str]) -> dict[str, str]:
    return {key: value for key, value in present.items() if key not in keys}


def is_same_toleration(one: Document, other: Document) -> bool:
    """Return True if two tolerations tolerate the same taints, apart from the time."""

    def identity(document: Document) -> tuple[str, ...]:
        return (
            document.get("key", ""),
            document.get("effect", ""),
            document.get("operator") or "Equal",
            document.get("value", ""),
        )

    return identity(one) == identity(other)


def _filled(document: Document) -> dict[str, Any]:
    return {key: value for key, value in document.items() if value not in ({}, [], None)}
