"""The resource watch: it publishes the resources that drivers report as NodeResourceSlices (KEP-4381).

It reads the stream of each driver that advertises ``v1alpha3.Node``. Each model that the driver reports has a slice,
which the Node owns, also after the Node was created again. Slices follow the reports, and the slices of a driver that
is gone are removed, even if it left before the agent started. Changes that other clients make to slices are undone
within a minute. Nothing happens in a cluster without the kind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import grpc
import grpc.aio

from drachma import errors
from drachma.api import meta, node
from drachma.api.v1alpha2 import resourceslice
from drachma.api.v1alpha2.resourceslice import NodeResourceSlice, NodeResourceSliceSpec
from drachma.client import Client, Selection, patches
from drachma.node.drivers import instances
from drachma.nodewire.rpc import services
from drachma.runtime import controller, queuemetrics, workqueue
from drachma.runtime.clock import Clock
from drachma.values import quantity

_log = logging.getLogger(__name__)

_METHOD: Final = "NodeListAndWatchResources"
_RETRY_SECONDS: Final = 5.0
_RESYNC_SECONDS: Final = 60.0

_ALL: Final = ""
"""Queue key that stands for all drivers with slices."""

Resources: TypeAlias = tuple[resourceslice.NamedResource, ...]
_Owners: TypeAlias = tuple[meta.OwnerReference, ...]


class Changes(NamedTuple):
    """Changes to make to the slices of a driver."""

    updates: Sequence[tuple[NodeResourceSlice, Resources]]
    creations: Sequence[Resources]
    deletions: Sequence[NodeResourceSlice]


def changes(existing: Iterable[NodeResourceSlice], models: Sequence[Resources], *, owners: _Owners) -> Changes:
    """Return the changes after which the slices have these models and owners.

    Slices that have a model and the owners stay. Other slices are reused before a slice is created.
    """
    unpublished = list(models)
    obsolete: list[NodeResourceSlice] = []
    for each in existing:
        content = each.spec.named_resources_with_attributes
        if content in unpublished and each.metadata.owner_references == owners:
            unpublished.remove(content)
        else:
            obsolete.append(each)
    reused = min(len(unpublished), len(obsolete))
    return Changes(
        updates=list(zip(obsolete[:reused], unpublished[:reused], strict=True)),
        creations=unpublished[reused:],
        deletions=obsolete[reused:],
    )


class ResourceWatch:
    """Publisher of the resources that the drivers of one node report."""

    def __init__(self, node_name: str, client: Client, *, queues: queuemetrics.Metrics, clock: Clock) -> None:
        self._node: Final = node_name
        self._client: Final = client
        self._clock: Final = clock
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue("node_resource_slices", clock=clock, metrics=queues)
        self._models: Final[dict[str, tuple[Resources, ...]]] = {}
        self._listeners: Final[dict[instances.DriverInstance, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Publish until cancelled."""

        async def reconcile(driver: str) -> None:
            if driver == _ALL:
                await self._queue_all()
            else:
                await self._publish(driver)

        self._queue.add(_ALL)
        try:
            await controller.work(self._queue, reconcile, workers=1)
        finally:
            listeners = list(self._listeners.values())
            for instance in list(self._listeners):
                self.leave(instance)
            await asyncio.gather(*listeners, return_exceptions=True)

    def join(self, instance: instances.DriverInstance) -> None:
        """Start to read the stream of an instance, if it has one, instead of the stream of earlier instances."""
        if instance.resources is None:
            return
        for earlier in [each for each in self._listeners if each.driver == instance.driver]:
            self.leave(earlier)
        listening = self._listen(instance, instance.resources)
        self._listeners[instance] = asyncio.create_task(listening, name=f"resources of {instance.endpoint}")

    def leave(self, instance: instances.DriverInstance) -> None:
        """Stop reading the stream of an instance. Its last report counts until the driver is gone."""
        task = self._listeners.pop(instance, None)
        if task is not None:
            task.cancel()

    def forget(self, driver: str) -> None:
        """Drop the report of a driver that is gone."""
        if self._models.pop(driver, None) is not None:
            self._queue.add(driver)

    async def _listen(self, instance: instances.DriverInstance, service: services.Service) -> None:
        driver = instance.driver
        request = service.method(_METHOD).request()
        while True:
            try:
                async for response in services.stream(instance.channel, service, _METHOD, request):
                    self._store(driver, response)
                # Some drivers report once and close the stream.
                return
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    _log.info("driver %s does not report resources", driver)
                    return
                _log.warning("driver %s: resources: %s", driver, services.problem(error))
            await self._clock.sleep(_RETRY_SECONDS)

    def _store(self, driver: str, response: Any) -> None:
        """Store the report of a driver. After an invalid report the previous one stays."""
        try:
            self._models[driver] = read_models(response.resources)
        except errors.NodeError as error:
            _log.warning("driver %s: resources are not published: %s", driver, error)
        else:
            self._queue.add(driver)

    async def _queue_all(self) -> None:
        """Queue all drivers that have slices, registered or not."""
        for each in await self._slices():
            self._queue.add(each.spec.driver_name)

    async def _publish(self, driver: str) -> None:
        """Bring the slices of a driver in line with its report. Raises ReconcileError to be tried again."""
        try:
            models = self._models.get(driver, ())
            # Slices to publish need the Node as their owner; slices to delete do not.
            owners = (_reference(await self._client.get(node.Node, self._node)),) if models else ()
            todo = changes(await self._slices(driver), models, owners=owners)
            for slice_, resources in todo.updates:
                content = {"metadata": {"ownerReferences": owners}, "spec": {"namedResourcesWithAttributes": resources}}
                patch = patches.merge(content, patches.unchanged(slice_))
                await self._client.patch(NodeResourceSlice, slice_.metadata.name, patch=patch)
            for resources in todo.creations:
                await self._client.create(self._slice(driver, resources, owners))
            for slice_ in todo.deletions:
                await self._client.delete(NodeResourceSlice, slice_.metadata.name, preconditions=patches.same(slice_))
        except (errors.RefusedError, errors.UnreachableError) as error:
            raise errors.ReconcileError(f"slices of driver {driver} on node {self._node}: {error}") from error
        if driver in self._models:
            self._queue.add_after(driver, _RESYNC_SECONDS)

    async def _slices(self, driver: str = "") -> Sequence[NodeResourceSlice]:
        """Return the slices of the node, or of one driver on it; none in a cluster without the kind."""
        fields = f"spec.nodeName={self._node}"
        if driver:
            fields += f",spec.driverName={driver}"
        try:
            return (await self._client.list(NodeResourceSlice, Selection(fields=fields))).items
        except (errors.ObjectNotFoundError, errors.ForbiddenError) as error:
            if self._models:
                raise
            _log.debug("node %s: no NodeResourceSlices here: %s", self._node, error)
            return ()

    def _slice(self, driver: str, resources: Resources, owners: _Owners) -> NodeResourceSlice:
        return NodeResourceSlice(
            metadata=meta.ObjectMeta(generate_name=f"{self._node}-{driver}-", owner_references=owners),
            spec=NodeResourceSliceSpec(
                node_name=self._node, driver_name=driver, named_resources_with_attributes=resources
            ),
        )


def _reference(owner: node.Node) -> meta.OwnerReference:
    return meta.OwnerReference(
        api_version="v1", kind="Node", name=owner.metadata.name, uid=owner.metadata.uid, controller=True
    )


def read_models(models: Iterable[Any]) -> tuple[Resources, ...]:
    """Return the resources of each model in a driver's report.

    Raises:
        errors.NodeError: a model is unknown, an attribute has no value, or a quantity is invalid.
    """
    return tuple(_resources(model, number) for number, model in enumerate(models))


def _resources(model: Any, number: int) -> Resources:
    if not model.HasField("namedResources"):
        raise errors.NodeError(f"resources[{number}]: its structured model is not known here")
    return tuple(
        resourceslice.NamedResource(
            name=instance.name, attributes=tuple(_attribute(each, instance.name) for each in instance.attributes)
        )
        for instance in model.namedResources.instances
    )


def _attribute(message: Any, resource: str) -> resourceslice.Attribute:
    name, value = message.name, message.attributeValue
    if value.HasField("quantity"):
        try:
            return resourceslice.Attribute(name=name, quantity_value=quantity.Quantity.parse(value.quantity.string))
        except errors.InvalidValueError as error:
            raise errors.NodeError(f"resource {resource}, attribute {name}: {error}") from None
    if value.HasField("intSlice"):
        return resourceslice.Attribute(name=name, int_slice=tuple(value.intSlice.ints))
    if value.HasField("stringSlice"):
        return resourceslice.Attribute(name=name, string_slice=tuple(value.stringSlice.strings))
    for kind in ("bool", "int", "string", "version"):
        if value.HasField(kind):
            return resourceslice.Attribute(name=name, **{f"{kind}_value": getattr(value, kind)})
    raise errors.NodeError(f"resource {resource}, attribute {name}: it has no value")
