"""What drivers say about the health of devices, and what of it a pod's status shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from drachma.api import pod
from drachma.claims import podclaims
from drachma.node.preparedclaims import Device, Key, PreparedClaims
from drachma.runtime import clock

_DEFAULT_SECONDS: Final = 30
_MESSAGE_LENGTH: Final = 1024
_DEVICES_PER_DRIVER: Final = 16384
_STATES: Final = ("Unknown", "Healthy", "Unhealthy")
"""By the number that reports have."""


class Health(NamedTuple):
    """How a device is: Unknown, Healthy or Unhealthy, and what the driver says to that."""

    state: str
    message: str = ""


UNKNOWN: Final = Health(_STATES[0])
HEALTHY: Final = Health(_STATES[1])
UNHEALTHY: Final = Health(_STATES[2])


class _Report(NamedTuple):
    health: Health
    expires: float


class DeviceID(NamedTuple):
    """A device of a driver."""

    pool: str
    device: str


Heard: TypeAlias = Callable[[str, set[DeviceID]], None]
"""Is told which devices of a driver are not as they were, if any."""


class Reports(Protocol):
    """What is known of the health of devices: :class:`DeviceHealth`, or that of simulated ones."""

    def get(self, driver: str, device: DeviceID) -> Health: ...


class DeviceHealth:
    """The last reports of all drivers. A report that is not repeated in time is forgotten."""

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time
        self._reports: Final[dict[str, dict[DeviceID, _Report]]] = {}

    def get(self, driver: str, device: DeviceID) -> Health:
        report = self._reports.get(driver, {}).get(device)
        return report.health if report is not None and report.expires > self._clock.monotonic() else UNKNOWN

    def update(self, driver: str, reports: Iterable[Any]) -> set[DeviceID]:
        """Takes reports in; which devices are not as they were. Those that were forgotten meanwhile are among them."""
        now = self._clock.monotonic()
        kept = self._reports.setdefault(driver, {})
        changed = {device for device, report in kept.items() if report.expires <= now}
        for device in changed:
            del kept[device]
        for report in reports:
            device = DeviceID(report.device.pool_name, report.device.device_name)
            if device not in kept and len(kept) >= _DEVICES_PER_DRIVER:
                continue
            seconds = report.health_check_timeout_seconds
            state = _STATES[report.health] if report.health < len(_STATES) else UNKNOWN.state
            health = Health(state, _shortened(report.message))
            if device not in kept or kept[device].health != health:
                changed.add(device)
            kept[device] = _Report(health, now + (seconds if seconds > 0 else _DEFAULT_SECONDS))
        return changed

    def forget(self, driver: str) -> set[DeviceID]:
        """Knows nothing of a driver's devices any more; of which something was known."""
        return set(self._reports.pop(driver, ()))


def concerned_pods(claims: PreparedClaims, driver: str, devices: set[DeviceID]) -> set[str]:
    """The uids of pods that have one of a driver's devices."""
    return {
        uid
        for record in claims
        if driver in record.drivers
        and any(DeviceID(each.pool_name, each.device_name) in devices for each in record.drivers[driver].devices)
        for uid in record.pods
    }


def statuses(claims: PreparedClaims, health: Reports, of: pod.Pod, container: pod.Container) -> list[dict[str, Any]]:
    """``allocatedResourcesStatus`` of a container: its devices by claim, or by request where it names one."""
    entries: dict[str, list[dict[str, Any]]] = {}
    names: Mapping[str, str] = {entry.name: reference.name for entry, reference in podclaims.named(of)}
    for claim in container.resources.claims:
        record = claims.get(Key(of.metadata.namespace, names.get(claim.name, "")))
        if record is None:
            continue
        request = claim.request.partition("/")[0]
        resources: dict[str, dict[str, Any]] = {}
        for driver, state in record.drivers.items():
            for device in state.devices:
                if device.serves(request):
                    resources.setdefault(_resource_id(driver, device), _entry(health, driver, device))
        if resources:
            title = f"claim:{claim.name}/{claim.request}" if claim.request else f"claim:{claim.name}"
            entries[title] = list(resources.values())
    return [{"name": title, "resources": resources} for title, resources in entries.items()]


def _entry(health: Reports, driver: str, device: Device) -> dict[str, Any]:
    known = health.get(driver, DeviceID(device.pool_name, device.device_name))
    entry = {"resourceID": _resource_id(driver, device), "health": known.state}
    return {**entry, "message": known.message} if known.message else entry


def _resource_id(driver: str, device: Device) -> str:
    return device.cdi_device_ids[0] if device.cdi_device_ids else f"{driver}/{device.pool_name}/{device.device_name}"


def _shortened(message: str) -> str:
    return message if len(message) <= _MESSAGE_LENGTH else f"{message[: _MESSAGE_LENGTH - 3]}..."
