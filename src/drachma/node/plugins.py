"""The drivers of a node that are processes of their own: found by their sockets, listened to, cleaned up after.

Puts together what the other modules do: :mod:`registration` finds drivers, :mod:`drivers` keeps connections to them,
:mod:`healthwatch` and :mod:`resourcewatch` listen, :mod:`sliceremoval` removes what nobody stands behind. A node whose
drivers are only imagined has :class:`drachma.node.simulateddrivers.SimulatedDrivers` in its place.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Final

from drachma.api import gates as feature
from drachma.api import node, resourceslice
from drachma.client import Client, Selection
from drachma.node import (
    drivers,
    firstalphacalls,
    health,
    healthwatch,
    nodemetrics,
    registration,
    resourcewatch,
    sliceremoval,
)
from drachma.runtime import clock, controller, queuemetrics


class Plugins:
    """All drivers of one node. Run on one event loop, and closed when that ends."""

    def __init__(
        self,
        node_name: str,
        registry: pathlib.Path,
        *,
        client: Client,
        metrics: nodemetrics.NodeMetrics,
        queues: queuemetrics.Metrics,
        time: clock.Clock,
        joined: Callable[[], None],
        heard: health.Heard,
        gates: feature.Gates,
    ) -> None:
        """``joined`` hears that there is one more driver to ask, ``heard`` of devices that are not as they were."""
        self.health: Final = health.DeviceHealth(time)
        self._node = node_name
        self._client = client
        self._clock = time
        self._joined = joined
        self._watch: Final = healthwatch.HealthWatch(self.health, heard=heard, time=time)
        self._resources: Final = resourcewatch.ResourceWatch(node_name, client, queues=queues, time=time)
        self._drivers: Final = drivers.Drivers(
            metrics=metrics,
            time=time,
            gone=self._forget,
            joined=self._join,
            left=self._leave,
            first_alpha=firstalphacalls.FirstAlphaClaims(client) if gates.on(feature.Gate.FIRST_ALPHA) else None,
        )
        self._registration: Final = registration.Registration(registry, self._drivers, time=time)

    def get(self, driver: str) -> drivers.Instance:
        """The instance of a driver to ask; a NodeError where there is none."""
        return self._drivers.get(driver)

    async def run(self, _owner: Callable[[], node.Node | None], /) -> None:
        """Looks after drivers until cancelled.

        Slices of before are removed first: a driver that publishes when it is registered loses nothing.
        """
        try:
            await self._remove_slices()
            await controller.together(self._registration.run(), self._resources.run())
        finally:
            await self._watch.close()
            await self._drivers.close()

    def _join(self, instance: drivers.Instance) -> None:
        self._watch.join(instance)
        self._resources.join(instance)
        self._joined()

    def _leave(self, instance: drivers.Instance) -> None:
        self._watch.leave(instance)
        self._resources.leave(instance)

    async def _forget(self, driver: str) -> None:
        self._resources.forget(driver)
        await self._remove_slices(driver)

    async def _remove_slices(self, driver: str = "") -> None:
        async def delete(fields: str) -> None:
            selection = Selection(fields=fields)
            await self._client.delete_collection(resourceslice.ResourceSlice, selection)

        await sliceremoval.remove(delete, node=self._node, driver=driver, time=self._clock)
