"""Scores by how evenly nodes are used."""

import pytest

from drachma.api import gates
from drachma.scheduler.framework import cyclestate
from drachma.scheduler.plugins import balancedallocation
from drachma.scheduler.snapshot import Snapshot, podinfo
from drachma.testing import node
from drachma.testing import pod as a_pod


@pytest.mark.parametrize(
    ("requests", "want"),
    [
        # Shares of 0.3 and 0.25 deviate by 0.025, before by 0: 50 + (50 + 97 - 100) / 2.
        pytest.param({"cpu": "3", "memory": "5000"}, {73: 0b1}, id="with-requests"),
        # One share more or less even than before: 0.1 and 0 deviate by 0.05.
        pytest.param({"cpu": "1"}, {72: 0b1}, id="cpu-alone"),
        pytest.param({}, {}, id="best-effort"),
    ],
)
def test_scores(requests: dict[str, str], want: dict[int, int]) -> None:
    snapshot = Snapshot(gates.ALL)
    snapshot.add_node(node("n", allocatable={"cpu": "10", "memory": "20000", "pods": "9"}).build())
    waiting = a_pod("p").container("c", requests=requests).build()
    cycle = cyclestate.CycleState(podinfo.PodInfo(waiting), snapshot)
    plugin = balancedallocation.NodeResourcesBalancedAllocation(gates.ALL)
    assert plugin.score(cycle, 0b1) == want
