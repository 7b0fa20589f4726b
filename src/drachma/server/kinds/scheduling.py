"""Kinds of ``scheduling.k8s.io``: priority classes, pod groups, composite groups, and workloads with templates."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.api.gates import Gate, Gates
from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Write
from drachma.validation import scheduling as rules


class PriorityClassStrategy(DocumentStrategy):
    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if not content.get("preemptionPolicy"):
            content["preemptionPolicy"] = "PreemptLowerPriority"
        content.setdefault("value", 0)

    def _is_changed(self, content: Document, old: Mapping[str, Any]) -> bool:
        return False


def _class_cells(class_: Document, now: datetime) -> layout.Cells:
    value, is_default = class_.get("value", 0), class_.get("globalDefault", False)
    policy = class_.get("preemptionPolicy") or ""
    return [cells.name(class_), value, is_default, cells.since_creation(class_, now), policy]


PRIORITY_CLASS: Final = Kind(
    group="scheduling.k8s.io",
    versions=("v1",),
    plural="priorityclasses",
    kind="PriorityClass",
    namespaced=False,
    short_names=("pc",),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.integer("Value", "The priority that pods of the class have."),
            layout.Column("Global-Default", "boolean", description="True if the class is the default."),
            layout.AGE,
            layout.text("PreemptionPolicy", "The policy of preemption by pods of the class."),
        ),
        _class_cells,
    ),
    rules=rules.KINDS["PriorityClass"],
    strategy=PriorityClassStrategy,
)


_GATES: Final = {
    "resourceClaims": Gate.WORKLOAD_RESOURCE_CLAIMS,
    "schedulingConstraints": Gate.TOPOLOGY_AWARE_WORKLOADS,
    "preemptionPolicy": Gate.POD_GROUP_PREEMPTION_POLICY,
    "parentCompositePodGroupName": Gate.COMPOSITE_POD_GROUP,
    "compositePodGroupTemplates": Gate.COMPOSITE_POD_GROUP,
}
"""Fields of groups and templates that belong to a feature."""


class PodGroupStrategy(DocumentStrategy):
    """Strategy of groups of pods and of groups of groups."""

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        defaults: Document = {"disruptionMode": {"single": {}}}
        spec = content.get("spec") or {}
        if self._gates.on(Gate.POD_GROUP_PREEMPTION_POLICY) and not spec.get("preemptionPolicy"):
            spec = {**spec, "preemptionPolicy": "PreemptLowerPriority"}
        content["spec"] = {**defaults, **spec}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {}
        content["spec"] = _drop_disabled(content.get("spec") or {}, {}, self._gates)

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        super().prepare_update(content, old, write)
        content["spec"] = _drop_disabled(content.get("spec") or {}, old.get("spec") or {}, self._gates)

    def updates_unconditionally(self, write: Write) -> bool:
        return False


def _drop_disabled(part: Document, old: Mapping[str, Any], gates: Gates) -> Document:
    """Return a copy without the fields of features that are off, unless the stored object has them."""
    return {name: value for name, value in part.items() if name not in _GATES or gates.on(_GATES[name]) or name in old}


def _group_cells(group: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(group, "spec"), cells.part(group, "status")
    policy = "Gang" if "gang" in cells.part(spec, "schedulingPolicy") else "Basic"
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    scheduled, disrupted = conditions.get("PodGroupInitiallyScheduled"), conditions.get("DisruptionTarget")
    word = "Pending" if scheduled is None else "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    if disrupted is not None:
        word = disrupted.get("reason", "")
    workload = cells.part(spec, "workloadRef").get("workloadName") or "<none>"
    return [cells.name(group), policy, workload, word, cells.since_creation(group, now)]


POD_GROUP: Final = Kind(
    group="scheduling.k8s.io",
    versions=("v1beta1", "v1alpha3"),
    plural="podgroups",
    kind="PodGroup",
    namespaced=True,
    subresources=(resources.status(),),
    storage_version="v1beta1",
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Policy", "Basic or Gang."),
            layout.text("Workload", "The workload that the group is of."),
            layout.text("Status", "The state of the group."),
            layout.AGE,
        ),
        _group_cells,
    ),
    rules=rules.KINDS["PodGroup"],
    strategy=PodGroupStrategy,
)


def _composite_cells(group: Document, now: datetime) -> layout.Cells:
    spec = cells.part(group, "spec")
    policy = "Gang" if "gang" in cells.part(spec, "schedulingPolicy") else "Basic"
    workload = cells.part(spec, "workloadRef").get("workloadName") or "<none>"
    return [cells.name(group), policy, workload, cells.since_creation(group, now)]


COMPOSITE_POD_GROUP: Final = Kind(
    group="scheduling.k8s.io",
    versions=("v1alpha3",),
    plural="compositepodgroups",
    kind="CompositePodGroup",
    namespaced=True,
    subresources=(resources.status(),),
    storage_version="v1alpha3",
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Policy", "Basic or Gang."),
            layout.text("Workload", "The workload that the group is of."),
            layout.AGE,
        ),
        _composite_cells,
    ),
    rules=rules.KINDS["CompositePodGroup"],
    strategy=PodGroupStrategy,
)


_TEMPLATES: Final = ("podGroupTemplates", "compositePodGroupTemplates")


class WorkloadStrategy(DocumentStrategy):
    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["spec"] = _drop_from_templates(content.get("spec") or {}, {}, self._gates)

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        content["spec"] = _drop_from_templates(content.get("spec") or {}, old.get("spec") or {}, self._gates)

    def updates_unconditionally(self, write: Write) -> bool:
        return False


def _drop_from_templates(spec: Document, old: Mapping[str, Any], gates: Gates) -> Document:
    """Return a copy of a spec, or of a composite template, without the fields of features that are off."""
    kept_fields = _drop_disabled(spec, old, gates)
    for field in _TEMPLATES:
        if kept_fields.get(field):
            before = {each.get("name"): each for each in old.get(field) or ()}
            kept_fields[field] = [
                _drop_from_templates(each, before.get(each.get("name"), {}), gates) for each in kept_fields[field]
            ]
        else:
            kept_fields.pop(field, None)
    return kept_fields


WORKLOAD: Final = Kind(
    group="scheduling.k8s.io",
    versions=("v1beta1", "v1alpha3"),
    plural="workloads",
    kind="Workload",
    namespaced=True,
    storage_version="v1beta1",
    rules=rules.KINDS["Workload"],
    strategy=WorkloadStrategy,
)
