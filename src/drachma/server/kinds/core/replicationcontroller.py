"""Replication controllers. No controller acts on them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from drachma.server import objectmeta
from drachma.server.kinds.autoscaling import scaleform
from drachma.server.kinds.core import podspec
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import apps, workload
from drachma.validation.podspec import warnings
from drachma.values import names

_HOST_NAMES: Final = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
    "recommended: "
)


class ReplicationControllerStrategy(DocumentStrategy):
    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        spec.setdefault("replicas", 1)
        if spec.get("template") is None:
            return
        template = spec["template"] = dict(spec["template"])
        inner = template["spec"] = dict(template.get("spec") or {})
        podspec.default(inner)
        labels = (template.get("metadata") or {}).get("labels")
        if labels:
            spec["selector"] = spec.get("selector") or dict(labels)
            metadata["labels"] = metadata.get("labels") or dict(labels)

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"replicas": 0}

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        problems = names.dns1123_label(subject.metadata.get("name", ""))
        if problems:
            yield f"{_HOST_NAMES}[{' '.join(problems)}]"
        template = content["spec"].get("template") or {}
        annotations = (template.get("metadata") or {}).get("annotations") or {}
        at, notes = workload.TEMPLATE.child("spec"), workload.TEMPLATE.child("metadata", "annotations")
        yield from warnings.find(template.get("spec") or {}, at, annotations=annotations, notes=notes)


def _cells(controller: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(controller, "spec"), cells.part(controller, "status")
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    names_and_images = cells.template({"spec": {"template": spec.get("template")}}, absent="")[:2]
    selector = cells.selector({"matchLabels": spec.get("selector")}) or "<none>"
    return [cells.name(controller), *counts, cells.since_creation(controller, now), *names_and_images, selector]


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="replicationcontrollers",
    kind="ReplicationController",
    namespaced=True,
    short_names=("rc",),
    categories=("all",),
    subresources=(scaleform.SUBRESOURCE, resources.status()),
    traits=resources.Traits(orphans_dependents=True),
    selectable=selectable.Selectable(
        fields=frozenset({selectable.NAME, selectable.NAMESPACE, "status.replicas"}),
        special={"status.replicas": lambda document: str((document.get("status") or {}).get("replicas", 0))},
        unknown=selectable.unknown_in_core,
    ),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.integer("Desired", "The desired number of pods."),
            layout.integer("Current", "The number of pods."),
            layout.integer("Ready", "The number of ready pods."),
            layout.AGE,
            *layout.CONTAINERS,
        ),
        _cells,
    ),
    rules=apps.KINDS["ReplicationController"],
    strategy=ReplicationControllerStrategy,
)
