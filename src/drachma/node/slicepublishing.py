"""ResourceSlices of simulated drivers, kept in the API as their machines have them.

As the publisher of a real driver: a slice that is missing is created again, one that was published for other devices or
other feature gates is replaced with the next generation of its pool, and one that the machines no longer have is
deleted. Differs from a real driver: what people change in a published slice stays, because that is how they simulate
devices that are ill or gone.
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
from drachma.node import simulationannotations
from drachma.runtime import Informer, clock, informer

_log = logging.getLogger(__name__)

PUBLISHER: Final = simulationannotations.name("publisher")
"""Annotation of a published slice: the node that publishes it, or FABRIC."""

FINGERPRINT: Final = simulationannotations.name("published")
"""Annotation of a published slice: a fingerprint of the devices and gates that it was published for."""

FABRIC: Final = "_fabric"
"""Publisher of slices that belong to no node alone; no node can have this name."""

Owner: TypeAlias = Callable[[], node.Node | None]
"""Returns the Node that slices belong to, or None while there is none."""

_INDEX: Final = "slice-publisher"
_RETRY_SECONDS: Final = 5.0


class Plan(NamedTuple):
    """Changes that bring published slices to what they should be."""

    creations: list[dict[str, Any]]
    replacements: list[dict[str, Any]]
    deletions: list[str]


def plan(
    desired: Sequence[Mapping[str, Any]], stored: Iterable[resourceslice.ResourceSlice], *, salt: str = ""
) -> Plan:
    """Compare the slices that should be there with stored slices of the same publisher. Pure.

    All slices of a pool get one generation: that of the slices that stay, or a new one if any is replaced. ``salt``
    goes into fingerprints.
    """
    by_name = {each.metadata.name: each for each in stored}
    names = {each["metadata"]["name"] for each in desired}
    made = Plan([], [], sorted(by_name.keys() - names))
    pools: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in desired:
        pools.setdefault((each["spec"]["driver"], each["spec"]["pool"]["name"]), []).append(each)
    for pool, slices in pools.items():
        prints = {each["metadata"]["name"]: fingerprint(each, salt=salt) for each in slices}
        known = {name: by_name[name] for name in prints if name in by_name}
        is_current = all(each.metadata.annotations.get(FINGERPRINT) == prints[name] for name, each in known.items())
        # Stored slices of the pool that go count too: what comes must be newer than they are.
        generations = [int(each.spec.pool.generation) for each in by_name.values() if _pool(each) == pool]
        generation = max(generations, default=0) + (0 if is_current and known else 1)
        for each in slices:
            name = each["metadata"]["name"]
            document = _published(each, prints[name], generation=generation)
            if name not in known:
                made.creations.append(document)
            elif not is_current:
                made.replacements.append(_succeed(known[name], document))
    return made


def fingerprint(document: Mapping[str, Any], *, salt: str) -> str:
    """Return a short text that is equal for equal slices."""
    return hashlib.sha256(msgspec.json.encode([document, salt], order="deterministic")).hexdigest()[:16]


def _pool(of: resourceslice.ResourceSlice) -> tuple[str, str]:
    return of.spec.driver, of.spec.pool.name


def _published(document: Mapping[str, Any], text: str, *, generation: int) -> dict[str, Any]:
    metadata, spec = document["metadata"], document["spec"]
    annotations = {**(metadata.get("annotations") or {}), FINGERPRINT: text}
    return {
        **document,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**spec, "pool": {**spec["pool"], "generation": generation}},
    }


def _succeed(stored: resourceslice.ResourceSlice, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document that replaces a stored slice; annotations by which people say how devices behave stay."""
    metadata = document["metadata"]
    annotations = {**stored.metadata.annotations, **metadata["annotations"]}
    version = stored.metadata.resource_version
    return {**document, "metadata": {**metadata, "annotations": annotations, "resourceVersion": version}}


class SlicePublishers:
    """What all publishers of a process share: one informer, which wakes the publisher of a slice that changes."""

    def __init__(
        self, slices: Informer[resourceslice.ResourceSlice], *, gates: feature.Gates, time: clock.Clock
    ) -> None:
        self.clock: Final = time
        self.salt: Final = ",".join(sorted(gate.value for gate in gates.enabled))
        self._slices: Final = slices
        self._news: Final[dict[str, asyncio.Event]] = {}
        slices.cache.add_index(_INDEX, _publishers)
        slices.add_handler(
            informer.Handler(added=self._hear, updated=lambda _old, new: self._hear(new), deleted=self._hear)
        )

    def stored(self, publisher: str) -> list[resourceslice.ResourceSlice]:
        """Return the slices of a publisher."""
        return list(self._slices.cache.by(_INDEX, publisher))

    def subscribe(self, publisher: str) -> asyncio.Event:
        """Return an event that is set whenever a slice of the publisher changes."""
        return self._news.setdefault(publisher, asyncio.Event())

    def unsubscribe(self, publisher: str) -> None:
        """Forget a publisher that has ended."""
        self._news.pop(publisher, None)

    def _hear(self, of: resourceslice.ResourceSlice) -> None:
        for publisher in _publishers(of):
            if publisher in self._news:
                self._news[publisher].set()


def _publishers(of: resourceslice.ResourceSlice) -> tuple[str, ...]:
    """Return the publisher of a slice: its annotation says it, or in older data the Node that controls it."""
    if PUBLISHER in of.metadata.annotations:
        return (of.metadata.annotations[PUBLISHER],)
    owners = [each.name for each in of.metadata.owner_references if each.controller and each.kind == "Node"]
    return tuple(name for name in owners if name == of.spec.node_name)


class SlicePublisher:
    """Publisher of one node's slices, or of those that belong to no node."""

    def __init__(
        self, name: str, slices: Sequence[Mapping[str, Any]], *, client: Client, shared: SlicePublishers
    ) -> None:
        self._name: Final = name
        self._slices: Final = slices
        self._client: Final = client
        self._shared: Final = shared

    async def run(self, owner: Owner | None = None) -> None:
        """Keep the slices published until cancelled, and while there is an owner if they have one."""
        news = self._shared.subscribe(self._name)
        try:
            while True:
                news.clear()
                try:
                    is_settled = await self._reconcile(owner)
                except (errors.RefusedError, errors.UnreachableError) as error:
                    _log.warning("slices of %s: not published, will try again: %s", self._name, error)
                    is_settled = False
                if is_settled:
                    await news.wait()
                else:
                    await clock.sleep_unless(news, _RETRY_SECONDS, time=self._shared.clock)
        finally:
            self._shared.unsubscribe(self._name)

    async def _reconcile(self, owner: Owner | None) -> bool:
        """Make all changes that are needed; return True if there was none to make."""
        metadata: dict[str, Any] = {}
        if owner is not None:
            current = owner()
            if current is None:
                # Slices of a Node that is gone would be garbage as soon as they are there.
                return False
            metadata["ownerReferences"] = [_reference(current)]
        desired = [self._mark(each, metadata) for each in self._slices]
        todo = plan(desired, self._shared.stored(self._name), salt=self._shared.salt)
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
            # This process has not heard of its own slice yet, or it is from before slices were marked.
            stored = await self._client.get(resourceslice.ResourceSlice, document["metadata"]["name"])
            if stored.metadata.annotations.get(FINGERPRINT) != document["metadata"]["annotations"][FINGERPRINT]:
                await self._replace(_succeed(stored, document))

    async def _replace(self, document: dict[str, Any]) -> None:
        try:
            await self._client.update_document(resourceslice.ResourceSlice, document)
        except errors.InvalidObjectError:
            # It cannot become what it should be, for example because another node had a slice of its name.
            del document["metadata"]["resourceVersion"]
            await self._delete(document["metadata"]["name"])
            await self._client.create_document(resourceslice.ResourceSlice, document)

    async def _delete(self, name: str) -> None:
        with contextlib.suppress(errors.ObjectNotFoundError):
            await self._client.delete(resourceslice.ResourceSlice, name)


def _reference(of: node.Node) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "name": of.metadata.name, "uid": of.metadata.uid, "controller": True}
