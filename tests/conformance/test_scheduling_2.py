"""Scenarios about groups, features together and disruption, recorded on a real cluster, on the embedded control plane.

The clock is a manual one, so that waiting costs nothing.
"""

from typing import Any

from tests.conformance import scenariorun, vectors
from tests.scenarios import controlplane

Document = dict[str, Any]


@vectors.each("scheduling-2")
async def test_scheduling_2(case: Document) -> None:
    gates = scenariorun.GATES.switched(case.get("gates", {}))
    async with controlplane.control_plane(gates=gates) as plane:
        answers = await scenariorun.run(plane, case)
    difference = scenariorun.difference(case, answers)
    assert difference is None, difference
