"""Packing and spreading, which nobody gets without asking."""

from __future__ import annotations

import pytest

from drachma import allocator
from drachma.allocator import allocated, selectors
from drachma.api import resourceslice
from drachma.testing import claim, device, device_class, resource_slice
from drachma.values import quantity

_NODE = allocator.Node("n")
_POLICIES = [allocator.Policy.FIRST_FIT, allocator.Policy.PACK, allocator.Policy.SPREAD]


def _first_choice(
    slices: list[resourceslice.ResourceSlice], held: list[allocated.Holding], policy: allocator.Policy
) -> str:
    features = allocator.Features.of_names(["all"])
    state = allocator.AllocatedState(consumable_capacity=True)
    for holding in held:
        state.hold(holding)
    built = allocator.Allocator(
        allocator.Catalog(slices),
        classes=allocator.Classes([device_class("any").build()]),
        allocated=state,
        compiler=selectors.SelectorCompiler(features),
        features=features,
        share_ids=lambda: "share",
    )
    wanted = claim("c").request("r", device_class="any", count=1, mode="ExactCount").build()
    outcome = built.allocate(_NODE, [wanted], policy=policy)
    assert isinstance(outcome, allocator.Allocated)
    result = outcome.results[0].devices.results[0]
    return f"{result.pool}/{result.device}"


def _pool(name: str, *devices: str) -> resourceslice.ResourceSlice:
    return resource_slice(name, driver="d").on_node("n").devices(*devices).build()


@pytest.mark.parametrize(
    ("policy", "want"), list(zip(_POLICIES, ["p0/a", "p1/b", "p0/a"], strict=True)), ids=lambda value: str(value)
)
def test_pools_in_use(policy: allocator.Policy, want: str) -> None:
    held = [allocated.Holding(allocator.DeviceID("d", "p1", "a"))]
    assert _first_choice([_pool("p0", "a", "b"), _pool("p1", "a", "b")], held, policy) == want


@pytest.mark.parametrize(
    ("policy", "want"), list(zip(_POLICIES, ["p/a", "p/c", "p/a"], strict=True)), ids=lambda value: str(value)
)
def test_counter_sets_in_use(policy: allocator.Policy, want: str) -> None:
    counters = resource_slice("c", driver="d", pool="p", slices=2).on_node("n")
    counters = counters.counters("card0", slots=4).counters("card1", slots=4)
    devices = [
        device(name).consumes(card, slots=1) for name, card in zip("abcd", ["card0"] * 2 + ["card1"] * 2, strict=True)
    ]
    published = resource_slice("s", driver="d", pool="p", slices=2).on_node("n").devices(*devices)
    held = [allocated.Holding(allocator.DeviceID("d", "p", "d"))]
    assert _first_choice([counters.build(), published.build()], held, policy) == want


@pytest.mark.parametrize(
    ("policy", "want"), list(zip(_POLICIES, ["p/a", "p/c", "p/b"], strict=True)), ids=lambda value: str(value)
)
def test_shared_devices_in_use(policy: allocator.Policy, want: str) -> None:
    devices = [device(name).shared().capacity("m", 8, default=1) for name in "abc"]
    published = resource_slice("p", driver="d").on_node("n").devices(*devices).build()
    held = [
        allocated.Holding(allocator.DeviceID("d", "p", name), f"share-{name}", {"m": quantity.Quantity.parse(amount)})
        for name, amount in (("a", "2"), ("c", "5"))
    ]
    assert _first_choice([published], held, policy) == want
