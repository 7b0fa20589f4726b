"""Findings about node groups and selectors."""

from typing import Any

import pytest

from drachma import testing
from drachma.api import meta, resourceslice
from drachma.simulate import ClusterState, NodeGroup, grouplint

GPU = "gpu.example.com"
NIC = "nic.example.com"
CLASS = testing.device_class(GPU, f'device.driver == "{GPU}"').build()


def a_slice(
    name: str = "box-gpus", *, driver: str = GPU, node: str = "box", pool: str = "box", **pool_fields: int
) -> resourceslice.ResourceSlice:
    made = testing.resource_slice(name, driver=driver, pool=pool, **pool_fields).on_node(node)
    return made.devices(testing.device("gpu-0").attributes(model="a100")).build()


def a_group(*slices: resourceslice.ResourceSlice) -> NodeGroup:
    node = testing.node("box").build()
    return NodeGroup(name="boxes", node=node, slices=slices or (a_slice(),), labels={"pool": "gpus"})


def found(*objects: meta.Object, group: NodeGroup | None = None) -> list[str]:
    return [str(each) for each in grouplint.lint([group or a_group()], ClusterState.of([CLASS, *objects]))]


def test_nothing_is_wrong() -> None:
    wanting = testing.claim("c").request("r", device_class=GPU, select=f'device.attributes["{GPU}"].model == "a100"')
    assert found(wanting.build()) == []


TEMPLATE = "NodeGroup boxes: spec.template.objects: ResourceSlice box-gpus: spec"


@pytest.mark.parametrize(
    ("slices", "want"),
    [
        pytest.param(
            [a_slice(slices=0)],
            [f"{TEMPLATE}.pool.resourceSliceCount: 0: the pool never is complete: it has one slice in the template"],
            id="slice-count-zero",
        ),
        pytest.param(
            [a_slice(slices=2)],
            [f"{TEMPLATE}.pool.resourceSliceCount: 2: the pool never is complete: it has one slice in the template"],
            id="slice-is-missing",
        ),
        pytest.param(
            [a_slice("box-old", slices=2), a_slice(generation=2, slices=2)],
            [f"{TEMPLATE}.pool.generation: 2: other slices of pool box have another: only the newest count"],
            id="two-generations",
        ),
        pytest.param(
            [a_slice(node="elsewhere")],
            [
                (
                    f"{TEMPLATE}.nodeName: elsewhere: the template's node is box: "
                    "devices that are not of the node do not come with it"
                )
            ],
            id="slice-of-another-node",
        ),
    ],
)
def test_templates(slices: list[Any], want: list[str]) -> None:
    assert found(group=a_group(*slices)) == want


def test_a_pool_that_nodes_of_the_group_have_is_missing() -> None:
    member = testing.node("n1", labels={"pool": "gpus"}).build()
    assert found(member, a_slice("n1-nics", driver=NIC, node="n1", pool="n1")) == [
        (
            "NodeGroup boxes: spec.template.objects: no pool of driver nic.example.com, "
            "which has one on node n1 of the group"
        )
    ]


def test_pools_of_equal_names() -> None:
    one, two = (a_slice(f"{name}-gpus", node=name, pool="gpus") for name in ("n1", "n2"))
    assert found(one, two) == [
        (
            "ResourceSlice n2-gpus: spec.pool.name: gpus: driver gpu.example.com has a pool of this name on node "
            "n1 too (ResourceSlice n1-gpus): names of pools must differ"
        )
    ]


def wanting(select: str = "true", device_class: str = GPU) -> meta.Object:
    return testing.claim_template("t").request("r", device_class=device_class, select=select).build()


PLACE = "ResourceClaimTemplate default/t: spec.spec.devices.requests[0].exactly"


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(
            wanting(f'device.attributes["{GPU}"].memory == "80Gi"'),
            [
                (
                    f"{PLACE}.selectors[0].cel.expression: asks for attribute gpu.example.com/memory, "
                    "which no device of any node or node group has"
                ),
                f"{PLACE}.selectors[0].cel.expression: matches none of the devices of class gpu.example.com",
            ],
            id="attribute-that-nobody-has",
        ),
        pytest.param(
            wanting(f'device.attributes["{GPU}"].model == "h100"'),
            [f"{PLACE}.selectors[0].cel.expression: matches none of the devices of class gpu.example.com"],
            id="selector-that-never-matches",
        ),
        pytest.param(
            wanting(device_class="other"),
            [f"{PLACE}.deviceClassName: other: there is no such device class"],
            id="no-class",
        ),
        pytest.param(
            testing.device_class("none", 'device.driver == "none"').build(),
            [
                "DeviceClass none: spec.selectors[0].cel.expression: matches no device of any node or node group",
            ],
            id="class-that-never-matches",
        ),
        pytest.param(
            testing.claim("c").request("r", device_class=GPU).match_attribute(f"{GPU}/numa").build(),
            [
                (
                    "ResourceClaim default/c: spec.devices.constraints[0].matchAttribute: gpu.example.com/numa: "
                    "no device of any node or node group has this attribute"
                )
            ],
            id="constraint-on-nothing",
        ),
    ],
)
def test_selectors(given: meta.Object, want: list[str]) -> None:
    assert found(given) == want


def test_a_selector_that_does_not_compile_is_said() -> None:
    (first, _) = found(wanting("device.drivers"))
    assert "undefined field 'drivers'" in first


def test_claims_that_have_their_devices_are_passed_over() -> None:
    held = testing.claim("c").request("r", device_class="gone").allocated(("r", GPU, "box", "gpu-0"))
    assert found(held.build()) == []
