"""Autoscalers of pods, as objects: nothing scales here. Stored as v2; v1 shows what it can."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.server import objectmeta
from drachma.server.kinds.autoscaling import olderform
from drachma.server.kinds.document import Document, DocumentStrategy, check_types
from drachma.server.schema import emptyfields, metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import horizontalpodautoscaler as rules
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
ContainerResourceMetricSource: container=str* name=str* target=MetricTarget!
ContainerResourceMetricStatus: container=str* current=MetricValueStatus! name=str*
CrossVersionObjectReference!: apiVersion=str kind=str* name=str*
ExternalMetricSource: metric=MetricIdentifier! target=MetricTarget!
ExternalMetricStatus: current=MetricValueStatus! metric=MetricIdentifier!
HPAScalingPolicy: periodSeconds=int32* type=str* value=int32*
HPAScalingRules: policies=[HPAScalingPolicy] selectPolicy=str? stabilizationWindowSeconds=int32? tolerance=Quantity
HorizontalPodAutoscaler: apiVersion=str kind=str metadata=ObjectMeta! spec=HorizontalPodAutoscalerSpec!
    status=HorizontalPodAutoscalerStatus!
HorizontalPodAutoscalerBehavior: scaleDown=HPAScalingRules scaleUp=HPAScalingRules
HorizontalPodAutoscalerCondition: lastTransitionTime=Time! message=str observedGeneration=int64? reason=str status=str*
    type=str*
HorizontalPodAutoscalerSpec: behavior=HorizontalPodAutoscalerBehavior maxReplicas=int32* metrics=[MetricSpec]
    minReplicas=int32? scaleTargetRef=CrossVersionObjectReference!
HorizontalPodAutoscalerStatus: conditions={HorizontalPodAutoscalerCondition:type}~ currentMetrics=[MetricStatus]!
    currentReplicas=int32 desiredReplicas=int32* lastScaleTime=Time observedGeneration=int64?
MetricIdentifier: name=str* selector=LabelSelector
MetricSpec: containerResource=ContainerResourceMetricSource external=ExternalMetricSource object=ObjectMetricSource
    pods=PodsMetricSource resource=ResourceMetricSource type=str*
MetricStatus: containerResource=ContainerResourceMetricStatus external=ExternalMetricStatus object=ObjectMetricStatus
    pods=PodsMetricStatus resource=ResourceMetricStatus type=str*
MetricTarget: averageUtilization=int32? averageValue=Quantity type=str* value=Quantity
MetricValueStatus: averageUtilization=int32? averageValue=Quantity value=Quantity
ObjectMetricSource: describedObject=CrossVersionObjectReference! metric=MetricIdentifier! target=MetricTarget!
ObjectMetricStatus: current=MetricValueStatus! describedObject=CrossVersionObjectReference! metric=MetricIdentifier!
PodsMetricSource: metric=MetricIdentifier! target=MetricTarget!
PodsMetricStatus: current=MetricValueStatus! metric=MetricIdentifier!
ResourceMetricSource: name=str* target=MetricTarget!
ResourceMetricStatus: current=MetricValueStatus! name=str*
"""
_NUMBERS: Final = """\
ContainerResourceMetricSource: name target container
ContainerResourceMetricStatus: name current container
CrossVersionObjectReference: kind name apiVersion
ExternalMetricSource: metric target
ExternalMetricStatus: metric current
HPAScalingPolicy: type value periodSeconds
HPAScalingRules: selectPolicy? policies stabilizationWindowSeconds? tolerance
HorizontalPodAutoscaler: metadata spec status
HorizontalPodAutoscalerBehavior: scaleUp scaleDown
HorizontalPodAutoscalerCondition: type status lastTransitionTime reason message observedGeneration?
HorizontalPodAutoscalerSpec: scaleTargetRef minReplicas? maxReplicas metrics behavior
HorizontalPodAutoscalerStatus: observedGeneration? lastScaleTime currentReplicas desiredReplicas currentMetrics
    conditions
MetricIdentifier: name selector
MetricSpec: type object pods resource external 7:containerResource
MetricStatus: type object pods resource external 7:containerResource
MetricTarget: type value averageValue averageUtilization?
MetricValueStatus: value averageValue averageUtilization?
ObjectMetricSource: describedObject target metric
ObjectMetricStatus: metric current describedObject
PodsMetricSource: metric target
PodsMetricStatus: metric current
ResourceMetricSource: name target
ResourceMetricStatus: name current
"""
_OLDER_TYPES: Final = """\
CrossVersionObjectReference!: apiVersion=str kind=str* name=str*
HorizontalPodAutoscaler: apiVersion=str kind=str metadata=ObjectMeta! spec=HorizontalPodAutoscalerSpec!
    status=HorizontalPodAutoscalerStatus!
HorizontalPodAutoscalerSpec: maxReplicas=int32* minReplicas=int32? scaleTargetRef=CrossVersionObjectReference!
    targetCPUUtilizationPercentage=int32?
HorizontalPodAutoscalerStatus: currentCPUUtilizationPercentage=int32? currentReplicas=int32* desiredReplicas=int32*
    lastScaleTime=Time observedGeneration=int64?
"""
_OLDER_NUMBERS: Final = """\
CrossVersionObjectReference: kind name apiVersion
HorizontalPodAutoscaler: metadata spec status
HorizontalPodAutoscalerSpec: scaleTargetRef minReplicas? maxReplicas targetCPUUtilizationPercentage?
HorizontalPodAutoscalerStatus: observedGeneration? lastScaleTime currentReplicas desiredReplicas
    currentCPUUtilizationPercentage?
"""
_TEXTS: Final = """\
HorizontalPodAutoscaler: How many pods a workload has, by how busy they are.
HorizontalPodAutoscalerSpec.scaleTargetRef: The workload.
HorizontalPodAutoscalerSpec.minReplicas: How few pods it may have.
HorizontalPodAutoscalerSpec.maxReplicas: How many pods it may have.
HorizontalPodAutoscalerSpec.metrics: What is measured, and what it should be.
HorizontalPodAutoscalerSpec.behavior: How fast the number may change.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.autoscaling.v2", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)
_OLDER_PACKAGE: Final = notation.Types(
    "io.k8s.api.autoscaling.v1", _OLDER_TYPES, numbers=_OLDER_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)
_UTILIZATION: Final = 80
_BEHAVIOR: Final[dict[str, Document]] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
    },
    "scaleDown": {
        "selectPolicy": "Max",
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    },
}
_SHOWN: Final = 2


class HorizontalPodAutoscalerStrategy(DocumentStrategy):
    counts_generations = True

    def read(self, document: Document, write: Write) -> Subject:
        if write.version == "v1":
            check_types(document, self.resource.schema("v1"))
            document, write = olderform.newer(document), msgspec.structs.replace(write, version="v2")
        return super().read(document, write)

    def convert(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        if document["apiVersion"] == self._api_versions[version]:
            return document
        changed = olderform.older(document) if version == "v1" else olderform.newer(document)
        emptyfields.fill(changed, self.resource.schema(version))
        return changed

    serve = convert

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        spec.setdefault("minReplicas", 1)
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": _UTILIZATION}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        if spec.get("behavior") is not None:
            given = spec["behavior"]
            spec["behavior"] = {
                direction: {**defaults, **(given.get(direction) or {})} for direction, defaults in _BEHAVIOR.items()
            }

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check(content["spec"], old.get("spec") or {})

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_status(content.get("status") or {})


def _cells(autoscaler: Document, now: datetime) -> layout.Cells:
    document = olderform.newer(autoscaler) if autoscaler.get("apiVersion") == "autoscaling/v1" else autoscaler
    spec, status = cells.part(document, "spec"), cells.part(document, "status")
    target = cells.part(spec, "scaleTargetRef")
    least = spec.get("minReplicas")
    return [
        cells.name(document),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or [], status.get("currentMetrics") or []),
        "<unset>" if least is None else str(least),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        cells.since_creation(document, now),
    ]


def _metrics(metrics: list[Document], current: list[Document]) -> str:
    if not metrics:
        return "<none>"
    shown = [_metric(each, current[place] if place < len(current) else {}) for place, each in enumerate(metrics)]
    more = len(shown) - _SHOWN
    return ", ".join(shown[:_SHOWN]) + (f" + {more} more..." if more > 0 else "")


def _metric(metric: Document, current: Document) -> str:
    kind = metric.get("type", "")
    source = kind[:1].lower() + kind[1:]
    target = cells.part(cells.part(metric, source), "target")
    values = cells.part(cells.part(current, source), "current")
    if source in ("resource", "containerResource"):
        name = cells.part(metric, source).get("name", "")
        if target.get("averageValue") is not None:
            return f"{name}: {values.get('averageValue', '<unknown>')}/{target['averageValue']}"
        used = f"{values['averageUtilization']}%" if "averageUtilization" in values else "<unknown>"
        aim = f"{target['averageUtilization']}%" if "averageUtilization" in target else "<auto>"
        return f"{name}: {used}/{aim}"
    if source == "pods":
        return f"{values.get('averageValue', '<unknown>')}/{target.get('averageValue', '')}"
    if source in ("object", "external"):
        if target.get("averageValue") is not None:
            return f"{values.get('averageValue', '<unknown>')}/{target['averageValue']} (avg)"
        return f"{values.get('value', '<unknown>')}/{target.get('value', '')}"
    return "<unknown type>"


KIND: Final = Kind(
    group="autoscaling",
    versions=("v2", "v1"),
    plural="horizontalpodautoscalers",
    kind="HorizontalPodAutoscaler",
    namespaced=True,
    short_names=("hpa",),
    categories=("all",),
    subresources=(resources.status(),),
    schemas={
        "v2": _PACKAGE.object("HorizontalPodAutoscaler"),
        "v1": _OLDER_PACKAGE.object("HorizontalPodAutoscaler"),
    },
    storage_version="v2",
    reshaped=frozenset({"v1"}),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Reference", "The workload."),
            layout.text("Targets", "What is measured, and what it should be."),
            layout.text("MinPods", "How few pods it may have."),
            layout.text("MaxPods", "How many pods it may have."),
            layout.text("Replicas", "How many pods it has."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=HorizontalPodAutoscalerStrategy,
)
