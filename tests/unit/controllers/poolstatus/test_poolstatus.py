"""Questions about pools of devices: what is answered, when, and how long it stays."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from drachma.api import devicetaintrule, meta, resourceclaim, resourceslice
from drachma.api import resourcepoolstatusrequest as question
from drachma.controllers import poolstatus as controllers
from drachma.controllers.poolstatus import poolstatus, poolstatuscontroller
from tests.unit.controllers import worlds

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DRIVER = "gpu.example.com"


def a_slice(name: str, *devices: dict[str, Any], pool: str = "p", **more: Any) -> resourceslice.ResourceSlice:
    generation, count = more.pop("generation", 1), more.pop("count", 1)
    spec = {
        "driver": DRIVER,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        "nodeName": "n",
        "devices": list(devices),
        **more,
    }
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, resourceslice.ResourceSlice, dec_hook=_hook)


def _hook(kind: Any, value: Any) -> Any:
    return kind.parse(value)


def a_claim(*devices: str, pool: str = "p", **more: Any) -> resourceclaim.ResourceClaim:
    results = [{"driver": DRIVER, "pool": pool, "device": each, "request": "r", **more} for each in devices]
    status = {"allocation": {"devices": {"results": results}}}
    return msgspec.convert({"metadata": {"name": "c"}, "status": status}, resourceclaim.ResourceClaim, dec_hook=_hook)


def asked(*slices: resourceslice.ResourceSlice, claims: Any = (), rules: Any = (), **spec: Any) -> dict[str, Any]:
    wanted = question.ResourcePoolStatusRequestSpec(driver=DRIVER, **spec)
    return poolstatus.answer(wanted, poolstatus.Cluster(slices, claims, rules), NOW)


def counts(pool: dict[str, Any]) -> tuple[int, ...]:
    fields = ("totalDevices", "allocatedDevices", "availableDevices", "unavailableDevices")
    return tuple(pool[field] for field in fields)


def test_devices_are_counted() -> None:
    tainted = {"name": "c", "taints": [{"key": "k", "effect": "NoSchedule"}]}
    status = asked(
        a_slice("s", {"name": "a"}, {"name": "b"}, tainted, {"name": "d"}),
        claims=[a_claim("a"), a_claim("a"), a_claim("b", adminAccess=True)],
    )
    (pool,) = status["pools"]
    assert counts(pool) == (4, 1, 2, 1)
    assert (pool["nodeName"], pool["generation"], pool["resourceSliceCount"]) == ("n", 1, 1)
    assert status["conditions"][0]["message"] == "Calculated status for 1 pools"


def test_rules_taint_devices_too() -> None:
    selector = devicetaintrule.DeviceTaintSelector(pool="p", device="a")
    rule = devicetaintrule.DeviceTaintRule(
        spec=msgspec.convert(
            {"deviceSelector": msgspec.to_builtins(selector), "taint": {"key": "k", "effect": "NoExecute"}},
            devicetaintrule.DeviceTaintRuleSpec,
        )
    )
    (pool,) = asked(a_slice("s", {"name": "a"}, {"name": "b"}), rules=[rule])["pools"]
    assert counts(pool) == (2, 0, 1, 1)


def test_only_the_newest_generation_counts_and_must_be_whole() -> None:
    old, new = a_slice("s1", {"name": "a"}), a_slice("s2", {"name": "b"}, generation=2, count=2)
    status = asked(old, new)
    (pool,) = status["pools"]
    want = f"PoolIncomplete: pool {DRIVER}/p is incomplete: observed 1/2 slices at generation 2"
    assert (pool["validationError"], "totalDevices" in pool) == (want, False)
    assert poolstatus.is_preliminary(status)
    assert status["conditions"][0]["message"] == "Calculated status for 1 pools (1 incomplete)"


def test_as_many_pools_as_are_asked_for_by_name() -> None:
    slices = [a_slice(f"s{name}", pool=name) for name in "cab"]
    status = asked(*slices, limit=2)
    assert ([pool["poolName"] for pool in status["pools"]], status["poolCount"]) == (["a", "b"], 3)
    assert [pool["poolName"] for pool in asked(*slices, pool_name="c")["pools"]] == ["c"]


def partition(name: str, kind: str, amount: str) -> dict[str, Any]:
    consumption = {"counterSet": "card", "counters": {"memory": {"value": amount}}}
    return {"name": name, "attributes": {"profile": {"string": kind}}, "consumesCounters": [consumption]}


COUNTERS = [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]
PARTITIONS = [partition("s0", "small", "10Gi"), partition("s1", "small", "10Gi"), partition("l0", "large", "40Gi")]


def test_partitions_that_still_fit() -> None:
    pool = asked(
        a_slice("s", *PARTITIONS, sharedCounters=COUNTERS, partitionTypeAttribute=f"{DRIVER}/profile"),
        claims=[a_claim("s0")],
    )["pools"][0]
    attribute = f"{DRIVER}/profile"
    assert pool["partitionSummary"] == [
        {"attribute": attribute, "type": "large", "total": 1, "allocatable": 0},
        {"attribute": attribute, "type": "small", "total": 2, "allocatable": 1},
    ]


@pytest.mark.parametrize(
    ("devices", "more", "want"),
    [
        pytest.param(
            PARTITIONS,
            {"partitionTypeAttribute": "x"},
            f"PartitionTypeMissing: pool {DRIVER}/p declares partitionTypeAttribute but publishes no sharedCounters",
            id="no-counters",
        ),
        pytest.param(
            PARTITIONS,
            {"partitionTypeAttribute": "x", "sharedCounters": COUNTERS},
            f'PartitionTypeMissing: device "s0" in pool {DRIVER}/p does not carry partition type attribute "x"',
            id="no-type",
        ),
        pytest.param(
            [PARTITIONS[0], partition("s1", "small", "1Gi")],
            {"partitionTypeAttribute": "profile", "sharedCounters": COUNTERS},
            f'PartitionCostMismatch: devices of partition type "small" in pool {DRIVER}/p consume different counters',
            id="not-alike",
        ),
    ],
)
def test_pools_that_are_not_clear(devices: list[dict[str, Any]], more: dict[str, Any], want: str) -> None:
    status = asked(a_slice("s", *devices, **more))
    (pool,) = status["pools"]
    assert (pool["validationError"], "partitionSummary" in pool, pool["totalDevices"]) == (want, False, len(devices))
    assert not poolstatus.is_preliminary(status)


def test_the_questions_attribute_counts_where_no_slice_names_one() -> None:
    slices = a_slice("s", *PARTITIONS, sharedCounters=COUNTERS)
    (pool,) = asked(slices, default_partition_type_attribute="profile")["pools"]
    assert [each["type"] for each in pool["partitionSummary"]] == ["large", "small"]
    assert "partitionSummary" not in asked(slices)["pools"][0]


def test_capacity_that_claims_share() -> None:
    shared = [
        {"name": name, "allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}} for name in "ab"
    ]
    (pool,) = asked(a_slice("s", *shared), claims=[a_claim("a", consumedCapacity={"memory": "4Gi"})])["pools"]
    assert pool["shareableSummary"] == {
        "fullyAvailableDevices": 1,
        "partiallyAvailableDevices": 1,
        "capacity": [{"name": "memory", "total": "20Gi", "consumed": "4Gi", "available": "16Gi"}],
    }


def a_request(name: str = "r") -> question.ResourcePoolStatusRequest:
    spec = question.ResourcePoolStatusRequestSpec(driver=DRIVER)
    return question.ResourcePoolStatusRequest(metadata=meta.ObjectMeta(name=name), spec=spec)


async def test_a_question_is_answered_once_and_goes() -> None:
    async with worlds.world(controllers.ResourcePoolStatusController) as world:
        await world.create(a_slice("s", {"name": "a"}))
        request = await world.create(a_request())
        await world.settle()
        answered = (await world.get(request)).status
        assert answered is not None
        assert (answered.pool_count, len(answered.pools)) == (1, 1)
        await world.create(a_slice("t", {"name": "a"}, pool="q"))
        await world.settle()
        assert (await world.get(request)).status == answered
        await world.advance(3600.0 + poolstatuscontroller.PERIOD)
        assert not await world.exists(request)


async def test_a_pool_that_is_not_whole_is_waited_for() -> None:
    async with worlds.world(controllers.ResourcePoolStatusController) as world:
        await world.create(a_slice("s", {"name": "a"}, count=2))
        request = await world.create(a_request())
        await world.settle()
        assert (await world.get(request)).status is None
        await world.create(a_slice("t", {"name": "b"}, count=2))
        await world.advance(60.0)
        answered = (await world.get(request)).status
        assert answered is not None
        assert answered.pools[0]["totalDevices"] == 2


def aged(hours: float, *, kind: str = "", is_answered: bool = True) -> question.ResourcePoolStatusRequest:
    then = NOW - dt.timedelta(hours=hours)
    conditions = (meta.Condition(type=kind, status="True", last_transition_time=then),) if kind else ()
    status = question.ResourcePoolStatusRequestStatus(conditions=conditions) if is_answered else None
    return question.ResourcePoolStatusRequest(
        metadata=meta.ObjectMeta(name="r", creation_timestamp=then), status=status
    )


@pytest.mark.parametrize(
    ("request_", "want"),
    [
        pytest.param(aged(0.9, kind="Complete"), False, id="answered"),
        pytest.param(aged(1.1, kind="Complete"), True, id="answered-long-ago"),
        pytest.param(aged(1.1, kind="Failed"), True, id="failed-long-ago"),
        pytest.param(aged(1.1), True, id="answered-without-a-word"),
        pytest.param(aged(23, is_answered=False), False, id="pending"),
        pytest.param(aged(25, is_answered=False), True, id="pending-for-too-long"),
    ],
)
def test_when_one_is_over(request_: question.ResourcePoolStatusRequest, want: bool) -> None:
    assert poolstatuscontroller.is_over(request_, NOW) is want
