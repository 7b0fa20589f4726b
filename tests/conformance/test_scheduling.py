"""Whole scheduling scenarios recorded on a real cluster, replayed on the embedded control plane, in process."""

from typing import Any

from tests.conformance import schedulingrun, vectors
from tests.scenarios import controlplane


@vectors.each("scheduling")
async def test_scheduling(case: dict[str, Any]) -> None:
    async with controlplane.control_plane() as plane:
        answers = await schedulingrun.run(plane, case)
    schedulingrun.assert_same(answers, case)
