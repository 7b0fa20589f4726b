"""Whatever happens to a namespace, in whatever order and however much of it at once: no limit is exceeded by what is
let in, and what a quota says is in use is what a plain sum over the objects gives.
"""

import asyncio
from collections import Counter
from typing import Any, NamedTuple

import hypothesis
from hypothesis import strategies as st

from drachma import errors
from drachma.api import pod, resourceclaim
from drachma.api.resourcequota import ResourceQuota
from drachma.client import patches, target
from drachma.controllers.resourcequota import ResourceQuotaController
from tests.unit.controllers import worlds

SETTINGS = hypothesis.settings(max_examples=25, suppress_health_check=list(hypothesis.HealthCheck))

MAPS = target.metadata_of("", "v1", plural="configmaps", kind="ConfigMap", namespaced=True)
HERE: dict[str, Any] = {"namespace": "default"}
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
COUNTED = "count/configmaps"
CPU = "requests.cpu"
RESOURCES = (DEVICES, COUNTED, CPU, "pods")


class Act(NamedTuple):
    """Something that a client does: ``number`` says to which object, and ``amount`` how much of it."""

    verb: str
    number: int
    amount: int


ACTS = st.builds(
    Act,
    st.sampled_from(["claim", "map", "pod", "pod", "delete", "delete", "end"]),
    st.integers(0, 5),
    st.integers(0, 3),
)
ROUNDS = st.lists(st.lists(ACTS, min_size=1, max_size=8), min_size=1, max_size=6)
LIMITS = st.fixed_dictionaries({name: st.integers(0, 6) for name in RESOURCES})


async def do(world: worlds.World, act: Act) -> None:
    """Does it if it can be done; that names are taken or free is nobody's business here."""
    name = f"x{act.number}"
    try:
        match act.verb:
            case "claim":
                requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": act.amount or 1}}]
                spec: dict[str, Any] = {"devices": {"requests": requests}}
                document = {"metadata": {"name": name, **HERE}, "spec": spec}
                await world.client.create_document(resourceclaim.ResourceClaim, document)
            case "map":
                await world.client.create_document(MAPS, {"metadata": {"name": name, **HERE}})
            case "pod":
                resources = {"requests": {"cpu": f"{act.amount * 500}m"}}
                spec = {"containers": [{"name": "c", "image": "x", "resources": resources}]}
                document = {"metadata": {"name": name, **HERE}, "spec": spec}
                await world.client.create_document(pod.Pod, document)
            case "delete":
                kind = (resourceclaim.ResourceClaim, MAPS, pod.Pod)[act.amount % 3]
                await world.client.delete(kind, name, grace_period_seconds=0, **HERE)
            case "end":
                patch = patches.merge({"status": {"phase": "Failed"}})
                await world.client.patch(pod.Pod, name, patch=patch, subresource="status", **HERE)
    except (errors.ObjectNotFoundError, errors.ObjectExistsError, errors.ForbiddenError):
        pass


async def in_use(world: worlds.World) -> dict[str, int]:
    """A plain sum, in thousandths."""
    total: Counter[str] = Counter()
    for claim in (await world.client.list(resourceclaim.ResourceClaim)).items:
        for request in claim.spec.devices.requests:
            assert request.exactly is not None
            total[DEVICES] += 1000 * request.exactly.count
    total[COUNTED] = 1000 * len((await world.client.list(MAPS)).items)
    for each in (await world.client.list(pod.Pod)).items:
        if each.status.phase != "Failed":
            total["pods"] += 1000
            total[CPU] += each.spec.containers[0].resources.requests["cpu"].milli_value()
    return {name: total[name] for name in RESOURCES}


async def said(world: worlds.World) -> dict[str, int]:
    quota = await world.client.get(ResourceQuota, "q", **HERE)
    return {name: quota.status.used[name].milli_value() for name in RESOURCES}


async def check_history(before: list[Act], rounds: list[list[Act]], limits: dict[str, int]) -> None:
    async with worlds.world(ResourceQuotaController) as world:
        for act in before:
            await do(world, act)
        hard = {name: str(limit) for name, limit in limits.items()}
        document = {"metadata": {"name": "q", **HERE}, "spec": {"hard": hard}}
        await world.client.create_document(ResourceQuota, document)
        await world.settle()
        found = await in_use(world)
        ceilings = {name: max(found[name], 1000 * limits[name]) for name in RESOURCES}
        assert await said(world) == found
        for acts in rounds:
            await asyncio.gather(*(do(world, act) for act in acts))
            used = await in_use(world)
            assert all(used[name] <= ceilings[name] for name in RESOURCES), (used, ceilings)
            charged = await said(world)
            assert all(used[name] <= charged[name] for name in RESOURCES), (used, charged)
            await world.settle()
            await world.advance(1)
            assert await said(world) == await in_use(world)
            ceilings = {name: max(used[name], 1000 * limits[name]) for name in RESOURCES}


@SETTINGS
@hypothesis.given(before=st.lists(ACTS, max_size=6), rounds=ROUNDS, limits=LIMITS)
def test_use_is_the_sum_over_objects(before: list[Act], rounds: list[list[Act]], limits: dict[str, int]) -> None:
    asyncio.run(check_history(before, rounds, limits))
