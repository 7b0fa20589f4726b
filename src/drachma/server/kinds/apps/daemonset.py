"""Daemon sets: a pod of one template on every node, or on some."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import documents, objectmeta
from drachma.server.kinds.core import podtypes
from drachma.server.kinds.document import Document
from drachma.server.kinds.workload import WorkloadStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import daemonset
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
DaemonSet: apiVersion=str kind=str metadata=ObjectMeta! spec=DaemonSetSpec!* status=DaemonSetStatus!
DaemonSetCondition: lastTransitionTime=Time! message=str reason=str status=str* type=str*
DaemonSetSpec: minReadySeconds=int32 revisionHistoryLimit=int32? selector=LabelSelector* template=PodTemplateSpec!*
    updateStrategy=DaemonSetUpdateStrategy!
DaemonSetStatus: collisionCount=int32? conditions={DaemonSetCondition:type}~ currentNumberScheduled=int32*
    desiredNumberScheduled=int32* numberAvailable=int32 numberMisscheduled=int32* numberReady=int32*
    numberUnavailable=int32 observedGeneration=int64 updatedNumberScheduled=int32
DaemonSetUpdateStrategy: rollingUpdate=RollingUpdateDaemonSet type=str
RollingUpdateDaemonSet: maxSurge=IntOrString maxUnavailable=IntOrString
"""
_NUMBERS: Final = """\
DaemonSet: metadata spec status
DaemonSetCondition: type status lastTransitionTime reason message
DaemonSetSpec: selector template updateStrategy minReadySeconds 6:revisionHistoryLimit?
DaemonSetStatus: currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady observedGeneration
    updatedNumberScheduled numberAvailable numberUnavailable collisionCount? conditions
DaemonSetUpdateStrategy: type rollingUpdate
RollingUpdateDaemonSet: maxUnavailable maxSurge
"""
_TEXTS: Final = """\
DaemonSet: A pod of one template on every node, or on some.
DaemonSetSpec.selector: Which pods belong to the daemon set.
DaemonSetSpec.template: What the pods look like, and by its node selector where they run.
DaemonSetSpec.updateStrategy: How pods are replaced.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.apps.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META, podtypes.PODS)
)
_COUNTS: Final = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")


_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""The annotation that says how often the template was changed."""


class DaemonSetStrategy(WorkloadStrategy):
    def default_spec(self, spec: Document) -> None:
        super().default_spec(spec)
        spec.setdefault("revisionHistoryLimit", 10)
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        super().default(content, metadata)
        metadata["annotations"] = {_TEMPLATE_GENERATION: "0", **(metadata.get("annotations") or {})}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = dict.fromkeys(_COUNTS, 0)
        metadata["annotations"] = {**metadata["annotations"], _TEMPLATE_GENERATION: "1"}

    def update(self, subject: Subject, old: Subject, write: Write) -> None:
        # Kept apart from the generation by kubelets and tools of old; it counts templates only.
        number = int((old.metadata.get("annotations") or {}).get(_TEMPLATE_GENERATION) or 0)
        is_same = documents.same(subject.content["spec"]["template"], old.content["spec"]["template"])
        own = subject.metadata.get("annotations") or {}
        subject.metadata["annotations"] = {**own, _TEMPLATE_GENERATION: str(number if is_same else number + 1)}
        super().update(subject, old, write)

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from daemonset.check(content["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from daemonset.check_status(content.get("status") or {})


def _cells(daemon_set: Document, now: datetime) -> layout.Cells:
    status, spec = cells.part(daemon_set, "status"), cells.part(daemon_set, "spec")
    counts = ("desired", "current"), ("updated",)
    numbers = [status.get(f"{each}NumberScheduled", 0) for each in counts[0]]
    numbers += [status.get("numberReady", 0), status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)]
    chosen = cells.part(cells.part(cells.part(spec, "template"), "spec"), "nodeSelector")
    nodes = ",".join(f"{key}={value}" for key, value in sorted(chosen.items())) or "<none>"
    since = cells.since_creation(daemon_set, now)
    return [cells.name(daemon_set), *numbers, nodes, since, *cells.template(daemon_set, absent="<none>")]


KIND: Final = Kind(
    group="apps",
    versions=("v1",),
    plural="daemonsets",
    kind="DaemonSet",
    namespaced=True,
    short_names=("ds",),
    categories=("all",),
    subresources=(resources.status(),),
    schemas={"v1": _PACKAGE.object("DaemonSet")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.integer("Desired", "How many nodes should run a pod."),
            layout.integer("Current", "How many of these nodes have one."),
            layout.integer("Ready", "How many of these nodes have one that is ready."),
            layout.integer("Up-to-date", "How many nodes have a pod of the current template."),
            layout.integer("Available", "How many nodes have a pod that has been ready for long enough."),
            layout.text("Node Selector", "Which nodes should run a pod."),
            layout.AGE,
            *layout.CONTAINERS,
        ),
        _cells,
    ),
    strategy=DaemonSetStrategy,
)
