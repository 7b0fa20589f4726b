"""Kinds of ``scheduling.k8s.io``: priority classes, pod groups, and workloads as templates of groups."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

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
    rules=rules.PRIORITY_CLASS,
    strategy=PriorityClassStrategy,
)


_UNSERVED_FIELDS: Final = ("schedulingConstraints", "preemptionPolicy", "parentCompositePodGroupName")
"""Fields of pod groups whose features are off by default upstream and not implemented here."""


class PodGroupStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        content["spec"] = {"disruptionMode": {"single": {}}, **(content.get("spec") or {})}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {}
        content["spec"] = _without(content.get("spec") or {}, _UNSERVED_FIELDS)

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        super().prepare_update(content, old, write)
        content["spec"] = _without(content.get("spec") or {}, _UNSERVED_FIELDS)

    def updates_unconditionally(self, write: Write) -> bool:
        return False


def _without(part: Document, fields: tuple[str, ...]) -> Document:
    """Return a copy without some fields."""
    return {name: value for name, value in part.items() if name not in fields}


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
    rules=rules.POD_GROUP,
    strategy=PodGroupStrategy,
)


_UNSERVED_TEMPLATE_FIELDS: Final = ("schedulingConstraints", "preemptionPolicy")
"""Fields of templates whose features are off by default upstream."""


class WorkloadStrategy(DocumentStrategy):
    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["spec"] = _drop_unserved(content.get("spec") or {})

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        content["spec"] = _drop_unserved(content.get("spec") or {})

    def updates_unconditionally(self, write: Write) -> bool:
        return False


def _drop_unserved(spec: Document) -> Document:
    templates = [_without(each, _UNSERVED_TEMPLATE_FIELDS) for each in spec.get("podGroupTemplates") or ()]
    kept_fields = _without(spec, ("compositePodGroupTemplates", "podGroupTemplates"))
    return {**kept_fields, "podGroupTemplates": templates} if templates else kept_fields


WORKLOAD: Final = Kind(
    group="scheduling.k8s.io",
    versions=("v1beta1", "v1alpha3"),
    plural="workloads",
    kind="Workload",
    namespaced=True,
    storage_version="v1beta1",
    rules=rules.WORKLOAD,
    strategy=WorkloadStrategy,
)
