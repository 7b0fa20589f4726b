"""Stateful sets: pods of one template with names and volumes of their own."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.autoscaling import scale
from drachma.server.kinds.core import persistentvolumeclaim, podtypes
from drachma.server.kinds.document import Document
from drachma.server.kinds.workload import WorkloadStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import statefulset
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
RollingUpdateStatefulSetStrategy: maxUnavailable=IntOrString partition=int32?
StatefulSet: apiVersion=str kind=str metadata=ObjectMeta! spec=StatefulSetSpec!* status=StatefulSetStatus!
StatefulSetCondition: lastTransitionTime=Time! message=str reason=str status=str* type=str*
StatefulSetOrdinals: start=int32!/0
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted=str whenScaled=str
StatefulSetSpec: minReadySeconds=int32 ordinals=StatefulSetOrdinals
    persistentVolumeClaimRetentionPolicy=StatefulSetPersistentVolumeClaimRetentionPolicy podManagementPolicy=str
    replicas=int32? revisionHistoryLimit=int32? selector=LabelSelector* serviceName=str!/ template=PodTemplateSpec!*
    updateStrategy=StatefulSetUpdateStrategy! volumeClaimTemplates=[PersistentVolumeClaim]
StatefulSetStatus: availableReplicas=int32!/0 collisionCount=int32? conditions={StatefulSetCondition:type}~
    currentReplicas=int32 currentRevision=str observedGeneration=int64 readyReplicas=int32 replicas=int32*
    updateRevision=str updatedReplicas=int32
StatefulSetUpdateStrategy: rollingUpdate=RollingUpdateStatefulSetStrategy type=str
"""
_NUMBERS: Final = """\
RollingUpdateStatefulSetStrategy: partition? maxUnavailable
StatefulSet: metadata spec status
StatefulSetCondition: type status lastTransitionTime reason message
StatefulSetOrdinals: start
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted whenScaled
StatefulSetSpec: replicas? selector template volumeClaimTemplates serviceName podManagementPolicy updateStrategy
    revisionHistoryLimit? minReadySeconds persistentVolumeClaimRetentionPolicy ordinals
StatefulSetStatus: observedGeneration replicas readyReplicas currentReplicas updatedReplicas currentRevision
    updateRevision 9:collisionCount? conditions availableReplicas
StatefulSetUpdateStrategy: type rollingUpdate
"""
_TEXTS: Final = """\
StatefulSet: Pods of one template with names and volumes of their own.
StatefulSetSpec.replicas: How many pods there should be.
StatefulSetSpec.serviceName: The service that gives the pods their names in the network.
StatefulSetSpec.volumeClaimTemplates: Volumes that each pod gets for itself and keeps.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.apps.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    uses=(metatypes.META, podtypes.PODS, persistentvolumeclaim.CLAIMS),
)


class StatefulSetStrategy(WorkloadStrategy):
    def default_spec(self, spec: Document) -> None:
        super().default_spec(spec)
        if not spec.get("podManagementPolicy"):
            spec["podManagementPolicy"] = "OrderedReady"
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("partition", 0)
            rolling.setdefault("maxUnavailable", 1)
        policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for field in ("whenDeleted", "whenScaled"):
            if not policy.get(field):
                policy[field] = "Retain"
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("kind", "PersistentVolumeClaim")
            persistentvolumeclaim.default(claim)

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"replicas": 0, "availableReplicas": 0}

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from statefulset.check(content["spec"])

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        yield from super().warnings(content, subject)
        if content["spec"].get("revisionHistoryLimit", 0) < 0:
            yield (
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is "
                "recommended"
            )

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from statefulset.check_update(content["spec"], old["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from statefulset.check_status(content.get("status") or {})


def _cells(stateful_set: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(stateful_set, "spec"), cells.part(stateful_set, "status")
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    containers = cells.template(stateful_set, absent="")[:2]
    return [cells.name(stateful_set), ready, cells.since_creation(stateful_set, now), *containers]


KIND: Final = Kind(
    group="apps",
    versions=("v1",),
    plural="statefulsets",
    kind="StatefulSet",
    namespaced=True,
    short_names=("sts",),
    categories=("all",),
    subresources=(scale.SUBRESOURCE, resources.status()),
    schemas={"v1": _PACKAGE.object("StatefulSet")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Ready", "How many pods are ready, of how many."),
            layout.AGE,
            *layout.CONTAINERS[:2],
        ),
        _cells,
    ),
    strategy=StatefulSetStrategy,
)
