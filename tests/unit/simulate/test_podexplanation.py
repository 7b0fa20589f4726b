"""Explanations of pods."""

from msgspec import structs

from drachma import testing
from drachma.api import gates, nodeallocatable
from drachma.driver.devices import amount
from drachma.scheduler import Settings
from drachma.scheduler.snapshot import gangs
from drachma.simulate import ClusterState, Simulation, explanationlines, podexplanation
from drachma.simulate.podexplanation import Device, NodesRuledOut
from tests.unit.simulate import objects


def cluster(*given: object) -> Simulation:
    common = [objects.CLASS, objects.template("one"), objects.template("two", 2)]
    return Simulation(ClusterState.of([*common, *given]))  # type: ignore[list-item]


def test_where_it_would_go() -> None:
    asked = objects.gpu_pod("a")
    made = podexplanation.explain(cluster(*objects.gpu_node("n1", 1), *objects.gpu_node("n2", 0)), asked)
    assert (made.node, made.feasible) == ("n1", 1)
    assert made.devices == (Device(claim="a-gpu-simulated", request="gpu", device="gpu.example.com/n1/gpu-0"),)


def test_those_before_it_count() -> None:
    first, asked = objects.gpu_pod("a"), objects.gpu_pod("b")
    made = podexplanation.explain(cluster(*objects.gpu_node("n1", 1), first, asked), asked)
    assert made.node == ""


def test_every_node_by_its_reason_and_what_would_help() -> None:
    asked = objects.gpu_pod("a", "two", cpu="8")
    small = testing.node("n3", allocatable={"cpu": "1", "memory": "1Gi", "pods": "10"}).build()
    groups = [objects.gpu_group("big", 2), objects.gpu_group("small", 1)]
    made = podexplanation.explain(
        cluster(*objects.gpu_node("n1", 1), *objects.gpu_node("n2", 1), small), asked, groups=groups
    )
    assert made.ruled_out == (
        NodesRuledOut(plugin="DynamicResources", reasons=("cannot allocate all claims",), nodes=("n1", "n2")),
        NodesRuledOut(plugin="NodeResourcesFit", reasons=("Insufficient cpu",), nodes=("n3",)),
    )
    (report,) = made.reports
    assert (report.explanation.node, report.also_on) == ("n1", ("n2",))
    assert report.explanation.changes[0].kind == "lowerCount"
    assert made.helpful_groups == ("big",)
    assert list(made.useless_groups) == ["small"]


def test_whom_preemption_would_take() -> None:
    lesser = testing.pod("lesser").on_node("n1").container("c", requests={"cpu": "4"}).spec(priority=0).build()
    asked = testing.pod("a").container("c", requests={"cpu": "3"}).spec(priority=10).build()
    made = podexplanation.explain(cluster(testing.node("n1").build(), lesser), asked)
    assert (made.preemption, made.victims) == ("would make room on node n1", ("default/lesser",))


def test_whom_preemption_would_take_for_a_gang() -> None:
    lesser = [
        testing.pod(f"lesser-{node}").uid(node).on_node(node).container("c", requests={"cpu": "3"}).build()
        for node in ("n1", "n2")
    ]
    gang = [
        testing.pod(name)
        .uid(name)
        .container("c", requests={"cpu": "3"})
        .spec(priority=10)
        .label(gangs.LABEL, "g")
        .annotation(gangs.SIZE, "2")
        .build()
        for name in ("a", "b")
    ]
    nodes = [
        testing.node(name, allocatable={"cpu": "4", "memory": "8Gi", "pods": "9"}).build() for name in ("n1", "n2")
    ]
    state = ClusterState.of([*nodes, *lesser, *gang])
    enabled = Settings(gates=gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True}))
    for asked in gang:
        made = podexplanation.explain(Simulation(state, settings=enabled), asked)
        assert made.preemption == "would make room for the whole gang"
        assert sorted(made.victims) == ["default/lesser-n1", "default/lesser-n2"]


def test_who_has_the_devices_and_is_not_evicted_for_them() -> None:
    held = testing.claim("held").request("gpu", device_class=objects.DRIVER, count=1, mode="ExactCount")
    held = held.allocated(("gpu", objects.DRIVER, "n1", "gpu-0")).reserved_for("lesser", uid="lesser")
    lesser = testing.pod("lesser").uid("lesser").on_node("n1").claim("gpu", claim="held").container("c").build()
    asked = testing.pod("a").claim("gpu", template="one").container("c").spec(priority=10).build()
    made = podexplanation.explain(cluster(*objects.gpu_node("n1", 1), held.build(), lesser), asked)
    assert (made.holders, made.victims) == (("default/lesser",), ())
    assert "Preemption is not helpful" in made.preemption


def test_nothing_is_changed_by_asking() -> None:
    asked = objects.gpu_pod("a")
    made = cluster(*objects.gpu_node("n1", 1), asked)
    podexplanation.explain(made, asked)
    assert [each.metadata.name for each in made.pending] == ["a"]
    assert not list(made.snapshot.claims)


def test_a_pod_goes_where_its_gang_goes_or_nowhere() -> None:
    gang = [objects.gang_pod(name, "g", 3) for name in ("a", "b", "c")]
    enabled = Settings(gates=gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True}))
    common = [objects.CLASS, objects.template("one"), *objects.gpu_node("n1", 2)]
    groups = [objects.gpu_group("big", 2), objects.cpu_group("none")]
    made = [
        podexplanation.explain(Simulation(ClusterState.of([*common, *gang]), settings=enabled), asked, groups=groups)
        for asked in (gang[0], gang[2])
    ]
    reason = "gang default/g, pod default/c: 0/1 nodes are available: 1 cannot allocate all claims."
    assert [each.message.partition("; ")[2] for each in made] == [reason, reason]
    assert [(each.helpful_groups, list(each.useless_groups)) for each in made] == [(("big",), ["none"])] * 2
    assert [bool(each.ruled_out) for each in made] == [False, True]

    placed = podexplanation.explain(
        Simulation(ClusterState.of([*common, *gang, *objects.gpu_node("n2", 1)]), settings=enabled), gang[2]
    )
    assert placed.node
    assert len(placed.devices) == 1


def listed(*classes: str) -> object:
    alternatives = [
        testing.subrequest(f"way-{name.split('.')[0]}", name, count=1, mode="ExactCount") for name in classes
    ]
    return testing.claim_template("listed").first_available("gpu", *alternatives).build()


def test_a_class_that_does_not_exist_is_hinted_at() -> None:
    asked = objects.gpu_pod("a", "listed")
    template = listed("absent", objects.DRIVER)
    made = podexplanation.explain(cluster(*objects.gpu_node("n1", 1), template), asked)
    assert made.node == ""
    [hint] = made.hints
    assert hint.startswith("class absent of alternative gpu/way-absent does not exist")
    assert "DrachmaAbsentClassAlternatives" in hint
    assert f"  hint: {hint}" in explanationlines.pod_lines(made)


def test_with_the_gate_an_absent_class_makes_its_alternative_unavailable() -> None:
    enabled = Settings(gates=gates.ALL.switched({gates.Gate.ABSENT_CLASS_ALTERNATIVES: True}))
    common = [objects.CLASS, *objects.gpu_node("n1", 1)]
    asked = objects.gpu_pod("a", "listed")
    for classes, want in ((("absent", objects.DRIVER), "n1"), (("absent", "other"), "")):
        state = ClusterState.of([*common, listed(*classes)])  # type: ignore[list-item]
        made = podexplanation.explain(Simulation(state, settings=enabled), asked)
        assert made.node == want
        assert made.hints == ()
        if want:
            assert [each.request for each in made.devices] == ["gpu/way-gpu"]
        else:
            assert "request gpu/way-absent: device class absent does not exist" in made.message


def test_shortages_in_numbers() -> None:
    mapping = nodeallocatable.NodeAllocatableMapping(device_multiplier=amount("6"))
    resource = nodeallocatable.NodeAllocatableResource(mapping=mapping)
    device = structs.replace(testing.device("gpu-0").build(), node_allocatable_resources={"cpu": resource})
    published = (
        testing.resource_slice("gpus", driver=objects.DRIVER, pool="n1")
        .on_node("n1")
        .devices(testing.DeviceBuilder(device))
    )
    node = testing.node("n1", allocatable=objects.CPU).build()
    other = testing.pod("other").on_node("n1").container("c", requests={"cpu": "1500m"}).build()
    asked = objects.gpu_pod("a", cpu="1")
    made = podexplanation.explain(cluster(node, published.build(), other), asked)
    [shortage] = made.shortages
    assert str(shortage) == (
        "node n1, cpu: 8 in total, 1500m used by pods, 1 requested by the pod, 6 added by claim a-gpu-simulated: "
        "500m too much"
    )
    assert f"  {shortage}" in explanationlines.pod_lines(made)


def test_a_group_that_does_not_help_names_the_reason_of_its_own_nodes() -> None:
    """The nodes that are there lack cpu, and a new node would lack devices."""
    full = testing.pod("full").on_node("n1").container("c", requests={"cpu": "8"}).build()
    asked = objects.gpu_pod("a", "two", cpu="4")
    made = podexplanation.explain(cluster(*objects.gpu_node("n1", 2), full), asked, groups=[objects.gpu_group("g", 1)])
    assert made.useless_groups["g"].startswith("cannot allocate all claims; request gpu wants 2")
