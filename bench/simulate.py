"""What if, on a large cluster: a plan for all pods that wait, a fork, an explanation.

``python -m bench simulate`` runs it alone: 5,000 nodes with ten GPUs each, all in use, and 2,000 pods of four sorts
that wait for one or two of them or for processors alone, with three node groups to choose from. Times are CPU times,
after the cluster has been read; memory is all that the process ever had.
"""

import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from drachma import testing
from drachma.api import meta
from drachma.simulate import ClusterState, NodeGroup, Simulation, podexplanation
from drachma.simulate.growth import Planner

DRIVER = "gpu.example.com"
NODES, DEVICES, PODS = 5_000, 10, 2_000


def _node(name: str, cpu: str = "64") -> meta.Object:
    return testing.node(name, allocatable={"cpu": cpu, "memory": "256Gi", "pods": "110"}).build()


def _slice(node: str, count: int) -> meta.Object:
    names = [f"gpu-{number}" for number in range(count)]
    return testing.resource_slice(f"{node}-gpus", driver=DRIVER, pool=node).on_node(node).devices(*names).build()


def _objects() -> Iterator[meta.Object]:
    yield testing.device_class(DRIVER, f'device.driver == "{DRIVER}"').build()
    for count in (1, 2):
        yield (
            testing.claim_template(f"gpus-{count}")
            .request("r", device_class=DRIVER, count=count, mode="ExactCount")
            .build()
        )
    for number in range(NODES):
        name = f"node-{number}"
        yield _node(name)
        yield _slice(name, DEVICES)
        results = [("r", DRIVER, name, f"gpu-{device}") for device in range(DEVICES)]
        yield (
            testing.claim(f"held-{number}")
            .request("r", device_class=DRIVER, count=DEVICES, mode="ExactCount")
            .allocated(*results)
            .build()
        )
        yield testing.pod(f"busy-{number}").on_node(name).container("c", requests={"cpu": "63"}).build()
    for number in range(PODS):
        sort = number % 4
        made = testing.pod(f"waits-{number}").container("c", requests={"cpu": str(2 + sort)})
        yield (made if sort == 3 else made.claim("gpu", template=f"gpus-{1 + sort % 2}")).build()


def _groups() -> list[NodeGroup]:
    def group(name: str, *, cpu: str, gpus: int, price: float) -> NodeGroup:
        slices = (_slice("box", gpus),) if gpus else ()
        return NodeGroup(name=name, node=_node("box", cpu), slices=slices, price=price)  # type: ignore[arg-type]

    return [
        group("small", cpu="32", gpus=4, price=5),
        group("large", cpu="128", gpus=16, price=18),
        group("plain", cpu="64", gpus=0, price=1),
    ]


def _timed(label: str, work: Callable[[], Any]) -> Any:
    began = time.process_time()
    outcome = work()
    print(f"  {label:<44} {time.process_time() - began:8.3f} s")
    return outcome


def main() -> None:
    """Prints the table."""
    print(f"simulate: {NODES} nodes, {NODES * DEVICES} devices, {PODS} pending pods")
    state = _timed("objects made", lambda: ClusterState.of(_objects()))
    cluster = _timed("cluster taken in", lambda: Simulation(state))
    groups = _groups()
    for _ in range(2):
        plan = _timed("plan", lambda: Planner(cluster, groups).plan())
    print(f"    grow {dict(plan.grow)}: {len(plan.placed)} pods placed, {len(plan.pending)} pending")
    rounds = 2_000
    began = time.process_time()
    for _ in range(rounds):
        cluster.fork()
    print(f"  {'fork':<44} {(time.process_time() - began) / rounds * 1e6:8.1f} us")
    asked = cluster.pending[0]
    _timed("explain pod", lambda: podexplanation.explain(cluster, asked, groups=groups))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform != "darwin" else 1024 * 1024)
    print(f"  {'memory at its peak':<44} {peak:8d} MiB")
