"""Identities of pools, devices and shares of devices, and names of objects in messages."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from drachma.api import meta, resourceclaim


class _Located(Protocol):
    @property
    def driver(self) -> str: ...
    @property
    def pool(self) -> str: ...
    @property
    def device(self) -> str: ...


class _LocatedShare(_Located, Protocol):
    @property
    def share_id(self) -> str | None: ...


class PoolID(NamedTuple):
    """Pool: the driver's name and its own."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceID(NamedTuple):
    """Device of a pool."""

    driver: str
    pool: str
    device: str

    @property
    def pool_id(self) -> PoolID:
        """Pool of the device."""
        return PoolID(self.driver, self.pool)

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class SharedDeviceID(NamedTuple):
    """Device, and the share of a shared one."""

    driver: str
    pool: str
    device: str
    share_id: str


def device_of(entry: _Located) -> DeviceID:
    """Return the device of an allocation result, or of a device's status in a claim."""
    return DeviceID(entry.driver, entry.pool, entry.device)


def share_of(entry: _LocatedShare) -> SharedDeviceID:
    """Return the device and share of such an entry."""
    return SharedDeviceID(entry.driver, entry.pool, entry.device, entry.share_id or "")


def pools_of(allocation: resourceclaim.AllocationResult | None) -> set[PoolID]:
    """Return the pools of allocated devices."""
    return set() if allocation is None else {PoolID(each.driver, each.pool) for each in allocation.devices.results}


def label(metadata: meta.ObjectMeta) -> str:
    """Return the name of an object in messages: ``namespace/name``, or ``name`` for an object without a namespace."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)
