"""Workloads: templates of groups of pods, as objects."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.kinds.scheduling import grouptypes, podgroup
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import podgroup as rules
from drachma.validation.fielderror import Errors

_OFF: Final = ("schedulingConstraints", "preemptionPolicy")
"""Fields of templates that belong to features that are off by default upstream."""


class WorkloadStrategy(DocumentStrategy):
    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["spec"] = _without_features(content.get("spec") or {})

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        content["spec"] = _without_features(content.get("spec") or {})

    def updates_unconditionally(self, write: Write) -> bool:
        return False

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check_workload(content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_workload_update(content["spec"], old.get("spec") or {})


def _without_features(spec: Document) -> Document:
    templates = [podgroup.without(each, _OFF) for each in spec.get("podGroupTemplates") or ()]
    rest = podgroup.without(spec, ("compositePodGroupTemplates", "podGroupTemplates"))
    return {**rest, "podGroupTemplates": templates} if templates else rest


KIND: Final = Kind(
    group="scheduling.k8s.io",
    versions=grouptypes.VERSIONS,
    plural="workloads",
    kind="Workload",
    namespaced=True,
    schemas={version: package.object("Workload") for version, package in grouptypes.PACKAGES.items()},
    storage_version="v1beta1",
    strategy=WorkloadStrategy,
)
