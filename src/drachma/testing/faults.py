"""What goes wrong with devices: they are gone, marked, well again, or one after the other for ever.

For clusters of :mod:`drachma.testing.clusters` whose hardware is simulated; drivers of one's own make their faults
themselves.
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from drachma import errors
from drachma.api import devices, resourceslice
from drachma.testing.clusters import Cluster


class DeviceFaults:
    """The faults of one device of a simulated node."""

    def __init__(self, of: Cluster, name: str, *, node: str) -> None:
        self._cluster: Final = of
        self._name: Final = name
        self._node: Final = node
        self._taken: resourceslice.Device | None = None
        self._home = ""

    async def vanish(self) -> None:
        """It is not published any more; pods that have it keep it."""
        found = await self._slice()
        self._taken, self._home = self._find(found), found.metadata.name
        kept = tuple(each for each in found.spec.devices if each.name != self._name)
        await self._write(found, kept)

    async def reappear(self) -> None:
        """It is published again, after the others."""
        if self._taken is None:
            raise errors.InvalidValueError(f"device {self._name!r} on {self._node}: it has not vanished")
        found = await self._cluster.client.get(resourceslice.ResourceSlice, self._home)
        await self._write(found, (*found.spec.devices, self._taken))
        self._taken = None

    async def fall_ill(self, *, effect: str = "NoExecute", key: str = "drachma.dev/unhealthy") -> None:
        """It gets a taint: with NoExecute, pods that have it and do not tolerate that have to go."""
        await self._taint((devices.DeviceTaint(key=key, effect=effect),))

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

    async def _taint(self, taints: tuple[devices.DeviceTaint, ...]) -> None:
        found = await self._slice()
        changed = structs.replace(self._find(found), taints=taints)
        await self._write(found, tuple(changed if each.name == self._name else each for each in found.spec.devices))

    async def _slice(self) -> resourceslice.ResourceSlice:
        listing = await self._cluster.client.list(resourceslice.ResourceSlice)
        own = [each for each in listing.items if each.spec.node_name == self._node]
        for each in own:
            if any(device.name == self._name for device in each.spec.devices):
                return each
        raise errors.InvalidValueError(f"device {self._name!r} on {self._node}: there is none")

    def _find(self, of: resourceslice.ResourceSlice) -> resourceslice.Device:
        return next(each for each in of.spec.devices if each.name == self._name)

    async def _write(self, of: resourceslice.ResourceSlice, kept: tuple[resourceslice.Device, ...]) -> None:
        pool = structs.replace(of.spec.pool, generation=of.spec.pool.generation + 1)
        changed = structs.replace(of, spec=structs.replace(of.spec, devices=kept, pool=pool))
        await self._cluster.client.update(changed)
        await self._cluster.settle()
