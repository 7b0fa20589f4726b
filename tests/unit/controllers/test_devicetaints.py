"""Device taint eviction: who has to go, when, what is told about it, and what the rules' status says."""

import datetime as dt
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import structs

from drachma.api import devices, devicetaintrule, gates, pod, resourceclaim
from drachma.controllers.devicetaints import DeviceTaintEviction
from drachma.testing import SliceBuilder, device, resource_slice, taint_rule
from drachma.testing import manualclock as clocks
from tests.unit.controllers import builders, worlds

Claim = resourceclaim.ResourceClaim
Rule = devicetaintrule.DeviceTaintRule

FOR_EVER = devices.DeviceToleration(operator="Exists", effect="NoExecute")
TEN_SECONDS = devices.DeviceToleration(operator="Exists", effect="NoExecute", toleration_seconds=10)


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(DeviceTaintEviction) as running_world:
        yield running_world


async def using(
    world: worlds.World, name: str = "p", *, device: str = "gpu-0", tolerations: tuple[Any, ...] = ()
) -> pod.Pod:
    """A running pod with a device."""
    user = await world.create(builders.user(name, of=f"claim-of-{name}").on_node("n").phase("Running").build())
    claim = await world.create(builders.a_claim(f"claim-of-{name}"))
    content = {
        "allocation": builders.allocation(device, tolerations=tolerations),
        "reservedFor": builders.consumers(user),
    }
    await world.patch_status(claim, content)
    return user


def a_slice(*names: str, generation: int = 1, name: str = "s") -> SliceBuilder:
    return (
        resource_slice(name, driver=builders.DRIVER, pool="pool", generation=generation).on_all_nodes().devices(*names)
    )


def a_rule(name: str = "r", **fields: Any) -> Rule:
    return taint_rule(name, **{"key": "broken", "effect": "NoExecute", "driver": builders.DRIVER, **fields}).build()


async def going(world: worlds.World) -> list[str]:
    return [each.metadata.name for each in await world.all_of(pod.Pod) if each.metadata.deletion_timestamp is not None]


async def test_a_tainted_device_is_left(world: worlds.World) -> None:
    await world.create(a_slice("gpu-1").devices(device("gpu-0").taint("broken", effect="NoExecute")).build())
    await using(world, "p")
    await using(world, "q", device="gpu-1")
    await world.settle()
    assert await going(world) == ["p"]
    (matching_pods,) = (each for each in await world.all_of(pod.Pod) if each.metadata.name == "p")
    (why,) = (each for each in matching_pods.status.conditions if each.type == "DisruptionTarget")
    assert (why.status, why.reason, why.message) == (
        "True",
        "DeletionByDeviceTaintManager",
        "Device Taint manager: deleting due to NoExecute taint",
    )
    assert await world.events() == ["Normal DeviceTaintManagerEviction: Marking for deletion"]
    assert world.metric("device_taint_eviction_controller_pod_deletions_total") == 1


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
async def test_other_effects_do_not_evict(world: worlds.World, effect: str) -> None:
    await world.create(a_slice().devices(device("gpu-0").taint("broken", effect=effect)).build())
    await world.create(a_rule(effect=effect))
    await using(world)
    await world.advance(60)
    assert await going(world) == []


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({}, ["p"], id="driver"),
        pytest.param({"pool": "pool"}, ["p"], id="pool"),
        pytest.param({"pool": "pool", "device": "gpu-0"}, ["p"], id="device"),
        pytest.param({"driver": None}, ["p"], id="everything"),
        pytest.param({"driver": "other.example.com"}, [], id="another-driver"),
        pytest.param({"pool": "other"}, [], id="another-pool"),
        pytest.param({"device": "gpu-7"}, [], id="another-device"),
    ],
)
async def test_rules_select_devices(world: worlds.World, fields: dict[str, Any], want: list[str]) -> None:
    await using(world)
    await world.create(a_rule(**fields))
    await world.settle()
    assert await going(world) == want, "whether or not a driver publishes the device"


async def test_a_rule_comes_before_the_pod(world: worlds.World) -> None:
    await world.create(a_rule())
    await using(world)
    await world.settle()
    assert await going(world) == ["p"]


# Tolerations


async def test_tolerated_for_ever(world: worlds.World) -> None:
    await using(world, tolerations=(FOR_EVER, TEN_SECONDS))
    await world.create(a_rule())
    await world.advance(3600)
    assert await going(world) == []


async def test_tolerated_for_a_while(world: worlds.World) -> None:
    await using(world, tolerations=(TEN_SECONDS,))
    await world.create(a_rule())
    await world.advance(9)
    assert await going(world) == []
    await world.advance(1)
    assert await going(world) == ["p"]


async def test_time_counts_from_when_the_taint_was_added(world: worlds.World) -> None:
    rule = a_rule()
    added = clocks.START - dt.timedelta(seconds=7)
    spec = {"time_added": added}
    await using(world, tolerations=(TEN_SECONDS,))
    await world.create(with_taint(rule, **spec))
    await world.advance(2)
    assert await going(world) == []
    await world.advance(1)
    assert await going(world) == ["p"]


def with_taint(rule: Rule, **fields: Any) -> Rule:
    return structs.replace(rule, spec=structs.replace(rule.spec, taint=structs.replace(rule.spec.taint, **fields)))


async def test_the_shortest_of_several_tolerations_counts(world: worlds.World) -> None:
    longer = devices.DeviceToleration(operator="Exists", effect="NoExecute", toleration_seconds=100)
    await using(world, tolerations=(longer, TEN_SECONDS))
    await world.create(a_rule())
    await world.advance(10)
    assert await going(world) == ["p"]


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        pytest.param({"key": "broken", "operator": "Exists", "effect": "NoExecute"}, [], id="key-exists"),
        pytest.param({"key": "broken", "operator": "Equal", "value": "v", "effect": "NoExecute"}, [], id="equal"),
        pytest.param(
            {"key": "broken", "operator": "Equal", "value": "w", "effect": "NoExecute"}, ["p"], id="other-value"
        ),
        pytest.param({"key": "other", "operator": "Exists", "effect": "NoExecute"}, ["p"], id="other-key"),
        pytest.param({"operator": "Exists"}, ["p"], id="no-effect-named"),
    ],
)
async def test_what_tolerations_match(world: worlds.World, toleration: dict[str, Any], want: list[str]) -> None:
    await using(world, tolerations=(devices.DeviceToleration(**toleration),))
    await world.create(a_rule(value="v"))
    await world.settle()
    assert await going(world) == want


# News


async def test_a_taint_that_goes_in_time(world: worlds.World) -> None:
    await using(world, tolerations=(TEN_SECONDS,))
    rule = await world.create(a_rule())
    await world.advance(5)
    await world.delete(rule)
    await world.advance(60)
    assert await going(world) == []
    assert await world.events() == ["Normal DeviceTaintManagerEviction: Cancelling deletion"]


async def test_a_new_generation_of_the_pool_counts(world: worlds.World) -> None:
    tainted = device("gpu-0").taint("broken", effect="NoExecute")
    await world.create(a_slice().devices(tainted).build())
    await using(world, tolerations=(TEN_SECONDS,))
    await world.advance(5)
    await world.create(a_slice("gpu-0", generation=2, name="newer").build())
    await world.advance(60)
    assert await going(world) == []


async def test_a_device_is_tainted_later(world: worlds.World) -> None:
    created_slice = await world.create(a_slice("gpu-0").build())
    await using(world)
    await world.settle()
    tainted = a_slice().devices(device("gpu-0").taint("broken", effect="NoExecute")).build()
    await world.patch(created_slice, {"spec": {"devices": tainted.spec.devices}})
    await world.settle()
    assert await going(world) == ["p"]


async def test_a_claim_that_is_given_back_in_time(world: worlds.World) -> None:
    await using(world, tolerations=(TEN_SECONDS,))
    await world.create(a_rule())
    await world.advance(5)
    claim = await world.find(Claim, "claim-of-p")
    assert claim is not None
    await world.patch_status(claim, {"allocation": None, "reservedFor": None})
    await world.advance(60)
    assert await going(world) == []


async def test_pods_without_a_node_are_not_evicted(world: worlds.World) -> None:
    waiting = await world.create(builders.user("p").build())
    claim = await world.create(builders.a_claim())
    await world.patch_status(claim, {"allocation": builders.allocation(), "reservedFor": builders.consumers(waiting)})
    await world.create(a_rule())
    await world.advance(60)
    assert await going(world) == []
    await world.client.bind(waiting, node="n")
    await world.settle()
    assert await going(world) == ["p"]


async def test_a_pod_that_the_claim_is_not_for_stays(world: worlds.World) -> None:
    await using(world)
    await world.create(builders.user("other", of="claim-of-p").on_node("n").phase("Running").build())
    await world.create(a_rule())
    await world.settle()
    assert await going(world) == ["p"]


async def test_a_generated_claim_of_somebody_else_does_not_count(world: worlds.World) -> None:
    user = await world.create(builders.a_pod("p", gpu="t").on_node("n").phase("Running").build())
    await world.patch_status(user, {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]})
    claim = await world.create(builders.a_claim())
    await world.patch_status(claim, {"allocation": builders.allocation(), "reservedFor": builders.consumers(user)})
    await world.create(a_rule())
    await world.settle()
    assert await going(world) == []


async def test_a_replaced_pod_is_not_deleted() -> None:
    """Between the decision and the deletion another pod takes the name."""
    replaced = False
    world: worlds.World

    async def replace(verb: str, kind: Any, *_: Any, **options: Any) -> None:
        nonlocal replaced
        if verb == "delete" and kind is pod.Pod and not replaced:
            replaced = True
            old = await world.find(pod.Pod, "p")
            assert old is not None
            await world.delete(old, grace_period_seconds=0)
            await world.create(builders.user("p", of="other").on_node("n").phase("Running").build())

    async with worlds.world(DeviceTaintEviction, wrap=worlds.meddling(replace)) as running_world:
        world = running_world
        await using(world)
        await world.create(a_rule())
        await world.advance(10)
        assert replaced
        assert await going(world) == []


# Status of rules


async def condition(world: worlds.World, name: str = "r") -> str:
    rule = await world.find(Rule, name, "")
    assert rule is not None
    (found,) = rule.status.conditions
    assert found.type == "EvictionInProgress"
    assert found.observed_generation == rule.metadata.generation
    return f"{found.status} {found.reason}: {found.message}"


async def test_status_of_a_rule_that_evicts(world: worlds.World) -> None:
    for name in ("p", "q"):
        await using(world, name, tolerations=(TEN_SECONDS,))
    await world.create(a_rule())
    await world.settle()
    assert await condition(world) == "True PodsPendingEviction: 2 pods need to be evicted in 1 namespace."
    await world.advance(30)
    assert await condition(world) == "False Completed: 2 pods evicted since starting the controller."


async def test_status_of_a_rule_without_work(world: worlds.World) -> None:
    await world.create(a_rule())
    await world.settle()
    assert await condition(world) == "False NotStarted: "


async def test_status_of_a_rule_that_does_not_evict(world: worlds.World) -> None:
    await world.create(a_rule(effect="NoSchedule"))
    await world.settle()
    assert await condition(world) == "False OtherEffect: Eviction only happens for the NoExecute effect."


async def test_a_rule_without_effect_tells_what_it_would_do(world: worlds.World) -> None:
    await world.create(a_slice("gpu-0", "gpu-1").build())
    await world.create(a_slice("gpu-0", generation=0, name="older").build())
    await using(world)
    await world.create(a_rule(effect="None"))
    await world.settle()
    assert await condition(world) == (
        "False NoEffect: 2 published devices selected. 1 allocated device selected. "
        "1 pod would be evicted in 1 namespace if the effect was NoExecute. "
        "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
    )
    assert await going(world) == []


async def test_status_is_not_written_all_the_time() -> None:
    writes = 0

    def count(verb: str, kind: Any, *_: Any, **options: Any) -> None:
        nonlocal writes
        writes += verb == "patch" and kind is Rule

    async with worlds.world(DeviceTaintEviction, wrap=worlds.meddling(count)) as world:
        await world.create(a_rule())
        for number in range(5):
            await using(world, f"p{number}")
            await world.advance(1)
        assert writes == 1
        await world.advance(60)
        assert writes == 2
        assert await condition(world) == "False Completed: 5 pods evicted since starting the controller."


async def test_a_changed_rule_is_told_at_once(world: worlds.World) -> None:
    rule = await world.create(a_rule(effect="NoSchedule"))
    await world.settle()
    await world.patch(rule, {"spec": {"taint": {"effect": "NoExecute"}}})
    await world.settle()
    assert await condition(world) == "False NotStarted: "


async def test_conditions_of_others_stay(world: worlds.World) -> None:
    rule = await world.create(a_rule(effect="NoSchedule"))
    await world.settle()
    (own,) = (await world.get(rule)).status.conditions
    other = {
        "type": "Mine",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": own.last_transition_time,
    }
    await world.patch_status(rule, {"conditions": [other, own]})
    await world.patch(rule, {"spec": {"taint": {"effect": "NoExecute"}}})
    await world.settle()
    assert [each.type for each in (await world.get(rule)).status.conditions] == ["Mine", "EvictionInProgress"]


async def test_rules_can_be_switched_off() -> None:
    off = gates.ALL.switched({gates.Gate.DEVICE_TAINT_RULES: False})
    async with worlds.world(DeviceTaintEviction, gates=off) as world:
        await using(world)
        rule = await world.create(a_rule())
        await world.advance(60)
        assert await going(world) == []
        assert (await world.get(rule)).status.conditions == ()
