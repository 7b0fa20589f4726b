"""A little of the churn in every run of the suite (``make soak`` does it at length), and that its checks can fail."""

from typing import Any

import msgspec
import pytest

from drachma.api import pod, resourceclaim
from drachma.testing import claim, device_class, node, resource_slice
from drachma.testing import pod as build_pod
from drachma.values import quantity
from tests.scenarios.churn import churning, invariants, world

Claim = resourceclaim.ResourceClaim


@pytest.mark.parametrize("seed", [1, 7, 11, 16])
async def test_churn(seed: int) -> None:
    churn = await churning.run(seed, 150)
    assert churn.operations == 150


# What the checks find


def a_pod(name: str, *claims: str, on: str = "n0", cpu: int = 0) -> pod.Pod:
    requests = {"cpu": f"{cpu}m"} if cpu else None
    made = build_pod(name).uid(name).container("main", requests=requests).on_node(on)
    for each in claims:
        made = made.claim(each, claim=each)
    return made.build()


def a_claim(name: str, device: str, *users: str, driver: str = world.GPU, **fields: Any) -> Claim:
    made = claim(name).request("r", device_class=driver).allocated(("r", driver, "n0", device))
    for each in users:
        made = made.reserved_for(each, uid=each)
    built = made.build()
    if not fields:
        return built
    assert built.status.allocation is not None
    result = msgspec.structs.replace(built.status.allocation.devices.results[0], **fields)
    allocation = resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=(result,)))
    return msgspec.structs.replace(built, status=msgspec.structs.replace(built.status, allocation=allocation))


def a_state(*objects: pod.Pod | Claim) -> invariants.State:
    pods = {each.metadata.name: each for each in objects if isinstance(each, pod.Pod)}
    claims = {each.metadata.name: each for each in objects if isinstance(each, Claim)}
    amounts = {"cpu": f"{world.CPU_MILLIS}m", "memory": "64Gi", "pods": str(world.PODS)}
    slices = (resource_slice("s", driver=world.GPU, pool="n0").on_node("n0").devices("gpu-0", "gpu-1").build(),)
    classes = (device_class(world.GPU, f'device.driver == "{world.GPU}"').build(),)
    return invariants.State(pods, claims, {"n0": node("n0", allocatable=amounts).build()}, slices, classes, ())


def consumed(**amounts: str) -> dict[str, quantity.Quantity]:
    return {name: quantity.Quantity.parse(amount) for name, amount in amounts.items()}


VIOLATIONS = [
    pytest.param(
        [a_pod("p", "a"), a_pod("q", "b"), a_claim("a", "gpu-0", "p"), a_claim("b", "gpu-0", "q")],
        "device gpu.example.com/n0/gpu-0 is in claims a and b",
        id="device-in-two-claims",
    ),
    pytest.param(
        [
            a_pod("p", "a", "b"),
            a_claim("a", "whole", "p", driver=world.PART),
            a_claim("b", "quarter-0", "p", driver=world.PART),
        ],
        "pool n0: 5 of 4 slots are taken",
        id="counter-overdrawn",
    ),
    pytest.param(
        [
            a_pod("p", "a", "b"),
            a_claim("a", "nic", "p", driver=world.NIC, consumed_capacity=consumed(bandwidth="6G")),
            a_claim("b", "nic", "p", driver=world.NIC, consumed_capacity=consumed(bandwidth="5G")),
        ],
        "pool n0: 11G of 10G is consumed",
        id="capacity-overdrawn",
    ),
    pytest.param(
        [
            a_pod("p", "a", cpu=6001),
            a_claim("a", "socket", "p", driver=world.SOCKET, consumed_capacity=consumed(cpu="2")),
        ],
        "node n0: 8001 of 8000 millicores are taken",
        id="node-over-its-allocatable",
    ),
    pytest.param(
        [
            a_pod("p", "a"),
            a_pod("q", "a"),
            a_claim("a", "socket", "p", "q", driver=world.SOCKET, consumed_capacity=consumed(cpu="2")),
        ],
        "claim a is for one pod only, and used by p, q",
        id="node-allocatable-claim-in-two-pods",
    ),
    pytest.param([a_pod(f"p{i}") for i in range(13)], "node n0: 13 pods", id="too-many-pods"),
    pytest.param([a_pod("p", "a")], "one of its claims does not exist", id="claim-is-gone"),
    pytest.param([a_pod("p", "a"), claim("a").build()], "claim a is not allocated", id="claim-is-not-allocated"),
    pytest.param([a_pod("p", "a"), a_claim("a", "gpu-0", "q")], "is not reserved for it", id="claim-of-another"),
]
AT_REST = [
    pytest.param([a_claim("a", "gpu-0", "p")], "claim a is reserved for p, which is gone", id="reservation-is-left"),
    pytest.param(
        [a_claim("a", "gpu-0"), a_claim("b", "gpu-0")], "is in claims a and b", id="unused-claims-with-one-device"
    ),
    pytest.param(
        [claim("a").owner("Pod", "p", uid="p").build()], "claim a was made for p, which is gone", id="claim-is-left"
    ),
    pytest.param([a_pod("p", on="")], "pod p is pending, and would fit on n0", id="pod-is-forgotten"),
    pytest.param(
        [a_pod("p", "a", on=""), claim("a").request("r", device_class=world.GPU, count=2, mode="ExactCount").build()],
        "pod p is pending, and would fit on n0",
        id="pod-with-a-claim-is-forgotten",
    ),
]


@pytest.mark.parametrize(("objects", "message"), VIOLATIONS)
def test_what_must_always_hold(objects: list[Any], message: str) -> None:
    with pytest.raises(invariants.ViolationError, match=message):
        invariants.check_always(a_state(*objects))


@pytest.mark.parametrize(("objects", "message"), AT_REST)
def test_what_must_hold_at_rest(objects: list[Any], message: str) -> None:
    invariants.check_always(a_state(*objects))
    with pytest.raises(invariants.ViolationError, match=message):
        invariants.check_at_rest(a_state(*objects))


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([a_pod("p", "a"), a_pod("q", "a"), a_claim("a", "gpu-0", "p", "q")], id="shared-claim"),
        pytest.param([a_pod("p", cpu=8000), a_pod("q", on="", cpu=1)], id="nothing-left-of-the-node"),
        pytest.param([a_pod("q", "b", on="")], id="claim-does-not-exist-yet"),
    ],
)
def test_what_is_right(objects: list[Any]) -> None:
    invariants.check_at_rest(a_state(*objects))
