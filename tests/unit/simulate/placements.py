"""Results of device policies: the same pods, placed by each policy on the same machines.

The table shows what is left whole when all pods have their devices.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from drachma import allocator, testing
from drachma.allocator import partitions, view
from drachma.api import meta
from drachma.scheduler import Settings
from drachma.simulate import ClusterState, Simulation

DRIVER = "gpu.example.com"
SOCKET = f"{DRIVER}/socket"
POLICIES: dict[str, allocator.Preference] = {
    **{each.value: each for each in allocator.Policy},
    f"domain={SOCKET}": allocator.OneDomain(SOCKET),
}
_CPU = {"cpu": "64", "memory": "256Gi", "pods": "110"}
_COMMON: list[meta.Object] = [testing.device_class("gpu", f'device.driver == "{DRIVER}"').build()]


def _pods(template: str, count: int, prefix: str) -> Iterator[meta.Object]:
    for number in range(count):
        made = testing.pod(f"{prefix}{number:02}").container("c", requests={"cpu": "1"})
        yield made.claim("gpu", template=template).build()


def _placed(objects: list[meta.Object], policy: allocator.Preference) -> Simulation:
    cluster = Simulation(ClusterState.of([*_COMMON, *objects]), settings=Settings(policy=policy), seed=1)
    schedule = cluster.schedule()
    assert not schedule.waiting, schedule.waiting[0].reason
    return cluster


def idle_machines(policy: allocator.Preference) -> str:
    """Return the number of empty machines: eight machines with four GPUs each, sixteen pods with one each."""
    objects: list[meta.Object] = [
        testing.claim_template("one").request("gpu", device_class="gpu", mode="ExactCount", count=1).build()
    ]
    for number in range(8):
        names = [f"gpu-{place}" for place in range(4)]
        name = f"n{number}"
        objects += [
            testing.node(name, allocatable=_CPU).build(),
            testing.resource_slice(name, driver=DRIVER).on_node(name).devices(*names).build(),
        ]
    cluster = _placed([*objects, *_pods("one", 16, "p")], policy)
    idle = sum(not info.ledger.bookings for info in cluster.snapshot.nodes)
    return f"{idle} of 8"


def whole_cards(policy: allocator.Preference) -> str:
    """Return the number of whole cards: four machines with two cards in halves and quarters, ten pods with a part each.

    A part takes certain slots of its card, and drivers list parts of the same place card by card.
    """
    select = {kind: f'device.attributes["{DRIVER}"].kind == "{kind}"' for kind in ("half", "quarter")}
    objects: list[meta.Object] = [
        testing.claim_template(kind).request("gpu", device_class="gpu", mode="ExactCount", count=1, select=text).build()
        for kind, text in select.items()
    ]
    for number in range(4):
        name = f"n{number}"
        counters = testing.resource_slice(f"{name}-a", driver=DRIVER, pool=name, slices=2).on_node(name)
        for card in range(2):
            counters = counters.counters(f"card{card}", **{f"slot{slot}": 1 for slot in range(4)})
        parts = [
            testing.device(f"card{card}-{kind}-{place}")
            .attributes(kind=kind)
            .consumes(f"card{card}", **{f"slot{slot}": 1 for slot in range(place * slots, (place + 1) * slots)})
            for kind, slots in (("whole", 4), ("half", 2), ("quarter", 1))
            for place in range(4 // slots)
            for card in range(2)
        ]
        devices = testing.resource_slice(f"{name}-b", driver=DRIVER, pool=name, slices=2).on_node(name)
        objects += [testing.node(name, allocatable=_CPU).build(), counters.build(), devices.devices(*parts).build()]
    cluster = _placed([*objects, *_pods("quarter", 6, "a"), *_pods("half", 2, "b"), *_pods("quarter", 2, "c")], policy)
    snapshot = cluster.snapshot
    blocks = [block for info in snapshot.nodes for block in snapshot.devices.view(info).blocks]
    whole = sum(
        block.devices[place].name.endswith("whole-0")
        for block in blocks
        for place in view.positions(partitions.free(block, snapshot.devices.state))
    )
    return f"{whole} of 8"


def claims_in_one_domain(policy: allocator.Preference) -> str:
    """Return the claims on one socket: machines with eight GPUs on two sockets, pods with one, two or four."""
    objects: list[meta.Object] = [
        testing.claim_template(f"gpus-{count}")
        .request("gpu", device_class="gpu", mode="ExactCount", count=count)
        .build()
        for count in (1, 2, 4)
    ]
    for number in range(4):
        name = f"n{number}"
        devices = [testing.device(f"gpu-{place}").attributes(socket=place % 2) for place in range(8)]
        objects += [
            testing.node(name, allocatable=_CPU).build(),
            testing.resource_slice(name, driver=DRIVER).on_node(name).devices(*devices).build(),
        ]
    chance = random.Random(1)
    sizes = [1, 1, 2, 2, 2, 4, 4, 1, 2, 2]
    chance.shuffle(sizes)
    for number, size in enumerate(sizes):
        objects += _pods(f"gpus-{size}", 1, f"p{number:02}-")
    cluster = _placed(objects, policy)
    several = together = 0
    for claim in cluster.snapshot.claims:
        assert claim.status.allocation is not None
        results = claim.status.allocation.devices.results
        sockets = {int(result.device[-1]) % 2 for result in results}
        several += len(results) > 1
        together += len(results) > 1 and len(sockets) == 1
    return f"{together} of {several}"


def table() -> str:
    """Return the table of docs/policies.md."""
    lines = ["policy                          machines left idle    cards left whole    claims on one socket"]
    for name, policy in POLICIES.items():
        cells = f"{name:<32}{idle_machines(policy):<22}{whole_cards(policy):<20}"
        lines.append(f"{cells}{claims_in_one_domain(policy)}")
    return "".join(f"{line}\n" for line in lines)
