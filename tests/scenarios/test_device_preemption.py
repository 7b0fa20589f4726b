"""Preemption that frees devices, in a running cluster, and off by default."""

import pytest

from drachma.api import gates, pod
from tests.scenarios import schedulers
from tests.scenarios.test_gangs import COMMON, a_group, bound, leave, machine, worker

GATES = gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True, gates.Gate.DEVICE_PREEMPTION: True})


async def test_a_pod_gets_the_device_of_a_less_important_one() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.priorities(50, 100)
        await world.create(*COMMON, *machine("n1", 2))
        await world.create(worker("low"), worker("middle").spec(priority_class_name="priority-50"))
        await world.create(worker("urgent").spec(priority_class_name="priority-100"))
        message = await world.why("urgent")
        assert message == (
            "0/1 nodes are available: 1 cannot allocate all claims. preemption: found a potential placement for pod "
            "on node n1, preempting 1 victims, freeing gpu.example.com/n1/gpu-0"
        )
        assert (await world.pod("urgent")).status.nominated_node_name == "n1"
        # The device that is being freed is not for a pod that is less important.
        await world.create(worker("late").spec(priority_class_name="priority-50"))
        assert await leave(world) == {"low"}
        assert await bound(world) == {"middle", "urgent"}


@pytest.mark.parametrize("has_devices", [pytest.param(True, id="for-devices"), pytest.param(False, id="upstream")])
async def test_a_gang_gets_the_devices_that_it_needs(has_devices: bool) -> None:
    enabled = GATES.switched({gates.Gate.DEVICE_PREEMPTION: has_devices})
    async with schedulers.cluster(gates=enabled) as world:
        await world.priorities(100)
        await world.create(*COMMON, *machine("n1", 2), *machine("n2", 1))
        await world.create(worker("old-0"), worker("old-1"), worker("old-2"))
        group = pod.PodSchedulingGroup(pod_group_name="g")
        members = [
            worker(f"w{number}").spec(scheduling_group=group, priority_class_name="priority-100") for number in range(2)
        ]
        await world.create(a_group("g", 2, priority_class_name="priority-100"), *members)
        left = await leave(world)
        assert len(left) == (2 if has_devices else 0)
        assert {"w0", "w1"} <= await bound(world) or not has_devices


async def test_a_shared_claim_is_freed_only_with_all_of_its_users() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.priorities(100, 200)
        await world.create(*COMMON, *machine("n1", 1))
        await world.apply(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: shared}\n"
            "spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}\n"
        )
        first = worker("a", gpu=False).claim("gpu", claim="shared")
        second = worker("b", gpu=False).claim("gpu", claim="shared").spec(priority_class_name="priority-200")
        await world.create(first, second)
        assert await bound(world) == {"a", "b"}
        await world.create(worker("urgent").spec(priority_class_name="priority-100"))
        assert await leave(world) == set()
        assert "Preemption is not helpful" in await world.why("urgent")
