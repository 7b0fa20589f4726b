"""In-place resize of pods on their node: when resources change, what is said meanwhile, and what restarts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import structs

from drachma import errors
from drachma.api.pod import Pod, ResourceRequirements
from drachma.node.pods import resizing
from drachma.node.pods.podworker import PodWorker
from drachma.values import quantity
from tests.unit.node.pods.fakes import FakeNode, conditions, make_pod


def _sized(pod: Pod, *, generation: int = 2, **requests: str) -> Pod:
    """Return the next version of a pod, with these requests of its containers."""
    amounts = {name: quantity.Quantity.parse(amount) for name, amount in requests.items()}
    resources = ResourceRequirements(requests=amounts)
    containers = tuple(structs.replace(each, resources=resources) for each in pod.spec.containers)
    version = str(int(pod.metadata.resource_version) + 1)
    metadata = structs.replace(pod.metadata, generation=generation, resource_version=version)
    return structs.replace(pod, metadata=metadata, spec=structs.replace(pod.spec, containers=containers))


@pytest.fixture
def node() -> FakeNode:
    return FakeNode()


@contextlib.asynccontextmanager
async def _running(node: FakeNode, pod: Pod) -> AsyncIterator[PodWorker]:
    worker = PodWorker(node.services, pod)
    task = asyncio.create_task(worker.run())
    try:
        await node.clock.advance(1)
        yield worker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _container(node: FakeNode) -> dict[str, Any]:
    (status,) = node.api.statuses[-1]["containerStatuses"]
    return dict(status)


async def test_resources_change_while_the_container_runs(node: FakeNode) -> None:
    pod = _sized(make_pod(), generation=1, cpu="1")
    async with _running(node, pod) as worker:
        assert _container(node)["resources"] == {"requests": {"cpu": "1"}}
        worker.update(_sized(pod, cpu="2"))
        await node.clock.advance(1)
        assert node.calls.count("start c") == 1
        assert "update c cpu=2" in node.calls
        assert _container(node)["resources"] == {"requests": {"cpu": "2"}}
        assert _container(node)["allocatedResources"] == {"cpu": "2"}
        assert "ResizeCompleted" in node.api.reasons


async def test_a_container_restarts_if_its_policy_says_so(node: FakeNode) -> None:
    node.api.policies = {"c": {"memory": "RestartContainer"}}
    pod = _sized(make_pod(), generation=1, cpu="1", memory="1Gi")
    async with _running(node, pod) as worker:
        worker.update(_sized(pod, cpu="2", memory="1Gi"))
        await node.clock.advance(1)
        assert node.calls.count("start c") == 1, "the cpu changes without a restart"
        worker.update(_sized(pod, generation=3, cpu="2", memory="2Gi"))
        await node.clock.advance(1)
        assert node.calls.count("start c") == 2
        assert _container(node)["restartCount"] == 1


async def test_a_resize_without_room_waits_and_keeps_the_old_resources(node: FakeNode) -> None:
    pod = _sized(make_pod(), generation=1, cpu="1")
    async with _running(node, pod) as worker:
        node.resources.resize_wait = resizing.Waiting(resizing.DEFERRED, "Node didn't have enough resource: cpu")
        worker.update(_sized(pod, cpu="9"))
        await node.clock.advance(1)
        assert conditions(node.api.statuses[-1])["PodResizePending"] == "True"
        assert _container(node)["resources"] == {"requests": {"cpu": "1"}}
        assert worker.allocated.spec.containers[0].resources == pod.spec.containers[0].resources
        assert "ResizeDeferred" in node.api.reasons
        node.resources.resize_wait = None
        worker.reconsider_resize()
        await node.clock.advance(1)
        assert "update c cpu=9" in node.calls
        assert _container(node)["resources"] == {"requests": {"cpu": "9"}}


async def test_what_the_runtime_refuses_is_tried_again(node: FakeNode) -> None:
    node.runtime.update_errors = [errors.NodeError("cgroup: busy")]
    pod = _sized(make_pod(), generation=1, cpu="1")
    async with _running(node, pod) as worker:
        worker.update(_sized(pod, cpu="2"))
        await node.clock.advance(0.5)
        assert ("ResizeError", "cgroup: busy") in node.api.events
        assert conditions(node.api.statuses[-1])["PodResizeInProgress"] == "True"
        await node.clock.advance(5)
        assert node.calls.count("update c cpu=2") == 2
        assert "ResizeCompleted" in node.api.reasons


async def test_a_container_that_starts_later_has_the_new_resources() -> None:
    pod = _sized(make_pod("a", "b"), generation=1, cpu="1")
    resized = _sized(pod, cpu="2")
    assert resizing.changed_resources(resized, pod) == {"a": {"cpu"}, "b": {"cpu"}}
    assert not resizing.differs(resizing.with_resources(resized, pod), pod)
    assert resizing.with_resources(resized, pod).metadata.generation == 2
