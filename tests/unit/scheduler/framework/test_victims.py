"""Looking for victims counts as effort, so that the search for many moves off the event loop."""

import pytest

from drachma import testing
from drachma.api import gates, meta, pod
from drachma.bounds import effort
from drachma.scheduler import Settings
from drachma.scheduler.snapshot import gangs
from drachma.simulate import ClusterState, Simulation

_SETTINGS = Settings(gates=gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True}))


def _cluster(nodes: int, gang: list[pod.Pod]) -> Simulation:
    """Every node is full of ten pods of low priority, and a gang waits."""
    objects: list[meta.Object] = [*gang]
    for number in range(nodes):
        name = f"n{number}"
        objects.append(testing.node(name, allocatable={"cpu": "10", "memory": "1Gi", "pods": "110"}).build())
        objects += [
            testing.pod(f"{name}-{place}")
            .uid(f"{name}-{place}")
            .container("c", requests={"cpu": "1"})
            .on_node(name)
            .build()
            for place in range(10)
        ]
    return Simulation(ClusterState.of(objects), settings=_SETTINGS)


@pytest.mark.parametrize(
    ("nodes", "want_overrun"), [pytest.param(1, False, id="few-victims"), pytest.param(100, True, id="many-victims")]
)
def test_many_victims_use_up_the_allowance_of_the_loop(nodes: int, *, want_overrun: bool) -> None:
    gang = [
        testing.pod(name)
        .uid(name)
        .container("c", requests={"cpu": "4"})
        .spec(priority=1)
        .label(gangs.LABEL, "g")
        .annotation(gangs.SIZE, "2")
        .build()
        for name in ("p", "q")
    ]
    cluster = _cluster(nodes, gang)
    is_overrun = False
    try:
        with effort.limit(effort.Allowance(effort.LOOP_UNITS)):
            cluster.preempt_for(gang)
    except effort.OverrunError:
        is_overrun = True
    assert is_overrun is want_overrun
