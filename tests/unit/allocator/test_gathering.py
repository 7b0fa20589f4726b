"""Which pools a node sees: generations, completeness, validity, order."""

import pytest
from msgspec import structs

from drachma import allocator, errors
from drachma.api import nodeselector, resourceslice
from drachma.testing import DeviceBuilder, device, resource_slice

_NODE = allocator.Node("n1", {"zone": "a"})
_NOTHING = allocator.Features()
_PARTITIONABLE = allocator.Features(partitionable_devices=True)


def _seen(
    *slices: resourceslice.ResourceSlice, features: allocator.Features = _NOTHING
) -> list[tuple[str, str | list[str]]]:
    """For each pool its name, and its devices or what is wrong with it."""
    view = allocator.Catalog(slices).view(_NODE, features)
    found: list[tuple[str, str | list[str]]] = []
    for gathered in view.pools:
        if gathered.block is None:
            found.append((gathered.pool_id.pool, "incomplete"))
        else:
            devices = [str(entry.name) for entry in gathered.block.devices]
            found.append((gathered.pool_id.pool, gathered.block.invalid or devices))
    return found


def _slice(
    name: str, *devices: str, pool: str = "p", generation: int = 1, slices: int = 1, node: str = "n1"
) -> resourceslice.ResourceSlice:
    built = resource_slice(name, driver="d", pool=pool, generation=generation, slices=slices)
    return built.on_node(node).devices(*devices).build()


@pytest.mark.parametrize(
    ("slices", "want"),
    [
        pytest.param([_slice("s", "a", "b")], [("p", ["a", "b"])], id="one-slice"),
        pytest.param(
            [_slice("s2", "a", slices=2), _slice("s1", "b", slices=2)], [("p", ["b", "a"])], id="slices-by-name"
        ),
        pytest.param([_slice("s", "a", slices=2)], [("p", "incomplete")], id="a-slice-is-missing"),
        pytest.param(
            [_slice("s1", "a", slices=2), _slice("s2", "b", slices=2, node="n2")],
            [("p", ["a"])],
            id="the-rest-is-for-another-node",
        ),
        pytest.param(
            [_slice("old", "a"), _slice("new", "b", generation=2)], [("p", ["b"])], id="highest-generation-only"
        ),
        pytest.param(
            [_slice("old", "a", slices=2), _slice("new", "b", generation=2, node="n2")],
            [],
            id="being-replaced-on-another-node",
        ),
        pytest.param(
            [_slice("s1", "a", slices=2), _slice("s2", "a", slices=2)],
            [("p", "duplicate device name a")],
            id="a-device-name-twice",
        ),
        pytest.param(
            [_slice("s", "a", pool="z"), _slice("t", "b", pool="y")], [("y", ["b"]), ("z", ["a"])], id="pools-by-name"
        ),
        pytest.param([_slice("s", "a", node="n2")], [], id="another-node"),
        pytest.param([resource_slice("s", driver="d").devices("a").build()], [], id="no-node-selection-known"),
    ],
)
def test_pools(slices: list[resourceslice.ResourceSlice], want: list[tuple[str, str | list[str]]]) -> None:
    assert _seen(*slices) == want


def test_pools_with_binding_conditions_come_last() -> None:
    conditional = resourceslice.Device(name="a", binding_conditions=("ready",))
    first = _slice("s", pool="a")
    first = resourceslice.ResourceSlice(
        metadata=first.metadata,
        spec=resourceslice.ResourceSliceSpec(driver="d", pool=first.spec.pool, node_name="n1", devices=(conditional,)),
    )
    assert [name for name, _ in _seen(first, _slice("t", "b", pool="z"))] == ["z", "a"]


def test_slices_with_counters_are_not_read_without_the_feature() -> None:
    counters = resource_slice("c", driver="d", pool="p", slices=2).on_node("n1").counters("s", x=1).build()
    devices = resource_slice("s", driver="d", pool="p", slices=2).on_node("n1").devices(device("a").consumes("s", x=1))
    assert _seen(counters, devices.build(), features=_PARTITIONABLE) == [("p", ["a"])]
    # The pool counts as complete, but nothing that consumes counters is allocated from it.
    assert _seen(counters, devices.build()) == [("p", ["a"])]


def test_a_counter_slice_for_another_node_still_counts() -> None:
    counters = resource_slice("c", driver="d", pool="p", slices=2).on_node("n2").counters("s", x=1).build()
    devices = resource_slice("s", driver="d", pool="p", slices=2).on_node("n1").devices(device("a").consumes("s", x=1))
    view = allocator.Catalog([counters, devices.build()]).view(_NODE, _PARTITIONABLE)
    assert view.blocks[0].counters is not None
    assert view.blocks[0].counters.names == [("s", "x")]


def test_devices_can_choose_their_nodes_themselves() -> None:
    published = (
        resource_slice("s", driver="d").per_device().devices(device("a").on_node("n2"), device("b").on_node("n1"))
    )
    view = allocator.Catalog([published.build()]).view(_NODE, _PARTITIONABLE)
    assert [str(entry.name) for entry in view.blocks[0].devices] == ["a", "b"]
    assert view.misplaced == 0b01


def test_a_node_selector_that_does_not_compile_is_an_error() -> None:
    requirement = nodeselector.NodeSelectorRequirement(key="zone", operator="Near", values=("a",))
    term = nodeselector.NodeSelectorTerm(match_expressions=(requirement,))
    selector = nodeselector.NodeSelector(node_selector_terms=(term,))
    published = resource_slice("s", driver="d").on_nodes(selector).devices("a").build()
    with pytest.raises(
        errors.AllocationError,
        match=r"^gather pool information: failed to perform node selection for slice s: failed to parse node selector",
    ):
        _seen(published)


def test_a_node_selector_of_a_device_that_does_not_compile_names_the_device() -> None:
    requirement = nodeselector.NodeSelectorRequirement(key="zone", operator="Near", values=("a",))
    term = nodeselector.NodeSelectorTerm(match_expressions=(requirement,))
    entry = structs.replace(
        device("gpu-0").build(), node_selector=nodeselector.NodeSelector(node_selector_terms=(term,))
    )
    published = resource_slice("s", driver="d").per_device().devices(DeviceBuilder(entry)).build()
    with pytest.raises(errors.AllocationError, match="node selection for device gpu-0 in slice s: failed to parse"):
        allocator.Catalog([published]).view(_NODE, _PARTITIONABLE)
