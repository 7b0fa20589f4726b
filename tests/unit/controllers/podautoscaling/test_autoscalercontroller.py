"""The controller of horizontal pod autoscalers: scales, conditions and events."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec

from drachma.api import deployment, pod
from drachma.api import horizontalpodautoscaler as hpa
from drachma.client import Client, patches, protocol, target, wire
from drachma.controllers.podautoscaling import HorizontalPodAutoscaling, autoscalercontroller
from tests.unit.controllers import worlds

LABELS = {"app": "web"}
CONTAINER = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m"}}}


class MeteredClient:
    """A client of a cluster in which each pod of the workload uses so many thousandths of a CPU."""

    def __init__(self, client: Client, usage: dict[str, str]) -> None:
        self._client = client
        self._usage = usage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def list(self, kind: Any, selection: Any = protocol.EVERYTHING, **options: Any) -> Any:
        resource = target.of(kind)
        if resource.group != "metrics.k8s.io":
            return await self._client.list(kind, selection, **options)
        items = [
            {
                "metadata": {"name": name, "namespace": "default"},
                "timestamp": "2099-01-01T00:00:00Z",
                "window": "10s",
                "containers": [{"name": "main", "usage": {"cpu": cpu}}],
            }
            for name, cpu in self._usage.items()
        ]
        reader = wire.reader(resource, "v1beta1")
        return protocol.Listing(
            items=tuple(reader.object(msgspec.json.encode(each)) for each in items), resource_version="0"
        )


@contextlib.asynccontextmanager
async def metered(usage: dict[str, str]) -> AsyncIterator[worlds.World]:
    def wrap(client: Client) -> Client:
        return cast(Client, MeteredClient(client, usage))

    async with worlds.world(HorizontalPodAutoscaling, wrap=wrap) as world:
        yield world


async def a_workload(world: worlds.World, *pods: str, replicas: int) -> None:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    document = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}
    await world.client.create_document(deployment.Deployment, document)
    for name in pods:
        pod_document = {
            "metadata": {"name": name, "namespace": "default", "labels": LABELS},
            "spec": {"containers": [CONTAINER]},
        }
        await world.client.create_document(pod.Pod, pod_document)
        status = {
            "phase": "Running",
            "startTime": "2020-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}],
        }
        await world.client.patch(
            pod.Pod, name, patch=patches.merge({"status": status}), namespace="default", subresource="status"
        )


async def an_autoscaler(world: worlds.World, name: str = "web", *, workload: str = "web", **spec: Any) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    document = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"scaleTargetRef": reference, "maxReplicas": 10, "metrics": [metric], **spec},
    }
    await world.client.create_document(hpa.HorizontalPodAutoscaler, document)
    await world.advance(autoscalercontroller.SYNC_SECONDS)
    await world.settle()


async def replicas(world: worlds.World) -> int | None:
    return (await world.client.get(deployment.Deployment, "web", namespace="default")).spec.replicas


async def conditions(world: worlds.World) -> dict[str, tuple[str, str]]:
    status = (await world.client.get(hpa.HorizontalPodAutoscaler, "web", namespace="default")).status
    return {each.type: (each.status, each.reason) for each in status.conditions}


async def test_usage_above_the_target_adds_replicas() -> None:
    async with metered({"a": "100m", "b": "100m"}) as world:
        await a_workload(world, "a", "b", replicas=2)
        await an_autoscaler(world)
        assert await replicas(world) == 4
        assert await conditions(world) == {
            "AbleToScale": ("True", "SucceededRescale"),
            "ScalingActive": ("True", "ValidMetricFound"),
            "ScalingLimited": ("False", "DesiredWithinRange"),
        }
        reason = "cpu resource utilization (percentage of request) above target"
        assert await world.events() == [f"Normal SuccessfulRescale: New size: 4; reason: {reason}"]
        status = (await world.client.get_document(hpa.HorizontalPodAutoscaler, "web", namespace="default"))["status"]
        assert status["currentMetrics"][0]["resource"]["current"] == {"averageUtilization": 100, "averageValue": "100m"}
        assert (status["currentReplicas"], status["desiredReplicas"], "lastScaleTime" in status) == (2, 4, True)


async def test_usage_below_the_target_removes_replicas_after_the_window() -> None:
    async with metered({"a": "10m", "b": "10m"}) as world:
        await a_workload(world, "a", "b", replicas=2)
        await an_autoscaler(world)
        assert (await replicas(world), (await conditions(world))["AbleToScale"]) == (2, ("True", "ScaleDownStabilized"))
        for _ in range(22):
            await world.advance(autoscalercontroller.SYNC_SECONDS)
            await world.settle()
        assert await replicas(world) == 1


async def test_replicas_outside_of_the_bounds_are_corrected_without_metrics() -> None:
    async with metered({}) as world:
        await a_workload(world, replicas=1)
        await an_autoscaler(world, minReplicas=3)
        assert await replicas(world) == 3
        (event,) = await world.events()
        assert (
            event == "Normal SuccessfulRescale: New size: 3; reason: Current number of replicas below Spec.MinReplicas"
        )


async def test_a_missing_workload_is_a_condition() -> None:
    async with metered({}) as world:
        await an_autoscaler(world, workload="gone")
        assert await conditions(world) == {"AbleToScale": ("False", "FailedGetScale")}
        assert await world.events() == ['Warning FailedGetScale: deployments.apps "gone" not found']


async def test_metrics_that_are_missing_change_nothing() -> None:
    async with metered({}) as world:
        await a_workload(world, "a", replicas=1)
        await an_autoscaler(world)
        assert await replicas(world) == 1
        assert (await conditions(world))["ScalingActive"] == ("False", "FailedGetResourceMetric")
        problem = "unable to get metrics for resource cpu: no metrics returned from resource metrics API"
        first = f"failed to get cpu resource metric value: failed to get cpu utilization: {problem}"
        assert await world.events() == [
            f"Warning FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: {first}",
            f"Warning FailedGetResourceMetric: failed to get cpu utilization: {problem}",
        ]


async def test_two_autoscalers_of_the_same_pods_do_not_fight() -> None:
    async with metered({"a": "100m"}) as world:
        await a_workload(world, "a", replicas=1)
        await an_autoscaler(world, "other", maxReplicas=1)
        await an_autoscaler(world)
        assert (await conditions(world))["ScalingActive"] == ("False", "AmbiguousSelector")
        assert await replicas(world) == 1
