"""Identities of pools, devices and claims, as messages and other modules of the allocator use them."""

from __future__ import annotations

from typing import NamedTuple

from drachma.api import meta


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


def label(metadata: meta.ObjectMeta) -> str:
    """How messages call an object: ``namespace/name``, or ``name`` alone where it has no namespace."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)
