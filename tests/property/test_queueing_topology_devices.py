"""Places with devices: a domain takes exactly the pods whose claims can be allocated in it, by trying all choices."""

import itertools
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from drachma.allocator import AllocatedState, Allocator, Catalog, Classes, Features, features, selectors
from drachma.api import codec, deviceclass, node, resourceclaim, resourceslice
from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.topology import placement, shape, tree
from drachma.queueing.topology.devicerooms import DeviceInventory

_DRIVER = "gpu.example.com"
_FEATURES: Features = features.ALL

Machine = list[tuple[int, bool]]
"""The NUMA node of each device, and whether another claim uses it."""


def _node(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"n{number}",
            "labels": {"rack": f"r{number % 2}", "kubernetes.io/hostname": f"n{number}"},
        },
        "status": {
            "allocatable": {"cpu": "100", "pods": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _slice(number: int, machine: Machine) -> resourceslice.ResourceSlice:
    document = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"s{number}"},
        "spec": {
            "driver": _DRIVER,
            "nodeName": f"n{number}",
            "pool": {"name": f"n{number}", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"d{position}", "attributes": {"numa": {"int": numa}}}
                for position, (numa, _) in enumerate(machine)
            ],
        },
    }
    decoded = codec.decode(document)
    assert isinstance(decoded, resourceslice.ResourceSlice)
    return decoded


def _claim(name: str, spec: dict[str, Any], status: dict[str, Any] | None = None) -> resourceclaim.ResourceClaim:
    metadata = {"name": name, "namespace": "ns", "uid": name}
    document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
    decoded = codec.decode({**document, **({"status": status} if status else {})})
    assert isinstance(decoded, resourceclaim.ResourceClaim)
    return decoded


def _wanted(count: int, *, is_near: bool) -> resourceclaim.ResourceClaim:
    request = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    devices: dict[str, Any] = {"requests": [{"name": "gpu", "exactly": request}]}
    if is_near:
        devices["constraints"] = [{"matchAttribute": f"{_DRIVER}/numa"}]
    return _claim("gpus", {"devices": devices})


def _in_use(machines: list[Machine]) -> list[resourceclaim.ResourceClaim]:
    return [
        _claim(
            f"used-{number}-{position}",
            {},
            {
                "allocation": {
                    "devices": {
                        "results": [{"request": "r", "driver": _DRIVER, "pool": f"n{number}", "device": f"d{position}"}]
                    }
                }
            },
        )
        for number, machine in enumerate(machines)
        for position, (_, is_used) in enumerate(machine)
        if is_used
    ]


def _most_pods(machine: Machine, count: int, *, is_near: bool, most: int) -> int:
    """The most pods that get devices of their own, by trying all choices."""
    free = [numa for numa, is_used in machine if not is_used]

    def place(left: frozenset[int], pods: int) -> int:
        if pods == most:
            return pods
        best = pods
        for chosen in itertools.combinations(sorted(left), count):
            if not is_near or len({free[each] for each in chosen}) == 1:
                best = max(best, place(left - set(chosen), pods + 1))
        return best

    return place(frozenset(range(len(free))), 0)


def _allocator(machines: list[Machine]) -> Allocator:
    gpu = codec.decode({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}})
    assert isinstance(gpu, deviceclass.DeviceClass)
    return Allocator(
        Catalog([_slice(number, machine) for number, machine in enumerate(machines)]),
        classes=Classes([gpu]),
        allocated=AllocatedState(_in_use(machines), consumable_capacity=True),
        compiler=selectors.SelectorCompiler(_FEATURES),
        features=_FEATURES,
        share_ids=lambda: "share",
    )


def _domains(machines: list[Machine]) -> tree.Tree:
    domains = tree.Tree("racks", ("rack", "kubernetes.io/hostname"))
    for number in range(len(machines)):
        domains.add_node(decoding.decode(_node(number), node.Node), node_labels={})
    return domains


def _fit_together(machine: Machine, pods: list[int]) -> bool:
    """Return True if pods with these numbers of devices of one NUMA node each find devices, by trying all choices."""

    def place(left: frozenset[int], remaining: list[int]) -> bool:
        if not remaining:
            return True
        return any(
            place(left - set(chosen), remaining[1:])
            for chosen in itertools.combinations(sorted(left), remaining[0])
            if len({machine[each][0] for each in chosen}) == 1
        )

    return place(frozenset(number for number, (_, is_used) in enumerate(machine) if not is_used), pods)


_MACHINE = st.lists(st.tuples(st.integers(0, 1), st.booleans()), max_size=6)


@given(_MACHINE, st.integers(1, 2), st.integers(1, 3), st.integers(0, 2), st.integers(0, 1), st.booleans())
@example([(0, False)] * 6, 1, 1, 0, 0, False)  # more devices than pods are asked about
@example([(0, False), (0, True)], 1, 1, 0, 0, True)  # as if no device were in use
@example([(0, False), (0, False)], 1, 2, 0, 0, False)  # either the leader or a pod
@example([(0, False), (0, False)], 1, 1, 1, 0, False)  # next to a pod that is expected
def test_the_room_of_a_node_is_what_the_devices_allow(
    machine: Machine, count: int, leader: int, expected: int, assumed: int, ignores_usage: bool
) -> None:
    """The room next to expected pods of one device, and pods of the same workload that are assumed."""
    one = (_wanted(1, is_near=True),)
    inventory = DeviceInventory(_allocator([machine]), {"n0": [(one, expected)]} if expected else {})
    room = inventory.room(
        (_wanted(count, is_near=True),), (_wanted(leader, is_near=True),), ignores_usage=ignores_usage
    )
    at = decoding.decode(_node(0), node.Node)
    seen = [(numa, is_used and not ignores_usage) for numa, is_used in machine]
    before = [1] * (assumed + (0 if ignores_usage else expected))

    def most(others: list[int]) -> int:
        return max((pods for pods in range(5) if _fit_together(seen, [*before, *others, *[count] * pods])), default=0)

    earlier = [(one, assumed)] if assumed else []
    assert room.count(at, 4, earlier) == most([])
    takes_leader = _fit_together(seen, [*before, leader])
    assert room.takes_leader(at, earlier) == takes_leader
    assert room.count_with_leader(at, 4, earlier) == most([leader])


@given(st.lists(_MACHINE, min_size=1, max_size=3), st.integers(1, 2), st.integers(1, 2), st.integers(1, 3))
@example([[(0, False)]], 1, 1, 1)  # one device for two pod sets
def test_two_pod_sets_do_not_get_the_same_devices(machines: list[Machine], first: int, second: int, pods: int) -> None:
    placer = placement.Placer(_domains(machines), gates=DEFAULT, devices=DeviceInventory(_allocator(machines)))
    requests = []
    for name, count in (("first", first), ("second", second)):
        document = {"name": name, "count": pods, "topologyRequest": {"preferred": "rack"}}
        pod_set = decoding.decode(document, workload.PodSet)
        requests.append(shape.PodSetRequest(pod_set, pods, {"cpu": 1000}, claims=(_wanted(count, is_near=True),)))
    results = placer.place(requests)
    if all(isinstance(each, placement.Placed) for each in results.values()):
        used: dict[str, list[int]] = {}
        for name, count in (("first", first), ("second", second)):
            result = results[name]
            assert isinstance(result, placement.Placed)
            for domain in result.assignment.domains:
                used.setdefault(domain.values[-1], []).extend([count] * domain.pods)
        for host, counts in used.items():
            assert _fit_together(machines[int(host.removeprefix("n"))], counts)


@given(
    st.lists(_MACHINE, min_size=1, max_size=4),
    st.integers(1, 3),
    st.booleans(),
    st.integers(1, 6),
    st.sampled_from(("required", "preferred")),
)
def test_pods_are_placed_exactly_where_their_devices_are(
    machines: list[Machine],
    count: int,
    is_near: bool,
    pods: int,
    kind: str,
) -> None:
    placer = placement.Placer(_domains(machines), gates=DEFAULT, devices=DeviceInventory(_allocator(machines)))
    pod_set = decoding.decode({"name": "main", "count": pods, "topologyRequest": {kind: "rack"}}, workload.PodSet)
    request = shape.PodSetRequest(pod_set, pods, {"cpu": 1000}, claims=(_wanted(count, is_near=is_near),))

    result = placer.place([request])["main"]

    rooms = [_most_pods(machine, count, is_near=is_near, most=min(4, pods)) for machine in machines]
    by_rack = [sum(rooms[rack::2]) for rack in (0, 1)]
    fits = max(by_rack) >= pods if kind == "required" else sum(rooms) >= pods
    assert isinstance(result, placement.Placed) == fits
    if isinstance(result, placement.Placed):
        assert result.assignment.pods == pods
        for domain in result.assignment.domains:
            assert domain.pods <= rooms[int(domain.values[-1].removeprefix("n"))]
