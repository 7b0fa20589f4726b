"""Updates of whole objects from an informer's cache."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import structs

from drachma import errors
from drachma.api import meta
from drachma.api.namespace import Namespace
from drachma.controllers import objectwrites
from drachma.controllers.clusterroleaggregation import ClusterRoleAggregation
from drachma.runtime import Informers
from tests.unit.controllers import worlds

CONDITION = {"type": "Odd", "status": "True", "reason": "R", "message": "m"}
CONDITIONS = {"conditions": [{**CONDITION, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}


@pytest.mark.parametrize(
    ("old", "change", "want"),
    [
        pytest.param({}, {"a": 1}, {"a": 1}, id="new"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="removed"),
        pytest.param({"a": {"x": 1, "y": 2}}, {"a": {"x": None, "z": 3}}, {"a": {"y": 2, "z": 3}}, id="inside"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists-as-a-whole"),
        pytest.param({"a": "text"}, {"a": {"x": 1}}, {"a": {"x": 1}}, id="another-type"),
    ],
)
def test_merge(old: dict[str, object], change: dict[str, object], want: dict[str, object]) -> None:
    assert objectwrites.merge(old, change) == want


class Namespaces:
    """A namespace, the informer that follows it, and a writer."""

    def __init__(self, world: worlds.World, informers: Informers) -> None:
        self.client = world.client
        self.informer = informers.of(Namespace)
        self.writer = objectwrites.Writer(world.client, self.informer)

    @property
    def cached(self) -> Namespace:
        known = self.informer.cache.get("n")
        assert known is not None
        return known


@pytest.fixture
async def namespaces() -> AsyncIterator[Namespaces]:
    async with worlds.world(ClusterRoleAggregation) as world:
        await world.client.create_document(Namespace, {"metadata": {"name": "n", "labels": {"a": "b"}}})
        async with Informers(world.client) as informers:
            made = Namespaces(world, informers)
            await informers.wait_synced()
            yield made


async def test_an_update_keeps_all_fields_and_is_observed(namespaces: Namespaces) -> None:
    stored = await namespaces.writer.update_status(namespaces.cached, CONDITIONS)
    assert namespaces.cached == stored
    document = await namespaces.client.get_document(Namespace, "n")
    assert document["metadata"]["resourceVersion"] == stored.metadata.resource_version
    assert (document["metadata"]["labels"]["a"], document["status"]["phase"]) == ("b", "Active")


async def test_a_second_update_builds_on_the_first(namespaces: Namespaces) -> None:
    known = namespaces.cached
    await namespaces.writer.update_status(known, CONDITIONS)
    stored = await namespaces.writer.update(known, {"metadata": {"labels": {"c": "d"}}})
    assert stored.metadata.labels.items() >= {"a": "b", "c": "d"}.items()


async def test_a_changed_object_is_refused_where_it_must_be_unchanged(namespaces: Namespaces) -> None:
    known = namespaces.cached
    await namespaces.writer.update_status(known, CONDITIONS)
    with pytest.raises(errors.ObjectConflictError, match="namespaces n: has changed"):
        await namespaces.writer.update_status(known, {"conditions": None}, only_if_unchanged=True)


async def test_a_successor_is_another_object(namespaces: Namespaces) -> None:
    metadata: meta.ObjectMeta = structs.replace(namespaces.cached.metadata, uid="another")
    gone: Any = structs.replace(namespaces.cached, metadata=metadata)
    with pytest.raises(errors.ObjectNotFoundError, match="namespaces n: is gone"):
        await namespaces.writer.update_status(gone, CONDITIONS)


async def test_the_server_refuses_an_update_of_a_cache_that_is_behind(namespaces: Namespaces) -> None:
    document = namespaces.writer.document(namespaces.cached)
    await namespaces.writer.update(namespaces.cached, {"metadata": {"labels": {"c": "d"}}})
    with pytest.raises(errors.ObjectConflictError):
        await namespaces.writer.replace(document)
