"""Records of the claims that an agent has prepared for pods, or has begun to prepare. Records are immutable.

A record exists from before the first call to a driver until the last pod is gone and all drivers have unprepared it.
The checkpoint keeps everything except ``is_prepared``: after a restart no claim counts as prepared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from drachma.api import resourceclaim
from drachma.nodewire import deviceuse
from drachma.nodewire.deviceuse import DeviceUse

PREPARE: Final = "NodePrepareResources"
UNPREPARE: Final = "NodeUnprepareResources"
_EVERYTHING: Final = "*"


class Key(NamedTuple):
    """Namespace and name of a claim."""

    namespace: str
    name: str


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """A prepared device: the requests that it serves, and its CDI ids for the container runtime."""

    pool_name: str
    device_name: str
    share_id: str | None = None
    request_names: tuple[str, ...] = ()
    cdi_device_ids: tuple[str, ...] = ()

    def serves(self, request: str) -> bool:
        """Return True if the device serves a request, or the whole claim if the request is empty.

        A device without request names serves all requests.
        """
        return not request or not self.request_names or request in self.request_names


class DriverState(msgspec.Struct, frozen=True):
    """Devices of one driver in a claim; ``skips`` are the calls that the driver does not need for it."""

    devices: tuple[Device, ...] = ()
    skips: tuple[str, ...] = ()

    def skips_call(self, call: str) -> bool:
        return call in self.skips or _EVERYTHING in self.skips


class PreparedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim, with the UIDs of the pods that use it on this node."""

    uid: str
    key: Key
    pods: frozenset[str] = frozenset()
    drivers: Mapping[str, DriverState] = {}
    uses: tuple[DeviceUse, ...] = ()
    """Devices of the allocation; unknown, and empty, for a record from a checkpoint."""
    is_prepared: bool = False
    is_ending: bool = False

    def cdi_devices(self, request: str = "") -> list[str]:
        """Return the CDI ids of all devices that serve a request, or of all devices if the request is empty."""
        return [
            each
            for state in self.drivers.values()
            for device in state.devices
            if device.serves(request)
            for each in device.cdi_device_ids
        ]

    @property
    def device_uses(self) -> tuple[DeviceUse, ...]:
        """Devices of the allocation; from a checkpoint the prepared ones, which do not tell access as administrator."""
        return self.uses or tuple(
            DeviceUse(driver=driver, pool=each.pool_name, device=each.device_name, share_id=each.share_id)
            for driver, state in self.drivers.items()
            for each in state.devices
        )

    def set_devices(self, driver: str, devices: Iterable[Device]) -> PreparedClaim:
        """Return a record with other devices of a driver."""
        state = msgspec.structs.replace(self.drivers[driver], devices=tuple(devices))
        return msgspec.structs.replace(self, drivers={**self.drivers, driver: state})


class PreparedClaims:
    """All records of an agent, by key."""

    def __init__(self, records: Iterable[PreparedClaim] = ()) -> None:
        self._records: Final = {record.key: record for record in records}

    def __iter__(self) -> Iterator[PreparedClaim]:
        """Iterate over the records in the order of their keys."""
        return iter([self._records[key] for key in sorted(self._records)])

    def get(self, key: Key) -> PreparedClaim | None:
        return self._records.get(key)

    def put(self, record: PreparedClaim) -> None:
        self._records[record.key] = record

    def remove(self, key: Key) -> None:
        self._records.pop(key, None)

    def used_by(self, uid: str) -> list[PreparedClaim]:
        """Return the records of the claims that a pod uses."""
        return [record for record in self if uid in record.pods]

    def pods(self) -> set[str]:
        """Return the UIDs of all pods that use a claim."""
        return {uid for record in self._records.values() for uid in record.pods}


def new_record(claim: resourceclaim.ResourceClaim) -> PreparedClaim:
    """Return the first record of an allocated claim."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    drivers = {
        driver: DriverState((), _skips(results, driver)) for driver in dict.fromkeys(each.driver for each in results)
    }
    return PreparedClaim(
        uid=claim.metadata.uid,
        key=Key(claim.metadata.namespace, claim.metadata.name),
        drivers=drivers,
        uses=deviceuse.claim_uses(claim),
    )


def _skips(results: Iterable[resourceclaim.DeviceRequestAllocationResult], driver: str) -> tuple[str, ...]:
    """Return the calls that none of a driver's devices needs."""
    operations = [each.skip_node_operations for each in results if each.driver == driver]
    if all(_EVERYTHING in each for each in operations):
        return (_EVERYTHING,)
    return tuple(
        call for call in (PREPARE, UNPREPARE) if all(call in each or _EVERYTHING in each for each in operations)
    )
