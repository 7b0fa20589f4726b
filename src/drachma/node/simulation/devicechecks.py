"""The checks of simulated drivers before they prepare a claim: devices are published, and no other claim has them.

The published devices are those of the stored slices, so that a device that a user removes from a slice is gone. A
machine's own pool that has no slice at the moment is about to be published again, and counts as the machine has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drachma import errors
from drachma.allocator import placement
from drachma.api import node, resourceclaim, resourceslice
from drachma.client import Client, protocol
from drachma.node.registration.machine import Machine
from drachma.node.simulation import slicepublishing
from drachma.nodewire import deviceuse


class DeviceChecks:
    """Checks of all simulated drivers of one node."""

    def __init__(
        self,
        machine: Machine,
        publishers: slicepublishing.SlicePublishers,
        *,
        admin: Client,
        get_node: Callable[[], node.Node | None],
    ) -> None:
        """``admin`` may read all slices; ``get_node`` returns the stored Node, if there is one."""
        self._machine: Final = machine
        self._publishers: Final = publishers
        self._admin: Final = admin
        self._get_node: Final = get_node
        self._holders: Final[dict[tuple[str, str], deviceuse.Holder]] = {}

    async def hold(self, driver: str, claim: resourceclaim.ResourceClaim) -> None:
        """Reserve the devices of a claim until they are released.

        Raises:
            errors.DeviceUnavailableError: a device is not published for the node.
            errors.DriverError: another claim has a device exclusively, or slices cannot be read.
        """
        metadata = claim.metadata
        uses = deviceuse.claim_uses(claim, driver)
        if (driver, metadata.uid) in self._holders:
            return
        await self._check_published(driver, uses)
        if conflict := deviceuse.find_conflict(uses, self._holders.values()):
            raise errors.DriverError(conflict)
        self._holders[driver, metadata.uid] = deviceuse.Holder(metadata.namespace, metadata.name, metadata.uid, uses)

    def release(self, driver: str, uid: str) -> None:
        """Free the devices of a claim."""
        self._holders.pop((driver, uid), None)

    async def _check_published(self, driver: str, uses: tuple[deviceuse.DeviceUse, ...]) -> None:
        pools = {each.pool for each in uses}
        try:
            slices = [each for pool in pools for each in self._publishers.pool(driver, pool)]
            missing_uses = deviceuse.find_missing(uses, self._published(driver, slices))
            if missing_uses:
                # The informer may be behind the scheduler's.
                selection = protocol.Selection(fields=f"spec.driver={driver}")
                published_slices = (await self._admin.list(resourceslice.ResourceSlice, selection)).items
                slices = [each for each in published_slices if each.spec.pool.name in pools]
                missing_uses = deviceuse.find_missing(uses, self._published(driver, slices))
        except (errors.RefusedError, errors.UnreachableError, errors.AllocationError) as error:
            raise errors.DriverError(f"driver {driver}: cannot read its devices: {error}") from error
        if missing_uses:
            raise errors.DeviceUnavailableError(deviceuse.unavailable(missing_uses, self._machine.name))

    def _published(self, driver: str, slices: list[resourceslice.ResourceSlice]) -> set[deviceuse.PublishedDevice]:
        stored_pools = {each.spec.pool.name for each in slices}
        unpublished = {
            deviceuse.PublishedDevice(str(spec["pool"]["name"]), str(device["name"]))
            for spec in (each["spec"] for each in self._machine.slices)
            if spec["driver"] == driver and spec["pool"]["name"] not in stored_pools
            for device in spec.get("devices") or ()
        }
        return deviceuse.published(slices, self._node()) | unpublished

    def _node(self) -> placement.Node:
        stored_node = self._get_node()
        if stored_node is not None:
            return placement.Node.of(stored_node)
        return placement.Node(self._machine.name, self._machine.node["metadata"].get("labels") or {})
