"""Simulated machines: profiles whose slices a server takes, and copies of described ones."""

from typing import Any

import pytest

from drachma import errors
from drachma.node import hardware

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


@pytest.mark.parametrize("profile", hardware.PROFILES)
def test_pools_are_complete(profile: str) -> None:
    built = hardware.build(profile, 2)
    assert [each.name for each in built.machines] == ["node-0", "node-1"]
    for machine in built.machines:
        for document in machine.slices:
            pool = document["spec"]["pool"]
            same = [each for each in machine.slices if each["spec"]["driver"] == document["spec"]["driver"]]
            assert pool["resourceSliceCount"] == len(same)
            assert document["spec"]["nodeName"] == machine.name
    assert {each["metadata"]["name"] for each in built.classes} == set().union(
        *(machine.drivers for machine in built.machines)
    )


def test_parts_of_a_gpu_do_not_take_more_than_there_is() -> None:
    counters, devices = hardware.build("mig", 1).machines[0].slices
    amounts = {each["name"]: each["counters"] for each in counters["spec"]["sharedCounters"]}
    for device in devices["spec"]["devices"]:
        (taken,) = device["consumesCounters"]
        assert taken["counters"].keys() <= amounts[taken["counterSet"]].keys()
    names = [device["name"] for device in devices["spec"]["devices"]]
    assert len(names) == len(set(names))


def test_copies_of_a_machine() -> None:
    built = hardware.copies([NODE, SLICE], 2)
    assert [each.name for each in built.machines] == ["box-0", "box-1"]
    (document,) = built.machines[1].slices
    assert document["metadata"]["name"] == "box-1-cards"
    assert (document["spec"]["nodeName"], document["spec"]["pool"]["name"]) == ("box-1", "box-1")
    assert SLICE["spec"]["nodeName"] == "box", "what is given stays as it is"
    assert [each["metadata"]["name"] for each in built.classes] == ["gpu.example.com"]


@pytest.mark.parametrize(
    ("documents", "want"),
    [
        pytest.param([SLICE], "profile: has 0 Nodes: expected one", id="no-node"),
        pytest.param([NODE, NODE], "profile: has 2 Nodes: expected one", id="two-nodes"),
        pytest.param(
            [NODE, {"kind": "Pod"}], "profile: has a Pod: expected Node, ResourceSlice, DeviceClass", id="pod"
        ),
    ],
)
def test_what_is_no_machine(documents: list[dict[str, Any]], want: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=want):
        hardware.copies(documents, 1)


def test_a_profile_that_does_not_exist() -> None:
    with pytest.raises(errors.InvalidValueError, match="there are cpu, gpu-server, mig, nic, or the name of a file"):
        hardware.build("tpu", 1)
