"""Faults of simulated devices, controlled by annotations of their slices, and the health that follows from them.

======================================  =========================================================
annotation                              meaning
======================================  =========================================================
simulation.drachma.dev/prepare-seconds  time to prepare a device
simulation.drachma.dev/flap-seconds     time after which a device becomes unhealthy, and healthy again
======================================  =========================================================

An annotation with the suffix ``.NAME`` applies to the device of that name. An unhealthy device has a taint, and pod
statuses show it as unhealthy, as with drivers that report health (KEP-4680).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from drachma import errors
from drachma.api import devices, resourceslice
from drachma.client import Client
from drachma.node.claims.devicehealth import HEALTHY, UNHEALTHY, UNKNOWN, DeviceID, Health, HealthListener
from drachma.node.simulation import directives
from drachma.runtime import Informer, informer
from drachma.runtime.clock import Clock, sleep_unless

_log = logging.getLogger(__name__)

_INDEX: Final = "simulated-faults"
PREPARE: Final = "prepare-seconds"
FLAP: Final = "flap-seconds"
_SHORTEST_SECONDS: Final = 0.1
"""Shortest period of a device that flaps, because each turn is a write."""


class _Device(NamedTuple):
    slice: str
    name: str


class SimulatedFaults:
    """Faults of all simulated devices of a process. The client may write slices."""

    def __init__(self, slices: Informer[resourceslice.ResourceSlice], *, client: Client, clock: Clock) -> None:
        self._slices: Final = slices
        self._client: Final = client
        self._clock: Final = clock
        self._has_changes: Final = asyncio.Event()
        self.health: Final = SimulatedHealth(slices)
        slices.cache.add_index(_INDEX, _slow_pools)
        slices.add_handler(informer.Handler.on_change(self._notice))

    def prepare_seconds(self, driver: str, results: Sequence[tuple[str, str]]) -> float:
        """Return the time to prepare devices of a driver, given as pools and names, all at once.

        Raises:
            errors.InvalidValueError: an annotation is not a number.
        """
        longest = 0.0
        for pool, device in results:
            for each in self._slices.cache.by(_INDEX, f"{driver}/{pool}"):
                if any(published.name == device for published in each.spec.devices):
                    seconds = directives.number(each.metadata.annotations, PREPARE, part=device)
                    longest = max(longest, seconds or 0.0)
        return longest

    async def run(self) -> None:
        """Turn the health of flapping devices until cancelled."""
        turns: dict[_Device, float] = {}
        while True:
            self._has_changes.clear()
            periods = self._periods()
            now = self._clock.monotonic()
            turns = {device: turns.get(device, now + period) for device, period in periods.items()}
            for device, turn in turns.items():
                if turn <= now:
                    await self._turn(device)
                    turns[device] = now + periods[device]
            if turns:
                await sleep_unless(self._has_changes, min(turns.values()) - now, clock=self._clock)
            else:
                await self._has_changes.wait()

    def _notice(self, slice_: resourceslice.ResourceSlice) -> None:
        if directives.has(slice_.metadata.annotations, FLAP):
            self._has_changes.set()

    def _periods(self) -> dict[_Device, float]:
        periods: dict[_Device, float] = {}
        for each in self._slices.cache:
            if not directives.has(each.metadata.annotations, FLAP):
                continue
            for device in each.spec.devices:
                try:
                    seconds = directives.number(each.metadata.annotations, FLAP, part=device.name)
                except errors.InvalidValueError as error:
                    _log.warning("ResourceSlice %s, device %s: %s", each.metadata.name, device.name, error)
                    continue
                if seconds:
                    periods[_Device(each.metadata.name, device.name)] = max(seconds, _SHORTEST_SECONDS)
        return periods

    async def _turn(self, device: _Device) -> None:
        try:
            current = await self._client.get(resourceslice.ResourceSlice, device.slice)
            for each in current.spec.devices:
                if each.name == device.name:
                    own = tuple(taint for taint in each.taints if taint.key != UNHEALTHY_TAINT.key)
                    taints = own if len(own) < len(each.taints) else (*own, UNHEALTHY_TAINT)
                    await self._client.update(replace_taints(current, device.name, taints=taints))
        except (errors.RefusedError, errors.UnreachableError) as error:
            _log.warning("ResourceSlice %s, device %s: does not flap this time: %s", device.slice, device.name, error)


def replace_taints(
    slice_: resourceslice.ResourceSlice, device: str, *, taints: tuple[devices.DeviceTaint, ...]
) -> resourceslice.ResourceSlice:
    """Return a slice with other taints on one of its devices. The generation of the pool stays."""
    devices_ = tuple(
        structs.replace(each, taints=taints) if each.name == device else each for each in slice_.spec.devices
    )
    return structs.replace(slice_, spec=structs.replace(slice_.spec, devices=devices_))


def _slow_pools(slice_: resourceslice.ResourceSlice) -> tuple[str, ...]:
    is_slow = directives.has(slice_.metadata.annotations, PREPARE)
    return (f"{slice_.spec.driver}/{slice_.spec.pool.name}",) if is_slow else ()


_HEALTH_INDEX: Final = "simulated-health"

UNHEALTHY_TAINT: Final = devices.DeviceTaint(key="simulation.drachma.dev/unhealthy", effect="NoExecute")
"""Taint of an unhealthy device. Pods that do not tolerate it are evicted."""

_TAINTED: Final = Health(UNHEALTHY.state, f"the device has the taint {UNHEALTHY_TAINT.key}")


class SimulatedHealth:
    """Health of all simulated devices of a process, from the taints in their slices."""

    def __init__(self, slices: Informer[resourceslice.ResourceSlice]) -> None:
        self._slices: Final = slices
        self._listeners: Final[dict[str, HealthListener]] = {}
        slices.cache.add_index(_HEALTH_INDEX, lambda slice_: (f"{slice_.spec.driver}/{slice_.spec.pool.name}",))
        slices.add_handler(
            informer.Handler(
                added=lambda new: self._notify(new, _names(new)), updated=self._update, deleted=self._delete
            )
        )

    def listen(self, node: str, listener: HealthListener) -> None:
        """Call a listener when the health of devices of a node changes."""
        self._listeners[node] = listener

    def get(self, driver: str, device: DeviceID) -> Health:
        """Return the health of a device; unknown if no slice has it."""
        for each in self._slices.cache.by(_HEALTH_INDEX, f"{driver}/{device.pool}"):
            for published in each.spec.devices:
                if published.name == device.device:
                    return _TAINTED if _is_unhealthy(published) else HEALTHY
        return UNKNOWN

    def _update(self, old: resourceslice.ResourceSlice, new: resourceslice.ResourceSlice) -> None:
        self._notify(new, (_names(old) ^ _names(new)) | (_unhealthy(old) ^ _unhealthy(new)))

    def _delete(self, slice_: resourceslice.ResourceSlice) -> None:
        self._notify(slice_, _names(slice_))

    def _notify(self, slice_: resourceslice.ResourceSlice, names: Iterable[str]) -> None:
        devices_ = {DeviceID(slice_.spec.pool.name, name) for name in names}
        if not devices_:
            return
        node = slice_.spec.node_name
        # Pods of any node may use devices that belong to no node.
        listeners = [self._listeners.get(node)] if node else list(self._listeners.values())
        for listener in filter(None, listeners):
            listener(slice_.spec.driver, devices_)


def _names(slice_: resourceslice.ResourceSlice) -> set[str]:
    return {device.name for device in slice_.spec.devices}


def _unhealthy(slice_: resourceslice.ResourceSlice) -> set[str]:
    return {device.name for device in slice_.spec.devices if _is_unhealthy(device)}


def _is_unhealthy(device: resourceslice.Device) -> bool:
    return any(taint.key == UNHEALTHY_TAINT.key for taint in device.taints)
