"""The resource watch: what drivers say of their resources is published for them as NodeResourceSlices (KEP-4381).

A driver that advertises ``v1alpha3.Node`` is listened to. For each model that it speaks of there is a slice, which the
Node owns, also when that is made anew; what changes is changed, and the slices of a driver that is gone, or was gone
before the agent came up, are removed. What somebody else does to slices is put right within a minute. A cluster that
does not have the kind is left in peace.
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
from drachma.api.v1alpha2.resourceslice import NodeResourceSlice, NodeResourceSliceSpec
from drachma.client import Client, Selection, patches
from drachma.node import drivers, resourcemodels
from drachma.nodewire.rpc import services
from drachma.runtime import clock, controller, queuemetrics, workqueue

_log = logging.getLogger(__name__)

_METHOD: Final = "NodeListAndWatchResources"
_RETRY_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 60.0

_ALL: Final = ""
"""In the place of a driver: all that have slices."""

Resources = resourcemodels.Resources
_Owners: TypeAlias = tuple[meta.OwnerReference, ...]


class Changes(NamedTuple):
    """What is to be done to the slices of a driver."""

    updated: Sequence[tuple[NodeResourceSlice, Resources]]
    created: Sequence[Resources]
    deleted: Sequence[NodeResourceSlice]


def changes(existing: Iterable[NodeResourceSlice], models: Sequence[Resources], *, owners: _Owners) -> Changes:
    """How slices come to have these models and owners: those that have both stay, others are used anew before any is
    made."""
    missing = list(models)
    obsolete: list[NodeResourceSlice] = []
    for each in existing:
        content = each.spec.named_resources_with_attributes
        if content in missing and each.metadata.owner_references == owners:
            missing.remove(content)
        else:
            obsolete.append(each)
    reused = min(len(missing), len(obsolete))
    return Changes(
        updated=list(zip(obsolete[:reused], missing[:reused], strict=True)),
        created=missing[reused:],
        deleted=obsolete[reused:],
    )


class ResourceWatch:
    """Listens to the drivers of one node, and publishes for them."""

    def __init__(self, node_name: str, client: Client, *, queues: queuemetrics.Metrics, time: clock.Clock) -> None:
        self._node: Final = node_name
        self._client: Final = client
        self._clock: Final = time
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue("node_resource_slices", time=time, measured=queues)
        self._models: Final[dict[str, tuple[Resources, ...]]] = {}
        self._listeners: Final[dict[drivers.Instance, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Publishes until cancelled."""

        async def reconcile(driver: str) -> None:
            if driver == _ALL:
                await self._look()
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

    def join(self, instance: drivers.Instance) -> None:
        """Listens to an instance from now on, if it has something to say, and to no earlier one of its driver."""
        if instance.resources is None:
            return
        for earlier in [each for each in self._listeners if each.driver == instance.driver]:
            self.leave(earlier)
        listening = self._listen(instance, instance.resources)
        self._listeners[instance] = asyncio.create_task(listening, name=f"resources of {instance.endpoint}")

    def leave(self, instance: drivers.Instance) -> None:
        """Listens no longer; what was said holds until the driver is gone."""
        task = self._listeners.pop(instance, None)
        if task is not None:
            task.cancel()

    def forget(self, driver: str) -> None:
        """A driver is gone, and with it what it said."""
        if self._models.pop(driver, None) is not None:
            self._queue.add(driver)

    async def _listen(self, instance: drivers.Instance, service: services.Service) -> None:
        driver = instance.driver
        request = service.method(_METHOD).request()
        while True:
            try:
                async for response in services.stream(instance.channel, service, _METHOD, request):
                    self._hear(driver, response)
                # Some drivers say once and for all what there is.
                return
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    _log.info("driver %s does not say which resources there are", driver)
                    return
                _log.warning("driver %s: resources: %s", driver, services.problem(error))
            await self._clock.sleep(_RETRY_SECONDS)

    def _hear(self, driver: str, response: Any) -> None:
        """Takes in what a driver says; where that makes no sense, what it said before holds."""
        try:
            self._models[driver] = resourcemodels.read(response.resources)
        except errors.NodeError as error:
            _log.warning("driver %s: resources are not published: %s", driver, error)
        else:
            self._queue.add(driver)

    async def _look(self) -> None:
        """Has something done about all drivers that have slices, whether they are still there or not."""
        for each in await self._slices():
            self._queue.add(each.spec.driver_name)

    async def _publish(self, driver: str) -> None:
        """Makes the slices of a driver say what it said; ReconcileError where that has to be tried again."""
        try:
            models = self._models.get(driver, ())
            # A node that is gone can own nothing, but what nobody stands behind goes without it.
            owners = (_reference(await self._client.get(node.Node, self._node)),) if models else ()
            due = changes(await self._slices(driver), models, owners=owners)
            for slice_, resources in due.updated:
                content = {"metadata": {"ownerReferences": owners}, "spec": {"namedResourcesWithAttributes": resources}}
                patch = patches.merge(content, patches.unchanged(slice_))
                await self._client.patch(NodeResourceSlice, slice_.metadata.name, patch=patch)
            for resources in due.created:
                await self._client.create(self._slice(driver, resources, owners))
            for slice_ in due.deleted:
                await self._client.delete(NodeResourceSlice, slice_.metadata.name, preconditions=patches.same(slice_))
        except (errors.RefusedError, errors.UnreachableError) as error:
            raise errors.ReconcileError(f"slices of driver {driver} on node {self._node}: {error}") from error
        if driver in self._models:
            self._queue.add_after(driver, _LOOK_SECONDS)

    async def _slices(self, driver: str = "") -> Sequence[NodeResourceSlice]:
        """The slices of the node, or of one driver on it; none where the cluster has no such kind for nodes."""
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
