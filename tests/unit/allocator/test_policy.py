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
    features = allocator.Features.parse_names(["all"])
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


def _halves(*cards: str) -> list[resourceslice.ResourceSlice]:
    """Two halves of each card, and the card as a whole; first halves first."""
    counters = resource_slice("c", driver="d", pool="p", slices=2).on_node("n")
    for card in cards:
        counters = counters.counters(card, left=1, right=1)
    devices = [device(f"{card}-{side}").consumes(card, **{side: 1}) for side in ("left", "right") for card in cards]
    devices += [device(f"{card}-whole").consumes(card, left=1, right=1) for card in cards]
    published = resource_slice("s", driver="d", pool="p", slices=2).on_node("n").devices(*devices)
    return [counters.build(), published.build()]


def test_whole_partitions_stay_whole() -> None:
    """Half of the first card is taken: the other half costs no whole card, and comes before the second card."""
    held = [allocated.Holding(allocator.DeviceID("d", "p", "one-left"))]
    assert _first_choice(_halves("one", "two"), held, allocator.Policy.FIRST_FIT) == "p/two-left"
    assert _first_choice(_halves("one", "two"), held, allocator.Policy.WHOLE_PARTITIONS) == "p/one-right"


@pytest.mark.parametrize(
    ("count", "want"),
    [
        pytest.param(1, ["c"], id="the-smallest-domain"),
        pytest.param(2, ["a", "d"], id="the-smallest-that-is-enough"),
        pytest.param(3, ["b", "e", "f"], id="the-only-one"),
        pytest.param(4, ["a", "b", "e", "f"], id="none-is-enough"),
    ],
)
def test_one_domain(count: int, want: list[str]) -> None:
    sockets = dict(zip("abcdef", [1, 2, 3, 1, 2, 2], strict=True))
    devices = [device(name).attributes(socket=number) for name, number in sockets.items()]
    published = resource_slice("p", driver="d").on_node("n").devices(*devices, device("nowhere")).build()
    features = allocator.Features.parse_names(["all"])
    built = allocator.Allocator(
        allocator.Catalog([published]),
        classes=allocator.Classes([device_class("any").build()]),
        allocated=allocator.AllocatedState(consumable_capacity=True),
        compiler=selectors.SelectorCompiler(features),
        features=features,
        share_ids=lambda: "share",
    )
    wanted = claim("c").request("r", device_class="any", count=count, mode="ExactCount").build()
    outcome = built.allocate(_NODE, [wanted], policy=allocator.OneDomain("d/socket"))
    assert isinstance(outcome, allocator.Allocated)
    assert sorted(result.device for result in outcome.results[0].devices.results) == want
