"""Replica sets: so many pods of one template."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.autoscaling import scale
from drachma.server.kinds.core import podtypes
from drachma.server.kinds.document import Document
from drachma.server.kinds.workload import WorkloadStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import workload
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
ReplicaSet: apiVersion=str kind=str metadata=ObjectMeta! spec=ReplicaSetSpec!* status=ReplicaSetStatus!
ReplicaSetCondition: lastTransitionTime=Time! message=str reason=str status=str* type=str*
ReplicaSetSpec: minReadySeconds=int32 replicas=int32? selector=LabelSelector* template=PodTemplateSpec!
ReplicaSetStatus: availableReplicas=int32 conditions={ReplicaSetCondition:type}~ fullyLabeledReplicas=int32
    observedGeneration=int64 readyReplicas=int32 replicas=int32* terminatingReplicas=int32?
"""
_NUMBERS: Final = """\
ReplicaSet: metadata spec status
ReplicaSetCondition: type status lastTransitionTime reason message
ReplicaSetSpec: replicas? selector template minReadySeconds
ReplicaSetStatus: replicas fullyLabeledReplicas observedGeneration readyReplicas availableReplicas conditions
    terminatingReplicas?
"""
_TEXTS: Final = """\
ReplicaSet: So many pods of one template.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.apps.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META, podtypes.PODS)
)


class ReplicaSetStrategy(WorkloadStrategy):
    def default_spec(self, spec: Document) -> None:
        super().default_spec(spec)
        spec.setdefault("replicas", 1)

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"replicas": 0}

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from workload.check_replica_set(content["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from workload.check_replica_set_status(content.get("status") or {})


def _cells(replica_set: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(replica_set, "spec"), cells.part(replica_set, "status")
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    since = cells.since_creation(replica_set, now)
    return [cells.name(replica_set), *counts, since, *cells.template(replica_set, absent="<none>")]


KIND: Final = Kind(
    group="apps",
    versions=("v1",),
    plural="replicasets",
    kind="ReplicaSet",
    namespaced=True,
    short_names=("rs",),
    categories=("all",),
    subresources=(scale.SUBRESOURCE, resources.status()),
    schemas={"v1": _PACKAGE.object("ReplicaSet")},
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
    strategy=ReplicaSetStrategy,
)
