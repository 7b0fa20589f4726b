"""Faults of devices: missing, unhealthy, recovered, flapping, or slow.

For clusters of :mod:`drachma.testing.clusters` with simulated hardware. Your own drivers make their faults themselves.
Profiles can describe slow and flapping devices too (:mod:`drachma.node.simulation.faults`).
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from drachma import errors
from drachma.api import devices, resourceslice
from drachma.client import patches
from drachma.node.simulation import directives, faults
from drachma.testing.clusters import Cluster


class DeviceFaults:
    """Faults of one simulated device. The pool of a node has the node's name, that of a rack the rack's."""

    def __init__(self, cluster: Cluster, name: str, *, pool: str) -> None:
        self._cluster: Final = cluster
        self._name: Final = name
        self._pool: Final = pool
        self._device: resourceslice.Device | None = None
        self._home = ""

    async def vanish(self) -> None:
        """Stop publishing the device. Pods that have it keep it."""
        home = await self._slice()
        self._home = home.metadata.name
        self._device = next(each for each in home.spec.devices if each.name == self._name)
        await self._publish(home, tuple(each for each in home.spec.devices if each.name != self._name))

    async def reappear(self) -> None:
        """Publish the device again, after the others.

        Raises:
            errors.InvalidValueError: the device has not vanished.
        """
        if self._device is None:
            raise errors.InvalidValueError(f"device {self._name!r} of pool {self._pool!r}: it has not vanished")
        home = await self._cluster.client.get(resourceslice.ResourceSlice, self._home)
        await self._publish(home, (*home.spec.devices, self._device))
        self._device = None

    async def fall_ill(self, *, effect: str = faults.UNHEALTHY_TAINT.effect) -> None:
        """Taint the device, and report it as unhealthy to pods that have it.

        With NoExecute, pods that do not tolerate the taint are evicted.
        """
        await self._taint((structs.replace(faults.UNHEALTHY_TAINT, effect=effect),))

    async def recover(self) -> None:
        """Remove all taints of the device."""
        await self._taint(())

    async def flap(self, times: int, *, seconds: float = 10.0) -> None:
        """Make the device unhealthy and healthy again, a number of times at an interval."""
        for _ in range(times):
            await self.fall_ill()
            await self._cluster.advance(seconds)
            await self.recover()
            await self._cluster.advance(seconds)

    async def flap_on(self, *, seconds: float = 10.0) -> None:
        """Make the device flap for ever at an interval. 0 ends that."""
        await self._annotate(faults.FLAP, seconds)

    async def slow_down(self, *, seconds: float) -> None:
        """Delay the preparation of the device. A node agent waits for 45 seconds and asks again later."""
        await self._annotate(faults.PREPARE, seconds)

    async def _annotate(self, what: str, seconds: float) -> None:
        home = await self._slice()
        name = directives.name(what, part=self._name)
        patch = patches.merge({"metadata": {"annotations": {name: str(seconds)}}})
        await self._cluster.client.patch(resourceslice.ResourceSlice, home.metadata.name, patch=patch)
        await self._cluster.settle()

    async def _taint(self, taints: tuple[devices.DeviceTaint, ...]) -> None:
        await self._cluster.client.update(faults.replace_taints(await self._slice(), self._name, taints=taints))
        await self._cluster.settle()

    async def _slice(self) -> resourceslice.ResourceSlice:
        listing = await self._cluster.client.list(resourceslice.ResourceSlice)
        for each in listing.items:
            if each.spec.pool.name == self._pool and any(device.name == self._name for device in each.spec.devices):
                return each
        raise errors.InvalidValueError(f"device {self._name!r} of pool {self._pool!r}: there is none")

    async def _publish(self, published: resourceslice.ResourceSlice, devices: tuple[resourceslice.Device, ...]) -> None:
        await self._cluster.client.update(
            structs.replace(published, spec=structs.replace(published.spec, devices=devices))
        )
        await self._cluster.settle()
