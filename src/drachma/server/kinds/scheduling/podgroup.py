"""Groups of pods, as objects. That they are scheduled together is up to the scheduler."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.kinds.scheduling import grouptypes
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import podgroup as rules
from drachma.validation.fielderror import Errors

_OFF: Final = ("schedulingConstraints", "preemptionPolicy", "parentCompositePodGroupName")
"""Fields of features that are off by default upstream, and nobody looks at here."""


class PodGroupStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        content["spec"] = {"disruptionMode": {"single": {}}, **(content.get("spec") or {})}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {}
        content["spec"] = without(content.get("spec") or {}, _OFF)

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        super().prepare_update(content, old, write)
        content["spec"] = without(content.get("spec") or {}, _OFF)

    def updates_unconditionally(self, write: Write) -> bool:
        return False

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_update(content["spec"], old.get("spec") or {})

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_status(content.get("status") or {}, content.get("spec") or {})


def without(part: Document, fields: tuple[str, ...]) -> Document:
    """A part without some of its fields."""
    return {name: value for name, value in part.items() if name not in fields}


def _cells(group: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(group, "spec"), cells.part(group, "status")
    policy = "Gang" if "gang" in cells.part(spec, "schedulingPolicy") else "Basic"
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    scheduled, disrupted = conditions.get("PodGroupInitiallyScheduled"), conditions.get("DisruptionTarget")
    word = "Pending" if scheduled is None else "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    if disrupted is not None:
        word = disrupted.get("reason", "")
    workload = cells.part(spec, "workloadRef").get("workloadName") or "<none>"
    return [cells.name(group), policy, workload, word, cells.since_creation(group, now)]


KIND: Final = Kind(
    group="scheduling.k8s.io",
    versions=grouptypes.VERSIONS,
    plural="podgroups",
    kind="PodGroup",
    namespaced=True,
    subresources=(resources.status(),),
    schemas={version: package.object("PodGroup") for version, package in grouptypes.PACKAGES.items()},
    storage_version="v1beta1",
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Policy", "Whether all pods are scheduled at once."),
            layout.text("Workload", "The workload that the group is of."),
            layout.text("Status", "How far the group is."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=PodGroupStrategy,
)
