"""What goes wrong with devices: they are gone, ill, well again, one after the other for ever, or slow.

For clusters of :mod:`drachma.testing.clusters` whose hardware is simulated; drivers of one's own make their faults
themselves. What is slow or flaps by itself can be said in files of profiles too (:mod:`drachma.node.simulatedfaults`).
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from drachma import errors
from drachma.api import devices, resourceslice
from drachma.client import patches
from drachma.node import simulatedfaults, simulatedhealth, simulationannotations
from drachma.testing.clusters import Cluster


class DeviceFaults:
    """The faults of one simulated device. The pool of a node has the node's name, that of a rack the rack's."""

    def __init__(self, of: Cluster, name: str, *, pool: str) -> None:
        self._cluster: Final = of
        self._name: Final = name
        self._pool: Final = pool
        self._device: resourceslice.Device | None = None
        self._home = ""

    async def vanish(self) -> None:
        """It is not published any more; pods that have it keep it."""
        home = await self._slice()
        self._home = home.metadata.name
        self._device = next(each for each in home.spec.devices if each.name == self._name)
        await self._publish(home, tuple(each for each in home.spec.devices if each.name != self._name))

    async def reappear(self) -> None:
        """It is published again, after the others.

        Raises:
            errors.InvalidValueError: it has not vanished.
        """
        if self._device is None:
            raise errors.InvalidValueError(f"device {self._name!r} of pool {self._pool!r}: it has not vanished")
        home = await self._cluster.client.get(resourceslice.ResourceSlice, self._home)
        await self._publish(home, (*home.spec.devices, self._device))
        self._device = None

    async def fall_ill(self, *, effect: str = simulatedhealth.ILLNESS.effect) -> None:
        """It gets a taint, and pods that have it show that it is unhealthy.

        With NoExecute, those that do not tolerate the taint have to go.
        """
        await self._taint((structs.replace(simulatedhealth.ILLNESS, effect=effect),))

    async def recover(self) -> None:
        """It has no taints any more."""
        await self._taint(())

    async def flap(self, times: int, *, seconds: float = 10.0) -> None:
        """It falls ill and recovers so often, each time after so long."""
        for _ in range(times):
            await self.fall_ill()
            await self._cluster.advance(seconds)
            await self.recover()
            await self._cluster.advance(seconds)

    async def flap_on(self, *, seconds: float = 10.0) -> None:
        """It falls ill and recovers for ever, each time after so long; 0 ends that."""
        await self._annotate(simulatedfaults.FLAP, seconds)

    async def slow_down(self, *, seconds: float) -> None:
        """Preparing it takes so long from now on; a node agent waits for 45 seconds and asks again later."""
        await self._annotate(simulatedfaults.PREPARE, seconds)

    async def _annotate(self, what: str, seconds: float) -> None:
        home = await self._slice()
        name = simulationannotations.name(what, part=self._name)
        patch = patches.merge({"metadata": {"annotations": {name: str(seconds)}}})
        await self._cluster.client.patch(resourceslice.ResourceSlice, home.metadata.name, patch=patch)
        await self._cluster.settle()

    async def _taint(self, taints: tuple[devices.DeviceTaint, ...]) -> None:
        await self._cluster.client.update(simulatedfaults.tainted(await self._slice(), self._name, taints=taints))
        await self._cluster.settle()

    async def _slice(self) -> resourceslice.ResourceSlice:
        listing = await self._cluster.client.list(resourceslice.ResourceSlice)
        for each in listing.items:
            if each.spec.pool.name == self._pool and any(device.name == self._name for device in each.spec.devices):
                return each
        raise errors.InvalidValueError(f"device {self._name!r} of pool {self._pool!r}: there is none")

    async def _publish(self, of: resourceslice.ResourceSlice, kept: tuple[resourceslice.Device, ...]) -> None:
        await self._cluster.client.update(structs.replace(of, spec=structs.replace(of.spec, devices=kept)))
        await self._cluster.settle()
