"""Forks of a snapshot: whatever is done to one of them, each is as a snapshot to which only its own history happened.

A fork's own history is that of what it was forked from up to that moment, and what was done to it since. What is
compared is the state, and what the default profile makes of it: answers are remembered in between, and must be those
that a fresh snapshot gives.
"""

from __future__ import annotations

import gc
import random
import weakref
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from drachma.accounting import ledger
from drachma.api import gates, pod
from drachma.api import node as nodes
from drachma.runtime import clock
from drachma.scheduler import profiles
from drachma.scheduler.framework import cyclestate, verdict
from drachma.scheduler.settings import Settings
from drachma.scheduler.snapshot import Snapshot, assignment, podinfo
from drachma.testing import claim, device, device_class, node, resource_slice
from drachma.testing import pod as a_pod

DRIVER = "gpu.example.com"
NAMES = ("n0", "n1", "n2", "n3")
TAINT = nodes.Taint(key="dedicated", effect="NoSchedule")


def a_node(name: str, zone: str, tainted: bool, cpu: str) -> Any:
    return node(
        name,
        labels={"zone": zone},
        taints=(TAINT,) if tainted else (),
        allocatable={"cpu": cpu, "memory": "8Gi", "pods": "4"},
    ).build()


def a_slice(number: int, where: str, devices: list[str]) -> Any:
    made = resource_slice(f"s{number}", driver=DRIVER)
    made = made.on_node(where) if where else made.on_all_nodes()
    return made.devices(*(device(name).attributes(model=name) for name in devices)).build()


def a_claim(number: int, devices: list[tuple[int, str]]) -> Any:
    made = claim(f"c{number}").uid(f"c{number}").request("r", device_class="gpu", mode="ExactCount", count=1)
    if devices:
        made = made.allocated(*(("r", DRIVER, f"s{pool}", name) for pool, name in devices))
    return made.build()


def a_bound_pod(number: int, where: str, cpu: str, port: int) -> Any:
    made = a_pod(f"b{number}").uid(f"b{number}").container("c", requests={"cpu": cpu}).on_node(where)
    return with_port(made.build(), port)


def with_port(made: pod.Pod, port: int) -> pod.Pod:
    """The pod, with a host port for its container where there is one."""
    ports = (pod.ContainerPort(container_port=port, host_port=port),) if port else ()
    container = structs.replace(made.spec.containers[0], ports=ports)
    return structs.replace(made, spec=structs.replace(made.spec, containers=(container,)))


NAME = st.sampled_from(NAMES)
NUMBER = st.integers(0, 4)
DEVICES = st.lists(st.tuples(NUMBER, st.sampled_from("ab")), max_size=2)
CHANGES = st.one_of(
    st.tuples(st.just("node"), st.builds(a_node, NAME, st.sampled_from("xy"), st.booleans(), st.sampled_from("12"))),
    st.tuples(st.just("no node"), NAME),
    st.tuples(
        st.just("slice"),
        st.builds(a_slice, NUMBER, st.sampled_from([*NAMES, ""]), st.lists(st.sampled_from("ab"), unique=True)),
    ),
    st.tuples(st.just("no slice"), NUMBER),
    st.tuples(st.just("class"), st.sampled_from(["true", 'device.attributes["gpu.example.com"].model == "a"'])),
    st.tuples(st.just("claim"), st.builds(a_claim, NUMBER, DEVICES)),
    st.tuples(st.just("no claim"), NUMBER),
    st.tuples(
        st.just("pod"), st.builds(a_bound_pod, NUMBER, NAME, st.sampled_from(["500m", "1"]), st.sampled_from([0, 80]))
    ),
    st.tuples(st.just("no pod"), NUMBER),
    st.tuples(st.just("bind"), st.tuples(NUMBER, NAME, DEVICES)),
    st.tuples(st.just("unbind"), NUMBER),
    st.tuples(st.just("nominate"), st.tuples(NUMBER, st.sampled_from([*NAMES, ""]))),
)
STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),  # which of the snapshots there are by then
        st.one_of(CHANGES, CHANGES, st.just("fork")),
        st.integers(0, 3),  # who is asked afterwards, if there are so many
    ),
    max_size=25,
)


def pods() -> list[podinfo.PodInfo]:
    """What is asked of every snapshot."""
    small = a_pod("small").uid("small").container("c", requests={"cpu": "600m"})
    picky = a_pod("picky").uid("picky").container("c", requests={"cpu": "100m"}).spec(node_selector={"zone": "x"})
    gpu = a_pod("gpu").uid("gpu").container("c").claim("x", claim="wanted")
    return [podinfo.PodInfo(made) for made in (with_port(small.build(), 80), picky.build(), gpu.build())]


def apply(snapshot: Snapshot, change: tuple[str, Any]) -> None:
    match change:
        case "node", made:
            snapshot.add_node(made)
        case "no node", name:
            snapshot.remove_node(name)
        case "slice", made:
            snapshot.devices.put_slice(made)
        case "no slice", number:
            snapshot.devices.remove_slice(f"s{number}")
        case "class", expression:
            snapshot.devices.put_class(device_class("gpu", expression).build())
        case "claim", made:
            snapshot.claims.observe(made)
        case "no claim", number:
            snapshot.claims.remove(a_claim(number, []))
        case "pod", made:
            snapshot.add_pod(made)
        case "no pod", number:
            snapshot.remove_pod(f"b{number}")
        case "bind", (number, name, devices):
            snapshot.bind(assigned(number, name, devices))
        case "unbind", number:
            snapshot.unbind(assigned(number, "", []))
        case "nominate", (number, name):
            snapshot.nominations.put(podinfo.PodInfo(a_pod(f"w{number}").uid(f"w{number}").build()), name)


def assigned(number: int, name: str, devices: list[tuple[int, str]]) -> assignment.Assignment:
    made = a_pod(f"b{number}").uid(f"b{number}").container("c", requests={"cpu": "300m"}).build()
    allocated = a_claim(number + 10, devices)
    # Whoever takes it back need not know what was allocated.
    allocations = (assignment.Allocation(allocated, allocated.status.allocation),) if devices or not name else ()
    return assignment.Assignment(made, name, ledger.demand(made), allocations)


PROFILE = profiles.default(Settings(), clock=clock.SystemClock(), rng=random.Random(1))


def asked(snapshot: Snapshot) -> list[Any]:
    """What the profile makes of a snapshot, by names of nodes."""
    return [_filtered(snapshot, info) for info in pods()]


def _filtered(snapshot: Snapshot, info: podinfo.PodInfo) -> Any:
    def names(found: int) -> list[str]:
        return sorted(each.name for each in snapshot.nodes if each.bit & found)

    cycle = cyclestate.CycleState(info, snapshot)
    try:
        selected = PROFILE.pre_filter(cycle)
        if isinstance(selected, verdict.Rejection):
            return selected
        passing, rejections = PROFILE.filter_with_nominated_pods(cycle, snapshot.nodes.all_nodes)
        reasons: dict[Any, list[str]] = {}
        for rejection, rejected in rejections:
            reasons.setdefault(rejection, []).extend(names(rejected))
        best = names(PROFILE.best(cycle, passing)) if passing else []
        return names(passing), best, {rejection: sorted(found) for rejection, found in reasons.items()}
    except verdict.AbortError as error:
        return str(error)


def state(snapshot: Snapshot) -> Any:
    """All of a snapshot that is not remembered answers."""
    devices = snapshot.devices
    return {
        "nodes": {
            info.name: (
                info.node,
                dict(info.ledger.requested),
                sorted(info.ledger.bookings),
                sorted(info.ledger.used_ports),
                [
                    (block.pool_id, [str(entry.name) for entry in block.devices], devices.state.taken(block))
                    for block in devices.view(info).blocks
                ],
            )
            for info in snapshot.nodes
        },
        "homes": {f"b{number}": snapshot.nodes.node_of(f"b{number}") for number in range(5)},
        "assumed": [number for number in range(5) if snapshot.nodes.is_assumed(f"b{number}")],
        "sizes": snapshot.nodes.sizes(),
        "claims": sorted(each.metadata.name for each in snapshot.claims),
        "in flight": {number: snapshot.claims.pending(f"c{number}") for number in range(20)},
        "nominations": {number: snapshot.nominations.node_of(f"w{number}") for number in range(5)},
        "class": devices.classes.get("gpu"),
    }


def fresh() -> Snapshot:
    """Four nodes with devices of their own, devices of the network, and a pod here and there."""
    snapshot = Snapshot(gates.ALL)
    snapshot.devices.put_class(device_class("gpu", "true").build())
    wanted = claim("wanted").uid("wanted").request("r", device_class="gpu", mode="ExactCount", count=1)
    snapshot.claims.observe(wanted.build())
    for number, name in enumerate(NAMES):
        snapshot.add_node(a_node(name, "xy"[number % 2], False, "2"))
        snapshot.devices.put_slice(a_slice(number, name, ["a", "b"][: number % 3]))
    snapshot.devices.put_slice(a_slice(4, "", ["a"]))
    snapshot.add_pod(a_bound_pod(0, "n0", "1", 80))
    snapshot.bind(assigned(1, "n1", [(1, "a")]))
    return snapshot


@settings(max_examples=150)
@given(STEPS)
def test_each_fork_is_as_if_only_its_own_history_happened(steps: list[tuple[int, Any, int]]) -> None:
    snapshots = [fresh()]
    histories: list[list[Any]] = [[]]
    for which, step, listener in steps:
        which %= len(snapshots)
        match step:
            case "fork":
                snapshots.append(snapshots[which].fork())
                histories.append(list(histories[which]))
            case _:
                apply(snapshots[which], step)
                histories[which].append(step)
        if listener < len(snapshots):
            asked(snapshots[listener])
    for snapshot, history in zip(snapshots, histories, strict=True):
        want = fresh()
        for change in history:
            apply(want, change)
        assert state(snapshot) == state(want)
        assert asked(snapshot) == asked(want)


def test_forks_go_at_once_when_nobody_has_them() -> None:
    snapshot = fresh()
    asked(snapshot)
    gc.collect()
    gc.disable()
    try:
        fork = snapshot.fork()
        fork.remove_node("n1")
        asked(fork)
        gone = weakref.ref(fork.nodes)
        del fork
        assert gone() is None
    finally:
        gc.enable()
