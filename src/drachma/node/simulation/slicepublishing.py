"""Publisher of the ResourceSlices of simulated drivers.

Like the publisher of a real driver, it creates missing slices again, replaces slices of other devices or other feature
gates by the next generation of their pool, and deletes slices that the machines no longer have. Differs from a real
driver: changes that users make to a published slice stay, because users simulate unhealthy or missing devices so.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from drachma import errors
from drachma.api import gates as feature
from drachma.api import node, resourceslice
from drachma.client import Client
from drachma.node.simulation import directives
from drachma.runtime import Informer, informer
from drachma.runtime.clock import Clock, sleep_unless

_log = logging.getLogger(__name__)

PUBLISHER: Final = directives.name("publisher")
"""Annotation of a published slice: the node that publishes it, or FABRIC."""

FINGERPRINT: Final = directives.name("published")
"""Annotation of a published slice: a fingerprint of the devices and gates that it was published for."""

FABRIC: Final = "_fabric"
"""Publisher of slices that belong to no node alone; no node can have this name."""

Owner: TypeAlias = Callable[[], node.Node | None]
"""Returns the Node that slices belong to, or None while there is none."""

_INDEX: Final = "slice-publisher"
_POOLS: Final = "slice-pool"
_RETRY_SECONDS: Final = 5.0


class Plan(NamedTuple):
    """Changes that bring published slices to what they should be."""

    creations: list[dict[str, Any]]
    replacements: list[dict[str, Any]]
    deletions: list[str]


def plan(
    desired: Sequence[Mapping[str, Any]], stored_slices: Iterable[resourceslice.ResourceSlice], *, salt: str = ""
) -> Plan:
    """Compare desired slices with the stored slices of the same publisher. Pure.

    All slices of a pool get one generation: the generation of the slices that stay, or a new one if a slice is
    replaced. ``salt`` is part of the fingerprints.
    """
    by_name = {each.metadata.name: each for each in stored_slices}
    names = {each["metadata"]["name"] for each in desired}
    result = Plan([], [], sorted(by_name.keys() - names))
    pools: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in desired:
        pools.setdefault((each["spec"]["driver"], each["spec"]["pool"]["name"]), []).append(each)
    for pool, slices in pools.items():
        prints = {each["metadata"]["name"]: fingerprint(each, salt=salt) for each in slices}
        published = {name: by_name[name] for name in prints if name in by_name}
        is_current = all(each.metadata.annotations.get(FINGERPRINT) == prints[name] for name, each in published.items())
        # Slices to be deleted count too, because new slices must be newer.
        generations = [int(each.spec.pool.generation) for each in by_name.values() if _pool(each) == pool]
        generation = max(generations, default=0) + (0 if is_current and published else 1)
        for each in slices:
            name = each["metadata"]["name"]
            document = _set_generation(each, prints[name], generation=generation)
            if name not in published:
                result.creations.append(document)
            elif not is_current:
                result.replacements.append(_successor(published[name], document))
    return result


def fingerprint(document: Mapping[str, Any], *, salt: str) -> str:
    """Return a short text that is equal for equal slices."""
    return hashlib.sha256(msgspec.json.encode([document, salt], order="deterministic")).hexdigest()[:16]


def _pool(slice_: resourceslice.ResourceSlice) -> tuple[str, str]:
    return slice_.spec.driver, slice_.spec.pool.name


def _set_generation(document: Mapping[str, Any], text: str, *, generation: int) -> dict[str, Any]:
    metadata, spec = document["metadata"], document["spec"]
    annotations = {**(metadata.get("annotations") or {}), FINGERPRINT: text}
    return {
        **document,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**spec, "pool": {**spec["pool"], "generation": generation}},
    }


def _successor(stored_slice: resourceslice.ResourceSlice, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document that replaces a stored slice and keeps its directives."""
    metadata = document["metadata"]
    annotations = {**stored_slice.metadata.annotations, **metadata["annotations"]}
    version = stored_slice.metadata.resource_version
    return {**document, "metadata": {**metadata, "annotations": annotations, "resourceVersion": version}}


class SlicePublishers:
    """State that all publishers of a process share: one informer, which wakes the publisher of a changed slice."""

    def __init__(self, slices: Informer[resourceslice.ResourceSlice], *, gates: feature.Gates, clock: Clock) -> None:
        self.clock: Final = clock
        self.salt: Final = ",".join(sorted(gate.value for gate in gates.enabled))
        self._slices: Final = slices
        self._events: Final[dict[str, asyncio.Event]] = {}
        slices.cache.add_index(_INDEX, _publishers)
        slices.cache.add_index(_POOLS, lambda each: (f"{each.spec.driver}/{each.spec.pool.name}",))
        slices.add_handler(informer.Handler.on_change(self._wake))

    def slices(self, publisher: str) -> list[resourceslice.ResourceSlice]:
        """Return the slices of a publisher."""
        return list(self._slices.cache.by(_INDEX, publisher))

    def pool(self, driver: str, pool: str) -> list[resourceslice.ResourceSlice]:
        """Return the slices of a pool, of any publisher."""
        return list(self._slices.cache.by(_POOLS, f"{driver}/{pool}"))

    def subscribe(self, publisher: str) -> asyncio.Event:
        """Return an event that is set whenever a slice of the publisher changes."""
        return self._events.setdefault(publisher, asyncio.Event())

    def unsubscribe(self, publisher: str) -> None:
        """Forget a publisher that has ended."""
        self._events.pop(publisher, None)

    def _wake(self, slice_: resourceslice.ResourceSlice) -> None:
        for publisher in _publishers(slice_):
            if publisher in self._events:
                self._events[publisher].set()


def _publishers(slice_: resourceslice.ResourceSlice) -> tuple[str, ...]:
    """Return the publisher of a slice: its annotation, or in older data the Node that controls it."""
    if PUBLISHER in slice_.metadata.annotations:
        return (slice_.metadata.annotations[PUBLISHER],)
    owners = [each.name for each in slice_.metadata.owner_references if each.controller and each.kind == "Node"]
    return tuple(name for name in owners if name == slice_.spec.node_name)


class SlicePublisher:
    """Publisher of the slices of one node, or of the slices that belong to no node."""

    def __init__(
        self, name: str, slices: Sequence[Mapping[str, Any]], *, client: Client, publishers: SlicePublishers
    ) -> None:
        self._name: Final = name
        self._slices: Final = slices
        self._client: Final = client
        self._publishers: Final = publishers

    async def run(self, owner: Owner | None = None) -> None:
        """Keep the slices published until cancelled, and while there is an owner if they have one."""
        changes = self._publishers.subscribe(self._name)
        try:
            while True:
                changes.clear()
                try:
                    is_settled = await self._reconcile(owner)
                except (errors.RefusedError, errors.UnreachableError) as error:
                    _log.warning("slices of %s: not published, will try again: %s", self._name, error)
                    is_settled = False
                if is_settled:
                    await changes.wait()
                else:
                    await sleep_unless(changes, _RETRY_SECONDS, clock=self._publishers.clock)
        finally:
            self._publishers.unsubscribe(self._name)

    async def _reconcile(self, owner: Owner | None) -> bool:
        """Make all changes that are needed; return True if there was none to make."""
        metadata: dict[str, Any] = {}
        if owner is not None:
            current = owner()
            if current is None:
                # Slices of a deleted Node would be garbage at once.
                return False
            metadata["ownerReferences"] = [_reference(current)]
        desired = [self._mark(each, metadata) for each in self._slices]
        todo = plan(desired, self._publishers.slices(self._name), salt=self._publishers.salt)
        for name in todo.deletions:
            await self._delete(name)
        for document in todo.creations:
            await self._create(document)
        for document in todo.replacements:
            await self._replace(document)
        return not any(todo)

    def _mark(self, document: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
        annotations = {**(document["metadata"].get("annotations") or {}), PUBLISHER: self._name}
        return {**document, "metadata": {**document["metadata"], **metadata, "annotations": annotations}}

    async def _create(self, document: dict[str, Any]) -> None:
        try:
            await self._client.create_document(resourceslice.ResourceSlice, document)
        except errors.ObjectExistsError:
            # The informer has not reported the slice yet, or the slice is older than the annotations.
            stored_slice = await self._client.get(resourceslice.ResourceSlice, document["metadata"]["name"])
            if stored_slice.metadata.annotations.get(FINGERPRINT) != document["metadata"]["annotations"][FINGERPRINT]:
                await self._replace(_successor(stored_slice, document))

    async def _replace(self, document: dict[str, Any]) -> None:
        try:
            await self._client.update_document(resourceslice.ResourceSlice, document)
        except errors.InvalidObjectError:
            # The update is not allowed, for example because another node had a slice of this name.
            del document["metadata"]["resourceVersion"]
            await self._delete(document["metadata"]["name"])
            await self._client.create_document(resourceslice.ResourceSlice, document)

    async def _delete(self, name: str) -> None:
        with contextlib.suppress(errors.ObjectNotFoundError):
            await self._client.delete(resourceslice.ResourceSlice, name)


def _reference(owner: node.Node) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
    }
