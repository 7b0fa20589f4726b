"""Statuses that are written whole."""

import pytest

from drachma import errors
from drachma.api.namespace import Namespace
from drachma.client import patches
from drachma.controllers import statuswrites
from drachma.controllers.clusterroleaggregation import ClusterRoleAggregation
from tests.unit.controllers import worlds


@pytest.mark.parametrize(
    ("old", "content", "want"),
    [
        pytest.param({}, {"a": 1}, {"a": 1}, id="new"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="taken-away"),
        pytest.param({"a": {"x": 1, "y": 2}}, {"a": {"x": None, "z": 3}}, {"a": {"y": 2, "z": 3}}, id="inside"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists-as-a-whole"),
        pytest.param({"a": "text"}, {"a": {"x": 1}}, {"a": {"x": 1}}, id="another-type"),
    ],
)
def test_as_a_merge_patch(old: dict[str, object], content: dict[str, object], want: dict[str, object]) -> None:
    assert statuswrites.merged(old, content) == want


async def test_only_the_version_that_is_meant() -> None:
    async with worlds.world(ClusterRoleAggregation) as world:
        await world.client.create_document(Namespace, {"metadata": {"name": "n", "labels": {"a": "b"}}})
        known = await world.client.get(Namespace, "n")
        condition = {"type": "Odd", "status": "True", "reason": "R", "message": "m"}
        version = await statuswrites.update(
            world.client,
            Namespace,
            of=known.metadata,
            content={"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
            meant=patches.unchanged(known),
        )
        document = await world.client.get_document(Namespace, "n")
        assert (document["metadata"]["resourceVersion"], document["metadata"]["labels"]["a"]) == (version, "b")
        assert document["status"]["phase"] == "Active"
        with pytest.raises(errors.ObjectConflictError):
            await statuswrites.update(
                world.client, Namespace, of=known.metadata, content={"conditions": None}, meant=patches.unchanged(known)
            )
