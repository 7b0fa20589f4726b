"""Drivers of a node that run as processes.

:class:`Plugins` composes the room: :mod:`.pluginwatcher` finds drivers by their sockets, :mod:`.instances` keeps the
connections, :class:`HealthWatch` and :mod:`.resourcewatch` read their streams, and slices without a driver are
removed. Simulated nodes have :class:`drachma.node.simulation.drivers.SimulatedDrivers` instead.
"""

from __future__ import annotations

import asyncio
import logging
import pathlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import grpc
import grpc.aio

from drachma import errors
from drachma.api import gates as feature
from drachma.api import node, resourceslice
from drachma.client import Client, Selection
from drachma.node import agentmetrics
from drachma.node.claims.devicehealth import DeviceHealth, HealthListener
from drachma.node.drivers import firstalphacalls, instances, pluginwatcher, resourcewatch
from drachma.nodewire.rpc import services
from drachma.runtime import controller, queuemetrics
from drachma.runtime.clock import Clock

_log = logging.getLogger(__name__)

_HEALTH_METHOD: Final = "NodeWatchResources"
_HEALTH_RETRY_SECONDS: Final = 5.0
_FIRST_DELAY: Final = 1.0
_LONGEST_DELAY: Final = 300.0

Delete: TypeAlias = Callable[[str], Awaitable[None]]
"""Deletes the slices that match a field selector; raises what a client raises."""


class Plugins:
    """All drivers of one node. Runs on one event loop, and closes when that ends."""

    def __init__(
        self,
        node_name: str,
        registry: pathlib.Path,
        *,
        client: Client,
        metrics: agentmetrics.NodeMetrics,
        queues: queuemetrics.Metrics,
        clock: Clock,
        on_driver: Callable[[], None],
        on_health: HealthListener,
        gates: feature.Gates,
    ) -> None:
        """``on_driver`` is called when a driver registers, ``on_health`` when the health of devices changes."""
        self.health: Final = DeviceHealth(clock)
        self._node: Final = node_name
        self._client: Final = client
        self._clock: Final = clock
        self._on_driver: Final = on_driver
        self._health_watch: Final = HealthWatch(self.health, on_health=on_health, clock=clock)
        self._resource_watch: Final = resourcewatch.ResourceWatch(node_name, client, queues=queues, clock=clock)
        self._instances: Final = instances.DriverInstances(
            metrics=metrics,
            clock=clock,
            on_gone=self._forget,
            on_join=self._join,
            on_leave=self._leave,
            first_alpha=firstalphacalls.FirstAlphaClaims(client) if gates.on(feature.Gate.FIRST_ALPHA) else None,
        )
        self._watcher: Final = pluginwatcher.PluginWatcher(registry, self._instances, clock=clock)

    def get(self, driver: str) -> instances.DriverInstance:
        """Return the instance of a driver to call. Raises NodeError if the driver is not registered."""
        return self._instances.get(driver)

    async def run(self, _owner: Callable[[], node.Node | None], /) -> None:
        """Serve drivers until cancelled.

        Slices from before are removed first, so that a driver that publishes when it registers loses nothing. If the
        API server refuses that, drivers register all the same, and the removal is tried again meanwhile.
        """
        try:
            has_slices = False
            try:
                await self._delete_slices(_node_selector(self._node))
            except (errors.RefusedError, errors.UnreachableError) as error:
                _log.warning("slices of node %s: not deleted, will try again: %s", self._node, error)
                has_slices = True
            removal = (self._remove_slices(delays=True),) if has_slices else ()
            await controller.together(self._watcher.run(), self._resource_watch.run(), *removal)
        finally:
            await self._health_watch.close()
            await self._instances.close()

    def _join(self, instance: instances.DriverInstance) -> None:
        self._health_watch.join(instance)
        self._resource_watch.join(instance)
        self._on_driver()

    def _leave(self, instance: instances.DriverInstance) -> None:
        self._health_watch.leave(instance)
        self._resource_watch.leave(instance)

    async def _forget(self, driver: str) -> None:
        self._resource_watch.forget(driver)
        await self._remove_slices(driver)

    async def _remove_slices(self, driver: str = "", *, delays: bool = False) -> None:
        if delays:
            await self._clock.sleep(_FIRST_DELAY)
        await remove_slices(self._delete_slices, node_name=self._node, driver=driver, clock=self._clock)

    async def _delete_slices(self, fields: str) -> None:
        await self._client.delete_collection(resourceslice.ResourceSlice, Selection(fields=fields))


class HealthWatch:
    """Reader of the health streams of driver instances. A stream that ends is opened again."""

    def __init__(self, health: DeviceHealth, *, on_health: HealthListener, clock: Clock) -> None:
        self._health: Final = health
        self._on_health: Final = on_health
        self._clock: Final = clock
        self._tasks: Final[dict[instances.DriverInstance, asyncio.Task[None]]] = {}

    def join(self, instance: instances.DriverInstance) -> None:
        """Start to read the stream of an instance, if it offers one."""
        if instance.health is not None:
            task = asyncio.create_task(self._listen(instance, instance.health), name=f"health of {instance.endpoint}")
            self._tasks[instance] = task

    def leave(self, instance: instances.DriverInstance) -> None:
        """Stop reading the stream of an instance."""
        task = self._tasks.pop(instance, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """End all streams."""
        tasks = list(self._tasks.values())
        for instance in list(self._tasks):
            self.leave(instance)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, instance: instances.DriverInstance, service: services.Service) -> None:
        driver = instance.driver
        while True:
            try:
                async for reports in services.stream(
                    instance.channel, service, _HEALTH_METHOD, service.method(_HEALTH_METHOD).request()
                ):
                    self._on_health(driver, self._health.update(driver, reports.devices))
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    _log.info("driver %s does not report the health of devices", driver)
                    return
                _log.warning("driver %s: health of devices: %s", driver, services.problem(error))
            finally:
                self._on_health(driver, self._health.forget(driver))
            await self._clock.sleep(_HEALTH_RETRY_SECONDS)


def _node_selector(node_name: str) -> str:
    return f"spec.nodeName={node_name}"


async def remove_slices(delete: Delete, *, node_name: str, driver: str = "", clock: Clock) -> None:
    """Delete the ResourceSlices of a node, or of one driver on it, and retry until that succeeds.

    An agent deletes all slices when it starts, and the slices of a driver that is gone. A driver publishes again when
    it registers.
    """
    selector = f"spec.driver={driver},{_node_selector(node_name)}" if driver else _node_selector(node_name)
    delay = _FIRST_DELAY
    while True:
        try:
            await delete(selector)
        except (errors.RefusedError, errors.UnreachableError) as error:
            _log.warning("slices of %s: not deleted, will try again: %s", selector, error)
            await clock.sleep(delay)
            delay = min(2 * delay, _LONGEST_DELAY)
        else:
            return
