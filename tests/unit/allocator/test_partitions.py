"""Partitions: what is free, and what giving one away costs the others."""

from fractions import Fraction

import pytest

from drachma import allocator
from drachma.allocator import allocated, partitions, pool
from drachma.allocator.view import positions
from drachma.testing import device, resource_slice

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def card() -> pool.Block:
    """A card as a whole, in halves and in quarters; each part takes certain slots."""
    slots = {f"slot{number}": 1 for number in range(4)}
    counters = resource_slice("a", driver="d", pool="p", slices=2).on_node("n").counters("card", memory=8, **slots)
    parts = [
        device(f"{kind}-{place}").consumes(
            "card",
            memory=2 * width,
            **{f"slot{slot}": 1 for slot in range(place * width, (place + 1) * width)},
        )
        for kind, width in (("whole", 4), ("half", 2), ("quarter", 1))
        for place in range(4 // width)
    ]
    published = resource_slice("b", driver="d", pool="p", slices=2).on_node("n").devices(*parts, device("other"))
    catalog = allocator.Catalog([counters.build(), published.build()])
    return catalog.view(allocator.Node("n"), allocator.Features.parse_names(["all"])).blocks[0]


def state(*taken: str) -> allocated.AllocatedState:
    made = allocator.AllocatedState(consumable_capacity=True)
    for name in taken:
        made.hold(allocated.Holding(allocator.DeviceID("d", "p", name)))
    return made


def free(*taken: str) -> set[str]:
    block = card()
    return {block.devices[place].name for place in positions(partitions.free(block, state(*taken)))}


def lost(name: str, *taken: str) -> tuple[Fraction, ...]:
    block = card()
    return partitions.losses(block, state(*taken))[block.index[name]]


@pytest.mark.parametrize(
    ("taken", "want"),
    [
        pytest.param((), {"whole-0", "half-0", "half-1", *(f"quarter-{n}" for n in range(4)), "other"}, id="all"),
        pytest.param(("quarter-1",), {"half-1", "quarter-0", "quarter-2", "quarter-3", "other"}, id="a-quarter-gone"),
        pytest.param(("whole-0", "other"), set(), id="nothing"),
    ],
)
def test_what_is_free(taken: tuple[str, ...], want: set[str]) -> None:
    assert free(*taken) == want


@pytest.mark.parametrize(
    ("name", "taken", "want"),
    [
        pytest.param("other", (), (), id="a-device-of-its-own"),
        pytest.param("quarter-0", (), (1, HALF), id="the-first-quarter"),
        pytest.param("quarter-1", ("quarter-0",), (), id="beside-another"),
        pytest.param("quarter-2", ("quarter-0",), (HALF,), id="in-the-other-half"),
        pytest.param("whole-0", (), (HALF, HALF, QUARTER, QUARTER, QUARTER, QUARTER), id="everything"),
    ],
)
def test_what_giving_one_away_costs(name: str, taken: tuple[str, ...], want: tuple[Fraction, ...]) -> None:
    assert lost(name, *taken) == want
