"""Replication controllers: so many pods of one template, in the oldest form; nothing acts on them here."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.autoscaling import scale
from drachma.server.kinds.core import podspec, podtypes
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import replicationcontroller as rules
from drachma.validation import workload
from drachma.validation.fielderror import Errors
from drachma.validation.podspec import warnings
from drachma.values import names

_TYPES: Final = """\
ReplicationController: apiVersion=str kind=str metadata=ObjectMeta! spec=ReplicationControllerSpec!
    status=ReplicationControllerStatus!
ReplicationControllerCondition: lastTransitionTime=Time! message=str reason=str status=str* type=str*
ReplicationControllerSpec: minReadySeconds=int32/0 replicas=int32?/1 selector=<<str>> template=PodTemplateSpec
ReplicationControllerStatus: availableReplicas=int32 conditions={ReplicationControllerCondition:type}~
    fullyLabeledReplicas=int32 observedGeneration=int64 readyReplicas=int32 replicas=int32*
"""
_NUMBERS: Final = """\
ReplicationController: metadata spec status
ReplicationControllerCondition: type status lastTransitionTime reason message
ReplicationControllerSpec: replicas? selector template minReadySeconds
ReplicationControllerStatus: replicas fullyLabeledReplicas observedGeneration readyReplicas availableReplicas conditions
"""
_TEXTS: Final = """\
ReplicationController: So many pods of one template, in the oldest form.
ReplicationControllerSpec.replicas: How many pods there should be.
ReplicationControllerSpec.selector: Labels of the pods that belong to it.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.core.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META, podtypes.PODS)
)
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

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_status(content.get("status") or {})

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
    subresources=(scale.SUBRESOURCE, resources.status()),
    schemas={"v1": _PACKAGE.object("ReplicationController")},
    traits=resources.Traits(orphans_dependents=True),
    selectable=selectable.Selectable(
        fields=frozenset({selectable.NAME, selectable.NAMESPACE, "status.replicas"}),
        special={"status.replicas": lambda document: str((document.get("status") or {}).get("replicas", 0))},
        unknown=selectable.unknown_in_core,
    ),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.integer("Desired", "How many pods there should be."),
            layout.integer("Current", "How many pods there are."),
            layout.integer("Ready", "How many pods are ready."),
            layout.AGE,
            *layout.CONTAINERS,
        ),
        _cells,
    ),
    strategy=ReplicationControllerStrategy,
)
