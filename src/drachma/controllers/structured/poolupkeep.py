"""Work on what a driver publishes on a node in v1alpha2: it is published as a pool of v1.

A device that the driver publishes in v1 as well, for the same node under the same name, is not published again: there
is one inventory. Slices belong to their node and go with it.
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
    """The driver and the node of a slice of v1."""
    return str(published.spec.driver), str(published.spec.node_name or "")


def is_own(published: Published) -> bool:
    """Whether a slice of v1 stands for slices of v1alpha2."""
    return standins.is_stand_in(published.spec.pool.name)


def _index(place: tuple[str, str]) -> tuple[str]:
    return ("/".join(place),)


class PoolUpkeep:
    """Brings one pool after another in order."""

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
        """Whether a driver publishes anything on a node in v1alpha2."""
        return any(True for _ in self._sources((driver, place)))

    def resource_name(self, driver: str, pool: str, device: str) -> str:
        """The name of the resource that a device is; one that is gone keeps the device's name."""
        for place in ((driver, standins.node_of_pool(pool)), (driver, standins.NO_NODE)):
            found = slices.pool_of(*place, self._sources(place))
            if device in found.names:
                return found.names[device]
        return device

    async def sync(self, driver: str, place: str) -> None:
        """Publishes what a driver has on a node."""
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
        wanted = pool.slices(max(generation, 1)) if pool.devices else ()
        known = {each.metadata.name: each for each in own}
        if {each.metadata.name: each.spec for each in wanted} == {name: each.spec for name, each in known.items()}:
            return
        if known:
            # Whoever sees some of the new slices and some of the old ones knows that the pool is not complete.
            wanted = pool.slices(generation + 1) if pool.devices else ()
        for each in wanted:
            before = known.pop(each.metadata.name, None)
            if before is None:
                await self._create(each)
            else:
                patch = patches.merge({"spec": {"pool": each.spec.pool, "devices": each.spec.devices}})
                await self._client.patch(Published, each.metadata.name, patch=patch)
        for name in known:
            await self._delete(name)

    def _sources(self, place: tuple[str, str]) -> Iterator[model.Slice]:
        [key] = _index(place)
        yield from self._node_slices.by(_PUBLISHED, key)
        yield from self._slices.by(_PUBLISHED, key)

    async def _give_to_node(self, source: model.Slice) -> None:
        """Makes a slice one that its node owns, if there is such a node and it is not so yet."""
        owner = self._nodes.get(model.node_of(source))
        if owner is None or any(each.uid == owner.metadata.uid for each in source.metadata.owner_references):
            return
        reference = meta.OwnerReference(api_version="v1", kind="Node", name=owner.metadata.name, uid=owner.metadata.uid)
        content = {"metadata": {"ownerReferences": (*source.metadata.owner_references, reference)}}
        await self._client.patch(
            type(source), source.metadata.name, patch=patches.merge(content, patches.unchanged(source))
        )

    async def _create(self, made: Published) -> None:
        try:
            await self._client.create(made)
        except errors.ObjectExistsError as error:
            raise errors.ReconcileError(f"slice {made.metadata.name}: {error}") from error

    async def _delete(self, name: str) -> None:
        try:
            await self._client.delete(Published, name)
        except errors.ObjectNotFoundError:
            return
