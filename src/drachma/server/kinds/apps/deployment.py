"""Deployments: pods of one template, replaced step by step when the template changes."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.autoscaling import scale
from drachma.server.kinds.core import podtypes
from drachma.server.kinds.document import Document, taken
from drachma.server.kinds.workload import WorkloadStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import workload
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
Deployment: apiVersion=str kind=str metadata=ObjectMeta! spec=DeploymentSpec!* status=DeploymentStatus!
DeploymentCondition: lastTransitionTime=Time! lastUpdateTime=Time! message=str reason=str status=str* type=str*
DeploymentSpec: minReadySeconds=int32 paused=bool progressDeadlineSeconds=int32? replicas=int32?
    revisionHistoryLimit=int32? selector=LabelSelector* strategy=DeploymentStrategy!~+ template=PodTemplateSpec!*
DeploymentStatus: availableReplicas=int32 collisionCount=int32? conditions={DeploymentCondition:type}~
    observedGeneration=int64 readyReplicas=int32 replicas=int32 terminatingReplicas=int32? unavailableReplicas=int32
    updatedReplicas=int32
DeploymentStrategy: rollingUpdate=RollingUpdateDeployment type=str
RollingUpdateDeployment: maxSurge=IntOrString maxUnavailable=IntOrString
"""
_NUMBERS: Final = """\
Deployment: metadata spec status
DeploymentCondition: type status 4:reason message lastUpdateTime lastTransitionTime
DeploymentSpec: replicas? selector template strategy minReadySeconds revisionHistoryLimit? paused
    9:progressDeadlineSeconds?
DeploymentStatus: observedGeneration replicas updatedReplicas availableReplicas unavailableReplicas conditions
    readyReplicas collisionCount? terminatingReplicas?
DeploymentStrategy: type rollingUpdate
RollingUpdateDeployment: maxUnavailable maxSurge
"""
_TEXTS: Final = """\
Deployment: Pods of one template, replaced step by step when the template changes.
DeploymentSpec.replicas: How many pods there should be.
DeploymentSpec.selector: Which pods belong to the deployment.
DeploymentSpec.template: What the pods look like.
DeploymentSpec.strategy: How pods are replaced.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.apps.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META, podtypes.PODS)
)


class DeploymentStrategy(WorkloadStrategy):
    def default_spec(self, spec: Document) -> None:
        super().default_spec(spec)
        for field, value in (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)):
            spec.setdefault(field, value)
        strategy = spec.setdefault("strategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {}

    def update_status(self, subject: Subject, old: Subject, write: Write) -> None:
        taken(subject.metadata, old.metadata, "labels")
        super().update_status(subject, old, write)

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from workload.check_deployment(content["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from workload.check_deployment_status(content.get("status") or {}, old.get("status") or {})


def _cells(deployment: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(deployment, "spec"), cells.part(deployment, "status")
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    since = cells.since_creation(deployment, now)
    return [cells.name(deployment), ready, *counts, since, *cells.template(deployment, absent="")]


KIND: Final = Kind(
    group="apps",
    versions=("v1",),
    plural="deployments",
    kind="Deployment",
    namespaced=True,
    short_names=("deploy",),
    categories=("all",),
    subresources=(scale.SUBRESOURCE, resources.status(("spec",), ("metadata", "labels"))),
    schemas={"v1": _PACKAGE.object("Deployment")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Ready", "How many pods are ready, of how many."),
            layout.text("Up-to-date", "How many pods are of the current template."),
            layout.text("Available", "How many pods have been ready for long enough."),
            layout.AGE,
            *layout.CONTAINERS,
        ),
        _cells,
    ),
    strategy=DeploymentStrategy,
)
