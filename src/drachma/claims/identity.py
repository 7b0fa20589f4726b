"""Identities of pools, devices and shares of devices, and how messages call an object."""

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
    """A pool: its driver's name and its own."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceID(NamedTuple):
    """A device of a pool."""

    driver: str
    pool: str
    device: str

    @property
    def pool_id(self) -> PoolID:
        """The pool that the device belongs to."""
        return PoolID(self.driver, self.pool)

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class SharedDeviceID(NamedTuple):
    """A device, and for a shared one which share of it."""

    driver: str
    pool: str
    device: str
    share_id: str


def device_of(entry: _Located) -> DeviceID:
    """Which device an allocation result, or a device's status in a claim, is about."""
    return DeviceID(entry.driver, entry.pool, entry.device)


def share_of(entry: _LocatedShare) -> SharedDeviceID:
    """Which device such an entry is about, and which share of it."""
    return SharedDeviceID(entry.driver, entry.pool, entry.device, entry.share_id or "")


def pools_of(allocation: resourceclaim.AllocationResult | None) -> set[PoolID]:
    """The pools that allocated devices are from."""
    return set() if allocation is None else {PoolID(each.driver, each.pool) for each in allocation.devices.results}


def label(metadata: meta.ObjectMeta) -> str:
    """How messages call an object: ``namespace/name``, or ``name`` alone where it has no namespace."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)
