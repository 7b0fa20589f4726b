"""Recorded scheduling scenarios on a real API server with upstream's controllers and drachma's scheduler."""

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from drachma.client import http
from tests.cluster import controlplane, realplane
from tests.conformance import scenariorun, scenariostate, schedulingrun, vectors

Document = dict[str, Any]

_SCHEDULER_GATES = ",".join(f"{name}=true" for name in controlplane.GATES)


@pytest.fixture(scope="module", autouse=True)
def scheduler(plane: controlplane.ControlPlane) -> Iterator[controlplane.Program]:
    with (
        plane.kube_controllers() as controllers,
        plane.drachma("scheduler", f"--feature-gates={_SCHEDULER_GATES}") as program,
    ):
        program.wait_for("leads by lease")
        yield program
        program.check()
        controllers.check()


@pytest.fixture
async def cluster(client: http.HttpClient) -> AsyncIterator[realplane.RealPlane]:
    made = realplane.RealPlane(client)
    yield made
    await made.clear()


@vectors.each("scheduling")
async def test_scheduling(case: Document, cluster: realplane.RealPlane) -> None:
    schedulingrun.assert_same(await schedulingrun.run(cluster, case), case)


@pytest.mark.skipif(not os.environ.get("DRACHMA_CLUSTER_LONG"), reason="takes minutes: set DRACHMA_CLUSTER_LONG")
@vectors.each("scheduling-2", where=lambda line: not line.get("gates"))
async def test_scheduling_2(case: Document, cluster: realplane.RealPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    # A namespace takes seconds to go, so each scenario has its own.
    monkeypatch.setattr(scenariostate, "NAMESPACE", f"scenario-{case['name'].replace('/', '-')}"[:60])
    difference = scenariorun.difference(case, await scenariorun.run(cluster, case, ordered=cluster))
    assert difference is None, difference
