"""Autoscalers in both versions."""

import json
from typing import Any

import pytest

from drachma.server.kinds.autoscaling import olderform
from tests.unit.server.client import Client

V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 30}}}
METRICS: list[dict[str, Any]] = [
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "1k"},
        },
    },
    {
        "type": "Object",
        "object": {"describedObject": TARGET, "metric": {"name": "m"}, "target": {"type": "Value", "value": "2"}},
    },
    {
        "type": "External",
        "external": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "3"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "memory",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 4},
        },
    },
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
]
BEHAVIOR = {
    "scaleUp": {"stabilizationWindowSeconds": 1, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 2}]},
    "scaleDown": {"selectPolicy": "Min", "policies": [{"type": "Percent", "value": 3, "periodSeconds": 4}]},
}
STATUS = {
    "currentReplicas": 1,
    "desiredReplicas": 2,
    "currentMetrics": [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 5, "averageValue": "1"}}}
    ],
    "conditions": [{"type": "AbleToScale", "status": "True"}],
}


def v2(metrics: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    spec = {"scaleTargetRef": TARGET, "minReplicas": 1, "maxReplicas": 3, "metrics": metrics}
    return {"apiVersion": "autoscaling/v2", "metadata": {"name": "o"}, "spec": {**spec, **more}, "status": STATUS}


@pytest.mark.parametrize(
    "metric", [pytest.param(each, id=each["type"].lower() + str(i)) for i, each in enumerate(METRICS)]
)
def test_nothing_is_lost_there_and_back(metric: dict[str, Any]) -> None:
    document = v2([metric, CPU], behavior=BEHAVIOR)
    assert olderform.newer(olderform.older(document)) == document


def test_what_the_older_form_shows() -> None:
    older = olderform.older(v2([METRICS[0], CPU]))
    assert older["spec"]["targetCPUUtilizationPercentage"] == 30
    assert older["status"]["currentCPUUtilizationPercentage"] == 5
    notes = older["metadata"]["annotations"]
    (metric,) = json.loads(notes["autoscaling.alpha.kubernetes.io/metrics"])
    want = {"metricName": "m", "targetAverageValue": "1k", "selector": {"matchLabels": {"a": "b"}}}
    assert metric == {"type": "Pods", "pods": want}


def test_annotations_that_cannot_be_read_count_for_nothing() -> None:
    notes = {f"autoscaling.alpha.kubernetes.io/{name}": "{" for name in ("metrics", "behavior", "current-metrics")}
    document = {"metadata": {"annotations": {**notes, "a": "b"}}, "spec": {"maxReplicas": 1}}
    newer = olderform.newer(document)
    assert newer["metadata"]["annotations"] == {"a": "b"}
    assert newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80


async def test_one_object_in_both_versions(server: Client) -> None:
    spec = {"maxReplicas": 3, "scaleTargetRef": TARGET, "targetCPUUtilizationPercentage": 30}
    created = await server.call("POST", V1, {"metadata": {"name": "o"}, "spec": spec})
    assert (created.code, created.body["spec"]["targetCPUUtilizationPercentage"]) == (201, 30)
    newer = (await server.call("GET", f"{V2}/o")).body
    assert (newer["apiVersion"], newer["spec"]["metrics"]) == ("autoscaling/v2", [CPU])
    patch = {"spec": {"targetCPUUtilizationPercentage": 40}}
    changed = await server.call("PATCH", f"{V1}/o", patch, content_type="application/merge-patch+json")
    assert changed.body["metadata"]["generation"] == 2
    newer = (await server.call("GET", f"{V2}/o")).body
    assert newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 40


async def test_types_are_those_of_the_version(server: Client) -> None:
    spec = {"maxReplicas": "3", "scaleTargetRef": TARGET}
    refusal = await server.call("POST", V1, {"metadata": {"name": "o"}, "spec": spec})
    assert refusal.code == 400
    assert "spec.maxReplicas" in refusal.body["message"]
