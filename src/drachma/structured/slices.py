"""Slices of v1alpha2 as slices of v1: one pool for everything that a driver publishes on a node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from drachma.api import meta, resourceslice
from drachma.claims import standins
from drachma.structured import model, models
from drachma.values import generatedname

_DEVICES: Final = 128
_NAME_LENGTH: Final = 253
_SUFFIX_LENGTH: Final = 16


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Devices of a driver on a node, their resources, and notes on what could not be expressed."""

    driver: str
    node: str
    devices: tuple[resourceslice.Device, ...] = ()
    names: Mapping[str, str] = {}
    omissions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the pool in a cluster where v1 drivers may have a pool with the node's name."""
        return standins.pool_name(self.node)

    def without(self, published: Collection[str]) -> Pool:
        """Return the pool without devices that the driver publishes in v1 under the same names."""
        return msgspec.structs.replace(self, devices=tuple(each for each in self.devices if each.name not in published))

    def slices(self, generation: int, *, name: str = "") -> tuple[resourceslice.ResourceSlice, ...]:
        """Return the slices of the pool in one of its generations. ``name`` replaces the name of the pool."""
        beginnings = range(0, max(len(self.devices), 1), _DEVICES)
        parts = [self.devices[begin : begin + _DEVICES] for begin in beginnings]
        pool = resourceslice.ResourcePool(
            name=name or self.name, generation=generation, resource_slice_count=len(parts)
        )
        prefix = "-".join(filter(None, (self.node, self.driver, "" if name else standins.SUFFIX)))
        if len(prefix) > _NAME_LENGTH - _SUFFIX_LENGTH:
            prefix = generatedname.derived(prefix[: _NAME_LENGTH - 2 * _SUFFIX_LENGTH], prefix)
        return tuple(
            resourceslice.ResourceSlice(
                metadata=meta.ObjectMeta(name=f"{prefix}-{position}"),
                spec=resourceslice.ResourceSliceSpec(
                    driver=self.driver,
                    pool=pool,
                    node_name=self.node or None,
                    all_nodes=None if self.node else True,
                    devices=part,
                ),
            )
            for position, part in enumerate(parts)
        )


def pool_of(driver: str, node: str, published: Iterable[model.Slice]) -> Pool:
    """Return the pool of a driver on a node from several slices. Slices of an unknown model are reported."""
    devices: dict[str, resourceslice.Device] = {}
    names: dict[str, str] = {}
    omissions: list[str] = []
    for each in sorted(published, key=lambda each: each.metadata.name):
        devices_found = models.inventory(each)
        if devices_found is None:
            omissions.append(f"slice {each.metadata.name}: its structured model is not known here")
            continue
        omissions += devices_found.omissions
        for device in devices_found.devices:
            if device.name in devices:
                omissions.append(
                    f"resource {devices_found.names[device.name]}: published twice, also in {each.metadata.name}"
                )
                continue
            devices[device.name] = device
            names[device.name] = devices_found.names[device.name]
    return Pool(driver=driver, node=node, devices=tuple(devices.values()), names=names, omissions=tuple(omissions))


def pools_of(published: Iterable[model.Slice]) -> tuple[Pool, ...]:
    """Return all pools of slices, in the order of drivers and nodes."""
    groups: dict[tuple[str, str], list[model.Slice]] = {}
    for each in published:
        groups.setdefault((model.driver_of(each), model.node_of(each)), []).append(each)
    return tuple(pool_of(driver, node, groups[driver, node]) for driver, node in sorted(groups))
