"""Reconcile of the v1alpha2 resources of a driver on a node: they are published as a v1 pool.

A device that the driver publishes in v1 as well, for the same node under the same name, is not published again. Slices
are owned by their node and deleted with it.
"""

from collections.abc import Iterator
from typing import Final

from drachma import errors
from drachma.api import meta, node, resourceslice
from drachma.api.v1alpha2 import resourceslice as alpha
from drachma.claims import standins
from drachma.client import Client, patches
from drachma.runtime import Surroundings, events
from drachma.structured import model, slices

OMITTED: Final = "ResourcesOmitted"

_PUBLISHED: Final = "structured parameters: driver and node"

NodeSlice = alpha.NodeResourceSlice
Slice = alpha.ResourceSlice
Published = resourceslice.ResourceSlice


def place_of(published: Published) -> tuple[str, str]:
    """Return the driver and the node of a v1 slice."""
    return str(published.spec.driver), str(published.spec.node_name or "")


def is_own(published: Published) -> bool:
    """Return True if a v1 slice is a counterpart of v1alpha2 slices."""
    return standins.is_stand_in(published.spec.pool.name)


def _index(place: tuple[str, str]) -> tuple[str]:
    return ("/".join(place),)


class PoolUpkeep:
    """Reconciles one pool after another."""

    def __init__(self, surroundings: Surroundings, *, recorder: events.Recorder) -> None:
        informers = surroundings.informers
        self._client: Final[Client] = surroundings.client
        self._nodes: Final = informers.of(node.Node).cache
        self._node_slices: Final = informers.of(NodeSlice).cache
        self._slices: Final = informers.of(Slice).cache
        self._published: Final = informers.of(Published).cache
        self._recorder: Final = recorder
        self._node_slices.add_index(_PUBLISHED, lambda each: _index((model.driver_of(each), model.node_of(each))))
        self._slices.add_index(_PUBLISHED, lambda each: _index((model.driver_of(each), model.node_of(each))))
        self._published.add_index(_PUBLISHED, lambda each: _index(place_of(each)))

    def has_sources(self, driver: str, place: str) -> bool:
        """Return True if a driver publishes anything on a node in v1alpha2."""
        return any(True for _ in self._sources((driver, place)))

    def resource_name(self, driver: str, pool: str, device: str) -> str:
        """Return the name of a device's resource, or the device's name if it is gone."""
        for place in ((driver, standins.node_of_pool(pool)), (driver, standins.NO_NODE)):
            published = slices.pool_of(*place, self._sources(place))
            if device in published.names:
                return published.names[device]
        return device

    async def sync(self, driver: str, place: str) -> None:
        """Publish the resources of a driver on a node."""
        sources = list(self._sources((driver, place)))
        published = self._published.by(_PUBLISHED, f"{driver}/{place}")
        own = [each for each in published if is_own(each)]
        pool = slices.pool_of(driver, place, sources)
        for source in sources:
            await self._give_to_node(source)
        if pool.omissions and sources:
            self._recorder.record(
                sources[0], type=events.WARNING, reason=OMITTED, message="; ".join(pool.omissions)[:1000]
            )
        pool = pool.without({device.name for each in published if not is_own(each) for device in each.spec.devices})
        generation = max((each.spec.pool.generation for each in own), default=0)
        desired = pool.slices(max(generation, 1)) if pool.devices else ()
        current = {each.metadata.name: each for each in own}
        if {each.metadata.name: each.spec for each in desired} == {name: each.spec for name, each in current.items()}:
            return
        if current:
            # A reader of some new and some old slices sees that the pool is incomplete.
            desired = pool.slices(generation + 1) if pool.devices else ()
        for each in desired:
            before = current.pop(each.metadata.name, None)
            if before is None:
                await self._create(each)
            else:
                patch = patches.merge({"spec": {"pool": each.spec.pool, "devices": each.spec.devices}})
                await self._client.patch(Published, each.metadata.name, patch=patch)
        for name in current:
            await self._delete(name)

    def _sources(self, place: tuple[str, str]) -> Iterator[model.Slice]:
        [key] = _index(place)
        yield from self._node_slices.by(_PUBLISHED, key)
        yield from self._slices.by(_PUBLISHED, key)

    async def _give_to_node(self, source: model.Slice) -> None:
        """Set the owner of a slice to its node, if the node exists."""
        owner = self._nodes.get(model.node_of(source))
        if owner is None or any(each.uid == owner.metadata.uid for each in source.metadata.owner_references):
            return
        reference = meta.OwnerReference(api_version="v1", kind="Node", name=owner.metadata.name, uid=owner.metadata.uid)
        content = {"metadata": {"ownerReferences": (*source.metadata.owner_references, reference)}}
        await self._client.patch(
            type(source), source.metadata.name, patch=patches.merge(content, patches.unchanged(source))
        )

    async def _create(self, draft: Published) -> None:
        try:
            await self._client.create(draft)
        except errors.ObjectExistsError as error:
            raise errors.ReconcileError(f"slice {draft.metadata.name}: {error}") from error

    async def _delete(self, name: str) -> None:
        try:
            await self._client.delete(Published, name)
        except errors.ObjectNotFoundError:
            return
