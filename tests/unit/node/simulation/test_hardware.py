"""Simulated machines: profiles whose slices a server accepts, and copies of described machines."""

import datetime as dt
from typing import Any

import pytest

from drachma import errors
from drachma.api import codec
from drachma.node.simulation import hardware, machinedocuments
from drachma.validation import context, writes

NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "box"}}
SLICE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "cards"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "box",
        "pool": {"name": "box", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "card-0"}],
    },
}
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SHARED: dict[str, Any] = {
    "driver": "disk.example.com",
    "allNodes": True,
    "pool": {"name": "shelf", "generation": 1, "resourceSliceCount": 1},
}


@pytest.mark.parametrize("profile", hardware.ALL_PROFILES)
def test_pools_are_complete(profile: str) -> None:
    built = hardware.build(profile, 2)
    assert [each.name for each in built.machines] == ["node-0", "node-1"]
    for document in built.all_slices:
        spec = document["spec"]
        same = [each for each in built.all_slices if _pool(each) == _pool(document)]
        assert spec["pool"]["resourceSliceCount"] == len(same)
        assert not writes.create(codec.decode(document), context.Context(now=NOW)).errors
    for machine in built.machines:
        assert {each["spec"]["nodeName"] for each in machine.slices} <= {machine.name}
    drivers = set().union(*(machine.drivers for machine in built.machines))
    texts = [each["spec"]["selectors"][0]["cel"]["expression"] for each in built.classes]
    for driver in drivers:
        assert any(driver in text for text in texts), "the devices of each driver have a class"
    for document in built.classes:
        assert not writes.create(codec.decode(document), context.Context(now=NOW)).errors


@pytest.mark.parametrize("profile", hardware.ALL_PROFILES)
def test_nodes_have_versions_and_topology(profile: str) -> None:
    first, *_, last = (machine.node for machine in hardware.build(profile, 9).machines)
    assert first["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.37")
    labels = last["metadata"]["labels"]
    assert labels["kubernetes.io/hostname"] == "node-8"
    assert labels["node.kubernetes.io/instance-type"] == profile
    assert labels[machinedocuments.RACK_LABEL] == "rack-2"
    assert labels["topology.kubernetes.io/zone"] == "zone-0"


def test_parts_of_an_h100_exclude_each_other() -> None:
    """Seven parts of one memory slice, or one of eight: the counters of the whole GPU are their limit."""
    counters, first, *_ = hardware.build("nvidia-h100-mig", 1).machines[0].slices
    amounts = {each["name"]: each["counters"] for each in counters["spec"]["sharedCounters"]}
    for device in first["spec"]["devices"]:
        (consumption,) = device["consumesCounters"]
        assert consumption["counters"].keys() <= amounts[consumption["counterSet"]].keys()
    names = [each["name"] for each in first["spec"]["devices"]]
    assert names[0] == "gpu-0"
    assert "gpu-0-mig-1g10gb-19-6" in names


def _pool(document: dict[str, Any]) -> tuple[str, str]:
    return document["spec"]["driver"], document["spec"]["pool"]["name"]


def test_four_machines_share_a_rack() -> None:
    built = hardware.build("rack", 5)
    racks = [each.node["metadata"]["labels"][machinedocuments.RACK_LABEL] for each in built.machines]
    assert racks == ["rack-0"] * 4 + ["rack-1"]
    (first, second) = built.slices
    assert [each["spec"]["pool"]["name"] for each in (first, second)] == ["rack-0", "rack-1"]
    ((expression,),) = (term["matchExpressions"] for term in first["spec"]["nodeSelector"]["nodeSelectorTerms"])
    assert expression == {"key": machinedocuments.RACK_LABEL, "operator": "In", "values": ["rack-0"]}
    assert "nodeName" not in first["spec"]


def test_parts_of_a_gpu_do_not_take_more_than_there_is() -> None:
    counters, devices = hardware.build("mig", 1).machines[0].slices
    amounts = {each["name"]: each["counters"] for each in counters["spec"]["sharedCounters"]}
    for device in devices["spec"]["devices"]:
        (consumption,) = device["consumesCounters"]
        assert consumption["counters"].keys() <= amounts[consumption["counterSet"]].keys()
    names = [device["name"] for device in devices["spec"]["devices"]]
    assert len(names) == len(set(names))


def test_copies_of_a_machine() -> None:
    built = hardware.copies([NODE, SLICE], 2)
    assert [each.name for each in built.machines] == ["box-0", "box-1"]
    (document,) = built.machines[1].slices
    assert document["metadata"]["name"] == "box-1-cards"
    assert (document["spec"]["nodeName"], document["spec"]["pool"]["name"]) == ("box-1", "box-1")
    assert SLICE["spec"]["nodeName"] == "box", "what is given stays as it is"
    assert built.classes == (), "the chart of the driver brings them"
    given = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}}
    assert hardware.copies([NODE, SLICE, given], 2).classes == (given,)


def test_what_is_not_of_the_node_alone_is_there_once() -> None:
    fabric = {**SLICE, "metadata": {"name": "shelf"}, "spec": {**SHARED, "devices": [{"name": "disk-0"}]}}
    built = hardware.copies([NODE, SLICE, fabric], 2)
    assert built.slices == (fabric,)
    assert [len(each.slices) for each in built.machines] == [1, 1]
    assert built.machines[0].drivers == {"gpu.example.com", "disk.example.com"}


@pytest.mark.parametrize(
    ("documents", "want"),
    [
        pytest.param([SLICE], "profile: has 0 Nodes: expected one", id="no-node"),
        pytest.param([NODE, NODE], "profile: has 2 Nodes: expected one", id="two-nodes"),
        pytest.param(
            [NODE, {**SLICE, "spec": {**SHARED, "devices": [{"name": "disk-0", "nodeName": "box"}]}}],
            "profile: ResourceSlice cards, device disk-0: nodeName 'box': devices of the node belong into slices of",
            id="device-of-the-node-in-a-shared-slice",
        ),
        pytest.param(
            [NODE, {"kind": "Pod"}], "profile: has a Pod: expected Node, ResourceSlice, DeviceClass", id="pod"
        ),
    ],
)
def test_what_is_no_machine(documents: list[dict[str, Any]], want: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=want):
        hardware.copies(documents, 1)


def test_a_profile_that_does_not_exist() -> None:
    with pytest.raises(errors.InvalidValueError, match="there are cpu, gpu-server, mig, nic, numa, rack, amd-mi300x"):
        hardware.build("toaster", 1)
    with pytest.raises(errors.InvalidValueError, match=r"did you mean nvidia-h100\?"):
        hardware.build("nvidia-h10", 1)


def test_devices_have_the_standard_attributes() -> None:
    for profile in ("gpu-server", "mig", "nic"):
        for each in hardware.build(profile, 1).all_slices:
            for device in each["spec"].get("devices") or ():
                assert {
                    "resource.kubernetes.io/pcieRoot",
                    "resource.kubernetes.io/pciBusID",
                    "resource.kubernetes.io/numaNode",
                } <= device["attributes"].keys()
    numa = hardware.build("numa", 1).all_slices
    places = [device["attributes"]["resource.kubernetes.io/numaNode"] for device in numa[0]["spec"]["devices"]]
    assert places == [{"int": 0}, {"int": 0}, {"int": 1}, {"int": 1}]
