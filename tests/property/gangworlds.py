"""Small clusters and gangs, and the dumb way to find out whether one fits into the other."""

from typing import Any

from hypothesis import strategies as st

from drachma.api import resourceclaim
from drachma.scheduler.cycle.decision import Placed
from drachma.scheduler.snapshot import Snapshot, podinfo
from drachma.testing import claim, device, node, resource_slice
from drachma.testing import pod as a_pod
from tests.unit.scheduler.worlds import DRIVER, World

NODES = st.lists(
    st.tuples(st.sampled_from([1, 2, 3]), st.sampled_from([(), ("a",), ("a", "b"), ("b", "b")])),  # cpu, devices
    min_size=1,
    max_size=3,
)
PODS = st.lists(
    st.tuples(st.sampled_from([0, 1, 2]), st.sampled_from(["", "", "a", "b", "shared"])),  # cpu, device
    min_size=2,
    max_size=4,
)


def a_world(nodes: list[tuple[int, tuple[str, ...]]]) -> World:
    world = World()
    world.put_class(f'device.driver == "{DRIVER}"')
    for number, (cpu, models) in enumerate(nodes):
        world.put_node(node(f"n{number}", allocatable={"cpu": str(cpu), "memory": "8Gi", "pods": "9"}))
        devices = [device(f"d{place}").attributes(model=model) for place, model in enumerate(models)]
        if devices:
            world.put_slice(resource_slice(f"s{number}", driver=DRIVER).on_node(f"n{number}").devices(*devices))
    return world


def a_claim(world: World, name: str, model: str) -> resourceclaim.ResourceClaim:
    attribute = f'device.attributes["{DRIVER}"].model'
    return world.claim(
        claim(name)
        .uid(name)
        .request("r", device_class="gpu", mode="ExactCount", count=1, select=f'{attribute} == "{model}"')
    )


def gang_of(world: World, pods: list[tuple[int, str]], *, priority: int = 0) -> list[podinfo.PodInfo]:
    made: list[podinfo.PodInfo] = []
    for number, (cpu, model) in enumerate(pods):
        each = a_pod(f"p{number}").uid(f"p{number}").container("c", requests={"cpu": str(cpu)})
        each = each.spec(priority=priority)
        if model:
            name = "shared" if model == "shared" else f"c{number}"
            if world.snapshot.claims.get("default", name) is None:
                a_claim(world, name, "a" if model == "shared" else model)
            each = each.claim("x", claim=name)
        made.append(podinfo.PodInfo(each.build()))
    return made


def fits_some_way(world: World, members: list[podinfo.PodInfo], needed: int, snapshot: Snapshot | None = None) -> bool:
    """Whether any choice of nodes works: every node is tried for every pod, and leaving it out."""
    if needed > len(members):
        return False
    if not members:
        return True
    snapshot = snapshot or world.snapshot
    first, *others = members
    for info in snapshot.nodes:
        decided = world.cycle.decide(first, snapshot, excluded=snapshot.nodes.all_nodes & ~info.bit)
        if isinstance(decided, Placed):
            fork = snapshot.fork()
            fork.commit(decided.assignment)
            if fits_some_way(world, others, needed - 1, fork):
                return True
    return fits_some_way(world, others, needed, snapshot)


def seen(world: World) -> Any:
    snapshot = world.snapshot
    return (
        [(info.name, sorted(info.ledger.bookings), dict(info.ledger.requested)) for info in snapshot.nodes],
        sorted((each.metadata.name, each.status.allocation is None) for each in snapshot.claims),
    )
