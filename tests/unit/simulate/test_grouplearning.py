"""Node groups learned from existing nodes."""

import pytest
from msgspec import structs

from drachma import errors, testing
from drachma.api import devices, pod, resourceslice
from drachma.api import node as nodes
from drachma.simulate import ClusterState, NodeGroup, Simulation, grouplearning, nodegroup
from tests.unit.simulate import objects

UUID = "7b6f1c9e-2f2c-4b9a-8d55-0c1f5e2a9a11"


def live_node() -> nodes.Node:
    taints = (
        nodes.Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"),
        nodes.Taint(key="gpus-only", effect="NoSchedule"),
    )
    made = testing.node(
        "worker-7", labels={"zone": "a", nodegroup.LABEL: "old"}, taints=taints, allocatable=objects.CPU
    )
    built = made.build()
    return structs.replace(built, spec=structs.replace(built.spec, unschedulable=True))


def live_slices() -> list[resourceslice.ResourceSlice]:
    """Return two slices of one pool in its second generation, one with an unhealthy device, and an outdated slice."""

    def a_slice(name: str, *made: testing.DeviceBuilder, generation: int) -> resourceslice.ResourceSlice:
        built = testing.resource_slice(name, driver=objects.DRIVER, pool="worker-7", generation=generation, slices=2)
        return built.on_node("worker-7").devices(*made).build()

    first = a_slice("x-1", testing.device("gpu-0").attributes(uuid=UUID), generation=2)
    second = a_slice("x-2", testing.device("gpu-1"), generation=2)
    sick = structs.replace(second.spec.devices[0], taints=(devices.DeviceTaint(key="sick", effect="NoSchedule"),))
    second = structs.replace(second, spec=structs.replace(second.spec, devices=(sick,)))
    return [first, second, a_slice("x-0", testing.device("old"), generation=1)]


def learned() -> tuple[NodeGroup, tuple[str, ...]]:
    state = ClusterState.of([live_node(), *live_slices(), testing.node("other").build()])
    found = grouplearning.learn(state, "worker-7", name="gpus")
    return nodegroup.read(found.document), found.notes


def test_the_template_is_the_node_as_if_it_had_just_come_up() -> None:
    group, notes = learned()
    assert group.name == "gpus"
    assert group.node.metadata.labels == {"zone": "a", "kubernetes.io/hostname": "gpus"}
    assert [each.key for each in group.node.spec.taints] == ["gpus-only"]
    assert not group.node.spec.unschedulable
    assert group.node.status.allocatable == live_node().status.allocatable
    assert [each.spec.pool for each in group.slices] == [
        resourceslice.ResourcePool(name="gpus", generation=1, resource_slice_count=2)
    ] * 2
    assert [device.name for each in group.slices for device in each.spec.devices] == ["gpu-0", "gpu-1"]
    assert not any(device.taints for each in group.slices for device in each.spec.devices)
    assert notes == ("slice x-2: device gpu-1: taint sick: is left out",)


def test_nothing_of_the_node_itself_is_left() -> None:
    group, _ = learned()
    text = repr(group)
    assert "worker-7" not in text
    assert UUID not in text


def test_a_learned_group_brings_nodes_that_pods_fit_on() -> None:
    group, _ = learned()
    tolerating = objects.gpu_pod("p")
    spec = structs.replace(tolerating.spec, tolerations=(pod.Toleration(key="gpus-only", operator="Exists"),))
    cluster = Simulation(
        ClusterState.of([objects.CLASS, objects.template("one"), structs.replace(tolerating, spec=spec)])
    )
    cluster.add(group.make("gpus-new-1"))
    assert [each.node for each in cluster.schedule().placements] == ["gpus-new-1"]


def test_a_node_that_is_not_there_is_named() -> None:
    with pytest.raises(errors.DecodeError, match="there is no node x, but other"):
        grouplearning.learn(ClusterState.of([testing.node("other").build()]), "x", name="g")


def test_a_node_without_devices_is_noted() -> None:
    found = grouplearning.learn(ClusterState.of([testing.node("other").build()]), "other", name="g")
    assert found.notes == ("node other: no driver has published anything for it",)
