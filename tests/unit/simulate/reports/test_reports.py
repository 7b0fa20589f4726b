"""Reports on usage and fragmentation, as tables, documents and pictures."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from drachma import testing
from drachma.api import meta
from drachma.simulate import ClusterState, Simulation
from drachma.simulate.reports import drawing, fragmentation, pictures, utilisation

DRIVER = "gpu.example.com"
CPU = {"cpu": "8", "memory": "32Gi", "pods": "110"}


def machine(name: str, gpus: int) -> list[meta.Object]:
    devices = [f"gpu-{number}" for number in range(gpus)]
    return [
        testing.node(name, allocatable=CPU).build(),
        testing.resource_slice(f"{name}-gpus", driver=DRIVER, pool=name).on_node(name).devices(*devices).build(),
    ]


def card(name: str) -> list[meta.Object]:
    """Return a machine with a card that can be used whole, in halves, or in quarters."""
    counters = testing.resource_slice(f"{name}-a", driver="mig.example.com", pool=name, slices=2).on_node(name)
    parts = [
        testing.device(f"{kind}-{place}").consumes("card", slots=width)
        for kind, width in (("whole", 4), ("half", 2), ("quarter", 1))
        for place in range(4 // width)
    ]
    devices = testing.resource_slice(f"{name}-b", driver="mig.example.com", pool=name, slices=2).on_node(name)
    return [
        testing.node(name, allocatable=CPU).build(),
        counters.counters("card", slots=4).build(),
        devices.devices(*parts).build(),
    ]


def shared(name: str) -> list[meta.Object]:
    """Return a network-attached device that all nodes can use, with shares."""
    nic = testing.device("nic").shared().capacity("bandwidth", 8, default=1)
    return [testing.resource_slice(name, driver="net.example.com").on_all_nodes().devices(nic).build()]


def held(name: str, *devices: tuple[str, str, str]) -> meta.Object:
    results = [("r", driver, pool, device) for driver, pool, device in devices]
    return testing.claim(name).uid(name).request("r", device_class="any").allocated(*results).build()


def snapshot(*objects: meta.Object) -> Any:
    return Simulation(ClusterState.of(objects)).snapshot


def test_devices_by_what_became_of_them() -> None:
    busy = testing.pod("p").container("c", requests={"cpu": "2"}).on_node("n1").build()
    measured = utilisation.measure(
        snapshot(
            *machine("n1", 2),
            *card("n2"),
            busy,
            held("a", (DRIVER, "n1", "gpu-1"), ("mig.example.com", "n2", "half-0")),
        )
    )
    assert list(utilisation.rows(measured)) == [
        ("NODE", "CPU", "MEMORY", "DRIVER", "POOL", "DEVICES", "USED", "SHARED", "BLOCKED", "FREE", "COUNTERS"),
        ("n1", "25%", "0%", DRIVER, "n1", "2", "1", "0", "0", "1", ""),
        ("n2", "0%", "0%", "mig.example.com", "n2", "7", "1", "0", "1", "5", "50%"),
    ]
    assert utilisation.summary(measured) == "2 of 9 devices in use, 1 blocked by others, on 2 nodes"
    document = utilisation.to_document(measured)
    assert document["pools"][0]["devices"] == [
        {"name": "gpu-0", "condition": "free", "share": 0.0},
        {"name": "gpu-1", "condition": "used", "share": 1.0, "claims": ["default/a"]},
    ]
    assert document["pools"][1]["counters"] == [{"counterSet": "card", "counter": "slots", "share": 0.5}]


def test_a_device_of_several_nodes_counts_once() -> None:
    sharing = (
        testing.claim("s")
        .uid("s")
        .request("r", device_class="any")
        .allocated(("r", "net.example.com", "net", "nic"), share_id="one")
        .build()
    )
    measured = utilisation.measure(snapshot(*machine("n1", 0), *machine("n2", 0), *shared("net"), sharing))
    (pool,) = measured.on("")
    assert [(each.name, each.condition.value, each.claims) for each in pool.devices] == [
        ("nic", "shared", ("default/s",))
    ]


@pytest.mark.parametrize(
    ("taken", "want"),
    [
        pytest.param(
            (), {"1 device": (8, 8), "2 devices of one node": (4, 4), "4 devices of one node": (2, 2)}, id="free"
        ),
        pytest.param(
            (("n1", 0), ("n1", 1), ("n2", 0), ("n2", 1)),
            {"1 device": (4, 4), "2 devices of one node": (2, 2), "4 devices of one node": (0, 1)},
            id="half-of-each",
        ),
        pytest.param(
            tuple(("n1", number) for number in range(4)),
            {"1 device": (4, 4), "2 devices of one node": (2, 2), "4 devices of one node": (1, 1)},
            id="all-of-one",
        ),
    ],
)
def test_claims_of_several_devices(taken: tuple[tuple[str, int], ...], want: dict[str, tuple[int, int]]) -> None:
    claims = [held(f"c{n}", (DRIVER, name, f"gpu-{gpu}")) for n, (name, gpu) in enumerate(taken)]
    (driver,) = fragmentation.measure(snapshot(*machine("n1", 4), *machine("n2", 4), *claims))
    assert {fit.what: (fit.fits, fit.ideal) for fit in driver.fits} == want


def test_partitions() -> None:
    claims = [held(f"c{name}", ("mig.example.com", name, "quarter-0")) for name in ("n1", "n2")]
    (driver,) = fragmentation.measure(snapshot(*card("n1"), *card("n2"), *claims))
    assert [tuple(fit) for fit in driver.fits] == [
        ("a partition of 1/4", 6, 6),
        ("a partition of 1/2", 2, 3),
        ("a whole in partitions", 0, 1),
    ]
    assert list(fragmentation.rows([driver]))[-1] == ("mig.example.com", "a whole in partitions", "0", "1", "100%")


def test_pictures_are_well_formed() -> None:
    cluster = snapshot(*machine("n1", 40), *card("n2"), *shared("net"), held("a", (DRIVER, "n1", "gpu-0")))
    picture = ET.fromstring(pictures.draw_utilisation(utilisation.measure(cluster)))
    hints = [each.text for each in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert f"{DRIVER}/n1/gpu-0: used by default/a" in hints
    assert "net.example.com/net/nic: free" in hints
    assert picture.get("viewBox", "").startswith("0 0 960 ")
    ET.fromstring(pictures.draw_fragmentation(fragmentation.measure(cluster)))
    ET.fromstring(pictures.draw_fragmentation(fragmentation.measure(snapshot())))


def test_texts_are_escaped() -> None:
    made = drawing.Drawing(100)
    made.text(0, 0, '<script>"&\x00')
    made.rectangle(0, 0, width=1, height=1, fill="#fff", hint="a<b")
    document = ET.fromstring(made.render())
    assert [each.text for each in document.iter("{http://www.w3.org/2000/svg}text")] == ['<script>"&\ufffd']


@pytest.mark.parametrize("count", [61, 1_200])
def test_large_clusters_are_a_map_with_a_tile_a_node(count: int) -> None:
    machines = [each for number in range(count) for each in machine(f"n-{number}", 4)]
    claim = held("a", (DRIVER, "n-7", "gpu-0"), (DRIVER, "n-7", "gpu-1"))
    drawn = pictures.draw_utilisation(utilisation.measure(snapshot(*machines, claim)))
    picture = ET.fromstring(drawn)
    hints = [each.text or "" for each in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert len(hints) == count
    assert hints[7] == "n-7: 2 of 4 devices in use, 0% of cpu"
    assert hints[10].startswith("n-10:"), "numbers in names are sorted by value"
    assert float(picture.get("height", "0")) < 800
    texts = [each.text for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    share = f"{2 / (4 * count):.0%}"
    assert f"{DRIVER}: 2 of {4 * count} devices in use ({share}), on {count} nodes" in texts
