"""Aggregated roles and the rules that they come by."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma.api.clusterrole import ClusterRole
from drachma.client import patches
from drachma.controllers.clusterroleaggregation import ClusterRoleAggregation
from tests.unit.controllers import worlds

PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
PATHS = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(ClusterRoleAggregation) as running_world:
        yield running_world


async def role(world: worlds.World, name: str, *rules: dict[str, Any], **labels: str) -> None:
    document = {"metadata": {"name": name, "labels": labels}, "rules": list(rules)}
    await world.client.create_document(ClusterRole, document)


async def aggregated(world: worlds.World, name: str, *selectors: dict[str, Any], **labels: str) -> None:
    metadata = {"name": name, "labels": labels}
    document = {"metadata": metadata, "aggregationRule": {"clusterRoleSelectors": list(selectors)}}
    await world.client.create_document(ClusterRole, document)


async def rules(world: worlds.World, name: str) -> Any:
    await world.settle()
    return (await world.client.get_document(ClusterRole, name))["rules"]


async def test_rules_of_all_that_are_labelled_so(world: worlds.World) -> None:
    await aggregated(world, "sum", {"matchLabels": {"part": "yes"}})
    assert await rules(world, "sum") is None
    await role(world, "b", SECRETS, PODS, part="yes")
    await role(world, "a", PODS, PATHS, part="yes")
    await role(world, "c", SECRETS, part="no")
    assert await rules(world, "sum") == [PODS, PATHS, SECRETS]


async def test_what_changes_and_goes(world: worlds.World) -> None:
    await aggregated(world, "sum", {"matchLabels": {"part": "yes"}}, {"matchLabels": {"also": "yes"}})
    await role(world, "a", PODS, part="yes")
    await role(world, "b", SECRETS, also="yes")
    assert await rules(world, "sum") == [PODS, SECRETS]
    await world.client.patch(ClusterRole, "a", patch=patches.merge({"rules": [PATHS]}))
    assert await rules(world, "sum") == [PATHS, SECRETS]
    await world.client.delete(ClusterRole, "a")
    await world.client.delete(ClusterRole, "b")
    assert await rules(world, "sum") is None


async def test_rules_of_others_do_not_last(world: worlds.World) -> None:
    await aggregated(world, "sum", {"matchLabels": {"part": "yes"}})
    await role(world, "a", PODS, part="yes")
    assert await rules(world, "sum") == [PODS]
    await world.client.patch(ClusterRole, "sum", patch=patches.merge({"rules": [SECRETS]}))
    assert await rules(world, "sum") == [PODS]


async def test_sums_of_sums(world: worlds.World) -> None:
    await aggregated(world, "all", {"matchLabels": {"sum": "yes"}})
    await aggregated(world, "some", {"matchLabels": {"part": "yes"}}, sum="yes")
    await role(world, "a", PODS, part="yes")
    assert await rules(world, "all") == [PODS]
