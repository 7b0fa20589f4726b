"""Forks of catalog and allocated state: whatever is done to one of them, each is as if built from scratch."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from drachma import allocator
from drachma.api import resourceclaim, resourceslice
from drachma.testing import claim, device, resource_slice

FEATURES = allocator.Features(consumable_capacity=True, partitionable_devices=True)
NODES = ("n0", "n1", "n2")
DRIVER = "d"

SLICES = st.builds(
    lambda *parts: _slice(*parts),
    st.integers(0, 4),
    st.sampled_from([*NODES, ""]),
    st.sampled_from(["p0", "p1"]),
    st.lists(st.sampled_from("abcd"), unique=True, max_size=3),
    st.integers(1, 2),
)
CLAIMS = st.builds(
    lambda *parts: _claim(*parts),
    st.integers(0, 3),
    st.lists(st.tuples(st.sampled_from(["p0", "p1"]), st.sampled_from("abcd")), max_size=2),
)
OPERATIONS = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.one_of(
            st.just("fork"),
            st.tuples(st.just("put"), SLICES),
            st.tuples(st.just("remove"), st.integers(0, 4)),
            st.tuples(st.just("claim"), CLAIMS),
            st.tuples(st.just("look"), st.sampled_from(NODES)),
        ),
    ),
    max_size=25,
)


def _slice(number: int, where: str, pool: str, devices: list[str], generation: int) -> resourceslice.ResourceSlice:
    made = resource_slice(f"s{number}", driver=DRIVER, pool=pool, generation=generation)
    made = made.on_node(where) if where else made.on_all_nodes()
    return made.devices(*map(device, devices)).build()


def _claim(number: int, devices: list[tuple[str, str]]) -> resourceclaim.ResourceClaim:
    made = claim(f"c{number}")
    return made.allocated(*(("r", DRIVER, pool, name) for pool, name in devices)).build() if devices else made.build()


class World:
    """A catalog and an allocated state, and what they were made of."""

    def __init__(self, catalog: allocator.Catalog, state: allocator.AllocatedState) -> None:
        self.catalog, self.state = catalog, state
        self.slices: dict[str, resourceslice.ResourceSlice] = {}
        self.claims: dict[str, resourceclaim.ResourceClaim] = {}

    def fork(self) -> World:
        other = World(self.catalog.fork(), self.state.fork())
        other.slices, other.claims = dict(self.slices), dict(self.claims)
        return other

    def check(self) -> None:
        fresh_catalog = allocator.Catalog(self.slices.values())
        fresh_state = allocator.AllocatedState(self.claims.values(), consumable_capacity=True)
        published = {str(entry.metadata.name): entry for entry in self.catalog.slices()}
        assert published == self.slices
        for name in NODES:
            node = allocator.Node(name)
            assert _devices(self.catalog, self.state, node) == _devices(fresh_catalog, fresh_state, node)


def _devices(catalog: allocator.Catalog, state: allocator.AllocatedState, node: allocator.Node) -> object:
    shown = catalog.view(node, FEATURES)
    # Pools come in the order in which a node first saw them.
    return {
        block.pool_id: ([str(entry.name) for entry in block.devices], bool(block.invalid), state.taken(block))
        for block in shown.blocks
    }


@settings(max_examples=150)
@given(OPERATIONS)
def test_each_fork_is_as_if_built_from_scratch(operations: list[tuple[int, object]]) -> None:
    worlds = [World(allocator.Catalog(), allocator.AllocatedState(consumable_capacity=True))]
    for which, operation in operations:
        world = worlds[which % len(worlds)]
        match operation:
            case "fork":
                worlds.append(world.fork())
            case "put", resourceslice.ResourceSlice() as published:
                world.catalog.put(published)
                world.slices[str(published.metadata.name)] = published
            case "remove", int() as number:
                world.catalog.remove(f"s{number}")
                world.slices.pop(f"s{number}", None)
            case "claim", resourceclaim.ResourceClaim() as made:
                world.state.put_claim(made)
                world.claims[made.metadata.name] = made
            case "look", str() as name:
                _devices(world.catalog, world.state, allocator.Node(name))
    for world in worlds:
        world.check()


def test_a_fork_uses_the_views_that_are_there() -> None:
    catalog = allocator.Catalog([_slice(0, "n0", "p0", ["a"], 1), _slice(1, "n1", "p1", ["b"], 1)])
    shown = [catalog.view(allocator.Node(name), FEATURES) for name in ("n0", "n1")]
    fork = catalog.fork()
    fork.put(_slice(0, "n0", "p0", ["c"], 1))
    assert fork.view(allocator.Node("n1"), FEATURES) is shown[1]
    assert fork.view(allocator.Node("n0"), FEATURES) is not shown[0]
    assert catalog.view(allocator.Node("n0"), FEATURES) is shown[0]
