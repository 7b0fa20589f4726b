"""Horizontal pod autoscalers, stored as v2 and converted to v1."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.server import objectmeta
from drachma.server.kinds.autoscaling import olderform
from drachma.server.kinds.document import Document, DocumentStrategy, check_types
from drachma.server.schema import emptyfields
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import autoscaling

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
_MAX_METRICS: Final = 2


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
            behavior = spec["behavior"]
            spec["behavior"] = {
                direction: {**defaults, **(behavior.get(direction) or {})} for direction, defaults in _BEHAVIOR.items()
            }


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
    texts = [_metric(each, current[place] if place < len(current) else {}) for place, each in enumerate(metrics)]
    more = len(texts) - _MAX_METRICS
    return ", ".join(texts[:_MAX_METRICS]) + (f" + {more} more..." if more > 0 else "")


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
    storage_version="v2",
    reshaped=frozenset({"v1"}),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Reference", "The workload."),
            layout.text("Targets", "The current and target values of metrics."),
            layout.text("MinPods", "The minimum number of pods."),
            layout.text("MaxPods", "The maximum number of pods."),
            layout.text("Replicas", "The number of pods."),
            layout.AGE,
        ),
        _cells,
    ),
    rules=autoscaling.KINDS["HorizontalPodAutoscaler"],
    strategy=HorizontalPodAutoscalerStrategy,
)
