"""A little of the churn in every run of the suite (``make soak`` does it at length), and that its checks can fail."""

import pathlib
from typing import Any

import msgspec
import pytest

from drachma.api import meta, pod, resourceclaim
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.scheduler.recording import recordlines
from drachma.simulate import replay
from drachma.structured import claims as alpha_claims
from drachma.structured import counterpart
from drachma.testing import claim, device_class, node, resource_slice
from drachma.testing import pod as build_pod
from drachma.values import quantity
from tests.scenarios.churn import churning, generations, invariants, mixing, world
from tests.scenarios.churn.violation import ViolationError

Claim = resourceclaim.ResourceClaim


@pytest.mark.parametrize("seed", [7, 11, 16])
async def test_churn(seed: int) -> None:
    churn = await churning.run(seed, 150)
    assert churn.operations == 150


@pytest.mark.parametrize("seed", [1, 2])
async def test_churn_of_two_generations(seed: int) -> None:
    churn = await churning.run(seed, 100, kind=mixing.MixedChurn)
    assert churn.operations == 100


async def test_decisions_of_a_churn_come_out_the_same_when_they_are_replayed(tmp_path: pathlib.Path) -> None:
    await churning.run(1, 150, records=tmp_path)
    repeated = 0
    for record in tmp_path.iterdir():
        with record.open("rb") as file:
            outcome = replay.replay(recordlines.decode(file))
        assert (outcome.difference, outcome.missed, outcome.torn) == (None, 0, 0)
        repeated += outcome.decisions
    assert repeated > 50


# What the checks find


def a_pod(name: str, *claims: str, on: str = "n0", cpu: int = 0) -> pod.Pod:
    requests = {"cpu": f"{cpu}m"} if cpu else None
    made = build_pod(name).uid(name).container("main", requests=requests).on_node(on)
    for each in claims:
        made = made.claim(each, claim=each)
    return made.build()


def a_claim(
    name: str, device: str, *users: str, driver: str = world.GPU, pool: str = "n0", notes: Any = None, **fields: Any
) -> Claim:
    made = claim(name).request("r", device_class=driver).allocated(("r", driver, pool, device))
    for key, text in (notes or {}).items():
        made = made.annotation(key, text)
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
    pytest.param(
        [a_pod("p", "a"), a_pod("q", "b"), a_claim("a", "gpu-0", "p"), a_claim("b", "gpu-0", "q", pool="n0/v1alpha2")],
        "device gpu.example.com/n0/gpu-0 is in claims a and b",
        id="device-in-claims-of-two-generations",
    ),
    pytest.param(
        [
            a_pod("p", "a"),
            a_pod("q", "a"),
            a_claim("a", "gpu-0", "p", "q", notes={counterpart.CLAIM: "u", counterpart.EXCLUSIVE: "true"}),
        ],
        "claim a is for one pod only, and used by p, q",
        id="exclusive-claim-in-two-pods",
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
    with pytest.raises(ViolationError, match=message):
        invariants.check_always(a_state(*objects))


@pytest.mark.parametrize(("objects", "message"), AT_REST)
def test_what_must_hold_at_rest(objects: list[Any], message: str) -> None:
    invariants.check_always(a_state(*objects))
    with pytest.raises(ViolationError, match=message):
        invariants.check_at_rest(a_state(*objects))


def an_original(*, uid: str = "u", **status: Any) -> alpha.ResourceClaim:
    finalizers = (alpha_claims.FINALIZER,) if status else ()
    metadata = meta.ObjectMeta(name="a", namespace="default", uid=uid, finalizers=finalizers)
    return alpha.ResourceClaim(metadata=metadata, status=alpha.ResourceClaimStatus(**status))


@pytest.mark.parametrize(
    ("original", "slices", "message"),
    [
        pytest.param(an_original(), (), "do not agree whether it is allocated", id="allocation-is-not-told"),
        pytest.param(
            an_original(allocation=alpha.AllocationResult()), (), "do not agree who uses it", id="user-is-not-told"
        ),
        pytest.param(
            an_original(uid="another", allocation=alpha.AllocationResult()),
            (),
            "do not agree whether it is allocated",
            id="allocation-of-another-claim",
        ),
        pytest.param(None, ("n0", "n0/v1alpha2"), "is shown 2 times", id="device-is-shown-twice"),
        pytest.param(None, ("n0/v1alpha2",), "that nobody publishes", id="stand-in-is-left"),
    ],
)
def test_what_must_hold_between_generations(
    original: alpha.ResourceClaim | None, slices: tuple[str, ...], message: str
) -> None:
    own = a_claim("a", "gpu-0", "p", notes={counterpart.CLAIM: "u"})
    published = [
        resource_slice(pool, driver=world.GPU, pool=pool).on_node("n0").devices("gpu-0").build() for pool in slices
    ]
    originals = {} if original is None else {"a": original}
    with pytest.raises(ViolationError, match=message):
        generations.check(originals, {"a": own}, published=published, node_slices=())


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
