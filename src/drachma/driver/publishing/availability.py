"""Devices that a driver on a node has at the moment, for the check before a claim is prepared (KEP-4381).

Pools of the node are known from the driver itself, whose word is newer than any slice. All other pools are read from
the API server: pools of a network, and pools of a driver that leaves its slices to another program.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

from drachma import errors
from drachma.allocator import placement
from drachma.api import node, resourceslice
from drachma.client import Client, protocol
from drachma.driver.publishing.layout import Layout
from drachma.nodewire import deviceuse

OwnLayouts: TypeAlias = Callable[[], Awaitable[Mapping[str, Layout]]]
"""Returns the pools that the driver publishes for its node, by name. Raises DriverError if they are not known."""


class Availability:
    """Devices of one driver that one node can use."""

    def __init__(self, driver: str, node_name: str, *, client: Client, own_layouts: OwnLayouts | None) -> None:
        """Without ``own_layouts`` the driver publishes no pools for its node by itself."""
        self._driver: Final = driver
        self._node_name: Final = node_name
        self._client: Final = client
        self._own_layouts: Final = own_layouts

    async def check(self, uses: Sequence[deviceuse.DeviceUse]) -> None:
        """Check that devices can be used on this node.

        Raises:
            errors.DeviceUnavailableError: a device is not published for the node.
            errors.DriverError: the published devices cannot be read at the moment.
        """
        devices = await self._own_devices()
        missing = deviceuse.find_missing(uses, devices)
        if missing:
            missing = deviceuse.find_missing(missing, await self._stored_devices())
        if missing:
            raise errors.DeviceUnavailableError(deviceuse.unavailable(missing, self._node_name))

    async def _own_devices(self) -> set[deviceuse.PublishedDevice]:
        layouts = {} if self._own_layouts is None else await self._own_layouts()
        return {
            deviceuse.PublishedDevice(pool, device.name)
            for pool, layout in layouts.items()
            for content in layout.slices
            for device in content.devices
        }

    async def _stored_devices(self) -> set[deviceuse.PublishedDevice]:
        """Return the devices in slices that are not this driver instance's own."""
        selection = protocol.Selection(fields=f"spec.driver={self._driver}")
        try:
            slices = (await self._client.list(resourceslice.ResourceSlice, selection)).items
            if self._own_layouts is not None:
                # Slices of this node that the driver no longer has are about to be removed.
                slices = tuple(each for each in slices if each.spec.node_name != self._node_name)
            if not slices:
                return set()
            stored_node = await self._client.get(node.Node, self._node_name)
            return deviceuse.published(slices, placement.Node.of(stored_node))
        except (errors.RequestError, errors.UnreachableError, errors.AllocationError) as error:
            raise errors.DriverError(f"driver {self._driver}: cannot read its devices: {error}") from error
