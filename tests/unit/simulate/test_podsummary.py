"""Summaries of pods' explanations: amounts, fixes that can be applied, and hints for mistakes."""

import pytest
from msgspec import structs

from drachma import testing
from drachma.api import codec, meta, pod, resourceclaimtemplate
from drachma.server.patch import jsonpatch
from drachma.simulate import ClusterState, Simulation, explanationlines, explanationsummary, podexplanation, simulation
from tests.unit.simulate import objects


def cluster(*more: meta.Object) -> Simulation:
    common = [objects.CLASS, objects.template("one"), objects.template("four", 4), objects.template("twelve", 12)]
    return Simulation(ClusterState.of([*common, *more]))


def held(name: str, node: str, *devices: str) -> meta.Object:
    """Return a claim that holds devices of a node."""
    made = testing.claim(name).request("gpu", device_class=objects.DRIVER, count=len(devices), mode="ExactCount")
    return made.allocated(*(("gpu", objects.DRIVER, node, device) for device in devices)).uid(name).build()


def summary(simulated: Simulation, waiting: pod.Pod) -> list[str]:
    return list(explanationsummary.lines(podexplanation.explain(simulated, waiting)))


def test_nodes_are_counted_by_reason_with_amounts() -> None:
    nodes = [each for number in range(5) for each in objects.gpu_node(f"n{number}", 4)]
    claims = [held("a", "n0", "gpu-0", "gpu-1"), held("b", "n1", "gpu-0", "gpu-1", "gpu-2", "gpu-3")]
    lines = summary(cluster(*nodes, *claims), objects.gpu_pod("p", "twelve"))
    assert lines[0] == "pod default/p is pending: 0/5 nodes are available: 5 cannot allocate all claims."
    assert "  3 nodes have 4 free of the 12 of class gpu.example.com asked for by request gpu" in lines
    assert "  1 node has 2 free of the 12 of class gpu.example.com asked for by request gpu (2 in use)" in lines
    assert "  1 node is full: all 4 devices in use" in lines
    assert "  no node has more than 4 of them, used or free" in lines
    assert "  smallest change: lower the count of request gpu from 12 to 4" in lines
    assert len(lines) <= explanationsummary.MOST_LINES


def test_nodes_with_other_changes_are_other_groups() -> None:
    """A node where one claim must be freed is not the same as a node where two must be freed."""
    nodes = [each for name in ("n0", "n1") for each in objects.gpu_node(name, 4)]
    one = [held("a", "n0", "gpu-0", "gpu-1", "gpu-2", "gpu-3")]
    two = [held("b", "n1", "gpu-0", "gpu-1"), held("c", "n1", "gpu-2", "gpu-3")]
    made = podexplanation.explain(cluster(*nodes, *one, *two), objects.gpu_pod("p", "four"))
    assert [(each.explanation.node, each.also_on) for each in made.reports] == [("n0", ()), ("n1", ())]
    assert [len(each.explanation.changes) for each in made.reports] == [1, 0]


def test_all_nodes_are_examined() -> None:
    nodes = [each for number in range(150) for each in objects.gpu_node(f"n{number:03}", 4)]
    made = podexplanation.explain(cluster(*nodes), objects.gpu_pod("p", "twelve"))
    (report,) = made.reports
    assert len(report.also_on) == 149
    assert "the same on 149 nodes more" in "\n".join(explanationlines.pod_lines(made))


def test_nodes_of_further_sorts_are_mentioned() -> None:
    nodes = [each for number in range(1, 6) for each in objects.gpu_node(f"n{number}", number)]
    made = podexplanation.explain(cluster(*nodes), objects.gpu_pod("p", "twelve"))
    assert len(made.reports) == 3
    assert made.unreported == ("n4", "n5")
    assert "2 nodes more, for other reasons: n4, n5" in "\n".join(explanationlines.pod_lines(made))


def test_extended_resources_are_explained_by_devices() -> None:
    backed = testing.device_class(objects.DRIVER, f'device.driver == "{objects.DRIVER}"')
    backed_class = backed.extended_resource("example.com/gpu").build()
    asks = testing.pod("p").container("c", requests={"example.com/gpu": "8"}).build()
    state = ClusterState.of([backed_class, *objects.gpu_node("n", 4)])
    made = podexplanation.explain(Simulation(state), asks)
    assert [(each.wanted, each.free) for each in made.supplies] == [(8, 4)]
    assert made.reports, "every device is reported"
    assert made.fix is not None
    assert made.fix.text == "lower the count of request container-0-request-0 from 8 to 4"
    assert not made.fix.patch, "there is no claim to patch"


def test_a_driver_that_publishes_nothing_is_named() -> None:
    other = testing.device_class("gpu.exmaple.com", 'device.driver == "gpu.exmaple.com"').build()
    template = testing.claim_template("t").request("gpu", device_class="gpu.exmaple.com", count=1, mode="ExactCount")
    made = podexplanation.explain(
        cluster(*objects.gpu_node("n", 4), other, template.build()), objects.gpu_pod("p", "t")
    )
    (hint,) = made.hints
    assert hint.startswith("no node has devices of class gpu.exmaple.com: driver gpu.exmaple.com has published no")
    assert hint.endswith("ResourceSlice; did you mean gpu.example.com?")
    assert made.reports == (), "devices of other drivers say nothing"


def test_a_class_that_does_not_exist_has_a_nearest() -> None:
    template = testing.claim_template("t").request("gpu", device_class="gpu.example.org", count=1, mode="ExactCount")
    made = podexplanation.explain(cluster(*objects.gpu_node("n", 4), template.build()), objects.gpu_pod("p", "t"))
    assert made.hints == ("device class gpu.example.org does not exist; did you mean gpu.example.com?",)


def test_mistyped_labels_and_attributes_have_a_nearest() -> None:
    template = testing.claim_template("t").request(
        "gpu",
        device_class=objects.DRIVER,
        count=1,
        mode="ExactCount",
        select=('device.attributes["gpu.example.com"].?modle.orValue("") == "a100"',),
    )
    slice_ = (
        testing.resource_slice("s", driver=objects.DRIVER, pool="n")
        .on_node("n")
        .devices(testing.device("gpu-0").attributes(model="a100"))
        .build()
    )
    node = testing.node("n", allocatable=objects.CPU).label("zone", "east").build()
    made = podexplanation.explain(cluster(node, slice_, template.build()), objects.gpu_pod("p", "t"))
    assert made.hints == ("no device has gpu.example.com/modle; did you mean gpu.example.com/model?",)
    wrong = testing.claim_template("t").request(
        "gpu",
        device_class=objects.DRIVER,
        count=1,
        mode="ExactCount",
        select='device.attributes["gpu.example.com"].modle == "a100"',
    )
    made = podexplanation.explain(cluster(node, slice_, wrong.build()), objects.gpu_pod("p", "t"))
    assert made.hints == ("no device has the attribute or capacity modle; did you mean model?",)
    choosy = testing.pod("q").container("c").spec(node_selector={"zone": "esat"}).build()
    assert podexplanation.explain(cluster(node), choosy).hints == (
        "no node has the label zone=esat; did you mean east?",
    )


def test_insufficient_resources_have_amounts() -> None:
    nodes = [
        testing.node(name, allocatable={"cpu": cpu, "memory": "4Gi", "pods": "9"}).build()
        for name, cpu in (("n1", "4"), ("n2", "7500m"))
    ]
    user = testing.pod("u").on_node("n2").container("c", requests={"cpu": "1"}).build()
    lines = summary(cluster(*nodes, user), objects.cpu_pod("p", cpu="8"))
    assert "  Insufficient cpu: 8 asked for, no node has more than 6500m free (n2)" in lines


def test_the_fix_leaves_a_controlled_pod_to_its_controller() -> None:
    template = testing.claim_template("t").request("gpu", device_class=objects.DRIVER, mode="ExactCount", count=12)
    alone = objects.gpu_pod("p", "t")
    owner = meta.OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="r", uid="u", controller=True)
    owned = structs.replace(alone, metadata=structs.replace(alone.metadata, owner_references=(owner,)))
    fix = podexplanation.explain(cluster(*objects.gpu_node("n", 4), template.build()), owned).fix
    assert fix is not None
    assert fix.command.endswith("&& kubectl delete pod -n default p")


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"count": 12}, id="count"),
        pytest.param({"count": 1, "select": ('device.driver == "nothing"',)}, id="selector"),
    ],
)
def test_the_fix_can_be_applied(request_: dict[str, object]) -> None:
    made = testing.claim_template("t").request("gpu", device_class=objects.DRIVER, mode="ExactCount", **request_)  # type: ignore[arg-type]
    template = made.build()
    nodes = objects.gpu_node("n", 4)
    explained = podexplanation.explain(cluster(*nodes, template), objects.gpu_pod("p", "t"))
    fix = explained.fix
    assert fix is not None
    assert (fix.kind, fix.namespace, fix.name) == ("ResourceClaimTemplate", "default", "t")
    assert "kubectl get resourceclaimtemplate -n default t -o json | kubectl patch --local" in fix.command
    # A pod keeps the claim that was made from the old template.
    assert fix.command.endswith("&& kubectl get pod -n default p -o json | kubectl replace --force -f -")
    document = jsonpatch.apply(codec.encode(template), list(fix.patch))
    changed = codec.decode(document)
    assert isinstance(changed, resourceclaimtemplate.ResourceClaimTemplate)
    outcome = cluster(*nodes, changed).place(objects.gpu_pod("p", "t"))
    assert isinstance(outcome, simulation.Placement)
