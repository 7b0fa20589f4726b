"""Health of devices as their drivers report it, and the part of it that pod statuses show (KEP-4680)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from drachma.api.pod import Container, Pod
from drachma.claims import podclaims
from drachma.node.claims.preparedclaims import Device, Key, PreparedClaims
from drachma.runtime.clock import Clock

_DEFAULT_SECONDS: Final = 30
_MESSAGE_LENGTH: Final = 1024
_DEVICES_PER_DRIVER: Final = 16384
_STATES: Final = ("Unknown", "Healthy", "Unhealthy")
"""States by their number in reports."""


class Health(NamedTuple):
    """Health of a device: Unknown, Healthy or Unhealthy, and the driver's message."""

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


HealthListener: TypeAlias = Callable[[str, set[DeviceID]], None]
"""Receives the name of a driver and its devices whose health changed; the set may be empty."""


class HealthReports(Protocol):
    """Health of devices: :class:`DeviceHealth`, or the health of simulated devices."""

    def get(self, driver: str, device: DeviceID) -> Health: ...


class DeviceHealth:
    """Last reports of all drivers. A report expires unless the driver repeats it in time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._reports: Final[dict[str, dict[DeviceID, _Report]]] = {}

    def get(self, driver: str, device: DeviceID) -> Health:
        report = self._reports.get(driver, {}).get(device)
        return report.health if report is not None and report.expires > self._clock.monotonic() else UNKNOWN

    def update(self, driver: str, messages: Iterable[Any]) -> set[DeviceID]:
        """Store the reports of a driver. Return the devices whose health changed, expired reports included."""
        now = self._clock.monotonic()
        reports = self._reports.setdefault(driver, {})
        changes = {device for device, report in reports.items() if report.expires <= now}
        for device in changes:
            del reports[device]
        for message in messages:
            device = DeviceID(message.device.pool_name, message.device.device_name)
            if device not in reports and len(reports) >= _DEVICES_PER_DRIVER:
                continue
            seconds = message.health_check_timeout_seconds
            state = _STATES[message.health] if message.health < len(_STATES) else UNKNOWN.state
            health = Health(state, _shorten(message.message))
            if device not in reports or reports[device].health != health:
                changes.add(device)
            reports[device] = _Report(health, now + (seconds if seconds > 0 else _DEFAULT_SECONDS))
        return changes

    def forget(self, driver: str) -> set[DeviceID]:
        """Drop the reports of a driver. Return the devices that had one."""
        return set(self._reports.pop(driver, ()))


def affected_pods(claims: PreparedClaims, driver: str, devices: set[DeviceID]) -> set[str]:
    """Return the UIDs of pods that have one of a driver's devices."""
    return {
        uid
        for record in claims
        if driver in record.drivers
        and any(DeviceID(each.pool_name, each.device_name) in devices for each in record.drivers[driver].devices)
        for uid in record.pods
    }


def statuses(
    claims: PreparedClaims, health: HealthReports, pod: Pod, container: Container, *, has_messages: bool = True
) -> list[dict[str, Any]]:
    """Return ``allocatedResourcesStatus`` of a container: its devices by claim, or by request if it names one.

    ``has_messages`` includes the messages of drivers.
    """
    entries: dict[str, list[dict[str, Any]]] = {}
    names: Mapping[str, str] = {entry.name: reference.name for entry, reference in podclaims.named(pod)}
    for claim in container.resources.claims:
        record = claims.get(Key(pod.metadata.namespace, names.get(claim.name, "")))
        if record is None:
            continue
        request = claim.request.partition("/")[0]
        resources: dict[str, dict[str, Any]] = {}
        for driver, state in record.drivers.items():
            for device in state.devices:
                if device.serves(request):
                    entry = _entry(health, driver, device, has_messages=has_messages)
                    resources.setdefault(_resource_id(driver, device), entry)
        if resources:
            title = f"claim:{claim.name}/{claim.request}" if claim.request else f"claim:{claim.name}"
            entries[title] = list(resources.values())
    return [{"name": title, "resources": resources} for title, resources in entries.items()]


def _entry(reports: HealthReports, driver: str, device: Device, *, has_messages: bool) -> dict[str, Any]:
    health = reports.get(driver, DeviceID(device.pool_name, device.device_name))
    entry = {"resourceID": _resource_id(driver, device), "health": health.state}
    return {**entry, "message": health.message} if health.message and has_messages else entry


def _resource_id(driver: str, device: Device) -> str:
    return device.cdi_device_ids[0] if device.cdi_device_ids else f"{driver}/{device.pool_name}/{device.device_name}"


def _shorten(message: str) -> str:
    return message if len(message) <= _MESSAGE_LENGTH else f"{message[: _MESSAGE_LENGTH - 3]}..."
