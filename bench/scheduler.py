"""Scheduling decisions without an API: how long it takes to decide where a pod goes and which devices it gets.

Every pod is decided and assumed before the next one, as the scheduler does it; nothing is written. The first decision
of a kind looks at every node, all others only at those that changed. And what-if questions: forking a snapshot, and
deciding in a fork that differs from the live one in a node.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import NamedTuple

from bench import timing
from drachma.api import gates, resourceclaim, resourceslice
from drachma.runtime import clock
from drachma.scheduler import cycle, profiles, settings
from drachma.scheduler.cycle.decision import Placed
from drachma.scheduler.snapshot import Snapshot, podinfo
from drachma.testing import (
    ClaimBuilder,
    DeviceBuilder,
    SliceBuilder,
    claim,
    device,
    device_class,
    node,
    pod,
    resource_slice,
    subrequest,
)

_DRIVER = "gpu.example.com"
_DEVICES = 10


class _Workload(NamedTuple):
    name: str
    slices: Callable[[str], list[SliceBuilder]]
    claim: Callable[[str], ClaimBuilder] | None


class _Cluster:
    """Nodes with devices, and somebody to decide about pods."""

    def __init__(self, workload: _Workload, count: int) -> None:
        self._workload = workload
        self.snapshot = Snapshot(gates.ALL)
        self.snapshot.devices.put_class(device_class("gpu", f'device.driver == "{_DRIVER}"').build())
        for number in range(count):
            name = f"n{number}"
            self.snapshot.add_node(node(name, labels={"kubernetes.io/hostname": name}).build())
            for published in workload.slices(name):
                self.snapshot.devices.put_slice(_built(published))
        chance = random.Random(1)
        profile = profiles.default(settings.Settings(), clock=clock.SystemClock(), rng=chance)
        self.cycle = cycle.Cycle(profile, rng=chance, monotonic=time.monotonic)

    def pod(self, number: int) -> podinfo.PodInfo:
        """A pod, with its claim in the snapshot."""
        waiting = pod(f"p{number}").uid(f"p{number}").container("c")
        if self._workload.claim is not None:
            made: resourceclaim.ResourceClaim = self._workload.claim(f"c{number}").uid(f"c{number}").build()
            self.snapshot.claims.observe(made)
            waiting = waiting.claim("x", claim=f"c{number}")
        return podinfo.PodInfo(waiting.build())


def main() -> None:
    """Print the tables."""
    rows = [_row(workload, nodes) for workload in _workloads() for nodes in (500, 5000)]
    timing.table(
        "scheduler: decisions, with devices assumed and nothing written",
        ("workload", "nodes", "pods", "first, ms", "p50, us", "p99, us", "pods/s"),
        rows,
    )
    timing.table(
        "scheduler: what-if questions, one device of ten, us",
        ("nodes", "fork", "fork, add a node", "fork, bind a pod", "decide in a fork"),
        [_what_if(nodes) for nodes in (500, 5000)],
    )


def _workloads() -> list[_Workload]:
    return [
        _Workload("no claims", _plain, None),
        _Workload("one device of ten", _plain, lambda name: _request(claim(name))),
        _Workload(
            "one device, with a selector",
            _plain,
            lambda name: _request(claim(name), select=f'device.attributes["{_DRIVER}"].model == "a"'),
        ),
        _Workload("five devices of one root", _plain, _matched),
        _Workload("first of two alternatives", _plain, _choice),
        _Workload("a share of a device", _shared, lambda name: _request(claim(name), capacity={"memory": "1Gi"})),
        _Workload("a partition of a device", _partitions, lambda name: _request(claim(name))),
        _Workload("a device of the network", _network, lambda name: _request(claim(name))),
    ]


def _row(workload: _Workload, count: int) -> tuple[str, ...]:
    made = _Cluster(workload, count)
    took: list[float] = []
    for number in range(1000):
        info = made.pod(number)
        began = time.perf_counter()
        decided = made.cycle.decide(info, made.snapshot)
        if not isinstance(decided, Placed):
            break
        made.snapshot.bind(decided.assignment)
        took.append(time.perf_counter() - began)
    first, others = took[0], sorted(took[1:])
    return (
        workload.name,
        str(count),
        str(len(took)),
        f"{first * 1e3:.1f}",
        f"{others[len(others) // 2] * 1e6:.0f}",
        f"{others[len(others) * 99 // 100] * 1e6:.0f}",
        f"{len(took) / sum(took):.0f}",
    )


def _what_if(count: int) -> tuple[str, ...]:
    made = _Cluster(_workloads()[1], count)
    snapshot = made.snapshot
    for number in range(100):
        decided = made.cycle.decide(made.pod(number), snapshot)
        if isinstance(decided, Placed):
            snapshot.bind(decided.assignment)
    info = made.pod(100)
    placed = made.cycle.decide(info, snapshot)
    if not isinstance(placed, Placed):
        raise TypeError(f"no device left on {count} nodes")
    another = node("another").build()
    waiting = made.pod(101)
    fork = snapshot.fork()
    fork.bind(placed.assignment)

    calls: list[Callable[[], object]] = [
        snapshot.fork,
        lambda: snapshot.fork().add_node(another),
        lambda: snapshot.fork().bind(placed.assignment),
        lambda: made.cycle.decide(waiting, fork),
    ]
    return (str(count), *(f"{timing.per_call(call, repeat=100) * 1e6:.0f}" for call in calls))


def _built(made: SliceBuilder) -> resourceslice.ResourceSlice:
    return made.build()


def _plain(name: str) -> list[SliceBuilder]:
    devices = [device(f"d{place}").attributes(model="a", root=place % 2) for place in range(_DEVICES)]
    return [resource_slice(name, driver=_DRIVER).on_node(name).devices(*devices)]


def _shared(name: str) -> list[SliceBuilder]:
    devices = [device(f"d{place}").shared().capacity("memory", "8Gi", default="1Gi") for place in range(2)]
    return [resource_slice(name, driver=_DRIVER).on_node(name).devices(*devices)]


def _partitions(name: str) -> list[SliceBuilder]:
    devices: list[DeviceBuilder] = [device(f"d{place}").consumes("gpu", slices=1) for place in range(4)]
    counters = resource_slice(f"{name}-counters", driver=_DRIVER, pool=name, slices=2)
    partitions = resource_slice(f"{name}-devices", driver=_DRIVER, pool=name, slices=2)
    return [counters.on_node(name).counters("gpu", slices=4), partitions.on_node(name).devices(*devices)]


def _network(name: str) -> list[SliceBuilder]:
    """Devices that all nodes can reach, published once."""
    if name != "n0":
        return []
    return [
        resource_slice(f"net-{number}", driver=_DRIVER, pool="net", slices=8)
        .on_all_nodes()
        .devices(*(f"d{number}-{place}" for place in range(128)))
        for number in range(8)
    ]


def _request(made: ClaimBuilder, **fields: object) -> ClaimBuilder:
    return made.request("gpu", device_class="gpu", count=1, mode="ExactCount", **fields)  # type: ignore[arg-type]


def _matched(name: str) -> ClaimBuilder:
    made = claim(name)
    for number in range(5):
        made = made.request(f"r{number}", device_class="gpu", count=1, mode="ExactCount")
    return made.match_attribute(f"{_DRIVER}/root")


def _choice(name: str) -> ClaimBuilder:
    wanted = subrequest("big", "gpu", count=1, mode="ExactCount", select=f'device.attributes["{_DRIVER}"].model == "b"')
    return claim(name).first_available("gpu", wanted, subrequest("small", "gpu", count=1, mode="ExactCount"))
