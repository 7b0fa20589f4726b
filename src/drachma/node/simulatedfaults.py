"""What is wrong with devices that are only imagined, as annotations of their slices say.

======================================  =========================================================
annotation                              meaning
======================================  =========================================================
simulation.drachma.dev/prepare-seconds  how long it takes to prepare a device
simulation.drachma.dev/flap-seconds     how long a device is well before it falls ill, and ill before it is well
======================================  =========================================================

With ``.NAME`` behind it an annotation is about the device of that name. A device that is ill has a taint, and statuses
of pods show it as unhealthy (:mod:`drachma.node.simulatedhealth`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import structs

from drachma import errors
from drachma.api import devices, resourceslice
from drachma.client import Client
from drachma.node import simulationannotations
from drachma.node.simulatedhealth import ILLNESS, SimulatedHealth
from drachma.runtime import Informer, clock, informer

_log = logging.getLogger(__name__)

_INDEX: Final = "simulated-faults"
PREPARE: Final = "prepare-seconds"
FLAP: Final = "flap-seconds"
_SHORTEST_SECONDS: Final = 0.1
"""A device flaps no faster than this: every time is a write."""


class _Device(NamedTuple):
    slice: str
    name: str


class SimulatedFaults:
    """The faults of all simulated devices of a process; ``client`` may write slices."""

    def __init__(self, slices: Informer[resourceslice.ResourceSlice], *, client: Client, time: clock.Clock) -> None:
        self._slices: Final = slices
        self._client: Final = client
        self._clock: Final = time
        self._news: Final = asyncio.Event()
        self.health: Final = SimulatedHealth(slices)
        slices.cache.add_index(_INDEX, _pool_of_slow)
        slices.add_handler(
            informer.Handler(added=self._heard, updated=lambda _, new: self._heard(new), deleted=self._heard)
        )

    def prepare_seconds(self, driver: str, results: Sequence[tuple[str, str]]) -> float:
        """How long it takes to prepare devices of a driver, by pool and name, all at once.

        Raises:
            errors.InvalidValueError: an annotation is no number.
        """
        longest = 0.0
        for pool, device in results:
            for each in self._slices.cache.by(_INDEX, f"{driver}/{pool}"):
                if any(published.name == device for published in each.spec.devices):
                    seconds = simulationannotations.number(each.metadata.annotations, PREPARE, part=device)
                    longest = max(longest, seconds or 0.0)
        return longest

    async def run(self) -> None:
        """Lets devices flap until cancelled."""
        turns: dict[_Device, float] = {}
        while True:
            self._news.clear()
            periods = self._periods()
            now = self._clock.monotonic()
            turns = {device: turns.get(device, now + period) for device, period in periods.items()}
            for device, turn in turns.items():
                if turn <= now:
                    await self._turn(device)
                    turns[device] = now + periods[device]
            if turns:
                await clock.sleep_unless(self._news, min(turns.values()) - now, time=self._clock)
            else:
                await self._news.wait()

    def _heard(self, of: resourceslice.ResourceSlice) -> None:
        if simulationannotations.says(of.metadata.annotations, FLAP):
            self._news.set()

    def _periods(self) -> dict[_Device, float]:
        periods: dict[_Device, float] = {}
        for each in self._slices.cache:
            if not simulationannotations.says(each.metadata.annotations, FLAP):
                continue
            for device in each.spec.devices:
                try:
                    seconds = simulationannotations.number(each.metadata.annotations, FLAP, part=device.name)
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
                    others = tuple(taint for taint in each.taints if taint.key != ILLNESS.key)
                    taints = others if len(others) < len(each.taints) else (*others, ILLNESS)
                    await self._client.update(tainted(current, device.name, taints=taints))
        except (errors.RefusedError, errors.UnreachableError) as error:
            _log.warning("ResourceSlice %s, device %s: does not flap this time: %s", device.slice, device.name, error)


def tainted(
    of: resourceslice.ResourceSlice, name: str, *, taints: tuple[devices.DeviceTaint, ...]
) -> resourceslice.ResourceSlice:
    """A slice with other taints on one of its devices; the pool's generation stays, as its other slices do."""
    changed = tuple(structs.replace(each, taints=taints) if each.name == name else each for each in of.spec.devices)
    return structs.replace(of, spec=structs.replace(of.spec, devices=changed))


def _pool_of_slow(of: resourceslice.ResourceSlice) -> tuple[str, ...]:
    is_slow = simulationannotations.says(of.metadata.annotations, PREPARE)
    return (f"{of.spec.driver}/{of.spec.pool.name}",) if is_slow else ()
