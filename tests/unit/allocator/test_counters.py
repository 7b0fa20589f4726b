"""Counter tables: what devices draw, what is left, and which compatibility groups stay open."""

import pytest

from drachma.allocator import counters
from drachma.api import resourceslice
from drachma.testing import device, resource_slice
from drachma.values import quantity

_GIGA = 10**9


def _grouped(name: str, *groups: str) -> resourceslice.Device:
    consumed = resourceslice.DeviceCounterConsumption(
        counter_set="s",
        counters={"x": resourceslice.Counter(value=quantity.Quantity.parse("1"))},
        compatibility_groups=groups,
    )
    return resourceslice.Device(name=name, consumes_counters=(consumed,))


def _counter_slice(name: str = "c") -> resourceslice.ResourceSlice:
    return resource_slice(name, driver="d").on_node("n").counters("s", x=4, y=2).build()


def test_draws_are_numbers_by_counter() -> None:
    drawing = device("a").consumes("s", x=1, y=2).build()
    table = counters.CounterTable([_counter_slice()], [drawing, device("b").build()])
    assert table.names == [("s", "x"), ("s", "y")]
    assert table.limits == (4 * _GIGA, 2 * _GIGA)
    assert table.draws == (((0, _GIGA), (1, 2 * _GIGA)), ())


def test_what_is_allocated_is_no_longer_available() -> None:
    here, elsewhere = device("a").consumes("s", x=3).build(), device("b").consumes("s", x=2).build()
    table = counters.CounterTable([_counter_slice()], [here], elsewhere=[elsewhere])
    assert table.available([]) == table.limits
    assert table.available(["a", "unknown"]) == (_GIGA, 2 * _GIGA)
    assert table.available(["a", "b"]) == (-_GIGA, 2 * _GIGA)


@pytest.mark.parametrize(
    ("allocated", "want"),
    [
        pytest.param([], "any", id="nothing-allocated"),
        pytest.param(["g"], "g h", id="what-they-declare"),
        pytest.param(["g", "h"], "h", id="what-they-have-in-common"),
        pytest.param(["none"], "none", id="no-groups"),
        pytest.param(["g", "none"], "g h", id="the-first-counts-where-they-contradict"),
    ],
)
def test_groups_still_open(allocated: list[str], want: str) -> None:
    devices = [_grouped("g", "G", "H"), _grouped("h", "H"), _grouped("none")]
    table = counters.CounterTable([_counter_slice()], devices)
    bits = {
        "any": counters.ANY_GROUP,
        "g h": table.bonds[0][0][1],
        "h": table.bonds[1][0][1],
        "none": table.bonds[2][0][1],
    }
    assert table.uses_groups
    assert table.bound(allocated) == (bits[want],)


@pytest.mark.parametrize(
    ("slices", "devices", "message"),
    [
        pytest.param([_counter_slice("c"), _counter_slice("e")], [], "duplicate counter set name s", id="set-twice"),
        pytest.param([], [device("a").consumes("s", x=1).build()], "counter set s not found", id="no-such-set"),
        pytest.param(
            [_counter_slice()],
            [device("a").consumes("s", z=1).build()],
            "counter z not found in counter set s",
            id="no-such-counter",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    slices: list[resourceslice.ResourceSlice], devices: list[resourceslice.Device], message: str
) -> None:
    with pytest.raises(counters.InvalidCountersError, match=f"^{message}$"):
        counters.CounterTable(slices, devices)


def test_shortage_names_what_is_missing() -> None:
    table = counters.CounterTable([_counter_slice()], [device("a").consumes("s", x=1, y=2).build()])
    assert counters.shortage((5, 2 * _GIGA), table.draws[0], names=table.names) == {("s", "x"): 5}
