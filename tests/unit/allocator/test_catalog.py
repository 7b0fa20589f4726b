"""The catalog is kept up to date slice by slice, and rebuilds no more than it must."""

from drachma import allocator
from drachma.api import resourceslice
from drachma.testing import device, resource_slice, taint_rule

_FEATURES = allocator.Features(device_taints=True)


def _slice(name: str, *devices: str, node: str = "n1", pool: str | None = None) -> resourceslice.ResourceSlice:
    return resource_slice(name, driver="d", pool=pool).on_node(node).devices(*devices).build()


def _names(catalog: allocator.Catalog, node: str) -> list[str]:
    view = catalog.view(allocator.Node(node), _FEATURES)
    return [str(entry.name) for block in view.blocks for entry in block.devices]


def test_slices_come_and_go() -> None:
    catalog = allocator.Catalog()
    assert _names(catalog, "n1") == []
    catalog.put(_slice("s1", "a"))
    catalog.put(_slice("s2", "b"))
    assert _names(catalog, "n1") == ["a", "b"]
    catalog.put(_slice("s1", "c"))
    assert _names(catalog, "n1") == ["c", "b"]
    catalog.remove("s1")
    catalog.remove("unknown")
    assert _names(catalog, "n1") == ["b"]


def test_a_slice_can_move_to_another_node() -> None:
    catalog = allocator.Catalog([_slice("s", "a")])
    assert (_names(catalog, "n1"), _names(catalog, "n2")) == (["a"], [])
    catalog.put(_slice("s", "a", node="n2"))
    assert (_names(catalog, "n1"), _names(catalog, "n2")) == ([], ["a"])


def test_a_change_leaves_the_views_of_other_nodes_alone() -> None:
    catalog = allocator.Catalog([_slice("s1", "a"), _slice("s2", "b", node="n2")])
    other = catalog.view(allocator.Node("n2"), _FEATURES)
    catalog.put(_slice("s1", "c"))
    assert catalog.view(allocator.Node("n2"), _FEATURES) is other
    assert _names(catalog, "n1") == ["c"]


def test_a_node_with_other_labels_gets_another_view() -> None:
    catalog = allocator.Catalog([_slice("s", "a")])
    first = catalog.view(allocator.Node("n1", {"zone": "a"}), _FEATURES)
    assert catalog.view(allocator.Node("n1", {"zone": "a"}), _FEATURES) is first
    assert catalog.view(allocator.Node("n1", {"zone": "b"}), _FEATURES) is not first


def test_nodes_share_the_block_of_a_pool_that_all_of_them_see() -> None:
    everywhere = resource_slice("shared", driver="d").on_all_nodes().devices("x").build()
    catalog = allocator.Catalog([everywhere, _slice("s", "a")])
    first, second = (catalog.view(allocator.Node(name), _FEATURES) for name in ("n1", "n2"))
    assert first.blocks[-1] is second.blocks[-1]
    assert len(first.blocks) == 2


def test_a_pool_completed_on_another_node_is_noticed() -> None:
    one = resource_slice("s1", driver="d", pool="p", slices=2).on_node("n1").devices("a").build()
    two = resource_slice("s2", driver="d", pool="p", slices=2).on_node("n2").devices("b").build()
    catalog = allocator.Catalog([one])
    assert _names(catalog, "n1") == []
    catalog.put(two)
    assert _names(catalog, "n1") == ["a"]
    catalog.remove("s2")
    assert _names(catalog, "n1") == []


def test_a_name_twice_in_a_list_counts_twice() -> None:
    assert _names(allocator.Catalog([_slice("s", "a", pool="p1"), _slice("s", "b", pool="p2")]), "n1") == ["a", "b"]


def test_taint_rules_come_and_go() -> None:
    catalog = allocator.Catalog(
        [resource_slice("s", driver="d").on_node("n1").devices(device("a").taint("own")).build()]
    )

    def taints() -> list[str]:
        view = catalog.view(allocator.Node("n1"), _FEATURES)
        return [str(taint.key) for taint in view.device(0).taints]

    assert taints() == ["own"]
    catalog.put_rule(taint_rule("r", key="x", driver="d").build())
    assert taints() == ["own", "x"]
    catalog.put_rule(taint_rule("r", key="y", driver="other").build())
    assert taints() == ["own"]
    catalog.put_rule(taint_rule("r", key="z", device="a").build())
    assert taints() == ["own", "z"]
    catalog.remove_rule("r")
    catalog.remove_rule("unknown")
    assert taints() == ["own"]


def test_a_node_can_be_forgotten() -> None:
    catalog = allocator.Catalog([_slice("s", "a")])
    view = catalog.view(allocator.Node("n1"), _FEATURES)
    catalog.forget_node("n1")
    assert catalog.view(allocator.Node("n1"), _FEATURES) is not view


def test_positions_lead_to_devices_across_pools() -> None:
    catalog = allocator.Catalog([_slice("s1", "a", "b"), _slice("s2", "c")])
    view = catalog.view(allocator.Node("n1"), _FEATURES)
    assert [str(view.device_id(position)) for position in range(3)] == ["d/s1/a", "d/s1/b", "d/s2/c"]
    assert view.owner(2).name == "s2"
