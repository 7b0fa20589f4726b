"""Conversion of ``kueue.x-k8s.io`` objects between versions, in place of Kueue's conversion webhook.

Only fields with another name or form are converted; the caller prunes unknown fields and sets defaults. Documents are
not changed in place. Conversion precedes validation, so values of a wrong type pass unchanged and are refused later.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from drachma.server.kinds.kueue import topologyforms

Document: TypeAlias = Mapping[str, Any]
_Part: TypeAlias = dict[str, Any]

NEWER: Final = "kueue.x-k8s.io/v1beta2"
_STOPS: Final = "MayStopSearch"
_CLASSES: Final[Mapping[str, tuple[str, str]]] = {
    "kueue.x-k8s.io/workloadpriorityclass": ("kueue.x-k8s.io", "WorkloadPriorityClass"),
    "scheduling.k8s.io/priorityclass": ("scheduling.k8s.io", "PriorityClass"),
}
_SOURCES: Final = {reference: source for source, reference in _CLASSES.items()}


class VersionForms:
    """Conversions of one kind."""

    def __init__(self, kind: str) -> None:
        self._newer, self._older = _KINDS.get(kind, (_keep, _keep))
        self._has_topologies: Final = kind == "Workload"

    def convert(
        self, document: Document, api_version: str, expansion: topologyforms.Expansion | None = None
    ) -> Document:
        """Return an object in the other version; several objects of one answer share the ``expansion``.

        Raises:
            status.StatusError: topology assignments take more bytes in v1beta1 than are left.
        """
        parts = {name: dict(document[name]) for name in ("spec", "status") if isinstance(document.get(name), dict)}
        is_newer = api_version == NEWER
        change = self._newer if is_newer else self._older
        change(parts.get("spec", {}), parts.get("status", {}))
        if self._has_topologies and "status" in parts:
            to_domains = functools.partial(topologyforms.to_domains, expansion=expansion or topologyforms.Expansion())
            _convert_topology(parts["status"], topologyforms.to_slices if is_newer else to_domains)
        return {**document, **parts, "apiVersion": api_version}


def _keep(spec: _Part, status: _Part) -> None:
    """Change nothing: the kind has the same fields in both versions."""


def _newer_cluster_queue(spec: _Part, _status: _Part) -> None:
    _rename(spec, "cohort", "cohortName")
    checks = spec.get("admissionChecks")
    if isinstance(checks, list):
        del spec["admissionChecks"]
        if checks:
            spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": name} for name in checks]}
    fungibility = spec.get("flavorFungibility")
    if isinstance(fungibility, Mapping):
        old = {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}
        stops = {field: _STOPS for field, word in old.items() if fungibility.get(field) == word}
        spec["flavorFungibility"] = {**fungibility, **stops}


def _older_cluster_queue(spec: _Part, _status: _Part) -> None:
    _rename(spec, "cohortName", "cohort")


def _newer_local_queue(_spec: _Part, status: _Part) -> None:
    _rename(status, "flavorUsage", "flavorsUsage")


def _older_local_queue(_spec: _Part, status: _Part) -> None:
    _rename(status, "flavorsUsage", "flavorUsage")


def _newer_workload(spec: _Part, status: _Part) -> None:
    if isinstance(spec.get("priorityClassSource", ""), str):
        name, reference = spec.pop("priorityClassName", ""), _CLASSES.get(spec.pop("priorityClassSource", ""))
        if reference is not None:
            spec["priorityClassRef"] = {"group": reference[0], "kind": reference[1], "name": name}
    _rename(status, "accumulatedPastExexcutionTimeSeconds", "accumulatedPastExecutionTimeSeconds")


def _older_workload(spec: _Part, status: _Part) -> None:
    reference = spec.get("priorityClassRef")
    if isinstance(reference, Mapping):
        del spec["priorityClassRef"]
        group, kind = reference.get("group"), reference.get("kind")
        is_typed = isinstance(group, str) and isinstance(kind, str)
        spec["priorityClassName"] = reference.get("name")
        spec["priorityClassSource"] = _SOURCES.get((str(group), str(kind)), "") if is_typed else ""
    _rename(status, "accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")


def _convert_topology(status: _Part, change: Callable[[Document], Document]) -> None:
    admission = status.get("admission")
    if not isinstance(admission, Mapping):
        return
    assignments = admission.get("podSetAssignments")
    if not isinstance(assignments, list) or not assignments:
        return
    converted = [
        {**each, "topologyAssignment": change(each["topologyAssignment"])}
        if isinstance(each, Mapping) and isinstance(each.get("topologyAssignment"), Mapping)
        else each
        for each in assignments
    ]
    status["admission"] = {**admission, "podSetAssignments": converted}


def _newer_cluster(spec: _Part, _status: _Part) -> None:
    """Put the connection to another cluster into its union."""
    source = {name: spec.pop(name) for name in ("kubeConfig", "clusterProfileRef") if name in spec}
    if source:
        spec["clusterSource"] = source


def _older_cluster(spec: _Part, _status: _Part) -> None:
    source = spec.pop("clusterSource", None)
    if isinstance(source, Mapping):
        spec.update(source)


def _rename(part: _Part, old: str, new: str) -> None:
    if old in part:
        part[new] = part.pop(old)


_Change: TypeAlias = Callable[[_Part, _Part], None]
_KINDS: Final[Mapping[str, tuple[_Change, _Change]]] = {
    "MultiKueueCluster": (_newer_cluster, _older_cluster),
    "ClusterQueue": (_newer_cluster_queue, _older_cluster_queue),
    "LocalQueue": (_newer_local_queue, _older_local_queue),
    "Workload": (_newer_workload, _older_workload),
}
