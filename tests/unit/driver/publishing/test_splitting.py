"""From pools to slices: how many there are, and what is refused before anything is sent."""

import datetime as dt
from collections.abc import Callable

import pytest

from drachma import errors
from drachma.driver import DeviceBuilder, Pool, Profile, device, partitions, pool
from drachma.driver.publishing import layout, plan, splitting

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NODE = plan.Identity("gpu.example.com", layout.Owner(name="worker"))
NETWORK = plan.Identity("gpu.example.com")


def _sizes(of: Pool, identity: plan.Identity = NODE) -> list[tuple[int, int]]:
    made = splitting.layouts(identity, [of], now=NOW)[of.name]
    return [(len(each.shared_counters), len(each.devices)) for each in made.slices]


def _devices(count: int, change: Callable[[DeviceBuilder], DeviceBuilder] = lambda each: each) -> list[DeviceBuilder]:
    return [change(device(f"d-{number}")) for number in range(count)]


@pytest.mark.parametrize(
    ("of", "want"),
    [
        pytest.param(pool("p"), [(0, 0)], id="a-pool-without-devices-is-published"),
        pytest.param(pool("p", _devices(128)), [(0, 128)], id="as-many-as-a-slice-holds"),
        pytest.param(pool("p", _devices(129)), [(0, 128), (0, 1)], id="one-more"),
        pytest.param(
            pool("p", [*_devices(100), device("t").taint("k")]), [(0, 64), (0, 37)], id="one-taint-halves-the-slices"
        ),
        pytest.param(
            pool("p", [device("l").attribute("l", ["a", "b"]), *_devices(64)]),
            [(0, 64), (0, 1)],
            id="a-list-of-values-too",
        ),
        pytest.param(
            pool(
                "p",
                [
                    partitions(f"gpu-{number}", amounts={"m": 4}, profiles=[Profile(name="all", takes={"m": 4})])
                    for number in range(9)
                ],
            ),
            [(8, 0), (1, 0), (0, 9)],
            id="counters-come-first-in-slices-of-their-own",
        ),
    ],
)
def test_slices_of_a_pool(of: Pool, want: list[tuple[int, int]]) -> None:
    assert _sizes(of) == want


def test_large_devices_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "LARGEST_BYTES", 1000)
    large = _devices(10, lambda each: each.attribute("text", "x" * 64).attribute("more", "y" * 64))
    sizes = _sizes(pool("p", large))
    assert len(sizes) > 1
    assert sum(devices for _, devices in sizes) == 10


def test_devices_that_name_their_nodes() -> None:
    made = splitting.layouts(NETWORK, [pool("p", [device("a").on_node("n")])], now=NOW)["p"]
    assert made.slices[0].per_device_node_selection is True


@pytest.mark.parametrize(
    ("of", "identity", "want"),
    [
        pytest.param(
            pool("p", [device("ok"), device("Not OK")]),
            NODE,
            "pool 'p', slice #0: device 'Not OK': spec.devices[1].name: Invalid value",
            id="a-name",
        ),
        pytest.param(
            pool("p", [device("a").attribute("x", "y" * 65)]),
            NODE,
            "pool 'p', slice #0: device 'a': spec.devices[0].attributes[x].string: Too long",
            id="a-value",
        ),
        pytest.param(pool("p"), NETWORK, "pool 'p', slice #0: spec: Required value: exactly one of", id="no-nodes"),
        pytest.param(
            pool("p", [device("a"), device("a")]),
            NODE,
            "pool 'p', slice #0: device 'a': spec.devices[1]: Duplicate value",
            id="a-device-twice-in-a-slice",
        ),
        pytest.param(
            pool("p", [*_devices(128), device("d-0")]),
            NODE,
            'found duplicate device "d-0" in pool "p"',
            id="a-device-twice-in-two-slices",
        ),
    ],
)
def test_what_no_server_would_take_is_refused(of: Pool, identity: plan.Identity, want: str) -> None:
    with pytest.raises(errors.DriverError) as caught:
        splitting.layouts(identity, [of], now=NOW)
    assert str(caught.value).startswith(want)


def test_a_pool_twice_is_refused() -> None:
    with pytest.raises(errors.DriverError, match="pool 'p': is there twice"):
        splitting.layouts(NODE, [pool("p"), pool("p")], now=NOW)
