"""Faults of devices in a cluster under test, and their effect on pods."""

import pathlib
from typing import Any

import pytest

from drachma import errors, testing
from drachma.api import event, pod, resourceslice
from drachma.client import patches
from drachma.testing.faults import DeviceFaults
from tests.unit.testing.test_clusters import _wants

WHOLE = '{cel: {expression: \'device.attributes["gpu.simulation.drachma.dev"].type == "gpu"\'}}'
SHELF = """
apiVersion: v1
kind: Node
metadata: {name: box}
status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}, capacity: {cpu: "8", memory: 32Gi, pods: "110"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: shelf
  annotations: {simulation.drachma.dev/prepare-seconds: "30", simulation.drachma.dev/flap-seconds.disk-1: "5"}
spec:
  driver: disk.example.com
  allNodes: true
  pool: {name: shelf, generation: 1, resourceSliceCount: 1}
  devices: [{name: disk-0}, {name: disk-1}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: disk.example.com}
spec: {selectors: [{cel: {expression: 'device.driver == "disk.example.com"'}}]}
"""


async def test_a_device_that_is_gone_is_given_to_nobody() -> None:
    async with testing.cluster() as c:
        fault = DeviceFaults(c, "gpu-0", pool="node-0")
        await fault.vanish()
        await c.apply(_wants(1))
        assert (await c.pod("train").running()).devices == ("gpu.simulation.drachma.dev/node-0/gpu-1",)
        await fault.reappear()
        with pytest.raises(errors.InvalidValueError, match="has not vanished"):
            await fault.reappear()


async def test_a_pod_has_to_leave_a_device_that_falls_ill() -> None:
    async with testing.cluster() as c:
        await c.apply(_wants(1))
        await c.pod("train").running()
        await DeviceFaults(c, "gpu-0", pool="node-0").fall_ill()
        await c.pod("train").gone()


async def test_a_pod_that_stays_shows_how_its_device_is() -> None:
    async with testing.cluster() as c:
        await c.apply(_wants(1))
        await c.pod("train").running()
        gpu = DeviceFaults(c, "gpu-0", pool="node-0")
        resource = {"resourceID": "gpu.simulation.drachma.dev/device=gpu-0"}
        assert await _resources(c) == [{**resource, "health": "Healthy"}]
        await gpu.fall_ill(effect="NoSchedule")
        message = "the device has the taint simulation.drachma.dev/unhealthy"
        assert await _resources(c) == [{**resource, "health": "Unhealthy", "message": message}]
        await gpu.recover()
        assert await _resources(c) == [{**resource, "health": "Healthy"}]
        await gpu.vanish()
        assert await _resources(c) == [{**resource, "health": "Unknown"}]


async def _resources(c: testing.Cluster) -> list[dict[str, Any]]:
    """Return the devices of the pod in its status."""
    document = await c.client.get_document(pod.Pod, "train", namespace="default")
    [container] = document["status"]["containerStatuses"]
    [claim] = container["allocatedResourcesStatus"]
    return list(claim["resources"])


async def test_a_device_that_flaps_ends_well() -> None:
    async with testing.cluster() as c:
        await DeviceFaults(c, "gpu-0", pool="node-0").flap(3)
        await c.apply(_wants(8))
        assert len((await c.pod("train").running()).devices) == 8


async def test_a_device_that_is_not_there() -> None:
    async with testing.cluster() as c:
        with pytest.raises(errors.InvalidValueError, match="device 'gpu-99' of pool 'node-0': there is none"):
            await DeviceFaults(c, "gpu-99", pool="node-0").vanish()


async def test_a_device_of_two_slices_falls_ill_and_its_pool_stays_whole() -> None:
    async with testing.cluster(profile="mig") as c:
        await DeviceFaults(c, "gpu-0", pool="node-0").fall_ill()
        await c.apply(
            _wants(1).replace("deviceClassName", "selectors: [SELECTOR], deviceClassName").replace("SELECTOR", WHOLE)
        )
        assert (await c.pod("train").running()).devices == ("gpu.simulation.drachma.dev/node-0/gpu-1",)


async def test_a_slow_device_keeps_its_pod_waiting() -> None:
    async with testing.cluster() as c:
        await DeviceFaults(c, "gpu-0", pool="node-0").slow_down(seconds=20)
        before = c.clock.utc()
        await c.apply(_wants(1))
        await c.pod("train").running()
        assert (c.clock.utc() - before).total_seconds() >= 20


async def test_a_device_slower_than_agents_wait_is_ready_when_they_ask_again() -> None:
    async with testing.cluster() as c:
        await DeviceFaults(c, "gpu-0", pool="node-0").slow_down(seconds=60)
        await c.apply(_wants(1))
        await c.pod("train").running()
        events = (await c.client.list(event.Event)).items
        (problem,) = {each.message for each in events if each.reason == "FailedPrepareDynamicResources"}
        assert "DeadlineExceeded" in problem


async def test_a_slowness_that_is_no_number_is_told() -> None:
    async with testing.cluster() as c:
        slice_name = "node-0-gpu.simulation.drachma.dev"
        patch = patches.merge({"metadata": {"annotations": {"simulation.drachma.dev/prepare-seconds": "long"}}})
        await c.client.patch(resourceslice.ResourceSlice, slice_name, patch=patch)
        await c.apply(_wants(1))
        with pytest.raises(AssertionError):
            await c.pod("train").running()
        events = (await c.client.list(event.Event)).items
        assert any("'long': must be a number, not below zero" in each.message for each in events)


async def test_a_device_that_flaps_by_itself() -> None:
    async with testing.cluster() as c:
        await DeviceFaults(c, "gpu-0", pool="node-0").flap_on(seconds=10)
        states = []
        for _ in range(4):
            await c.advance(9)
            states.append(await _is_ill(c, "gpu-0"))
            await c.advance(1)
        assert states == [False, True, False, True]
        assert not await _is_ill(c, "gpu-1")


async def test_a_profile_in_a_file_has_faults(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "shelf.yaml"
    path.write_text(SHELF)
    async with testing.cluster(nodes=2, profile=str(path)) as c:
        await c.advance(5)
        (shelf,) = (await c.client.list(resourceslice.ResourceSlice)).items
        assert [each.name for each in shelf.spec.devices if each.taints] == ["disk-1"]
        before = c.clock.utc()
        await c.apply(_wants(1).replace("gpu.simulation.drachma.dev", "disk.example.com"))
        assert (await c.pod("train").running()).devices == ("disk.example.com/shelf/disk-0",)
        assert (c.clock.utc() - before).total_seconds() >= 30


async def test_a_rack_shares_what_is_on_its_fabric() -> None:
    async with testing.cluster(nodes=5, profile="rack") as c:
        await DeviceFaults(c, "gpu-0", pool="rack-1").vanish()
        await c.apply(_wants(8).replace("gpu.simulation", "fabric.simulation"))
        running = await c.pod("train").running()
        assert running.node != "node-4"
        assert running.devices == tuple(f"fabric.simulation.drachma.dev/rack-0/gpu-{n}" for n in range(8))


async def _is_ill(c: testing.Cluster, name: str) -> bool:
    slices = (await c.client.list(resourceslice.ResourceSlice)).items
    return any(each.name == name and each.taints for of in slices for each in of.spec.devices)
