"""Why a device is not usable: a named case for every cause, with the values that it shows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec import structs

from drachma import allocator
from drachma.allocator import allocated
from drachma.allocator.explanation import cause
from drachma.api import nodeselector, resourceclaim, resourceslice
from drachma.testing import ClaimBuilder, claim, device, device_class, resource_slice, subrequest, taint_rule
from drachma.values import quantity
from tests.unit.allocator import explained
from tests.unit.allocator.explained import DRIVER, NODE, gpus, source

ONE = claim("c").request("r", device_class="gpu")
TWO = claim("c").request("r", device_class="gpu", count=2)
HAS_MODEL = f'device.attributes["{DRIVER}"].model == "a100"'
HAS_MEMORY = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
PLANET = nodeselector.NodeSelector(
    node_selector_terms=(
        nodeselector.NodeSelectorTerm(
            match_expressions=(nodeselector.NodeSelectorRequirement(key="planet", operator="In", values=("mars",)),)
        ),
    )
)
POLICY = resourceslice.DeviceCapacity(
    value=quantity.Quantity.parse("10Gi"),
    request_policy=resourceslice.CapacityRequestPolicy(
        default=quantity.Quantity.parse("1Gi"),
        valid_values=(quantity.Quantity.parse("1Gi"), quantity.Quantity.parse("2Gi")),
    ),
)


CASES: list[object] = [
    pytest.param(
        source([gpus("g0"), resource_slice("far", driver=DRIVER).on_node("node-2").devices("g1", "g2")]),
        TWO,
        {cause.NotReachable(because="their slice is for another node"): ("g1", "g2")},
        id="not-reachable-slice-of-another-node",
    ),
    pytest.param(
        source([resource_slice("net", driver=DRIVER).on_nodes(PLANET).devices("g1")]),
        ONE,
        {cause.NotReachable(because="the node selector of their slice does not match the node"): ("g1",)},
        id="not-reachable-node-selector",
    ),
    pytest.param(
        source(
            [
                resource_slice("net", driver=DRIVER)
                .per_device()
                .devices(device("g0").on_node(NODE), device("g1").on_node("node-2"))
            ]
        ),
        TWO,
        {cause.NotReachable(because="their own node selection does not include the node"): ("g1",)},
        id="not-reachable-by-the-device-itself",
    ),
    pytest.param(
        source([gpus("g0", slices=2)]),
        ONE,
        {
            cause.PoolUnusable(
                pool=f"{DRIVER}/gpus", state="incomplete", detail="1 of 2 slices of generation 1 are published"
            ): ("g0",)
        },
        id="pool-incomplete",
    ),
    pytest.param(
        source([gpus("g0", "g0")]),
        ONE,
        {
            cause.PoolUnusable(pool=f"{DRIVER}/gpus", state="invalid", detail="duplicate device name g0"): (
                "g0",
                "g0",
            )
        },
        id="pool-invalid",
    ),
    pytest.param(
        source(
            [
                resource_slice("old", driver=DRIVER, pool="p", slices=2).on_node(NODE).devices("g0"),
                resource_slice("new", driver=DRIVER, pool="p", generation=2, slices=2).on_node("node-2").devices("g1"),
            ]
        ),
        ONE,
        {
            cause.PoolUnusable(
                pool=f"{DRIVER}/p", state="outdated", detail="the node sees generation 1 and there is a newer one"
            ): ("g0",),
            cause.NotReachable(because="their slice is for another node"): ("g1",),
        },
        id="pool-outdated",
    ),
    pytest.param(
        source([resource_slice("nics", driver="nic.example.com").on_node(NODE).devices("n0", "n1")]),
        ONE,
        {
            cause.ClassSelector(
                class_name="gpu",
                number=0,
                expression=f'device.driver == "{DRIVER}"',
                read=(cause.Reading("driver", "nic.example.com"),),
            ): ("n0", "n1")
        },
        id="class-selector",
    ),
    pytest.param(
        source(
            [gpus(device("g0").attribute("model", "t4").attribute("index", 0), device("g1").attribute("model", "v100"))]
        ),
        claim("c").request("r", device_class="gpu", select=("true", HAS_MODEL)),
        {
            cause.RequestSelector(number=1, expression=HAS_MODEL, read=(cause.Reading(f"{DRIVER}/model", "t4"),)): (
                "g0",
            ),
            cause.RequestSelector(number=1, expression=HAS_MODEL, read=(cause.Reading(f"{DRIVER}/model", "v100"),)): (
                "g1",
            ),
        },
        id="request-selector-shows-attributes-read",
    ),
    pytest.param(
        source([gpus(device("g0").capacity("memory", "16Gi"), device("g1").capacity("memory", "16Gi"))]),
        claim("c").request("r", device_class="gpu", select=HAS_MEMORY),
        {
            cause.RequestSelector(number=0, expression=HAS_MEMORY, read=(cause.Reading(f"{DRIVER}/memory", "16Gi"),)): (
                "g0",
                "g1",
            )
        },
        id="request-selector-shows-capacity-read",
    ),
    pytest.param(
        source([gpus("g0")]),
        claim("c").request("r", device_class="gpu", select=f'has(device.attributes["{DRIVER}"].model)'),
        {
            cause.RequestSelector(
                number=0,
                expression=f'has(device.attributes["{DRIVER}"].model)',
                read=(cause.Reading(f"{DRIVER}/model", None),),
            ): ("g0",)
        },
        id="request-selector-shows-what-is-not-there",
    ),
    pytest.param(
        source([gpus("g0")]),
        claim("c").request("r", device_class="gpu", select=HAS_MODEL),
        {
            cause.Failure(
                message=f"claim default/c: selector #0 on device {DRIVER}/gpus/g0: CEL runtime error: no such key: "
                "model. consider using CEL optional chaining (.? followed by orValue()) "
                "or guarding the check with has() for optional fields"
            ): ("g0",)
        },
        id="selector-that-fails",
    ),
    pytest.param(
        source([gpus(device("g0").taint("broken", value="yes").taint("hot", effect="NoExecute"), device("g1"))]),
        TWO,
        {
            cause.Tainted(
                taints=(
                    cause.Taint(key="broken", value="yes", effect="NoSchedule"),
                    cause.Taint(key="hot", effect="NoExecute"),
                )
            ): ("g0",)
        },
        id="tainted",
    ),
    pytest.param(
        source([gpus("g0")], rules=[taint_rule("all-out", key="maintenance", driver=DRIVER).build()]),
        ONE,
        {cause.Tainted(taints=(cause.Taint(key="maintenance", effect="NoSchedule"),)): ("g0",)},
        id="tainted-by-a-rule",
    ),
    pytest.param(
        source([gpus("g0")], held=[claim("x").allocated(("r", DRIVER, "gpus", "g0"))]),
        ONE,
        {cause.Held(claims=("default/x",)): ("g0",)},
        id="already-allocated",
    ),
    pytest.param(
        source(
            [
                resource_slice("sets", driver=DRIVER, pool="p", slices=2).on_node(NODE).counters("card", memory="80Gi"),
                resource_slice("parts", driver=DRIVER, pool="p", slices=2)
                .on_node(NODE)
                .devices(
                    device("half").consumes("card", memory="40Gi"), device("whole").consumes("card", memory="80Gi")
                ),
            ],
            held=[claim("x").allocated(("r", DRIVER, "p", "half"))],
        ),
        ONE,
        {
            cause.CounterExhausted(
                pool=f"{DRIVER}/p",
                counter_set="card",
                counter="memory",
                needed="80Gi",
                left="40Gi",
                claims=("default/x",),
            ): ("whole",),
            cause.Held(claims=("default/x",)): ("half",),
        },
        id="counter-exhausted",
    ),
    pytest.param(
        source([gpus(device("g0").capacity("memory", "16Gi"))]),
        claim("c").request("r", device_class="gpu", capacity={"memory": "40Gi"}),
        {cause.CapacityShort(capacity="memory", needed="40Gi", left="16Gi"): ("g0",)},
        id="capacity-too-small",
    ),
    pytest.param(
        source(
            [gpus(device("g0").capacity("memory", "16Gi").shared())],
            held=[explained.consuming(claim("x").allocated(("r", DRIVER, "gpus", "g0")), memory="10Gi")],
        ),
        claim("c").request("r", device_class="gpu", capacity={"memory": "8Gi"}),
        {cause.CapacityShort(capacity="memory", needed="8Gi", left="6Gi", claims=("default/x",)): ("g0",)},
        id="capacity-shared-with-others",
    ),
    pytest.param(
        source([gpus("g0")]),
        claim("c").request("r", device_class="gpu", capacity={"memory": "1Gi"}),
        {cause.CapacityUnsuitable(capacity="memory", requested="1Gi", detail="the device does not have it"): ("g0",)},
        id="capacity-missing",
    ),
    pytest.param(
        source(
            [
                resource_slice("sets", driver=DRIVER, pool="p", slices=2).on_node(NODE).counters("card", memory="80Gi"),
                resource_slice("parts", driver=DRIVER, pool="p", slices=2)
                .on_node(NODE)
                .devices(
                    explained.in_groups("a", "card", "mig", memory="1Gi"),
                    explained.in_groups("b", "card", "mps", memory="1Gi"),
                ),
            ],
            held=[claim("x").allocated(("r", DRIVER, "p", "a"))],
        ),
        ONE,
        {
            cause.GroupsIncompatible(pool=f"{DRIVER}/p", counter_set="card", groups=("mps",)): ("b",),
            cause.Held(claims=("default/x",)): ("a",),
        },
        id="compatibility-groups",
    ),
    pytest.param(
        source(
            [
                gpus(
                    device("g0").attribute("numa", 0),
                    device("g1").attribute("numa", 1),
                    device("g2").attribute("numa", 1),
                    device("g3"),
                )
            ]
        ),
        claim("c").request("r", device_class="gpu", count=2).match_attribute(f"{DRIVER}/numa"),
        {
            cause.ConstraintUnmet(constraint=0, attribute=f"{DRIVER}/numa", value=0): ("g0",),
            cause.ConstraintUnmet(constraint=0, attribute=f"{DRIVER}/numa", value=None): ("g3",),
        },
        id="constraint-value-that-too-few-have",
    ),
    pytest.param(
        source([gpus("g0", "g1")]),
        claim("c").request("r", device_class="gpu", count=2).request("s", device_class="gpu"),
        {cause.InCombination(): ("g0", "g1")},
        id="only-in-combination",
    ),
    pytest.param(
        source([gpus(device("g0").binding("ready"))], features=allocator.Features()),
        ONE,
        {cause.FeatureOff(feature="DRADeviceBindingConditions", detail="the device has binding conditions"): ("g0",)},
        id="feature-off",
    ),
    pytest.param(
        source([gpus("g0")], held=[claim("x").allocated(("r", DRIVER, "gpus", "g0"))]),
        claim("c").first_available("r", subrequest("big", "gpu", count=2), subrequest("small", "gpu")),
        {cause.Held(claims=("default/x",)): ("g0",)},
        id="subrequest",
    ),
]


@pytest.mark.parametrize(("over", "wanted", "want"), CASES)
def test_cause(over: allocator.Allocator, wanted: ClaimBuilder, want: Mapping[cause.Cause, tuple[str, ...]]) -> None:
    found = explained.explain(over, wanted)
    name = "r/small" if wanted.build().spec.devices.requests[0].first_available else "r"
    assert explained.obstacles(found, name) == want
    way = explained.alternative(found, name)
    assert len(way.usable) + sum(entry.count for entry in way.obstacles) == way.considered


def test_capacity_policy() -> None:
    built = resourceslice.Device(name="g0", capacity={"memory": POLICY}, allow_multiple_allocations=True)
    over = source([gpus(type(device("g0"))(built))])
    found = explained.explain(over, claim("c").request("r", device_class="gpu", capacity={"memory": "4Gi"}))
    detail = "its request policy does not allow that amount"
    assert explained.obstacles(found) == {
        cause.CapacityUnsuitable(capacity="memory", requested="4Gi", detail=detail): ("g0",)
    }


def test_allocated_to_nobody_known() -> None:
    over = source([gpus("g0")])
    over.allocated.hold(allocated.Holding(allocator.DeviceID(DRIVER, "gpus", "g0")))
    assert explained.obstacles(explained.explain(over, ONE)) == {cause.Held(): ("g0",)}


def test_admin_access_ignores_who_has_a_device() -> None:
    over = source([gpus("g0")], held=[claim("x").allocated(("r", DRIVER, "gpus", "g0"))])
    found = explained.explain(over, claim("c").request("r", device_class="gpu", admin_access=True))
    assert found.outcome == "Fits"
    assert explained.alternative(found).usable == (f"{DRIVER}/gpus/g0",)


def test_whole_maps_that_a_selector_reads_are_shown() -> None:
    over = source([gpus(device("g0").attribute("a", 1).attribute("b.example.com/x", [True, False]))])
    expression = "device.attributes.size() == 0"
    found = explained.explain(over, claim("c").request("r", device_class="gpu", select=expression))
    [why] = explained.obstacles(found)
    assert isinstance(why, cause.RequestSelector)
    assert why.read == (cause.Reading("b.example.com/x", (True, False)), cause.Reading(f"{DRIVER}/a", 1))


def test_derived_attribute_that_fails() -> None:
    wanted = explained.defaulted(claim("c").request("r", device_class="gpu").match_attribute("x.example.com/y"))
    [request] = wanted.spec.devices.requests
    derived = resourceclaim.DeviceDerivedAttribute(
        name="x.example.com/y", expression=f'device.attributes["{DRIVER}"].model'
    )
    assert request.exactly is not None
    exactly = structs.replace(request.exactly, derived_attributes=(derived,))
    changed = resourceclaim.DeviceClaim(
        requests=(structs.replace(request, exactly=exactly),), constraints=wanted.spec.devices.constraints
    )
    built = structs.replace(wanted, spec=resourceclaim.ResourceClaimSpec(devices=changed))
    found = explained.explain(source([gpus("g0")]), ClaimBuilder(built))
    [why] = explained.obstacles(found)
    assert isinstance(why, cause.Failure)
    assert why.message.startswith(f"evaluate derived attribute x.example.com/y on device {DRIVER}/gpus/g0 failed: ")


def test_classes_with_several_selectors_name_the_one_that_rejects() -> None:
    picky = device_class("picky", "true", f'device.attributes["{DRIVER}"].?model.orValue("") == "a100"').build()
    over = source([gpus(device("g0").attribute("model", "t4"))], classes=[picky])
    found = explained.explain(over, claim("c").request("r", device_class="picky"))
    [why] = explained.obstacles(found)
    assert isinstance(why, cause.ClassSelector)
    assert (why.class_name, why.number, why.read) == ("picky", 1, (cause.Reading(f"{DRIVER}/model", "t4"),))
