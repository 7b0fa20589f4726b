"""Gangs: how long it takes to find nodes for all pods of one, or to be certain that there are none, or whom to evict.

``python -m bench gangs`` runs it alone. Times are CPU times of the decision, after the cluster has been read; every
node has eight GPUs, and nothing else is on it. Who evicts others has no GPUs, and every node is full of small pods.
"""

import time
from typing import NamedTuple

from drachma import testing
from drachma.api import gates, meta, pod
from drachma.bounds import effort
from drachma.scheduler import Settings
from drachma.scheduler.cycle import gangpreemption
from drachma.scheduler.snapshot import gangs
from drachma.simulate import ClusterState, Simulation

DRIVER = "gpu.example.com"
_SETTINGS = Settings(gates=gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True}))


class Case(NamedTuple):
    nodes: int
    pods: int
    gpus: int
    """That each pod wants."""


CASES = (Case(100, 800, 1), Case(100, 801, 1), Case(1000, 64, 4), Case(1000, 512, 8), Case(1000, 1001, 8))

PREEMPTIONS = ((1000, 8), (1000, 64), (5000, 8))
"""Nodes, and pods of the gang."""


def _cluster(case: Case) -> Simulation:
    template = testing.claim_template("gpus").request("r", device_class="gpu", mode="ExactCount", count=case.gpus)
    objects: list[meta.Object] = [testing.device_class("gpu", f'device.driver == "{DRIVER}"').build(), template.build()]
    for number in range(case.nodes):
        name = f"n{number}"
        devices = [f"gpu-{place}" for place in range(8)]
        objects += [
            testing.node(name, allocatable={"cpu": "64", "memory": "256Gi", "pods": "110"}).build(),
            testing.resource_slice(name, driver=DRIVER).on_node(name).devices(*devices).build(),
        ]
    for number in range(case.pods):
        made = testing.pod(f"p{number}").container("c", requests={"cpu": "1"}).claim("gpus", template="gpus")
        objects.append(made.label(gangs.LABEL, "g").annotation(gangs.SIZE, str(case.pods)).build())
    return Simulation(ClusterState.of(objects), settings=_SETTINGS)


def _full_cluster(nodes: int, pods: int) -> tuple[Simulation, list[pod.Pod]]:
    """Every node is full of ten pods, and a gang waits of which each pod takes the place of four."""
    objects: list[meta.Object] = []
    for number in range(nodes):
        name = f"n{number}"
        objects.append(testing.node(name, allocatable={"cpu": "10", "memory": "256Gi", "pods": "110"}).build())
        for place in range(10):
            lesser = testing.pod(f"{name}-{place}").uid(f"{name}-{place}").container("c", requests={"cpu": "1"})
            objects.append(lesser.on_node(name).build())
    gang = [
        testing.pod(f"p{number}")
        .uid(f"p{number}")
        .container("c", requests={"cpu": "4"})
        .spec(priority=1)
        .label(gangs.LABEL, "g")
        .annotation(gangs.SIZE, str(pods))
        .build()
        for number in range(pods)
    ]
    return Simulation(ClusterState.of([*objects, *gang]), settings=_SETTINGS), gang


def _time_on_loop(cluster: Simulation, gang: list[pod.Pod]) -> float:
    """Return the CPU seconds after which a scheduler moves the decision to a thread."""
    began = time.process_time()
    try:
        with effort.limit(effort.Allowance(effort.LOOP_UNITS)):
            cluster.preempt_for(gang)
    except effort.OverrunError:
        pass
    return time.process_time() - began


def main() -> None:
    print(f"{'nodes':>6} {'pods':>6} {'GPUs each':>10} {'placed':>7} {'seconds':>8}")
    for case in CASES:
        cluster = _cluster(case)
        began = time.process_time()
        placed = len(cluster.schedule().placements)
        seconds = time.process_time() - began
        print(f"{case.nodes:>6} {case.pods:>6} {case.gpus:>10} {placed:>7} {seconds:>8.2f}")
    print(f"{'nodes':>6} {'pods':>6} {'evicted':>10} {'on the loop, ms':>16} {'seconds':>8}")
    for nodes, pods in PREEMPTIONS:
        cluster, gang = _full_cluster(nodes, pods)
        held = _time_on_loop(cluster, gang)
        began = time.process_time()
        tried = cluster.preempt_for(gang)
        seconds = time.process_time() - began
        evicted = len(tried.eviction.victims) if isinstance(tried, gangpreemption.Room) else 0
        print(f"{nodes:>6} {pods:>6} {evicted:>10} {1000 * held:>16.1f} {seconds:>8.2f}")


if __name__ == "__main__":
    main()
