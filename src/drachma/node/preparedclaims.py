"""What an agent knows of the claims that it prepared, or began to prepare, for pods: immutable records by name.

A record is there from before the first call to a driver until the last pod is gone and all drivers have undone it. The
checkpoint (:mod:`drachma.node.checkpoint`) keeps all of it but whether it is prepared: after a restart nothing counts
as prepared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from drachma.api import resourceclaim

PREPARE: Final = "NodePrepareResources"
UNPREPARE: Final = "NodeUnprepareResources"
_EVERYTHING: Final = "*"


class Key(NamedTuple):
    """The name of a claim."""

    namespace: str
    name: str


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """A device that a driver prepared: for which requests, and what a container runtime is told."""

    pool_name: str
    device_name: str
    share_id: str | None = None
    request_names: tuple[str, ...] = ()
    cdi_device_ids: tuple[str, ...] = ()

    def serves(self, request: str) -> bool:
        """Whether it is for a request, or for all of the claim; a device that names none is for all of them."""
        return not request or not self.request_names or request in self.request_names


class DriverState(msgspec.Struct, frozen=True):
    """The devices of one driver; ``skips`` are the calls that it does not want for this claim."""

    devices: tuple[Device, ...] = ()
    skips: tuple[str, ...] = ()

    def skips_call(self, call: str) -> bool:
        return call in self.skips or _EVERYTHING in self.skips


class PreparedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim with the pods that use it here, by uid."""

    uid: str
    key: Key
    pods: frozenset[str] = frozenset()
    drivers: Mapping[str, DriverState] = {}
    is_prepared: bool = False
    is_ending: bool = False

    def cdi_devices(self, request: str = "") -> list[str]:
        """The CDI ids of all devices that are for a request, or for all of the claim."""
        return [
            each
            for state in self.drivers.values()
            for device in state.devices
            if device.serves(request)
            for each in device.cdi_device_ids
        ]

    def with_devices(self, driver: str, devices: Iterable[Device]) -> PreparedClaim:
        state = msgspec.structs.replace(self.drivers[driver], devices=tuple(devices))
        return msgspec.structs.replace(self, drivers={**self.drivers, driver: state})


class PreparedClaims:
    """All records of an agent."""

    def __init__(self, records: Iterable[PreparedClaim] = ()) -> None:
        self._records: Final = {record.key: record for record in records}

    def __iter__(self) -> Iterator[PreparedClaim]:
        """The records in the order of their names."""
        return iter([self._records[key] for key in sorted(self._records)])

    def get(self, key: Key) -> PreparedClaim | None:
        return self._records.get(key)

    def put(self, record: PreparedClaim) -> None:
        self._records[record.key] = record

    def remove(self, key: Key) -> None:
        self._records.pop(key, None)

    def of_pod(self, uid: str) -> list[PreparedClaim]:
        """The records that a pod has a part in."""
        return [record for record in self if uid in record.pods]

    def pods(self) -> set[str]:
        """The uids of all pods that have a part in any."""
        return {uid for record in self._records.values() for uid in record.pods}


def new_record(claim: resourceclaim.ResourceClaim) -> PreparedClaim:
    """A record of an allocated claim, before anything was done for it."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    drivers = {
        driver: DriverState((), _skips(results, driver)) for driver in dict.fromkeys(each.driver for each in results)
    }
    return PreparedClaim(
        uid=claim.metadata.uid, key=Key(claim.metadata.namespace, claim.metadata.name), drivers=drivers
    )


def _skips(results: Iterable[resourceclaim.DeviceRequestAllocationResult], driver: str) -> tuple[str, ...]:
    """The calls that no device of a driver wants."""
    wishes = [each.skip_node_operations for each in results if each.driver == driver]
    if all(_EVERYTHING in each for each in wishes):
        return (_EVERYTHING,)
    return tuple(call for call in (PREPARE, UNPREPARE) if all(call in each or _EVERYTHING in each for each in wishes))
