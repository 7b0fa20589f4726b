"""Controllers under churn: random work, failing requests and kills at any moment; in the end all is as it should be."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from drachma import errors
from drachma.api import job, pod, resourceclaim
from drachma.claims import wellknown
from drachma.client import patches
from drachma.controllers import descriptors
from tests.scenarios import test_controllers as lives
from tests.unit.controllers import builders, worlds

Claim = resourceclaim.ResourceClaim
EVERYTHING = tuple(each.make for each in descriptors.ALL if each.name not in worlds.NEEDING_CREDENTIALS)
STEPS = 250


class Churn:
    """Does one thing after another to a cluster, at random but the same for the same seed."""

    def __init__(self, world: worlds.World, seed: int) -> None:
        self._world = world
        self._chance = random.Random(seed)
        self._numbers = iter(range(10_000))
        self.is_failing = True

    def meddle(self, verb: str, *_: Any, **options: Any) -> None:
        """Some requests of controllers get no answer, whether the write happened or not."""
        if self.is_failing and self._chance.random() < 0.05:
            raise errors.UnreachableError(f"{verb}: no answer")

    async def step(self) -> None:
        acts: list[Callable[[], Awaitable[None]]] = [
            self._make_pod,
            self._make_pod,
            self._make_user,
            self._schedule,
            self._schedule,
            self._schedule,
            self._finish,
            self._delete_pod,
            self._delete_claim,
            self._replace_template,
            self._make_job,
            self._kill,
            self._wait,
        ]
        # Somebody else may be faster, as in life, and what is being deleted takes no users.
        with contextlib.suppress(
            errors.ObjectConflictError,
            errors.ObjectNotFoundError,
            errors.ObjectExistsError,
            errors.InvalidObjectError,
        ):
            await self._chance.choice(acts)()
        for _ in range(self._chance.randrange(3)):
            await asyncio.sleep(0)

    async def _make_pod(self) -> None:
        entries = dict.fromkeys(self._chance.sample(["one", "two"], self._chance.randint(1, 2)), "t")
        # Names come again, and with them pods that are not the same.
        await self._world.client.create(builders.a_pod(f"p{self._chance.randrange(8)}", **entries).build())

    async def _make_user(self) -> None:
        if await self._world.find(Claim, "shared") is None:
            await self._world.client.create(builders.a_claim("shared"))
        await self._world.client.create(builders.user(f"u{self._chance.randrange(4)}", of="shared").build())

    async def _make_job(self) -> None:
        jobs = await self._world.all_of(job.Job)
        if len(jobs) < 4:
            wanted = lives.batch_job(f"j{next(self._numbers)}", completions=3, parallelism=2, backoffLimit=1000)
            await self._world.client.create_document(job.Job, wanted)

    async def _pick(self, wanted: Callable[[pod.Pod], bool]) -> pod.Pod | None:
        found = [each for each in await self._world.all_of(pod.Pod) if wanted(each)]
        return self._chance.choice(found) if found else None

    async def _schedule(self) -> None:
        waiting = await self._pick(lambda each: not each.spec.node_name and not _is_over(each))
        if waiting is None:
            return
        if waiting.spec.resource_claims[0].resource_claim_name:
            await self._share(waiting)
        elif len(waiting.status.resource_claim_statuses) == len(waiting.spec.resource_claims):
            await lives.schedule(self._world.client, waiting)

    async def _share(self, waiting: pod.Pod) -> None:
        claim = await self._world.find(Claim, "shared")
        if claim is None:
            return
        finalizers = patches.merge({"metadata": {"finalizers": [wellknown.CLAIM_FINALIZER]}}, patches.unchanged(claim))
        claim = await self._world.client.patch(Claim, "shared", patch=finalizers, namespace="default")
        reserved = (*claim.status.reserved_for, *builders.consumers(waiting))
        content = {"allocation": claim.status.allocation or builders.allocation(), "reservedFor": reserved}
        patch = patches.merge({"status": content}, patches.unchanged(claim))
        await self._world.client.patch(Claim, "shared", patch=patch, namespace="default", subresource="status")
        await self._world.client.bind(waiting, node="n")

    async def _finish(self) -> None:
        running = await self._pick(lambda each: bool(each.spec.node_name) and not _is_over(each))
        if running is not None:
            await self._world.patch_status(
                running, {"phase": self._chance.choice(["Succeeded", "Succeeded", "Failed"])}
            )

    async def _delete_pod(self) -> None:
        unlucky = await self._pick(lambda each: True)
        if unlucky is not None:
            await self._world.delete(unlucky, grace_period_seconds=self._chance.choice([0, None]))

    async def _delete_claim(self) -> None:
        found = await self._world.all_of(Claim)
        if found:
            await self._world.delete(self._chance.choice(found))

    async def _replace_template(self) -> None:
        template = builders.a_template()
        try:
            await self._world.delete(template)
        finally:
            await self._wait()
            await self._world.client.create(template)

    async def _kill(self) -> None:
        await self._world.stop()
        for _ in range(self._chance.randrange(30)):
            await asyncio.sleep(0)
        self._world.launch(*EVERYTHING)

    async def _wait(self) -> None:
        await self._world.advance(self._chance.choice([0.01, 1, 20]))


def _is_over(of: pod.Pod) -> bool:
    return of.status.phase in ("Succeeded", "Failed") or of.metadata.deletion_timestamp is not None


async def run_jobs(world: worlds.World) -> None:
    """Whatever jobs still need succeeds, and whatever is on its way out goes."""
    for _ in range(40):
        for each in await world.all_of(pod.Pod):
            if each.metadata.deletion_timestamp is not None:
                await world.delete(each, grace_period_seconds=0)
            elif each.metadata.owner_references and each.status.phase == "Pending":
                await world.patch_status(each, {"phase": "Succeeded"})
        await world.advance(700)


@pytest.mark.parametrize("seed", range(3))
async def test_everything_is_as_it_should_be_in_the_end(seed: int) -> None:
    churn: Churn

    def meddle(*args: Any, **kwargs: Any) -> None:
        churn.meddle(*args, **kwargs)

    async with worlds.world(wrap=worlds.meddling(meddle, after=meddle)) as world:
        churn = Churn(world, seed)
        await world.create(builders.a_template())
        await world.create(builders.a_claim("shared"))
        world.launch(*EVERYTHING)
        for _ in range(STEPS):
            await churn.step()
        churn.is_failing = False
        await world.advance(1200)
        await run_jobs(world)
        await check(world)


async def check(world: worlds.World) -> None:
    pods = {each.metadata.uid: each for each in await world.all_of(pod.Pod)}
    claims = await world.all_of(Claim)
    made = Counter[tuple[str, str]]()
    for claim in claims:
        for reference in claim.status.reserved_for:
            assert reference.uid in pods, f"{claim.metadata.name} is reserved for a pod that is gone"
            assert not _is_over(pods[reference.uid]), f"{claim.metadata.name} is reserved for a pod that has ended"
        if claim.status.allocation is not None:
            assert claim.status.reserved_for, f"{claim.metadata.name} is allocated to nobody"
        for owner in claim.metadata.owner_references:
            assert owner.uid in pods, f"the owner of {claim.metadata.name} is gone"
            assert not _is_over(pods[owner.uid]), f"the owner of {claim.metadata.name} has ended"
            made[owner.uid, claim.metadata.annotations["resource.kubernetes.io/pod-claim-name"]] += 1
        assert claim.metadata.deletion_timestamp is None or claim.status.reserved_for
    assert not [key for key, count in made.items() if count > 1], "two claims for one entry of a pod"
    names = {claim.metadata.name: claim for claim in claims}
    for each in pods.values():
        assert "batch.kubernetes.io/job-tracking" not in each.metadata.finalizers
        if _is_over(each) or each.spec.resource_claims[0].resource_claim_name:
            continue
        assert len(each.status.resource_claim_statuses) == len(each.spec.resource_claims)
        for status in each.status.resource_claim_statuses:
            assert names[status.resource_claim_name or ""].metadata.owner_references[0].uid == each.metadata.uid
    for found in await world.all_of(job.Job):
        assert (found.status.active, found.status.succeeded) == (0, 3)
        assert any(each.type == "Complete" for each in found.status.conditions)
