"""Simulating is doing: what a simulation says of pods that wait is what the scheduler then does.

The churn makes the histories. Now and again a scheduler is started on what there is, and each of its decisions is held
against a simulation of the cluster as it was before: the same devices on a node that is as good as any, or the same
reasons. Nobody is urgent, so that nobody is evicted meanwhile.
"""

import pathlib

import pytest

from drachma.api import resourceclaim
from drachma.scheduler.recording import recordlines
from drachma.simulate import Placement, Simulation, livecluster, recordingcluster, replay
from tests.scenarios import controlplane
from tests.scenarios.churn import churning, world

IN_FLIGHT = "is in the process of being allocated"
"""A claim is being written for another pod: that is about a moment, of which a simulation has none."""


class CalmChurn(churning.Churn):
    """Without urgent pods; schedulers are up to the test."""

    async def prepare(self) -> None:
        await super().prepare()
        for label in self._schedulers():
            await self.plane.stop(label)
        left_out = {self._kill_scheduler, self._start_scheduler, self._restart_controllers}
        self._acts = [(weight, act) for weight, act in self._acts if act not in left_out]

    async def create_pod(self) -> None:
        """A pod more than those that come by chance."""
        await self._create_pod()

    async def _create_pod(self) -> str:
        name = f"p{next(self._numbers)}"
        templates = self.chance.choices(list(world.WISHES), k=self.chance.choice((0, 1, 1, 2)))
        claims = [f"shared-{self.chance.randrange(churning.NAMED_CLAIMS)}"] if self.chance.random() < 0.25 else []
        cpu = self.chance.choice((0, 500, 1000, 2000))
        await self._create(world.pod(name, cpu=cpu, templates=templates, claims=claims, is_urgent=False))
        return f"create pod {name}: {cpu}m {templates} {claims}"


def without_shares(allocations: tuple[resourceclaim.AllocationResult, ...]) -> list[resourceclaim.AllocationResult]:
    return [replay.strip_random_values("", each).result for each in allocations]


NEW_PODS = 5
"""How many come in every round, whatever else happens: there is always something to decide."""

ENOUGH = 40
"""Decisions to compare; most rounds have more than what is new, because pods wait."""


@pytest.mark.parametrize("seed", range(3))
async def test_simulating_is_doing(tmp_path: pathlib.Path, seed: int) -> None:
    compared = 0
    async with controlplane.control_plane(schedulers=0, seed=seed) as plane:
        churn = CalmChurn(plane, seed)
        await churn.prepare()
        number = 0
        while compared < ENOUGH:
            number += 1
            assert number <= ENOUGH, "every round has a decision that can be compared"
            await churn.run(8 * number, every=1000)
            for _ in range(NEW_PODS):
                await churn.create_pod()
            await plane.settle()
            cluster = Simulation(await livecluster.read(plane.client))
            record = tmp_path / str(number)
            await plane.start_scheduler("scheduler", record=record)
            await plane.stop("scheduler")
            with record.open("rb") as file:
                decisions = [each for each in recordlines.decode(file) if isinstance(each, recordlines.Decision)]
            for each in decisions:
                if IN_FLIGHT in each.reasons:
                    continue
                outcome = cluster.place(recordingcluster.decode_pod(each.pod), preferred=each.node)
                if isinstance(outcome, Placement):
                    assert outcome.node == each.node
                    got = tuple(allocation.result for allocation in each.allocations)
                    assert without_shares(outcome.allocations) == without_shares(got)
                else:
                    assert not each.node
                    assert each.error or outcome.reason == each.reasons
                compared += 1
