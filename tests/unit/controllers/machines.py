"""A stand-in for the machines of a cluster, for tests of workloads: pods become ready, fail or go as a test says."""

from typing import Any

from drachma.api import pod
from drachma.client import patches
from tests.unit.controllers import worlds


async def ready(world: worlds.World, *names: str) -> None:
    """Pods run and are ready from now on; without names all that do not yet."""
    for each in await _chosen(world, names):
        if each.status.phase in ("", "Pending"):
            now = world.clock.utc().strftime("%Y-%m-%dT%H:%M:%SZ")
            condition = {"type": "Ready", "status": "True", "lastTransitionTime": now}
            await _report(world, each, {"phase": "Running", "conditions": [condition]})
    await world.settle()


async def end(world: worlds.World, name: str, phase: str) -> None:
    """A pod has ended."""
    (known,) = await _chosen(world, (name,))
    await _report(world, known, {"phase": phase})
    await world.settle()


async def sweep(world: worlds.World) -> None:
    """Pods that are about to go are gone."""
    for each in await world.all_of(pod.Pod):
        if each.metadata.deletion_timestamp is not None:
            await world.delete(each, grace_period_seconds=0)
    await world.settle()


async def names(world: worlds.World) -> list[str]:
    """The pods that stay."""
    pods = await world.all_of(pod.Pod)
    return sorted(each.metadata.name for each in pods if each.metadata.deletion_timestamp is None)


async def going(world: worlds.World) -> list[str]:
    """The pods that are about to go."""
    pods = await world.all_of(pod.Pod)
    return sorted(each.metadata.name for each in pods if each.metadata.deletion_timestamp is not None)


async def _chosen(world: worlds.World, names: tuple[str, ...]) -> list[pod.Pod]:
    pods = await world.all_of(pod.Pod)
    return [each for each in pods if not names or each.metadata.name in names]


async def _report(world: worlds.World, of: pod.Pod, status: dict[str, Any]) -> None:
    await world.client.patch(
        pod.Pod,
        of.metadata.name,
        patch=patches.strategic({"status": status}),
        namespace=of.metadata.namespace,
        subresource="status",
    )
