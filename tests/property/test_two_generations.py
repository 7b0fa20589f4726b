"""Claims of v1 and of the first alpha that want the same devices: each device goes to one of them, and none is lost.

A driver publishes its devices in v1, in the first alpha, or in both under the same names; there a stand-in has those of
the first alpha. Publishing changes while claims hold devices.
"""

from __future__ import annotations

import itertools

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from drachma import allocator
from drachma.api import resourceclaim
from drachma.claims import identity, standins
from drachma.testing import claim, device_class, resource_slice
from tests.property import allocator_worlds

DRIVER, NODE = "d.example.com", "n"
POOLS = (NODE, standins.pool_name(NODE))
FEATURES = allocator.Features(consumable_capacity=True, partitionable_devices=True)

Offer = tuple[frozenset[str], frozenset[str]]
"""The devices that are published in v1, and those in the first alpha."""

names = st.frozensets(st.sampled_from("abc"))
offers = st.tuples(names, names)
acts = st.one_of(
    st.tuples(st.just("offer"), offers),
    st.tuples(st.just("claim"), st.integers(min_value=1, max_value=2)),
    st.tuples(st.just("release"), st.integers(min_value=0, max_value=5)),
)
BOTH: Offer = (frozenset("ab"), frozenset("ab"))
V1: Offer = (frozenset("ab"), frozenset())
ALPHA: Offer = (frozenset(), frozenset("ab"))


class World:
    """What a driver offers on one node, and the claims that hold something of it."""

    def __init__(self, offer: Offer) -> None:
        self._numbers = itertools.count()
        self.claims: list[resourceclaim.ResourceClaim] = []
        self.allocated = allocator.AllocatedState(consumable_capacity=True)
        self.offer(offer)

    def offer(self, offer: Offer) -> None:
        self.published = offer[0] | offer[1]
        slices = [
            resource_slice(f"s{number}", driver=DRIVER, pool=pool).on_node(NODE).devices(*sorted(devices)).build()
            for number, (pool, devices) in enumerate(zip(POOLS, offer, strict=True))
            if devices
        ]
        self._allocator = allocator.Allocator(
            allocator.Catalog(slices),
            classes=allocator.Classes([device_class("c").build()]),
            allocated=self.allocated,
            compiler=allocator_worlds.TinyCompiler(),
            features=FEATURES,
            share_ids=lambda: "share",
        )

    def claim(self, count: int) -> bool:
        """Whether a claim for so many devices gets them."""
        wish = claim(f"c{next(self._numbers)}").request("r", device_class="c", mode="ExactCount", count=count).build()
        outcome = self._allocator.allocate(allocator.Node(NODE), [wish])
        if not isinstance(outcome, allocator.Allocated):
            return False
        held = structs.replace(wish, status=resourceclaim.ResourceClaimStatus(allocation=outcome.results[0]))
        self.claims.append(held)
        self.allocated.put_claim(held)
        return True

    def release(self, number: int) -> None:
        if self.claims:
            self.allocated.remove_claim(self.claims.pop(number % len(self.claims)).metadata)

    def held(self) -> list[str]:
        """The names of all devices that claims hold, in whatever pool."""
        return [
            identity.device_of(result).device
            for each in self.claims
            if each.status.allocation is not None
            for result in each.status.allocation.devices.results
        ]


@settings(max_examples=100)
@example(BOTH, [("claim", 1), ("claim", 1), ("claim", 1)])
@example(V1, [("claim", 1), ("offer", ALPHA), ("claim", 1), ("claim", 1)])
@example(ALPHA, [("claim", 1), ("offer", V1), ("claim", 1), ("claim", 1)])
@example(ALPHA, [("claim", 2), ("offer", BOTH), ("release", 0), ("claim", 2)])
@example(V1, [("claim", 2), ("release", 0), ("offer", ALPHA), ("claim", 2)])
@given(offers, st.lists(acts, max_size=10))
def test_a_device_goes_to_one_claim_whatever_it_is_published_as(offer: Offer, story: list[tuple[str, object]]) -> None:
    world = World(offer)
    for act in story:
        match act:
            case "offer", tuple() as other:
                world.offer(other)
            case "release", int() as number:
                world.release(number)
            case "claim", int() as count:
                free = world.published - set(world.held())
                assert world.claim(count) == (len(free) >= count), "what is free can be had, and nothing else"
        held = world.held()
        assert len(held) == len(set(held)), "a device is in two claims"
