"""The allocated state is kept up to date claim by claim."""

import pytest

from drachma import allocator
from drachma.allocator import allocated, pool
from drachma.api import nodeselector, resourceclaim
from drachma.testing import claim, device, resource_slice
from drachma.values import quantity

_FEATURES = allocator.Features(partitionable_devices=True)
_DEVICE = allocator.DeviceID("d", "p", "a")


def _block() -> pool.Block:
    counters = resource_slice("c", driver="d", pool="p", slices=2).on_node("n").counters("s", x=4).build()
    devices = resource_slice("s", driver="d", pool="p", slices=2).on_node("n")
    devices = devices.devices(device("a").consumes("s", x=1), device("b").consumes("s", x=2), "c")
    view = allocator.Catalog([counters, devices.build()]).view(allocator.Node("n"), _FEATURES)
    return view.blocks[0]


def _share(name: str, share_id: str, memory: str | None = None) -> resourceclaim.ResourceClaim:
    consumed = {} if memory is None else {"memory": quantity.Quantity.parse(memory)}
    result = resourceclaim.DeviceRequestAllocationResult(
        request="r", driver="d", pool="p", device="a", share_id=share_id, consumed_capacity=consumed
    )
    allocation = resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=(result,)))
    return resourceclaim.ResourceClaim(
        metadata=claim(name).build().metadata, status=resourceclaim.ResourceClaimStatus(allocation=allocation)
    )


def test_claims_come_and_go() -> None:
    block, state = _block(), allocator.AllocatedState(consumable_capacity=True)
    assert (state.taken(block), state.counters_left(block)) == (0, (4 * 10**9,))
    one = claim("c1").allocated(("r", "d", "p", "a"), ("r", "d", "p", "c")).build()
    state.put_claim(one)
    state.put_claim(claim("c2").allocated(("r", "d", "p", "b"), ("r", "d", "other", "b")).build())
    assert (state.taken(block), state.counters_left(block)) == (0b111, (1 * 10**9,))
    assert state.owners(_DEVICE) == ("default/c1",)
    state.remove_claim(one.metadata)
    assert (state.taken(block), state.counters_left(block)) == (0b010, (2 * 10**9,))
    assert not state.is_allocated(_DEVICE)


def test_a_claim_that_is_deallocated_or_changes_is_counted_anew() -> None:
    block, state = _block(), allocator.AllocatedState(consumable_capacity=True)
    state.put_claim(claim("c").allocated(("r", "d", "p", "a")).build())
    state.put_claim(claim("c").allocated(("r", "d", "p", "b")).build())
    assert state.taken(block) == 0b010
    state.put_claim(claim("c").build())
    assert state.taken(block) == 0


def test_putting_the_same_twice_changes_nothing() -> None:
    state = allocator.AllocatedState(consumable_capacity=True)
    state.put_claim(claim("c").allocated(("r", "d", "p", "a")).build())
    revision = state.revision
    state.put_claim(claim("c").allocated(("r", "d", "p", "a")).build())
    assert state.revision == revision


def test_a_device_held_twice_is_taken_until_both_let_go() -> None:
    block, state = _block(), allocator.AllocatedState(consumable_capacity=True)
    first, second = (claim(name).allocated(("r", "d", "p", "a")).build() for name in ("c1", "c2"))
    state.put_claim(first)
    state.put_claim(second)
    state.remove_claim(first.metadata)
    assert (state.taken(block), state.owners(_DEVICE)) == (1, ("default/c2",))


def test_admin_access_takes_nothing() -> None:
    block, state = _block(), allocator.AllocatedState(consumable_capacity=True)
    result = resourceclaim.DeviceRequestAllocationResult(
        request="r", driver="d", pool="p", device="a", admin_access=True
    )
    allocation = resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=(result,)))
    state.put_allocation(claim("c").build().metadata, allocation)
    assert (state.taken(block), state.partly_used(block)) == (0, 0)


def test_shares_add_up() -> None:
    block, state = _block(), allocator.AllocatedState(consumable_capacity=True)
    state.put_claim(_share("c1", "1", "1Gi"))
    state.put_claim(_share("c2", "2", "2Gi"))
    assert (state.taken(block), state.partly_used(block)) == (0, 1)
    assert str(state.consumed(_DEVICE)["memory"]) == "3Gi"
    assert state.owners(_DEVICE) == ("default/c1", "default/c2")
    # The device draws from its counters once, however many share it.
    assert state.counters_left(block) == (3 * 10**9,)
    state.remove_claim(_share("c1", "1").metadata)
    assert str(state.consumed(_DEVICE)["memory"]) == "2Gi"
    state.remove_claim(_share("c2", "2").metadata)
    assert (state.partly_used(block), state.consumed(_DEVICE)) == (0, {})


def test_a_share_without_capacity_is_a_share_too() -> None:
    block, state = _block(), allocator.AllocatedState(consumable_capacity=True)
    state.put_claim(_share("c", "1"))
    assert (state.partly_used(block), state.is_allocated(_DEVICE)) == (1, True)


def test_without_the_feature_a_share_takes_the_device() -> None:
    block, state = _block(), allocator.AllocatedState(consumable_capacity=False)
    state.put_claim(_share("c", "1", "1Gi"))
    assert (state.taken(block), state.partly_used(block)) == (1, 0)


def test_releasing_what_is_not_held_changes_nothing() -> None:
    block, state = _block(), allocator.AllocatedState(consumable_capacity=True)
    state.release(allocated.Holding(_DEVICE))
    state.put_claim(claim("c").allocated(("r", "d", "p", "a")).build())
    state.release(allocated.Holding(_DEVICE), owner="somebody/else")
    assert state.taken(block) == 1


# Stand-ins

_STAND_IN = "n/v1alpha2"


def _held(name: str, pool_name: str, *, on: str = "n", device_name: str = "a") -> resourceclaim.ResourceClaim:
    return claim(name).allocated(("r", "d", pool_name, device_name), node_selector=_only(on)).build()


def _only(node: str) -> nodeselector.NodeSelector:
    field = nodeselector.NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return nodeselector.NodeSelector(node_selector_terms=(nodeselector.NodeSelectorTerm(match_fields=(field,)),))


def _stand_in_block() -> pool.Block:
    published = resource_slice("s", driver="d", pool=_STAND_IN).on_node("n").devices("a", "b").build()
    return allocator.Catalog([published]).view(allocator.Node("n"), _FEATURES).blocks[0]


def test_what_is_held_in_a_stand_in_is_taken_in_the_pools_of_its_node() -> None:
    block, state = _block(), allocator.AllocatedState(consumable_capacity=True)
    state.put_claim(_held("c", _STAND_IN))
    assert (state.taken(block), state.counters_left(block)) == (0b001, (3 * 10**9,))
    assert state.holders(block, 0) == ("default/c",)
    state.put_claim(_held("d", "p", device_name="b"))
    assert (state.taken(block), state.counters_left(block)) == (0b011, (1 * 10**9,))
    state.remove_claim(_held("c", _STAND_IN).metadata)
    assert (state.taken(block), state.counters_left(block)) == (0b010, (2 * 10**9,))


def test_what_is_held_in_a_pool_is_taken_in_the_stand_in_of_its_node() -> None:
    block, state = _stand_in_block(), allocator.AllocatedState(consumable_capacity=True)
    state.put_claim(_held("c", "p"))
    fork = state.fork()
    assert (fork.taken(block), fork.holders(block, 0)) == (0b01, ("default/c",))
    state.put_claim(_held("d", "q"))
    state.remove_claim(_held("c", "p").metadata)
    assert (state.taken(block), state.holders(block, 0)) == (0b01, ("default/d",))
    assert (fork.taken(block), fork.holders(block, 0)) == (0b01, ("default/c",))
    state.remove_claim(_held("d", "q").metadata)
    assert state.taken(block) == 0


@pytest.mark.parametrize(
    ("other", "want"),
    [
        pytest.param(_held("c", _STAND_IN, device_name="b"), 0b10, id="the-device-itself"),
        pytest.param(_held("c", "p", on="elsewhere"), 0, id="a-pool-of-another-node"),
        pytest.param(_held("c", "elsewhere/v1alpha2", on="elsewhere"), 0, id="the-stand-in-of-another-node"),
        pytest.param(
            claim("c").allocated(("r", "other", "p", "a"), node_selector=_only("n")).build(), 0, id="another-driver"
        ),
        pytest.param(claim("c").allocated(("r", "d", "p", "a")).build(), 0, id="a-device-of-no-node"),
    ],
)
def test_what_is_none_of_a_stand_ins_devices(other: resourceclaim.ResourceClaim, want: int) -> None:
    state = allocator.AllocatedState([other], consumable_capacity=True)
    assert state.taken(_stand_in_block()) == want


def test_a_share_of_a_device_takes_all_of_it_in_the_stand_in() -> None:
    state = allocator.AllocatedState([_share("c", "s", "1Gi")], consumable_capacity=True)
    published = resource_slice("s", driver="d", pool="v1alpha2").on_all_nodes().devices("a").build()
    [block] = allocator.Catalog([published]).view(allocator.Node("n"), _FEATURES).blocks
    assert state.taken(block) == 0b1
